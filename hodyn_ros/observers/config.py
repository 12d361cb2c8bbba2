"""What may be chosen about an observer; observer_node has parameters of these names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.model.keys import check_ranges, key


@dataclass(frozen=True)
class ObserverConfig:
    """The configuration of a momentum observer. Raises InputError naming the parameter.

    Deviations are standard deviations; relative ones are shares of what the robot's file states.
    """

    bandwidth: float = key(
        "L of the observer [1/s]: what acts from one moment on shows by 63 % after 1 / L.",
        default=80.0,
        within=(0.1, 5000.0),
    )
    smoothing: float = key(
        "A second pole of the observer [1/s], against noise of velocities; 0: none.",
        default=0.0,
        within=(0.0, 50000.0),
    )
    threshold: float = key(
        "Deviations of an external effort, above which it counts as a contact.",
        default=5.0,
        within=(1.0, 100.0),
    )
    release: float = key(
        "Share of the threshold, below which a contact has ended.", default=0.6, within=(0.0, 1.0)
    )
    effort_noise: tuple[float, ...] = key(
        "Deviation of the external efforts without contact, by noise and all that no other figure says [N.m "
        "or N], one for each joint, or one for all; empty: a fifth of what the robot's file allows, "
        "uncertainty.efforts, 3 percent of the effort limits by default.",
        default=(),
    )
    wrench_noise: tuple[float, ...] = key(
        "The same of the external wrench on a floating base [N.m, N], six values; empty: that share of the "
        "weight, at a lever of a metre.",
        default=(),
    )
    stiffness_deviation: float = key(
        "Relative deviation of springs, or of the gain of joint torque sensors.",
        default=0.1,
        within=(0.0, 1.0),
    )
    friction_deviation: float = key(
        "Relative deviation of friction, viscous and Coulomb each.", default=0.2, within=(0.0, 2.0)
    )
    inertia_deviation: float = key(
        "Relative deviation of the efforts by masses and inertias, where no covariance of these is given.",
        default=0.02,
        within=(0.0, 1.0),
    )
    held_efforts: bool = key(
        "Whether motor efforts are commands, held from their sample to the next; else they are measured, and "
        "change evenly between two samples.",
        default=False,
    )
    adapt_drives: bool = key(
        "Correct springs and friction of the motors within their deviations, by the equation of the motor, "
        "in which no contact is. Corrections are the observer's alone.",
        default=True,
    )
    friction_time: float = key(
        "Where the efforts of motors are all that says what acts on links, as with rigid gears: time [s] for "
        "which errors of the model last, when friction is corrected within its deviation, by motion in both "
        "directions; a second or more. Contacts are in that equation, so do so where these are short. 0: "
        "friction stays that of the file.",
        default=0.0,
        within=(0.0, 1e4),
    )
    drift_time: float = key(
        "Time [s] in which springs and friction come to have other figures, as by temperature; corrections "
        "that no motion confirms fade as quickly.",
        default=100.0,
        within=(1.0, 1e6),
    )
    correction_limit: float = key("Deviations that a correction may reach.", default=3.0, within=(0.0, 10.0))
    longest_gap: float = key(
        "Time [s] between two samples, beyond which the observer starts anew.",
        default=0.05,
        within=(1e-4, 10.0),
    )

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("effort_noise", "wrench_noise"):
            values = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            object.__setattr__(self, name, tuple(values.tolist()))
            if not (np.isfinite(values) & (values > 0.0)).all():
                raise InputError(f"parameter {name!r} is {list(values)}; make it positive and finite")
        if len(self.wrench_noise) not in (0, 6):
            raise InputError(f"parameter 'wrench_noise' holds {len(self.wrench_noise)} values; give six")

    def noise_of(self, joint_names: tuple[str, ...], limits: Array, share: float) -> Array:
        """Return the noise (n,) of joints [N.m or N]; where none is given, a share of their limits (n,)."""
        if not self.effort_noise:
            return np.where(np.isfinite(limits), share * limits, 1.0)
        if len(self.effort_noise) not in (1, len(joint_names)):
            raise InputError(
                f"parameter 'effort_noise' holds {len(self.effort_noise)} values for {len(joint_names)} "
                f"joints; give one for each of {list(joint_names)}, or one for all"
            )
        return np.broadcast_to(np.array(self.effort_noise), len(joint_names)).copy()
