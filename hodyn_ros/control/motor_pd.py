"""What the motors of elastic joints follow, and the gains of the feedback around it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.extrapolation import motor_effort_series
from hodyn_ros.feedforward.feedforward import Feedforward


class FeedforwardMode(str, Enum):
    """Which part of a feedforward the motors are given."""

    NONE = "none"  # theta_d = q_d, tau = 0: feedback alone
    RIGID = "rigid"  # theta_d = q_d, tau = Q + B q'': as if the joints were stiff
    OFFSET = "offset"  # theta_d = q_d + K^-1 Q, tau = Q + B q'': the same, and the springs' deflection
    ELASTIC = "elastic"  # as the drives ask for: with springs theta_d = q_d + K^-1 Q, tau = Q + B theta''


_STIFF = np.empty((0, 0))
_ROUNDS = 6  # in which the rates of links are found whose friction bends springs; each brings three digits


class Reference(NamedTuple):
    """What the motors have to follow about one instant, with time derivatives by order on axis 0."""

    positions: Array  # (orders, n) [rad or m, /s^k]
    efforts: Array  # (orders, n) [N.m or N, /s^k]; no rows without feedforward
    # (3, n) theta - q, by how much motors are ahead of their links [rad or m, /s^k]; no rows: they are not
    deflections: Array = _STIFF


def motor_reference(mode: FeedforwardMode, train: DriveTrain, feedforward: Feedforward) -> Reference:
    """Return what the motors follow in a mode.

    Elastic: what the feedforward says of the motors, whatever their drives. Rigid leaves out the deflections
    of the springs, which are `K^-1 Q`; offset takes these and their rates as positions and velocities of the
    motors, but nothing of Q beyond its rate, as who knows torques without derivatives would. These modes, and
    none, need drives whose `linear_springs` say so. The derivatives of Q, which matter most between two
    samples, reach further than those of theta''. Raises InputError when the feedforward holds no motors, or
    too few derivatives of them.
    """
    positions, link_efforts = feedforward.motor_positions, feedforward.efforts
    if mode is FeedforwardMode.ELASTIC:
        efforts = motor_effort_series(feedforward)
        _require(len(positions) >= 2 and len(efforts) >= 1, mode, feedforward)
        return Reference(positions, efforts, spring_deflections(train, feedforward))
    if not train.linear_springs:
        raise InputError(
            f"feedforward {mode.value!r} leaves out part of what linear springs do; where springs are damped "
            "or not linear, or links have friction, choose 'elastic'"
        )
    needed = 2 if mode is FeedforwardMode.NONE else 3
    count = min(len(positions), len(link_efforts))  # motors of rigid drives reach further
    _require(count >= needed, mode, feedforward)
    deflections = link_efforts[:count] / train.stiffness
    if mode is FeedforwardMode.NONE:
        return Reference(positions[:count] - deflections, link_efforts[:0])
    efforts = link_efforts.copy()
    stiff = min(len(feedforward.motor_efforts), count - 2)
    efforts[:stiff] = feedforward.motor_efforts[:stiff] - train.motor_inertia * deflections[2 : stiff + 2]
    followed = np.zeros_like(deflections)  # what motors follow of them
    if mode is FeedforwardMode.OFFSET:  # the motion itself is known with all its derivatives
        followed[:2] = deflections[:2]
        efforts = efforts[:2]
    return Reference(positions[:count] - (deflections - followed), efforts, followed[:3])


def spring_deflections(train: DriveTrain | None, feedforward: Feedforward) -> Array:
    """Return by how much motors are ahead of their links (3, n): `theta - q` and its rates.

    What the springs bend under the torques that the links need, damped ones on their slow manifold. Friction
    of links counts with them, but for the jerk of the links, which no feedforward holds. No rows without
    springs, or with two motors a joint, and where the feedforward holds too few derivatives. Raises
    InputError for what no spring of a drive can give.
    """
    positions, torques = feedforward.motor_positions[:3], feedforward.efforts[:3]
    if train is None or not train.elastic.any() or train.n_motors != train.n_joints:
        return _STIFF
    if len(positions) < 3 or len(torques) < 3:
        return _STIFF
    if train.linear_springs:
        return np.asarray(torques / train.stiffness)
    links = np.zeros((5, train.n_joints))
    links[:3] = positions
    for _ in range(_ROUNDS if any(drive.link_friction for drive in train.drives) else 1):
        bent = train.feedforward(links, torques).position[:3] - links[:3]
        links[:3] = positions - bent
    return np.asarray(bent)


def warm_up_springs(train: DriveTrain) -> None:
    """Compile what `spring_deflections` computes of springs that are not linear."""
    nothing = np.zeros((3, train.n_joints))
    spring_deflections(train, Feedforward(nothing, nothing, nothing, np.empty((0, 6))))


def _require(enough: bool, mode: FeedforwardMode, feedforward: Feedforward) -> None:
    if not enough:
        raise InputError(
            f"the feedforward holds motor positions of {len(feedforward.motor_positions)} orders, motor "
            f"efforts of {len(feedforward.motor_efforts)} and efforts of {len(feedforward.efforts)}, too "
            f"few for feedforward {mode.value!r}; let dynamics_node compute order 2 or more, of a robot with "
            "drives"
        )


@dataclass(frozen=True, eq=False)
class MotorGains:
    """Gains of the feedback on the motors, (n,) each, not negative."""

    proportional: Array  # [N.m/rad or N/m]
    derivative: Array  # [N.m s/rad or N s/m]

    def __post_init__(self) -> None:
        for field in ("proportional", "derivative"):
            array = np.array(getattr(self, field), dtype=np.float64)
            if array.ndim != 1 or not np.isfinite(array).all() or (array < 0.0).any():
                raise InputError(
                    f"{field} gains must be finite and not negative, one per joint; found {array}"
                )
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        if self.proportional.shape != self.derivative.shape:
            raise InputError(
                f"there are {len(self.proportional)} proportional gains, but {len(self.derivative)} "
                "derivative ones"
            )

    @classmethod
    def from_frequency(
        cls, motor_inertia: ArrayLike, natural_frequency: float, damping_ratio: float
    ) -> MotorGains:
        """Place the poles of each motor on its own: `Kp = B w^2`, `Kd = 2 zeta B w`.

        `motor_inertia` B (n,) [kg m^2 or kg], `natural_frequency` w [rad/s], `damping_ratio` zeta.
        """
        inertia = np.asarray(motor_inertia, dtype=np.float64)
        if not (inertia > 0.0).all():
            raise InputError(
                f"joint {int(np.flatnonzero(~(inertia > 0.0))[0])} has no motor inertia to take gains from; "
                "give proportional and derivative gains for each joint"
            )
        return cls(inertia * natural_frequency**2, 2.0 * damping_ratio * natural_frequency * inertia)

    @classmethod
    def of_drives(cls, train: DriveTrain, natural_frequency: float, damping_ratio: float) -> MotorGains:
        """Return the gains that the drives give, and of the others those of `from_frequency`.

        Raises InputError that names the joints with neither gains nor a motor inertia.
        """
        own_gains = [spec.proportional_gain is not None for spec in train.specs]
        bare = [
            name
            for name, has, inertia in zip(train.joint_names, own_gains, train.motor_inertia)
            if not has and inertia <= 0.0
        ]
        if bare:
            raise InputError(
                f"no motor inertia to take gains from: {', '.join(map(repr, bare))}; give motor_inertia, "
                "or proportional_gain and derivative_gain, under drive in the robot file, or as in --set "
                f"{bare[0]}.drive.motor_inertia=0.1 on the command line"
            )
        inertia = np.where(own_gains, 1.0, train.motor_inertia)
        placed = cls.from_frequency(inertia, natural_frequency, damping_ratio)
        pairs = [[spec.proportional_gain, spec.derivative_gain] for spec in train.specs]
        own = np.array(pairs, dtype=np.float64)
        return cls(
            np.where(own_gains, own[:, 0], placed.proportional),
            np.where(own_gains, own[:, 1], placed.derivative),
        )
