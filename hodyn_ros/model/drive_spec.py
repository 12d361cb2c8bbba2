"""What drives one joint, in figures: transmission, motors, friction, limits."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from hodyn_ros.errors import ModelError

# Figures beyond these are most likely in other units [N·m/rad, kg m^2].
_STIFF = 1e8
_SOFT = 1e-2
_HEAVY = 1e4
_LIGHT = 1e-4  # reflected through a gear; without one, rotor_inertia says so
_FAST = 500.0  # [Hz] of a motor that swings on its spring, the link held


@dataclass(frozen=True)
class FrictionSpec:
    """Viscous and smooth Coulomb friction, reflected to the link side."""

    viscous: float = 0.0  # [N·m·s/rad]
    coulomb: float = 0.0  # [N·m]
    transition: float = 0.01  # [rad/s] velocity at which 71 % of the Coulomb friction act


@dataclass(frozen=True)
class DriveLimits:
    """What a drive may do at most, reflected to the link side; infinite where nothing is said."""

    torque: float = np.inf  # of the motor [N·m]
    torque_rate: float = np.inf  # of the motor [N·m/s]
    speed: float = np.inf  # of the motor [rad/s]
    deflection: float = np.inf  # of the spring [rad]
    current: float = np.inf  # of the motor [A]

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not value > 0.0:
                raise ModelError(f"the drive's limit {entry.name} is {value:g}; make it positive")


@dataclass(frozen=True)
class VariableStiffnessSpec:
    """A drive with two motors whose stiffness is commanded."""

    kind: Literal["agonist_antagonist", "cam"]
    spring: float  # [N·m/rad^2] quadratic spring; of a cam [N·m/rad]
    curvature: float = 0.0  # of a cam [1/rad]
    motor_inertia: float = 0.0  # of the second motor [kg m^2]; agonist_antagonist: as the first


@dataclass(frozen=True)
class DriveSpec:
    """The drive of one joint. Read m and N for rad and N·m where the joint is prismatic.

    `stiffness` is that of the spring without deflection, infinite for a rigid drive, and the stiffness at
    rest of a variable one.
    """

    stiffness: float = np.inf  # [N·m/rad]
    motor_inertia: float = 0.0  # reflected to the link side [kg m^2]
    spring_damping: float = 0.0  # [N·m·s/rad]
    cubic_stiffness: float = 0.0  # [N·m/rad^3]
    spring_table: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # torques, deflections
    variable_stiffness: VariableStiffnessSpec | None = None
    motor_friction: FrictionSpec = field(default_factory=FrictionSpec)
    link_friction: FrictionSpec = field(default_factory=FrictionSpec)
    gear_ratio: float = 1.0  # rotor turns per turn of the link
    torque_constant: float | None = None  # of the rotor [N·m/A]
    limits: DriveLimits = field(default_factory=DriveLimits)

    def __post_init__(self) -> None:
        elastic = np.isfinite(self.stiffness)
        if not self.stiffness > 0.0:
            raise ModelError(f"its stiffness is {self.stiffness:g} N·m/rad; make it positive (inf is rigid)")
        kinds = {
            "spring_damping": self.spring_damping != 0.0,
            "cubic_stiffness": self.cubic_stiffness != 0.0,
            "spring_table": self.spring_table is not None,
            "variable_stiffness": self.variable_stiffness is not None,
        }
        chosen = [name for name, given in kinds.items() if given]
        if len(chosen) > 1:
            raise ModelError(f"{' and '.join(chosen)} exclude each other; a drive has one kind of spring")
        if chosen and not elastic:
            raise ModelError(f"{chosen[0]} belongs to a spring, but the stiffness is rigid")
        for name, unit in (("spring_damping", "N·m·s/rad"), ("cubic_stiffness", "N·m/rad^3")):
            value = getattr(self, name)
            if not 0.0 <= value < np.inf:
                raise ModelError(f"its {name} is {value:g} {unit}; make it finite and not negative")
        if not 0.0 <= self.motor_inertia < np.inf or (elastic and self.motor_inertia == 0.0):
            raise ModelError(
                f"its motor inertia is {self.motor_inertia:g} kg m^2; make it finite and positive "
                "(a rigid drive may have zero)"
            )
        if not 0.0 < self.gear_ratio < np.inf:
            raise ModelError(f"its gear ratio is {self.gear_ratio:g}; make it positive and finite")
        if self.torque_constant is not None and not 0.0 < self.torque_constant < np.inf:
            raise ModelError(f"its torque constant is {self.torque_constant:g} N·m/A; make it positive")

        if np.isfinite(self.limits.current) and self.torque_constant is None:
            raise ModelError("its limit of the current says nothing without a torque_constant; give both")

    @property
    def torque_limit(self) -> float:
        """Largest torque of the motor, reflected to the link side [N·m]; the current may limit it further."""
        constant = 0.0 if self.torque_constant is None else self.torque_constant * self.gear_ratio
        return min(self.limits.torque, self.limits.current * constant if constant else np.inf)

    @property
    def is_plain(self) -> bool:
        """Whether it is rigid or a linear spring, without friction: what `SeriesElastic` computes."""
        return (
            self.spring_damping == 0.0
            and self.cubic_stiffness == 0.0
            and self.spring_table is None
            and self.variable_stiffness is None
            and self.motor_friction == FrictionSpec(transition=self.motor_friction.transition)
            and self.link_friction == FrictionSpec(transition=self.link_friction.transition)
        )

    def doubts(self, joint: str) -> list[str]:
        """Return a line for each figure that looks as if it were in other units."""
        lines = []
        if np.isfinite(self.stiffness) and not _SOFT <= self.stiffness <= _STIFF:
            lines.append(
                f"joint {joint!r}: a stiffness of {self.stiffness:g} N·m/rad is unheard of; check the unit, "
                "or write rigid"
            )
        if self.motor_inertia > _HEAVY:
            lines.append(
                f"joint {joint!r}: a motor inertia of {self.motor_inertia:g} kg m^2 is unheard of; check the "
                "unit"
            )
        return lines

    def reflection_doubts(self, joint: str) -> list[str]:
        """Return a line where the motor inertia looks like that of the rotor itself, not reflected."""
        inertia = self.motor_inertia
        if inertia == 0.0:
            return []
        frequency = np.sqrt(self.stiffness / inertia) / (2.0 * np.pi) if np.isfinite(self.stiffness) else 0.0
        if inertia >= _LIGHT and frequency <= _FAST:
            return []
        swing = f", which would swing on its spring at {frequency:.0f} Hz," if frequency > _FAST else ""
        return [
            f"joint {joint!r}: a motor inertia of {inertia:g} kg m^2 reflected to the link side{swing} is "
            "unheard of; if this is the inertia of the rotor itself, give it as rotor_inertia beside "
            "gear_ratio"
        ]
