"""What learning is told: how fast, how far, and how wrong the model may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.linear_drives import DAMPING_TIME
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.learning.response import Deviation
from hodyn_ros.model.keys import check_ranges, key


@dataclass(frozen=True)
class Uncertainty:
    """By which shares a robot may differ from its model, either way where nothing else is said."""

    stiffness: float = key("Of the springs.", default=0.25, within=(0.0, 0.9))
    inertia: float = key(
        "Of masses and inertias of the bodies, with what they carry.", default=0.3, within=(0.0, 0.9)
    )
    motor_inertia: float = key("Of the rotors.", default=0.1, within=(0.0, 0.9))
    friction: float = key(
        "Viscous friction that the model does not know, of the derivative gain.",
        default=0.5,
        within=(0.0, 10.0),
    )
    delay: float = key("By which efforts may come late [s].", default=2e-3, within=(0.0, 0.1))

    def __post_init__(self) -> None:
        check_ranges(self)

    def corners(self, robot: Robot) -> Iterator[Deviation]:
        """Yield robots at the corners: all joints alike, and joints that differ from each other."""

        def corner(
            stiff: float | Array, heavy: float | Array, rotor: float | Array, late: float
        ) -> Deviation:
            return Deviation(
                1.0 + stiff * self.stiffness,
                1.0 + heavy * self.inertia,
                1.0 + rotor * self.motor_inertia,
                viscous=late * self.friction,
                delay=late * self.delay,
            )

        for stiff, heavy, late in product((-1.0, 1.0), (-1.0, 1.0), (0.0, 1.0)):
            yield corner(stiff, heavy, heavy, late)
        random, n = np.random.default_rng(0), len(robot.driven_joints)
        for late in (0.0, 1.0, 0.0, 1.0):
            signs = [random.choice((-1.0, 1.0), size) for size in (n, robot.tree.n_bodies, n)]
            yield corner(signs[0], signs[1], signs[2], late)


@dataclass(frozen=True)
class LearningConfig:
    """How repetitions are learnt from. Raises InputError that names what cannot be."""

    bandwidth: float = key("Up to which errors are learnt from [Hz].", default=8.0, within=(0.2, 100.0))
    step: float = key("Share of what is left that a repetition corrects.", default=1.0, within=(0.01, 1.0))
    contraction: float = key(
        "Largest share of an error that a repetition with a whole step may leave, whatever the robot.",
        default=0.7,
        within=(0.05, 0.99),
    )
    limit_share: float = key(
        "Share of the limits of torque and torque rate that feedforward and correction may use.",
        default=0.9,
        within=(0.05, 1.0),
    )
    surely: float = key(
        "Deviations of the noise by which a repetition is worse before it is taken back.",
        default=3.0,
        within=(1.0, 100.0),
    )
    damping_time: float = key(
        "Damping of springs that the file gives none, over their stiffness [s].",
        default=DAMPING_TIME,
        within=(0.0, 0.1),
    )
    link_delay: float = key(
        "By which links are read before their stamps [s].", default=0.0, within=(0.0, 0.1)
    )
    uncertainty: Uncertainty = field(default_factory=Uncertainty)

    def __post_init__(self) -> None:
        check_ranges(self)
