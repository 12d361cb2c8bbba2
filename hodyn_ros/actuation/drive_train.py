"""The drives of all joints of a robot, each of its own kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.compiled_motors import CompiledMotors, MotorMotion
from hodyn_ros.actuation.joint_drive import JointDrive, MotorJets, joint_drive
from hodyn_ros.actuation.springs.damped_spring import DampedSpring
from hodyn_ros.checks import check_finite, check_result, real_array, shaped_array
from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.errors import HodynError, InputError, ModelError, ShapeError
from hodyn_ros.lie.jets import Array, to_derivatives, to_taylor
from hodyn_ros.model.arrays import counted
from hodyn_ros.model.drive_spec import DriveSpec

Row = Sequence[Any]  # numbers, or scalars of the tracer


class Followed(NamedTuple):
    """What the motors do along a sampled motion, and the deflections that damped springs end with."""

    motors: MotorMotion  # (N, orders, motors)
    deflections: Array  # (N, n) at each sample; nan for joints without a memory
    end: Array  # (n,) one sample after the last, to go on from


class DriveForces(NamedTuple):
    """What drives do at an instant [N.m or N]."""

    sensed: Array  # (..., n) what torque sensors between drives and links show; the effort where rigid
    links: Array  # (..., n) what moves the links
    motors: Array  # (..., motors) what accelerates motors that move by themselves; zero where rigid


class DriveTrain:
    """Drives of any kind, mixed freely: from motion and torques of the links to what the motors have to do.

    `specs`, one per joint; `joint_names` for errors, which ModelError is where a drive cannot be. Arrays hold
    derivatives by order on the axis before the last, and on the last axis the joints, or the motors: joint
    after joint, two for a joint of variable stiffness. Everything is reflected to the link side.

    >>> from hodyn_ros.model.drive_spec import series_elastic
    >>> train = DriveTrain(series_elastic([100.0], 0.5))
    >>> q = np.zeros((5, 1)); torques = np.array([[10.0], [0.0], [200.0]])
    >>> motor = train.feedforward(q, torques)
    >>> motor.position[0], motor.effort[0]
    (array([0.1]), array([11.]))

    Attributes:
        stiffness: Of the springs without deflection (n,), infinite where rigid; what joints of variable
            stiffness hold where no trajectory of it is given [N.m/rad].
        motor_inertia: Of all motors (motors,), reflected to the link side [kg m^2 or kg].
        linear: Whether all are rigid or linear springs, and nothing rubs: `theta = q + Q / K`,
            `tau = B theta'' + Q`.
        linear_springs: The same, but that motors may have friction.
    """

    def __init__(self, specs: Sequence[DriveSpec], joint_names: Sequence[str] | None = None) -> None:
        self.specs = tuple(specs)
        names = joint_names if joint_names is not None else [str(i) for i in range(len(self.specs))]
        self.joint_names = tuple(names)
        if len(self.joint_names) != len(self.specs):
            raise ModelError(f"{len(self.specs)} drives need as many names, found {len(self.joint_names)}")
        drives = []
        for name, spec in zip(self.joint_names, self.specs):
            with _naming(name, ModelError):
                drives.append(joint_drive(spec))
        self.drives = tuple(drives)
        counts = [drive.transmission.n_motors for drive in self.drives]
        self.motor_joints: tuple[int, ...] = tuple(j for j, count in enumerate(counts) for _ in range(count))
        self.motor_names = tuple(
            name if count == 1 else f"{name}/{'first' if motor == 0 else 'second'}"
            for name, count in zip(self.joint_names, counts)
            for motor in range(count)
        )
        self.elastic = np.array([not drive.rigid for drive in self.drives])
        self.commanded = np.array([drive.transmission.commanded for drive in self.drives])
        self.damped = np.array([drive.transmission.damped for drive in self.drives])
        self.stiffness = np.array([spec.stiffness for spec in self.specs])
        self.motor_inertia = np.array([inertia for drive in self.drives for inertia in drive.motor_inertias])
        for array in (self.stiffness, self.motor_inertia):
            array.setflags(write=False)
        self.linear = all(drive.linear for drive in self.drives)
        self.linear_springs = all(drive.linear_spring for drive in self.drives)
        self._compiled = CompiledMotors(self.motors)
        self._torques: Kept[Any, Callable[..., Array]] = Kept()  # compiled, by shapes

    @classmethod
    def of(cls, drives: Sequence[DriveSpec] | DriveTrain, joint_names: Sequence[str]) -> DriveTrain:
        """Return the drives of joints with these names."""
        if not isinstance(drives, DriveTrain):
            return cls(drives, joint_names)
        return drives if drives.joint_names == tuple(joint_names) else cls(drives.specs, joint_names)

    def __repr__(self) -> str:
        elastic = int(self.elastic.sum())
        return f"<{type(self).__name__}: {counted(self.n_joints, 'drive')}, {elastic} elastic>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.specs, self.joint_names)

    @property
    def n_joints(self) -> int:
        """Number of joints n."""
        return len(self.drives)

    @property
    def n_motors(self) -> int:
        """Number of motors; a joint of variable stiffness has two."""
        return len(self.motor_joints)

    def damping(self, time: float) -> Array:
        """Return what damps springs (n,) that pass in `time` [s], `K t`; zero where rigid [N.m s/rad]."""
        return np.where(self.elastic, self.stiffness, 0.0) * time

    def effort_limits(self, joint_efforts: ArrayLike) -> Array:
        """Return the largest efforts of the motors (motors,) [N.m or N], those of their own drives.

        Where a drive has none, that of its joint counts, from `joint_efforts` (n,).
        """
        return self._own_limits([drive.limits.torque for drive in self.drives], joint_efforts)

    def effort_rate_limits(self, joint_effort_rates: ArrayLike) -> Array:
        """Return the largest effort rates of the motors (motors,) [N.m/s or N/s]; as `effort_limits`."""
        return self._own_limits([drive.limits.torque_rate for drive in self.drives], joint_effort_rates)

    def _own_limits(self, own: Sequence[float], shared: ArrayLike) -> Array:
        chosen = np.where(np.isfinite(own), own, np.asarray(shared, dtype=np.float64))
        return np.asarray(chosen[list(self.motor_joints)])

    def feedforward(
        self,
        q: ArrayLike,
        torques: ArrayLike,
        *,
        stiffness: ArrayLike | None = None,
        deflection: ArrayLike | None = None,
    ) -> MotorMotion:
        """Return positions and efforts of the motors with their derivatives, matching a desired link motion.

        `q` (..., order + 3, n) and `torques` (..., order + 1, n) by derivative order; `stiffness`
        (..., order + 1, n) of joints whose stiffness is commanded, by default constant; `deflection` (..., n)
        of damped springs at this instant, nan or None for the slow manifold. Positions come with the
        derivatives that all joints have, `order` at least; efforts up to `order - 2` where any joint has a
        spring, `order - 1` where all these have a known deflection. Raises InputError naming the joint.
        """
        if stiffness is None and deflection is None:
            motors = self._compiled(q, torques)
            if motors is not None:
                return motors
        motion, loads = self._matched(q, torques)
        command = self._command(stiffness, loads.shape)
        start = None
        if deflection is not None:
            start = shaped_array("deflection", deflection, (*loads.shape[:-2], self.n_joints))
        result = self.motors(motion, loads, command, start)
        check_result(*result)
        return result

    def motors(
        self, motion: Array, loads: Array, command: Array | None = None, start: Array | None = None
    ) -> MotorMotion:
        """Compute what `feedforward` does from arrays alone, which may hold scalars of the tracer."""
        self._match(motion, loads)
        if command is None:
            command = self._command(None, loads.shape)
        by_joint = []
        for j, drive in enumerate(self.drives):
            with _naming(self.joint_names[j]):
                memory = None
                # nan alone differs from itself, and scalars of the tracer do not
                if start is not None and self.damped[j] and np.all(start[..., j] == start[..., j]):
                    memory = start[..., j]
                sigma = to_taylor(_by_order(command, j)) if drive.transmission.commanded else None
                torque = to_taylor(_by_order(loads, j))
                by_joint.append(drive.motors(to_taylor(_by_order(motion, j)), torque, sigma, memory))
        return _gathered(by_joint)

    def motor_efforts(self, q: Array, theta: Array, torques: Array) -> Array:
        """Return the efforts (order + 1, n) of motors whose motion is known beside that of their links.

        `tau = B theta'' + f_m(theta', Q_t) + Q_t` with `Q_t = Q + f_l(q')`, from `q` and `theta`
        (order + 3, n) and `torques` (order + 1, n), one motor a joint. The arrays may hold scalars of the
        tracer.
        """
        columns = [
            drive.motor_effort(*(to_taylor(_by_order(stack, j)) for stack in (q, theta, torques)))
            for j, drive in enumerate(self.drives)
        ]
        return to_derivatives(np.stack(columns, axis=-1))

    def follow(
        self,
        q: Array,
        torques: Array,
        period: float,
        *,
        start: ArrayLike | None = None,
        stiffness: ArrayLike | None = None,
    ) -> Followed:
        """Return what the motors do at samples `period` [s] apart, damped springs with their memory.

        `q` (N, order + 3, n), `torques` (N, order + 1, n); between two samples the torque is its Taylor
        polynomial, and the deflection is advanced exactly. `start` (n,): deflections at the first sample, by
        default those of the slow manifold; give the `end` of one call to the next one. Where the memory is
        shorter than a sample, the deflection is that of the slow manifold.
        """
        motion, loads = self._matched(q, torques)
        if loads.ndim != 3 or not len(loads):
            shape = f"(N, order + 1, {self.n_joints}) with a sample at least"
            raise ShapeError("torques", shape, loads.shape)
        if not 0.0 < period < np.inf:
            raise InputError(f"the period must be positive and finite, found {period!r} s")
        deflections = np.full((len(loads), self.n_joints), np.nan)
        end = np.full(self.n_joints, np.nan)
        before = end if start is None else shaped_array("start", start, (self.n_joints,))
        for j, drive in enumerate(self.drives):
            spring = drive.transmission
            if not isinstance(spring, DampedSpring):
                continue
            jets = drive.transmitted(to_taylor(_by_order(motion, j)), to_taylor(_by_order(loads, j)))
            if spring.settles_within(period):
                end[j] = spring.advanced(jets[:, -1], spring.deflection_under(jets[:, -1])[0], period)
                continue
            now = spring.deflection_under(jets[:, 0])[0] if np.isnan(before[j]) else before[j]
            for i in range(len(loads)):
                deflections[i, j] = now
                now = spring.advanced(jets[:, i], now, period)
            end[j] = now
        motors = self.feedforward(motion, loads, stiffness=stiffness, deflection=deflections)
        return Followed(motors, deflections, end)

    def link_torque(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """Return what the transmissions hand to the links (orders', n), by order.

        `q` (orders, n), `theta` (orders, motors). One order less than given where springs are damped. Rigid
        joints, whose torque is not determined by positions, have zero.
        """
        link, motor = (np.ascontiguousarray(x, dtype=np.float64) for x in (q, theta))
        shapes = link.shape, motor.shape
        if link.ndim != 2 or motor.ndim != 2:
            return self.loads(link, motor)[0]
        if shapes not in self._torques:
            kernel = Kernel(self._traced_torques, [("link motion", shapes[0]), ("motor motion", shapes[1])])
            self._torques[shapes] = kernel.function
        result: Array = self._torques[shapes](link, motor)
        return result[:-1] if result.item(-1) == 0.0 else self.loads(link, motor)[0]

    def _traced_torques(self, q: Stack, theta: Stack) -> Stack:
        torques = self.loads(np.array(q, dtype=object), np.array(theta, dtype=object))[0]
        return [*torques.tolist(), [*[0.0] * (self.n_joints - 1), q[0][0].graph.violation()]]

    def loads(self, q: Array, theta: Array) -> tuple[Array, Array]:
        """Return torques on the links (orders', n) and what the motors hold (orders', motors), by order."""
        link, motor = to_taylor(q), to_taylor(theta)
        orders = len(link) - int(self.damped.any())
        on_links, on_motors = (np.zeros((orders, m), link.dtype) for m in (self.n_joints, self.n_motors))
        for drive, j, motors in self._places():
            if not drive.rigid:
                with _naming(self.joint_names[j]):
                    loads = drive.transmission.loads(link[:, j], motor[:, motors].T)
                on_links[:, j] = loads.link[:orders]
                on_motors[:, motors] = loads.motors[:, :orders].T
        return to_derivatives(on_links), to_derivatives(on_motors)

    def forces(self, q: Array, theta: Array, effort: Array, beside: Sequence[float]) -> DriveForces:
        """Return what drives do to links and motors; the arrays may hold scalars of the tracer.

        `q` (2, ..., n) and `theta` (2, ..., motors) positions and velocities, `effort` (..., motors);
        `beside` (n,) [N.m s/rad] damps deflections besides the springs' own damping. Raises InputError naming
        the joint, where a spring would have to give what it cannot.
        """
        by_joint = []
        for drive, j, motors in self._places():
            with _naming(self.joint_names[j]):
                moved = np.moveaxis(theta[..., motors], -1, 0)
                by_joint.append(
                    drive.forces(q[..., j], moved, np.moveaxis(effort[..., motors], -1, 0), beside[j])
                )
        columns = (
            [x for x, _, _ in by_joint],
            [x for _, x, _ in by_joint],
            [x for *_, motors in by_joint for x in motors],
        )
        return DriveForces(*[np.stack(column, axis=-1) for column in columns])

    def free_motion(
        self, inertia: Array, beside: Sequence[float], q: Row, qd: Row, theta: Row, thetad: Row, effort: Row
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return what sensors show, what moves the links (n,), and accelerations of motors that move alone.

        Of numbers or scalars of the tracer: `q`, `qd` (n,) of the driven joints; `theta`, `thetad` and
        `inertia` [kg m^2] of the motors of elastic drives; `effort` (motors,); `beside` as in `forces`, which
        also says what is raised. It stands here, and sees these drives alone, so that code compiled of it has
        a key.
        """
        places = np.array(self.motor_joints)
        moving = np.flatnonzero(self.elastic[places])
        joints, alone = np.array([q, qd], dtype=object), np.array([theta, thetad], dtype=object)
        motors = joints[:, places]
        motors[:, moving] = alone
        forces = self.forces(joints, motors, np.array(effort, dtype=object), beside)
        accelerations = forces.motors[moving] / inertia
        return forces.sensed.tolist(), forces.links.tolist(), accelerations.tolist()

    def deflections(self, q: ArrayLike, theta: ArrayLike) -> Array:
        """Return deflections (..., n) from positions `q` (..., n) and `theta` (..., motors)."""
        link, motor = np.asarray(q, dtype=np.float64), np.asarray(theta, dtype=np.float64)
        columns = [
            drive.transmission.deflection(link[None, ..., j], np.moveaxis(motor[..., motors], -1, 0)[:, None])
            for drive, j, motors in self._places()
        ]
        return np.stack([column[0] for column in columns], axis=-1)

    def _places(self) -> list[tuple[JointDrive, int, slice]]:
        ends = np.cumsum([drive.transmission.n_motors for drive in self.drives]).tolist()
        return [
            (drive, j, slice(end - drive.transmission.n_motors, end))
            for j, (drive, end) in enumerate(zip(self.drives, ends))
        ]

    def _command(self, stiffness: ArrayLike | None, shape: tuple[int, ...]) -> Array:
        if stiffness is None:
            command = np.zeros(shape)
            command[..., 0, :] = self.stiffness
            return command
        command = real_array("stiffness", stiffness, str(shape))
        if command.shape != shape:
            raise InputError(f"stiffness must have the shape {shape} of the torques, found {command.shape}")
        return command

    def _matched(self, q: ArrayLike, torques: ArrayLike) -> tuple[Array, Array]:
        n = self.n_joints
        motion = real_array("link motion", q, f"(..., order + 3, {n})")
        loads = real_array("torques", torques, f"(..., order + 1, {n})")
        self._match(motion, loads)
        check_finite("link motion", motion)
        check_finite("torques", loads)
        return motion, loads

    def _match(self, motion: Array, loads: Array) -> None:
        n = self.n_joints
        if motion.ndim < 2 or loads.ndim != motion.ndim or motion.shape[-1] != n or loads.shape[-1] != n:
            raise InputError(
                f"link motion and torques must have shapes (..., order + 3, {n}) and (..., order + 1, {n}), "
                f"found {motion.shape} and {loads.shape}"
            )
        if motion.shape[-2] < loads.shape[-2] + 2:
            raise InputError(
                f"torques of {loads.shape[-2]} orders need {loads.shape[-2] + 2} orders of motion, "
                f"found {motion.shape[-2]}"
            )


def _by_order(stack: Array, joint: int) -> Array:
    """Return the derivatives (orders, ...) of one joint."""
    return np.moveaxis(stack[..., joint], -1, 0)


def _gathered(by_joint: Sequence[MotorJets]) -> MotorMotion:
    def stacked(columns: list[Array]) -> Array:
        orders = min(len(column) for column in columns)
        rates = to_derivatives(np.stack([column[:orders] for column in columns], axis=-1))
        return np.moveaxis(rates, 0, -2)

    positions = [motor for joint in by_joint for motor in joint.positions]
    efforts = [motor for joint in by_joint for motor in joint.efforts]
    return MotorMotion(stacked(positions), stacked(efforts))


@contextmanager
def _naming(joint: str, kind: type[HodynError] = InputError) -> Iterator[None]:
    """Put the name of the joint in front of what is rejected meanwhile."""
    try:
        yield
    except HodynError as error:
        raise kind(f"joint {joint!r}: {error}") from error
