"""What drives one joint, in figures: transmission, motors, friction, limits."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.model.keys import Entry, key

# Figures beyond these are most likely in other units [N·m/rad, kg m^2].
_STIFF = 1e8
_SOFT = 1e-2
_HEAVY = 1e4
_LIGHT = 1e-4  # reflected through a gear; without one, rotor_inertia says so
_SLOW, _FAST = 1.0, 500.0  # [Hz] of a motor that swings on its spring, the link held


class FrictionSpec(Entry, kw_only=False):
    """Viscous and smooth Coulomb friction.

    The viscosity of a lubricant falls with its temperature, `d(T) = d exp(-a (T - T_0))`; `at` gives the
    friction at another one.
    """

    viscous: float = key("reflected to the link side [N·m·s/rad]", default=0.0, least=0)
    coulomb: float = key("reflected to the link side [N·m]", default=0.0, least=0)
    transition: float = key(
        "velocity at which 71 % of the Coulomb friction act [rad/s]", default=0.01, above=0
    )
    load: float = key("Coulomb friction for each N·m that the gear carries, either way", default=0.0, least=0)
    load_transition: float = key("load [N·m] about which that becomes linear", default=1.0, above=0)
    temperature: float | None = key("T_0 [°C] at which the figures hold", default=None)
    viscous_by_temperature: float = key("a [1/K], by which viscous friction falls", default=0.0)

    def __post_init__(self) -> None:
        if self.viscous_by_temperature != 0.0 and self.temperature is None:
            raise ModelError(
                "viscous_by_temperature needs the temperature at which the viscous friction holds"
            )

    def at(self, temperature: float) -> FrictionSpec:
        """Return the friction at a temperature [°C]."""
        if self.temperature is None or not self.viscous_by_temperature:
            return self
        falls = float(np.exp(-self.viscous_by_temperature * (temperature - self.temperature)))
        return replace(self, viscous=falls * self.viscous, temperature=temperature)


class DriveLimits(Entry, kw_only=False):
    """Limits of the drive; what is left out is unlimited."""

    torque: float = key("of the motor, reflected to the link side [N·m]", above=0, default=np.inf)
    torque_rate: float = key("of the motor, reflected to the link side [N·m/s]", above=0, default=np.inf)
    speed: float = key("of the motor, reflected to the link side [rad/s]", above=0, default=np.inf)
    deflection: float = key("of the spring [rad]", above=0, default=np.inf)
    current: float = key("of the motor [A]; needs torque_constant", above=0, default=np.inf)
    power: float = key("of the motor, mechanical, driving or braking [W]", above=0, default=np.inf)

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not value > 0.0:
                raise ModelError(f"the drive's limit {entry.name} is {value:g}; make it positive")


class SpringTable(Entry, kw_only=False):
    """Measured spring."""

    torque: tuple[float, ...] = key("increasing [N·m]")
    deflection: tuple[float, ...] = key("increasing [rad]")

    def __iter__(self) -> Iterator[tuple[float, ...]]:
        return iter((self.torque, self.deflection))


class VariableStiffnessSpec(Entry, kw_only=False):
    """Two motors, stiffness commanded."""

    kind: Literal["agonist_antagonist", "cam"] = key(name="type")
    spring: float = key("agonist_antagonist [N·m/rad^2]; cam [N·m/rad]", above=0)
    curvature: float = key("of a cam's lift [1/rad]", above=0, default=0.0)
    motor_inertia: float = key("of the second motor of a cam [kg m^2]", above=0, default=0.0)

    def __post_init__(self) -> None:
        own = [name for name in ("curvature", "motor_inertia") if getattr(self, name) != 0.0]
        if self.kind == "cam" and len(own) < 2:
            raise ModelError("a cam needs its curvature and the motor_inertia of the second motor")
        if self.kind != "cam" and own:
            raise ModelError(f"{own[0]} belongs to a cam; both motors of an antagonist pair are alike")


class RotorSpec(Entry, kw_only=False):
    """Where the motor sits, so that its rotor turns with that body: the complete elastic-joint model."""

    body: str = key("that carries the motor; its inertia includes that of the rotor")
    axis: tuple[float, float, float] = key(
        "of the rotor in the frame of that body, any length; turns as the joint does", default=(0.0, 0.0, 1.0)
    )

    def __post_init__(self) -> None:
        if not np.linalg.norm(self.axis) > 0.0:
            raise ModelError("the axis of its rotor has no direction")


class DriveSpec(Entry, kw_only=False):
    """Motor and spring of a joint. Read m and N for rad and N·m where the joint is prismatic.

    `stiffness` is that of the spring without deflection, infinite for a rigid drive, and the stiffness at
    rest of a variable one. `rotor_inertia` is that of the rotor itself, instead of `motor_inertia`, which it
    gives: the rotor turns `gear_ratio` times as fast. `rotor` says where it sits; without, as in Spong's
    model, its kinetic energy is that of its own rotation alone.
    """

    stiffness: float = key(
        "joint stiffness [N·m/rad], or rigid",
        above=0,
        words={"rigid": np.inf},
        needed=True,
        default=np.inf,
    )
    motor_inertia: float = key("reflected to the link side [kg m^2]", default=0.0, least=0)
    spring_damping: float = key("of the spring [N·m·s/rad]", default=0.0, least=0)
    cubic_stiffness: float = key("of a hardening spring [N·m/rad^3]", default=0.0, least=0)
    spring_table: SpringTable | None = None
    variable_stiffness: VariableStiffnessSpec | None = None
    motor_friction: FrictionSpec = FrictionSpec()
    link_friction: FrictionSpec = FrictionSpec()
    temperature: float | None = key(
        "of the gear now [°C]; its friction is as it was identified where none is given", default=None
    )
    gear_ratio: float = key("rotor turns per turn of the link", above=0, default=1.0)
    torque_constant: float | None = key("of the rotor [N·m/A]", above=0, default=None)
    limits: DriveLimits = DriveLimits()
    rotor: RotorSpec | None = None
    rotor_inertia: float | None = key(
        "as in its data sheet [kg m^2], instead of motor_inertia; needs gear_ratio",
        above=0,
        default=None,
    )
    proportional_gain: float | None = key(
        "of a feedback on the motor, by default from motor_inertia; with derivative_gain [N·m/rad]",
        least=0,
        default=None,
    )
    derivative_gain: float | None = key("of that feedback [N·m·s/rad]", least=0, default=None)

    @classmethod
    def check_keys(cls, present: Collection[str]) -> None:
        """Reject a file that does not give exactly one inertia."""
        if ("motor_inertia" in present) == ("rotor_inertia" in present):
            raise ModelError(
                "give either motor_inertia [kg m^2], reflected to the link side, or rotor_inertia [kg m^2], "
                "that of the rotor itself, with gear_ratio"
            )
        if "rotor_inertia" in present and "gear_ratio" not in present:
            raise ModelError("a rotor_inertia needs the gear_ratio; for a direct drive write 1")

    def __post_init__(self) -> None:
        if self.rotor_inertia is not None:
            object.__setattr__(self, "motor_inertia", self.gear_ratio**2 * self.rotor_inertia)
            object.__setattr__(self, "rotor_inertia", None)  # or another gear_ratio would reflect it again
        if self.temperature is not None:
            for name in ("motor_friction", "link_friction"):
                object.__setattr__(self, name, getattr(self, name).at(self.temperature))
        elastic = np.isfinite(self.stiffness)
        if not self.stiffness > 0.0:
            raise ModelError(f"its stiffness is {self.stiffness:g} N·m/rad; make it positive (inf is rigid)")
        kinds = {
            "spring_damping": self.spring_damping != 0.0,
            "cubic_stiffness": self.cubic_stiffness != 0.0,
            "spring_table": self.spring_table is not None,
            "variable_stiffness": self.variable_stiffness is not None,
        }
        chosen = [name for name, is_set in kinds.items() if is_set]
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

        if self.link_friction.load:
            raise ModelError("link_friction by load is not known; give load in motor_friction")
        if (self.proportional_gain is None) != (self.derivative_gain is None):
            raise ModelError("give both gains, proportional_gain and derivative_gain, or neither")
        for gain in (self.proportional_gain, self.derivative_gain):
            if gain is not None and not 0.0 <= gain < np.inf:
                raise ModelError(f"one of its gains is {gain:g}; make it finite and not negative")
        if np.isfinite(self.limits.current) and self.torque_constant is None:
            raise ModelError("its limit of the current says nothing without a torque_constant; give both")

    @property
    def torque_limit(self) -> float:
        """Largest torque of the motor, reflected to the link side [N·m]; the current may limit it further."""
        constant = 0.0 if self.torque_constant is None else self.torque_constant * self.gear_ratio
        return min(self.limits.torque, self.limits.current * constant if constant else np.inf)

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
        if not lines and self.variable_stiffness is None and self._swing < _SLOW:
            lines.append(
                f"joint {joint!r}: a motor of {self.motor_inertia:g} kg m^2 on a spring of "
                f"{self.stiffness:g} N·m/rad would swing at {self._swing:.2g} Hz, which is unheard of; "
                "check the units"
            )
        return lines

    @property
    def _swing(self) -> float:
        """Frequency [Hz] of the motor on its spring, the link held; inf without either."""
        if self.motor_inertia == 0.0:
            return np.inf
        return float(np.sqrt(self.stiffness / self.motor_inertia) / (2.0 * np.pi))

    def reflection_doubts(self, joint: str) -> list[str]:
        """Return a line where the motor inertia looks like that of the rotor itself, not reflected."""
        inertia = self.motor_inertia
        if inertia == 0.0:
            return []
        frequency = self._swing if np.isfinite(self.stiffness) else 0.0
        if inertia >= _LIGHT and frequency <= _FAST:
            return []
        swing = f", which would swing on its spring at {frequency:.0f} Hz," if frequency > _FAST else ""
        return [
            f"joint {joint!r}: a motor inertia of {inertia:g} kg m^2 reflected to the link side{swing} is "
            "unheard of; if this is the inertia of the rotor itself, give it as rotor_inertia beside "
            "gear_ratio"
        ]


class DriveChanges(DriveSpec, kw_only=False):
    """Some figures of a drive whose others are known from elsewhere."""

    stiffness: float = key(
        "joint stiffness [N·m/rad], or rigid", above=0, words={"rigid": np.inf}, default=np.inf
    )

    @classmethod
    def check_keys(cls, present: Collection[str]) -> None:
        """Reject what says two things of one figure."""
        if "motor_inertia" in present and "rotor_inertia" in present:
            super().check_keys(present)

    def __post_init__(self) -> None:
        """Leave it to the drive that they become part of to check what belongs together."""

    def on(self, known: DriveSpec) -> DriveSpec:
        """Return a drive with these figures in place of its own. Raises ModelError."""
        return replace(known, **_changed(self, known))


def _changed(changes: Entry, known: object) -> dict[str, Any]:
    """Return the values that changes give; mappings hold those of theirs that they do not give."""
    result: dict[str, Any] = {}
    for name in changes.keys_present:
        value, before = getattr(changes, name), getattr(known, name)
        partial = type(value) in (FrictionSpec, DriveLimits)
        result[name] = replace(before, **_changed(value, before)) if partial else value
    return result


def series_elastic(stiffness: ArrayLike, motor_inertia: ArrayLike) -> tuple[DriveSpec, ...]:
    """Return drives with linear springs (n,), an infinite stiffness for a rigid one.

    `stiffness` K (n,) [N.m/rad or N/m] and `motor_inertia` B (n,) [kg m^2 or kg], reflected to the link side,
    one of them perhaps for all: Mueller (2020), section I; Spong's model of elastic joints. Raises
    ModelError.
    """
    springs, inertias = np.atleast_1d(stiffness), np.atleast_1d(motor_inertia)
    try:
        pairs = np.broadcast(springs, inertias)
    except ValueError:
        raise ModelError(
            f"stiffness of {len(springs)} joints and motor inertia of {len(inertias)}; give one for each, or "
            "one for all"
        ) from None
    drives = []
    for joint, figures in enumerate((float(k), float(b)) for k, b in pairs):
        try:
            drives.append(DriveSpec(*figures))
        except ModelError as error:
            raise ModelError(f"joint {joint}: {error}") from error
    return tuple(drives)
