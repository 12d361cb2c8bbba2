"""Dynamics of a platform on serial limbs, by kernels that compute limbs of one build side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.sample_loop import naming_sample
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.limbs.direct_kinematics import DirectKinematics
from hodyn_ros.engine.limbs.kernel import LimbKernelSpec, ParallelKernel
from hodyn_ros.errors import ConvergenceError, InputError
from hodyn_ros.formulations import limb_decomposition
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, twists_to_body, wrenches_to_body
from hodyn_ros.lie.se3 import Array, exp, inverse, log
from hodyn_ros.model.closure import Closure
from hodyn_ros.model.parallel.closure import idle_twists, model_of

_HIGHEST_ORDER = 6  # of compiled kernels: code grows with its square, and takes seconds to compile
_APART = 1e-9  # [rad], and of the robot's size: how far a pose may be from the one reached
_STEP = 0.05  # [rad], and of the robot's size, of a kernel on its way to a pose farther off
_ITERATIONS = 20  # of Newton's method, to see how near a limb comes
_FARTHEST = 25.0  # [rad], and robot sizes
_OUTSIDE = 1e-9  # share of a twist that may lie outside of those that the platform can have


class PlatformDynamics:
    """The kernels of a robot whose platform moves, at every pose, with the same twists in its own frame."""

    def __init__(self, closure: Closure) -> None:
        self.model = model_of(closure)
        self._idle = idle_twists(closure)
        self._kernels: Kept[tuple[int, LimbKernelSpec], ParallelKernel] = Kept()
        self._direct: Kept[int, DirectKinematics] = Kept()

    def compiles(self, order: int, loads: Loads = ()) -> bool:
        """Whether there is a kernel of an order for wrenches on these bodies."""
        return order <= _HIGHEST_ORDER and all(body == 0 for body, _ in loads)

    def kernel(self, order: int, setting: LimbKernelSpec) -> ParallelKernel:
        """Return a kernel, compiled when first asked for."""
        return self._kernels.made((order, setting), lambda: ParallelKernel(self.model, order, setting))

    def direct_kinematics(self, order: int) -> DirectKinematics:
        """Return the code that finds the platform's motion from its drives, compiled when first asked for."""
        return self._direct.made(order, lambda: DirectKinematics(self.model, order))

    def effort_kernel(self, order: int, loaded: bool, preload: bool) -> ParallelKernel:
        """Return the kernel of efforts; it takes wrenches as `sums_of` them."""
        self.kernel(0, LimbKernelSpec())  # for `approach`, lest it be compiled amid a stream
        return self.kernel(order, LimbKernelSpec(loads=loaded, preload=preload))

    def decomposed(
        self, joints: Array, base: BaseMotion, wrenches: Sequence[AppliedWrench], preload: Array | None
    ) -> Array:
        """Return the efforts (order + 1, driven) by the published limb decomposition.

        `joints` (N,): positions of the joints of the tree; `base`: the motion of the platform.
        """
        model, order = self.model, len(base.twists) - 2
        if any(wrench.body not in (0, model.platform.name) for wrench in wrenches):
            raise InputError(
                f"by 'limb_decomposition' wrenches act on the platform, {model.platform.name!r}, alone"
            )
        positions = np.concatenate([joints[part][::-1] for part in model.slices])
        in_body, in_world = sums_of(
            [w.representation for w in wrenches], [w.up_to(order) for w in wrenches], order
        )
        twists = base.in_representation("body_fixed").twists
        applied = in_body + wrenches_to_body(base.pose, twists, in_world)
        leader = np.zeros((order + 1, model.n_driven)) if preload is None else preload
        return limb_decomposition.inverse_dynamics(model, positions, base.pose, twists, applied, leader)

    def approach(self, pose: Array, memory: Array) -> None:
        """Take a memory towards a pose, in steps too short to change the branch, as far as limbs follow.

        Raises ConvergenceError for a pose so far away that nobody means it.
        """
        start = memory[0, -16:].reshape(4, 4).copy()
        way = log(inverse(start) @ pose)
        longest = float(np.hypot(np.linalg.norm(way[:3]), np.linalg.norm(way[3:]) / self.model.size))
        if not longest <= _FARTHEST:
            raise ConvergenceError(
                f"the platform of {self.model.name!r} does not get to that pose: it is {longest:.3g} times "
                "the robot's size, or rad, from the last one; give a pose within the workspace",
                float(np.linalg.norm(way[:3])),
                float(np.linalg.norm(way[3:])),
            )
        kernel, rest = self.kernel(0, LimbKernelSpec()), np.zeros((2, 6))
        steps = int(np.ceil(longest / _STEP))
        for i in range(1, steps + 1):
            result = kernel.function(start @ exp(way * (i / steps)), rest, memory)
            if not result.item(kernel.defect_at) < 1.0:
                return

    def check_limbs(self, pose: Array, memory: Array) -> None:
        """Take the limbs of a memory to a pose, on any branch.

        Raises ConvergenceError naming the limb that stays farthest from it, if one stays away.
        """
        scale = np.repeat([1.0, 1.0 / self.model.length], 3)
        worst, name = np.zeros(6), ""
        for limb, part in zip(self.model.limbs, self.model.slices):
            positions = memory[0, part][::-1].copy()
            for _ in range(_ITERATIONS):
                error = log(inverse(limb.pose(positions)) @ pose)
                jacobian = scale[:, None] * limb.jacobian(positions)
                step = np.linalg.lstsq(jacobian, scale * error, rcond=None)[0]
                positions = positions + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
            memory[0, part] = positions[::-1]
            if np.linalg.norm(scale * error) > np.linalg.norm(scale * worst):
                worst, name = error, limb.name
        memory[0, -16:] = pose.ravel()
        angle, distance = float(np.linalg.norm(worst[:3])), float(np.linalg.norm(worst[3:]))
        if max(angle, distance / self.model.size) > _APART:
            raise ConvergenceError(
                f"loop {name!r} of robot {self.model.name!r} does not close there: it stays open by "
                f"{angle:.3g} rad and {distance:.3g} m; give coordinates within the workspace, or nearer to "
                "the last ones",
                angle,
                distance,
            )

    def check_pose(self, reached: Array, leader: Array) -> None:
        """Refuse a pose (4, 4) the platform cannot have: the one reached differs; ConvergenceError."""
        apart = log(inverse(reached) @ leader)
        angle, distance = float(np.linalg.norm(apart[:3])), float(np.linalg.norm(apart[3:]))
        if angle > _APART or distance > _APART * self.model.size:
            raise ConvergenceError(
                f"the platform of {self.model.name!r} does not get to that pose: the nearest found is off by "
                f"{angle:.3g} rad and {distance:.3g} m; give a pose that its limbs let it reach",
                angle,
                distance,
            )

    def check_twists(self, pose: Array, twists: Array) -> None:
        """Refuse spatial twists (orders, 6) of a motion that the platform cannot have; InputError."""
        model = self.model
        if model.delta == 6 or not len(twists):
            return
        scale = np.repeat([1.0, 1.0 / model.length], 3)
        basis = np.linalg.qr(scale[:, None] * model.dof)[0]
        measured = scale * twists_to_body(pose, twists)
        off = measured - (measured @ basis) @ basis.T
        whole = np.linalg.norm(measured)
        for r, part in enumerate(off):
            if np.linalg.norm(part) > _OUTSIDE * whole:
                what = "twist" if r == 0 else f"derivative {r} of the twist"
                raise InputError(
                    f"the platform of {model.name!r} cannot move like that: its {what} has the part "
                    f"{np.array2string(part / scale, precision=3)} (body axes) outside of its degrees of "
                    "freedom"
                )

    def check_loads(self, base: BaseMotion, wrenches: Sequence[AppliedWrench], order: int) -> None:
        """Refuse wrenches that would turn the platform where neither limb nor drive holds it; InputError.

        At one motion, or at any of a batch.
        """
        on_platform = [w for w in wrenches if self.model.platform.name == w.body or w.body == 0]
        if not on_platform or not self._idle.shape[1]:
            return
        in_body, in_world = sums_of(
            [w.representation for w in on_platform], [w.up_to(order) for w in on_platform], order
        )
        total = in_body + base.wrenches_in_body(np.broadcast_to(in_world, (*base.batch, order + 1, 6)))
        power = np.abs(total @ self._idle).max(axis=(-2, -1))
        leader = max(np.abs(in_body).max(), np.abs(in_world).max())
        size = np.abs(self._idle).max() * np.maximum(np.abs(total).max(axis=(-2, -1)), leader)
        wrong = power > _OUTSIDE * size
        if not wrong.any():
            return
        if base.batch:
            first = int(wrong.argmax())
            with naming_sample(first):
                self.check_loads(base.one(first), wrenches, order)
        powers = total @ self._idle
        worst = int(np.abs(powers).max(axis=1).argmax())
        raise InputError(
            "the wrench on the platform would turn it on the joints that carry it, where no drive holds it "
            f"(power {powers[worst].tolist()} at order {worst}, per unit of that motion); leave that part out"
        )


def sums_of(frames: Sequence[str], loads: Sequence[Array], order: int) -> list[Array]:
    """Return the sums of wrenches in the frame of the platform, and of those in the world."""
    return [
        sum((load for load, own in zip(loads, frames) if own == frame), np.zeros((order + 1, 6)))
        for frame in ("body_fixed", "spatial")
    ]
