"""What carries one frame of a robot or several, and the motion of these frames order by order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hodyn_ros.dynamics.named_frames import find_frame, supporting_bodies
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.spatial import SpatialMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import NO_LENGTH
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class Carriers:
    """The bodies that carry some frames of a robot, as a robot of their own."""

    model: TreeModel  # of these bodies alone; a floating base stays body 0
    joints: list[int]  # of them, as indices of joints of the whole robot
    frames: list[Frame]  # on them
    paths: list[list[int]]  # for every frame the joints that carry it, as indices into `joints`
    name: str  # of the frames


def carriers_of(model: TreeModel, frames: Mapping[str, Frame], names: Sequence[str | int]) -> Carriers:
    """Return what carries bodies or named frames.

    Raises InputError for an unknown name, or a frame that no joint moves.
    """
    result = [find_frame(model, frames, name) for name in names]
    paths = [supporting_bodies(model, frame.body) for frame in result]
    for name, path in zip(names, paths):
        if not any(j >= model.first_jointed_body for j in path):
            raise InputError(f"no joint moves {name!r}; choose a body or frame that a joint carries")
    bodies = sorted({body for path in paths for body in path})
    place = {body: i for i, body in enumerate(bodies)}
    jointed = [j for j in bodies if j >= model.first_jointed_body]
    joints = [model.joint_of(j) for j in jointed]
    part = replace(
        model,
        parents=tuple(place.get(model.parents[j], -1) for j in bodies),
        screws=model.screws[bodies],
        placements=model.placements[bodies],
        masses=model.masses[bodies],
        coms=model.coms[bodies],
        inertias=model.inertias[bodies],
        joint_names=tuple(model.joint_names[i] for i in joints),
        body_names=tuple(model.body_names[j] for j in bodies),
    )
    return Carriers(
        part,
        joints,
        [Frame(place[frame.body], frame.pose) for frame in result],
        [[jointed.index(j) for j in path if j in jointed] for path in paths],
        ", ".join(map(str, names)),
    )


def last_body(model: TreeModel) -> str:
    """Return the last body of a robot with one leaf; InputError where there are more."""
    leaves = [body for body, children in zip(model.body_names, model.children) if not children]
    if len(leaves) > 1:
        raise InputError(
            f"robot {model.name!r} ends in several bodies, {leaves}; say which to move as body=..."
        )
    return leaves[0]


class FrameMotion(Protocol):
    """Frames in hybrid representation, one after the other, as far as the motion of coordinates is known.

    `name` of the frames; `position`: all that says where they are; `poses` (F, 4, 4); `rates[r]`
    (coordinates,) for r = 0..order-1; `jacobians[r]` (6 F, coordinates) for r = 0..order.
    Lengths are compared with angles in units of `unit` [m], and coordinates among each other in `sizes`
    (coordinates,); singular values so found are compared with the largest, or with `natural`. `gain`: how
    much more than coordinates the joints move by them that follow, and so does an error.
    """

    name: str
    unit: float
    sizes: Array
    natural: float
    gain: float
    position: Array
    poses: list[Array]
    rates: list[Array]
    jacobians: list[Array]

    def beside(self, change: Array) -> Self:
        """Return the frames where positions differ by a change (coordinates,), nothing of rates known yet."""

    def extend(self, rates: Array) -> None:
        """Go one order higher with the next derivative (coordinates,) of the motion."""

    def bias(self) -> Array:
        """Return the next derivative (6 F,) of the twists if that of the rates were zero.

        This is `(J q')^(r)` without its leading term, and the share of a floating base.
        """


class CarriedMotion:
    """Frames in hybrid representation, one after the other, as far as the joint motion is known.

    `poses` (F, 4, 4); `rates[r]` (joints,) for r = 0..order-1; `jacobians[r]` (6 F, joints) for r = 0..order.
    Mueller (2020), Algorithm 2.
    """

    natural, gain = 0.0, 1.0  # as axes have unit length, and all joints are coordinates

    def __init__(self, carriers: Carriers, position: Array, base: BaseMotion | None) -> None:
        self._carriers, self._base = carriers, base
        self.position, self.name = position, carriers.name
        self._motion = SpatialMotion(carriers.model, position[None], base)
        self._screws = self._motion.screws[carriers.model.first_jointed_body :]
        self._base_twists = None if base is None else base.in_representation("spatial").twists
        self.poses: list[Array] = [self._motion.poses[frame.body] @ frame.pose for frame in carriers.frames]
        self.rates: list[Array] = []
        self.jacobians: list[Array] = [self._jacobian(0)]
        far = max(float(np.abs(pose[:3, 3]).max()) for pose in self.poses)
        self.unit = length_unit(self.jacobians[0], far)
        sliding = ~self.jacobians[0].reshape(-1, 6, len(self._screws))[:, :3].any(axis=(0, 1))
        self.sizes = np.where(sliding, self.unit, 1.0)

    def beside(self, change: Array) -> CarriedMotion:
        """Return the frames at positions that differ by a change (joints,)."""
        return CarriedMotion(self._carriers, self.position + change, self._base)

    def extend(self, rates: Array) -> None:
        """Go one order higher with the next derivative (joints,) of the joint motion."""
        self.rates.append(rates)
        self._motion.extend(rates)
        self.jacobians.append(self._jacobian(len(self.rates)))

    def bias(self) -> Array:
        """Return the next derivative (6 F,) of the twists if that of the joint velocities were zero."""
        order = len(self.rates)
        known = product_derivative(self.jacobians, [*self.rates, np.zeros(len(self._screws))], order)
        if self._base_twists is None:
            return known
        shares = [
            self._in_hybrid(list(self._base_twists[: order + 1]), f)[order] for f in range(len(self.poses))
        ]
        return known + np.concatenate(shares)

    def _jacobian(self, order: int) -> Array:
        result = np.zeros((6 * len(self.poses), len(self._screws)))
        for f, path in enumerate(self._carriers.paths):
            columns = [np.stack([self._screws[i][r] for i in path]) for r in range(order + 1)]
            result[6 * f : 6 * f + 6, path] = self._in_hybrid(columns, f)[order].T
        return result

    def _in_hybrid(self, spatial: list[Array], f: int) -> Array:
        twists = self._motion.twists[self._carriers.frames[f].body]
        return convert_screws(spatial, self.poses[f], twists, "spatial", "hybrid")


def length_unit(jacobian: Array, far: float) -> float:
    """Return the longest lever arm [m] of the rotating joints of hybrid Jacobians (6 F, joints); 1 m if none.

    It makes lengths comparable with angles. `far` [m]: how far the frames are from the world's origin, whose
    rounding is no lever arm.
    """
    parts = jacobian.reshape(-1, 6, jacobian.shape[1])
    levers = np.linalg.norm(parts[:, 3:], axis=1) * parts[:, :3].any(axis=1)
    longest = float(levers.max(initial=0.0))
    return longest if longest > NO_LENGTH * far else 1.0
