"""Efforts of motors as a linear function of what is to be identified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.optimize import minimize_scalar

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.formulations.parameters import PER_BODY
from hodyn_ros.model.drive_spec import DriveSpec, SpringTable

_BODY = (("m", "kg"), *((f"m c{a}", "kg m") for a in "xyz")) + tuple(
    (f"I{a}", "kg m^2") for a in ("xx", "yy", "zz", "xy", "xz", "yz")
)
_JOINT = (
    ("motor inertia", "kg m^2"),
    ("viscous friction", "N·m·s/rad"),
    ("Coulomb friction", "N·m"),
    ("offset of the effort", "N·m"),
)
_COUPLED = (("viscous friction of the link", "N·m·s/rad"), ("Coulomb friction of the link", "N·m"))
_BY_LOAD, _BY_TEMPERATURE = (
    ("Coulomb friction by load", ""),
    ("viscous friction by temperature", "N·m·s/rad/K"),
)
_LARGEST_SHARE = 0.5  # spread of Coulomb friction by load
_WARMING = 30.0  # [K] by which all viscous friction may be gone: spread of that by temperature
_STEEPEST = 0.2  # [1/K] by which viscous friction falls
_SHARPNESS = 0.0  # of Coulomb friction in robot files
_UNKNOWN_LENGTH = 0.1  # [m] of a body of which nothing is known


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion at N instants, (N, n) each: of the links, and velocity and acceleration of the motors."""

    q: Array
    qd: Array
    qdd: Array
    motor_velocity: Array
    motor_acceleration: Array
    temperature: Array | None = None  # of the gears [°C]


class TorqueModel:
    """`effort = Y(q, q', q'') pi + J theta'' + d theta' + c theta' / sqrt(theta'^2 + s^2) + offset`.

    Parameters (P,): ten of each body as in `Robot.dynamic_parameters`, then n of each kind in the order of
    `hodyn_ros.model.drive_spec`: motor inertias, viscous and Coulomb friction, offsets.

    With a `transmission` T (n, n), theta' = T q', what motors have comes with their own velocities and acts
    on all joints that turn them, `T^T (J theta'' + ...)` (M. Gautier & S. Briot, J. Dyn. Sys. Meas. Control
    136(5), 2014, of a wrist), and two more kinds follow: viscous and Coulomb friction of the links, in q'.

    `by_load`: a kind m more, Coulomb friction by what the gears carry (`actuation.friction`), which follows
    from the inertias. `temperatures` T_0 (n,) [°C], nan where none is known: a kind e more, of viscous
    friction by temperature,

        d theta' + e theta' (1 - exp(-a (T - T_0))) / a = d exp(-a (T - T_0)) theta',   a = -e / d

    Both are linear in the unknowns but for what of them is in the columns, which is that of the last look.
    """

    def __init__(
        self,
        robot: Robot,
        transmission: Array | None = None,
        by_load: bool = False,
        temperatures: Array | None = None,
    ) -> None:
        self.robot, self.n = robot, robot.n_coordinates
        self.transmission, self.temperatures = transmission, temperatures
        train = robot.drive_train
        self.specs = (DriveSpec(),) * self.n if train is None else train.specs
        self.bodies = PER_BODY * robot.tree.n_bodies
        names = [f"{key} of {body}" for body in robot.tree.body_names for key, _ in _BODY]
        kinds = list(_JOINT if transmission is None else _JOINT + _COUPLED)
        self.by_load = len(kinds) if by_load else None  # which kinds these are
        kinds += [_BY_LOAD] * by_load
        self.by_temperature = None if temperatures is None else len(kinds)
        kinds += [_BY_TEMPERATURE] * (temperatures is not None)
        self.kinds = len(kinds)
        names += [f"{key} of {joint}" for key, _ in kinds for joint in robot.joint_names]
        self.names = tuple(names)
        units = [unit for _ in robot.tree.body_names for _, unit in _BODY]
        self.units = tuple(units + [unit for _, unit in kinds for _ in range(self.n)])

    def place(self, kind: int) -> slice:
        """Return the parameters of one kind of the joints: 0 inertias, 1 viscous, 2 Coulomb, 3 offsets.

        With a transmission, 4 and 5 are viscous and Coulomb friction of the links.
        """
        return slice(self.bodies + kind * self.n, self.bodies + (kind + 1) * self.n)

    @property
    def of_friction(self) -> NDArray[np.bool_]:
        """Which parameters (P,) are viscous or Coulomb friction."""
        chosen = np.zeros(self.bodies + self.kinds * self.n, dtype=bool)
        for kind in set(range(self.kinds)) - {0, 3}:
            chosen[self.place(kind)] = True
        return chosen

    @property
    def of_turnover(self) -> NDArray[np.bool_]:
        """Which parameters (P,) are friction that turns over where a motion reverses."""
        chosen = np.zeros(self.bodies + self.kinds * self.n, dtype=bool)
        for kind in (2, self.by_load, None if self.transmission is None else 5):
            if kind is not None:
                chosen[self.place(kind)] = True
        return chosen

    @property
    def prior(self) -> Array:
        """The figures of the robot file (P,)."""
        rubs = [s.motor_friction for s in self.specs]
        if self.temperatures is not None:
            places = zip(rubs, self.temperatures.tolist())
            rubs = [rub.at(there) if np.isfinite(there) else rub for rub, there in places]
        viscous = [rub.viscous + s.link_friction.viscous for rub, s in zip(rubs, self.specs)]
        coulomb = [s.motor_friction.coulomb + s.link_friction.coulomb for s in self.specs]
        inertias = [s.motor_inertia for s in self.specs]
        figures = [np.array(each) for each in (inertias, viscous, coulomb)]
        parts = [self.robot.dynamic_parameters(), *figures, np.zeros(self.n)]
        if self.transmission is not None:
            parts.append(np.zeros(len(_COUPLED) * self.n))
        if self.by_load is not None:
            parts.append(np.array([rub.load for rub in rubs]))
        if self.by_temperature is not None:
            parts.append(np.array([-rub.viscous_by_temperature * rub.viscous for rub in rubs]))
        return np.concatenate(parts)

    def scales(self, effort: Array, velocity: Array, acceleration: Array, trust: float) -> Array:
        """Return how far each parameter may be from the prior (P,), as a standard deviation.

        Bodies: `trust` times mass, mass times length, mass times length squared. What is in the joints may be
        anything that efforts, velocities and accelerations (n,) of this size show; a body without mass has
        none.
        """
        tree = self.robot.tree
        rows = []
        for i in range(tree.n_bodies):
            m = tree.masses[i]
            below = [float(np.linalg.norm(_origin(tree, j, i))) for j in tree.children[i]]
            gyration = np.sqrt(np.trace(tree.inertias[i]) / m) if m > 0.0 else 0.0
            length = max([float(np.linalg.norm(tree.coms[i])), float(gyration), *below, _UNKNOWN_LENGTH])
            rows.append(m * np.r_[1.0, [length] * 3, [length**2] * 6])
        drives = [effort / acceleration, effort / velocity, effort, effort]
        if self.transmission is not None:
            coupled = (self.transmission != np.eye(self.n)).any(axis=1)
            drives += [coupled * effort / velocity, coupled * effort]
        if self.by_load is not None:
            drives.append(np.full(self.n, _LARGEST_SHARE))
        if self.temperatures is not None:
            drives.append(np.isfinite(self.temperatures) * effort / velocity / _WARMING)
        return np.concatenate([trust * np.concatenate(rows), *drives])

    def regressor(self, motion: Motion) -> Array:
        """Return the part of the bodies (N, n, 10 bodies)."""
        stack = np.ascontiguousarray(np.stack([motion.q, motion.qd, motion.qdd], axis=1))
        return np.asarray(self.robot.regressor(stack)[:, 0])

    @property
    def friction_shape(self) -> Array:
        """How Coulomb friction turns over, by the robot file (2, n): its transition speeds, its sharpness."""
        return np.array([[s.motor_friction.transition for s in self.specs], [_SHARPNESS] * self.n])

    def columns(
        self,
        motion: Motion,
        at_motor: bool,
        friction_shape: Array | None = None,
        parameters: Array | None = None,
    ) -> Array:
        """Return the efforts of each parameter (N, n, P); motors count where efforts are theirs.

        `friction_shape` (2, n) says how Coulomb friction turns over, `parameters` (P,) what gears carry and
        how viscous friction falls; as in the file where they are not given.
        """
        shape = self.friction_shape if friction_shape is None else friction_shape
        v = motion.motor_velocity if at_motor else motion.qd
        inertia = motion.motor_acceleration if at_motor else np.zeros_like(v)
        bodies, offset = self.regressor(motion), _diagonal(np.ones_like(v))
        if self.transmission is None or not at_motor:
            parts = [_diagonal(part) for part in (inertia, v, coulomb(v, shape)[0])]
            of_links = [np.zeros_like(offset)] * (0 if self.transmission is None else len(_COUPLED))
            further = self._further(
                motion, bodies, v, shape, self.prior if parameters is None else parameters
            )
            return np.concatenate([bodies, *parts, offset, *of_links, *further], axis=2)
        turned = v @ self.transmission.T
        motors = (inertia @ self.transmission.T, turned, coulomb(turned, shape)[0])
        shared = [part[:, None, :] * self.transmission.T for part in motors]
        of_link = (_diagonal(v), _diagonal(coulomb(v, shape)[0]))
        return np.concatenate([bodies, *shared, offset, *of_link], axis=2)

    def _further(
        self, motion: Motion, bodies: Array, v: Array, shape: Array, parameters: Array
    ) -> list[Array]:
        """Return the columns of friction by load and by temperature, where they are sought."""
        columns = []
        if self.by_load is not None:
            columns.append(_diagonal(self._pressed(bodies, parameters) * coulomb(v, shape)[0]))
        if self.temperatures is not None:
            if motion.temperature is None:
                return [*columns, np.zeros((*v.shape, self.n))]
            warmer = np.nan_to_num(motion.temperature - self.temperatures)
            falls = self.falls(parameters)
            steady = np.abs(falls) < 1e-9
            rate = np.where(steady, 1.0, falls)
            columns.append(_diagonal(v * np.where(steady, warmer, -np.expm1(-rate * warmer) / rate)))
        return columns

    def _pressed(self, bodies: Array, parameters: Array) -> Array:
        """Return the size of the loads (N, n), `Friction.pressed`, from the columns of the bodies."""
        small = np.array([s.motor_friction.load_transition for s in self.specs])
        return np.asarray(np.hypot(bodies @ parameters[: self.bodies], small) - small)

    def falls(self, parameters: Array) -> Array:
        """Return by what viscous friction falls (n,) [1/K]."""
        if self.by_temperature is None:
            return np.zeros(self.n)
        viscous = np.maximum(parameters[self.place(1)], 1e-9)
        return np.clip(-parameters[self.place(self.by_temperature)] / viscous, -_STEEPEST, _STEEPEST)

    def rubbing(self, motion: Motion, at_motor: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return the velocities that Coulomb friction is of (N, n), and which act on which effort (n, n)."""
        if self.transmission is None or not at_motor:
            return motion.motor_velocity if at_motor else motion.qd, np.eye(self.n, dtype=bool)
        return motion.motor_velocity @ self.transmission.T, self.transmission.T != 0.0

    def shape_columns(self, motion: Motion, at_motor: bool, parameters: Array, shape: Array) -> Array:
        """Return derivatives of the efforts by log s and m of each joint's friction (N, n, 2 n)."""
        v = motion.motor_velocity if at_motor else motion.qd
        of_motors, of_links = parameters[self.place(2)], parameters[self.place(5)]
        if self.by_load is not None:
            carried = self._pressed(self.regressor(motion), parameters)
            of_motors = of_motors + parameters[self.place(self.by_load)] * carried
        if self.transmission is None or not at_motor:
            parts = [_diagonal(of_motors * part) for part in coulomb(v, shape)[1:]]
        else:
            turned = coulomb(v @ self.transmission.T, shape)[1:]
            parts = [
                (of_motors * part)[:, None, :] * self.transmission.T + _diagonal(of_links * of_link)
                for part, of_link in zip(turned, coulomb(v, shape)[1:])
            ]
        return np.concatenate(parts, axis=2)

    def with_links(self, parameters: Array) -> Robot:
        """Return the robot with the inertias of the parameters (P,); ModelError where no body has them."""
        masses, coms, inertias = link_figures(parameters[: self.bodies], self.robot)
        return self.robot.with_tree(self.robot.tree.with_inertias(masses, coms, inertias))

    def with_drives(
        self, parameters: Array, springs: Mapping[int, SpringFigures], transitions: Mapping[int, float]
    ) -> tuple[DriveSpec, ...]:
        """Return the drives with the figures of the parameters (P,), and with springs that are known.

        `transitions`: speeds [rad/s] at which friction of a joint turns over, where they are known.
        """
        specs = []
        for j, spec in enumerate(self.specs):
            inertia, viscous, coulomb = (float(parameters[self.place(kind)][j]) for kind in range(3))
            spring = springs.get(j)
            like = replace(spec.motor_friction, transition=transitions.get(j, spec.motor_friction.transition))
            by_load = 0.0 if self.by_load is None else float(parameters[self.place(self.by_load)][j])
            behind = spec.link_friction
            if self.transmission is not None:  # what the link has of its own adds to that of the motor
                viscous, coulomb = (
                    value + float(parameters[self.place(kind)][j])
                    for value, kind in ((viscous, 4), (coulomb, 5))
                )
            if spring is not None and spring.friction_share is not None:
                share = spring.friction_share
                behind = replace(
                    like, load=0.0, viscous=share * max(0.0, viscous), coulomb=share * max(0.0, coulomb)
                )
            friction = replace(
                like,
                viscous=max(0.0, viscous - behind.viscous),
                coulomb=max(0.0, coulomb - behind.coulomb),
                load=like.load if self.by_load is None else max(0.0, by_load),
            )
            if self.temperatures is not None and np.isfinite(self.temperatures[j]):
                falls = float(self.falls(parameters)[j])
                friction = replace(
                    friction, temperature=float(self.temperatures[j]), viscous_by_temperature=falls
                )
                spec = replace(spec, temperature=None)
            moved = replace(spec, motor_inertia=inertia, motor_friction=friction, link_friction=behind)
            specs.append(moved if spring is None else spring.of(moved))
        return tuple(specs)


@dataclass(frozen=True, eq=False)
class SpringFigures:
    """What was found of a spring: stiffness without load, and damping, hardening or a table (2, m)."""

    stiffness: float  # [N·m/rad]
    damping: float = 0.0  # [N·m·s/rad]
    cubic_stiffness: float = 0.0  # [N·m/rad^3]
    table: Array | None = None  # loads [N·m], deflections [rad]
    friction_share: float | None = None  # of the friction that acts behind the spring; None as in the file

    def of(self, spec: DriveSpec) -> DriveSpec:
        """Return a drive with this spring; a file has one kind of spring, so damping stands alone."""
        curved = self.table is not None or self.cubic_stiffness > 0.0
        return replace(
            spec,
            stiffness=self.stiffness,
            spring_damping=0.0 if curved else self.damping,
            cubic_stiffness=self.cubic_stiffness,
            spring_table=None if self.table is None else SpringTable(*map(tuple, self.table.tolist())),
        )


def coulomb(velocity: Array, shape: Array) -> Array:
    """Return Coulomb friction of size one, and its derivatives by log s and by m (3, N, n).

    With the transition speed s and the sharpness m as rows of `shape` (2, n), x = v / s: the parabola in m
    through the law of robot files x / sqrt(x^2 + 1) at m = 0, tanh(x) at 1, and the ramp between -1 and 1 at
    2. All turn with the same slope. Of the first two laws alone, a ramp was made that is larger than one at a
    distance, and friction came out too small; with a corner at one, noise of m made friction too large.
    """
    speed, m = shape
    x = velocity / speed
    tanh = np.tanh(x)
    laws = np.array([x / np.sqrt(1.0 + x**2), tanh, np.clip(x, -1.0, 1.0)])
    slopes = np.array([(1.0 + x**2) ** -1.5, 1.0 - tanh**2, np.abs(x) < 1.0])
    shares = np.array([0.5 * (m - 1.0) * (m - 2.0), m * (2.0 - m), 0.5 * m * (m - 1.0)])[:, None]
    by_sharpness = np.array([m - 1.5, 2.0 - 2.0 * m, m - 0.5])[:, None]
    slope, change = (shares * slopes).sum(axis=0), (by_sharpness * laws).sum(axis=0)
    return np.array([(shares * laws).sum(axis=0), -x * slope, change])


def turnover(velocity: Array, shape: Array) -> Array:
    """Return the slope of `coulomb` (N, n), per rad/s, where friction does not rest."""
    rest = np.abs(velocity) < 1e-9 * shape[0]
    moving = np.where(rest, 1e-9 * shape[0], velocity)
    return np.asarray(-coulomb(moving, shape)[1] / moving)


def file_transition(speed: float, sharpness: float) -> float:
    """Return the transition speed [rad/s] with which the law of robot files is nearest to `coulomb`.

    That is, with the least square of the difference over all velocities alike, as at a reversal at constant
    acceleration. For it files have no sharpness.
    """
    reach = np.geomspace(1e-3, 1e3, 2000)
    exact = coulomb(reach, np.array([1.0, sharpness]))[0]

    def apart(log_speed: float) -> float:
        law = coulomb(reach, np.array([np.exp(log_speed), 0.0]))[0]
        return float(trapezoid((law - exact) ** 2, reach))

    return speed * float(np.exp(minimize_scalar(apart, bounds=(-2.0, 2.0), method="bounded").x))


def link_figures(parameters: Array, robot: Robot) -> tuple[Array, Array, Array]:
    """Return masses (b,), centres of mass (b, 3), inertias about them (b, 3, 3) of parameters (10 b,)."""
    rows = parameters.reshape(-1, PER_BODY)
    masses = rows[:, 0]
    coms = np.divide(
        rows[:, 1:4], masses[:, None], out=np.zeros_like(rows[:, 1:4]), where=masses[:, None] > 0.0
    )
    inertias = inertia_matrices(rows)
    shift = np.einsum("bi,bi->b", coms, coms)[:, None, None] * np.eye(3) - coms[:, :, None] * coms[:, None, :]
    return masses, coms, inertias - masses[:, None, None] * shift


def inertia_matrices(rows: Array) -> Array:
    """Return inertias about the origin (b, 3, 3) from parameters (b, 10)."""
    xx, yy, zz, xy, xz, yz = np.moveaxis(rows[:, 4:], 1, 0)
    return np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), 2, 0)


def _origin(tree: object, child: int, body: int) -> Array:
    placements = tree.placements  # type: ignore[attr-defined]
    return np.asarray(placements[child, :3, 3] - placements[body, :3, 3])


def _diagonal(values: Array) -> Array:
    result = np.zeros((*values.shape, values.shape[1]))
    places = np.arange(values.shape[1])
    result[:, places, places] = values
    return result
