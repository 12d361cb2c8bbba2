"""What a spring has beyond stiffness, delay and offset: sought where parts of a recording predict the rest.

Friction behind the spring, eccentricity of an encoder, a ripple of its gear, damping, backlash, and a spring
that is no line. Parameters are held: what efforts have beyond the model would else be explained by inertias.
A term that makes one part fit better and another worse is no property of the robot. So those terms are taken
that, fitted to all but one part of the recording, predict this part best, each in turn (cross-validation by
parts of the way, as samples beside each other tell the same), where a further term has to be worth it.

A push on a link bends its spring by what its motor gives against it, as friction behind the spring would. So
what was measured during contacts does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len, rfft

from hodyn_ros.array import Array
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.residuals import correlation_length
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.springs.curve import (
    Curve,
    backlash_width,
    hardened,
    hardness_of,
    spring_table,
    table_columns,
)
from hodyn_ros.identification.springs.deflection import (
    COMPLIANCE,
    DELAY,
    ECCENTRICITY,
    FRICTION,
    KINDS,
    LAG,
    OFFSET,
    RIPPLE,
)
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.model.tree import JointKind

_BETTER = 0.95  # of the error of prediction that a term may leave
_MUCH_BETTER = 0.8  # of one that changes what the stiffness means: a curve, damping, backlash
_PARTS = 6  # of the way, of which each is predicted by the others
_ECCENTRIC = 3e-4  # [rad] that encoders are off once in a turn: 0.03 mm at a radius of 100 mm
_SLOWEST, _FASTEST = 60.0, 3000.0  # ripples in a turn that are tried
_FINER = 65  # ripples about the best of a grid
_ALL = slice(None)
_PASSES = 4.0  # periods of a ripple that the motion goes over, at least


@dataclass(frozen=True)
class _Choice:
    """Which terms are taken."""

    friction: bool = False
    eccentricity: bool = False
    damping: bool = False
    turns: float = 0.0  # of a ripple, 0 without
    backlash: bool = False
    hardness: float = 0.0  # as in `Curve`, 0 without
    table: bool = False

    @property
    def worth(self) -> float:
        """Share of the error of prediction without terms that these may leave."""
        small = self.friction + self.eccentricity + (self.turns > 0.0)
        large = self.damping + self.backlash + (self.hardness > 0.0) + self.table
        return float(_BETTER**small * _MUCH_BETTER**large)


@dataclass(frozen=True, eq=False)
class Terms:
    """What was found for one joint."""

    friction: bool
    eccentricity: bool
    turns: float  # of a ripple, 0 without
    spring: Array  # (9,)
    deviation: Array  # (9,), without that of the load
    curve: Curve
    gap_deviation: float = 0.0  # [rad]


def spring_terms(
    model: TorqueModel,
    runs: Sequence[Data],
    parameters: Array,
    unknowns: Unknowns,
    touched: Sequence[Mapping[str, Sequence[tuple[float, float]]]],
) -> dict[int, Terms]:
    """Return joints that have more than compliance, delay and offset, by joint.

    `touched`: stretches [s] of each run that do not count, by the name of the joint.
    """
    terms_by_joint = {}
    for i, j in enumerate(runs[0].elastic):
        for data in runs:
            data.ripples[j] = 0.0
        terms = _Search(model, runs, parameters, unknowns, i, touched).terms()
        if terms is not None:
            terms_by_joint[j] = terms
            for data in runs:
                data.ripples[j] = terms.turns
                data.curves[j] = terms.curve
    return terms_by_joint


class _Search:
    """One joint: its columns, of which some are taken."""

    def __init__(
        self,
        model: TorqueModel,
        runs: Sequence[Data],
        parameters: Array,
        unknowns: Unknowns,
        i: int,
        touched: Sequence[Mapping[str, Sequence[tuple[float, float]]]],
    ) -> None:
        joint, recording, tree = runs[0].elastic[i], runs[0].recording, model.robot.tree
        self.measured = recording.at_motor and bool(recording.efforts.measured[joint])
        bodies_of = [k for k in range(tree.n_bodies) if tree.joint_of(k) == joint]
        self.revolves = all(tree.kinds[k] is not JointKind.PRISMATIC for k in bodies_of)
        columns = np.concatenate([data.springs(model, unknowns)[i] for data in runs])
        lengths = [len(data.link_times) for data in runs]
        of_runs = np.repeat(np.eye(len(runs)), lengths, axis=0)
        self.later = of_runs[:, 1:]  # runs after the first count from elsewhere
        bodies = model.bodies
        self.load = columns[:, :bodies] @ parameters[:bodies]
        rotor = columns[:, bodies] * parameters[model.place(0)][joint]
        self.friction = columns[:, bodies + 1] - self.load - rotor
        self.velocity = columns[:, bodies + 2]
        loads = np.split(self.load, np.cumsum(lengths)[:-1])
        self.rate = np.concatenate([np.gradient(load, data.link_times) for load, data in zip(loads, runs)])
        self.values = np.concatenate([data.deflections[:, joint] for data in runs])
        positions = [data.recorded_positions()[:, joint] for data in runs]
        self.position = np.concatenate(positions)
        self.width = backlash_width(self.load, self.rate, min(data.of_deflections for data in runs))
        parts = np.concatenate([_parts(each) for each in positions])
        name = model.robot.joint_names[joint]
        counts = ~np.concatenate(
            [_within(data.link_times, each.get(name, ())) for data, each in zip(runs, touched, strict=True)]
        )
        self.later, self.load, self.friction = self.later[counts], self.load[counts], self.friction[counts]
        self.velocity, self.rate = self.velocity[counts], self.rate[counts]
        self.values, self.position, parts = self.values[counts], self.position[counts], parts[counts]
        self.parts = [parts == k for k in np.unique(parts)]

    def terms(self) -> Terms | None:
        """Return the terms that predict best, None where none does better than none."""
        if len(self.parts) < 2:
            return None  # it stands
        none = chosen = _Choice()
        errors = {none: self._error(none)}
        while True:
            for each in self._beside(chosen):
                if each not in errors:
                    errors[each] = self._error(each) / each.worth if self._can_be(each) else np.inf
            best = min(errors, key=errors.__getitem__)
            if best == chosen:
                return None if best == none else self._fitted(best)
            chosen = best

    def _beside(self, chosen: _Choice) -> Iterator[_Choice]:
        """Yield choices of another kind of spring, and others of the same kind."""
        yield replace(chosen, backlash=bool(self.width) and not chosen.backlash)
        yield replace(chosen, hardness=0.0, table=not chosen.table)
        straight = replace(chosen, hardness=0.0, table=False)
        columns, _ = self._chosen(straight)
        yield replace(straight, hardness=hardness_of(self.load, columns[:, 1:], self.values))
        either = (False, True)
        for friction, eccentricity, damping in product(
            either[: 1 + self.measured], either[: 1 + self.revolves], either
        ):
            one = replace(chosen, friction=friction, eccentricity=eccentricity, damping=damping, turns=0.0)
            yield one
            if turns := self._ripple(one):
                yield replace(one, turns=turns)

    def _can_be(self, chosen: _Choice) -> bool:
        """Whether it is a spring: no negative damping, gap or stiffness, not more friction than there is."""
        fit = self._fitted(chosen)
        curve, bent = fit.curve, chosen.table or chosen.hardness > 0.0
        if chosen.table == (curve.table is None):
            return False
        if chosen.friction and not 0.0 <= share_behind(fit)[0] <= 1.0:
            return False
        return fit.spring[LAG] >= 0.0 and curve.gap >= 0.0 and (not bent or fit.spring[0] > 0.0)

    def _chosen(self, chosen: _Choice) -> tuple[Array, list[str]]:
        """Return columns (N, k) and what each is."""
        one = np.ones_like(self.load)
        named = {"load": self.load, "delay": self.velocity, "offset": one}
        named |= {f"offset of run {k}": column for k, column in enumerate(self.later.T, 2)}
        named["load"] = hardened(self.load, chosen.hardness)
        if chosen.friction:
            named["friction"] = self.friction
        if chosen.damping:
            named["lag"] = -self.rate
        if chosen.backlash:
            named["gap"] = 0.5 * np.tanh(self.load / self.width)
        if chosen.eccentricity:
            named |= {"once cosine": np.cos(self.position), "once sine": np.sin(self.position)}
        if chosen.turns:
            wave = chosen.turns * self.position
            named |= {"cosine": np.cos(wave), "sine": np.sin(wave)}
        if chosen.table:
            del named["load"]
            spline, _ = table_columns(self.load)
            named |= {f"table {k}": column for k, column in enumerate(spline.T)}
        return np.column_stack(list(named.values())), list(named)

    def _error(self, chosen: _Choice) -> float:
        """Return the error of prediction, RMS [rad], of each part by what was fitted to all others.

        How often a ripple comes is sought anew in what is fitted: of so many that are tried, the one that
        suits all data would suit any part of noise as well.
        """
        left = []
        for part in self.parts:
            one = replace(chosen, turns=self._ripple(chosen, ~part)) if chosen.turns else chosen
            columns, names = self._chosen(one)
            fit = self._solve(columns[~part], self.values[~part], names)[0]
            left.append(np.mean((self.values[part] - columns[part] @ fit) ** 2))
        return float(np.sqrt(np.mean(left)))

    def _solve(self, columns: Array, values: Array, names: Sequence[str]) -> tuple[Array, Array, float]:
        """Return what fits values (N,) best (k,), the rows that it followed from, and their noise [rad].

        Over a short way sine and cosine of the position, load and offset are nearly the same. So an
        eccentricity is pulled towards none, by how large one of an encoder is.
        """
        fit = _least_squares(columns, values)
        residual = values - columns @ fit
        noise = float(np.sqrt(residual.var() * correlation_length(residual)))
        pulled = [k for k, name in enumerate(names) if name.startswith("once")]
        if not pulled:
            return fit, columns, noise
        rows = np.vstack([columns, noise / _ECCENTRIC * np.eye(len(names))[pulled]])
        return _least_squares(rows, np.r_[values, np.zeros(len(pulled))]), rows, noise

    def _ripple(self, chosen: _Choice, part: NDArray[np.bool_] | slice = _ALL) -> float:
        """Return how often in a turn of the link the largest ripple of what is left of a part comes."""
        columns, names = self._chosen(replace(chosen, turns=0.0))
        values = self.values[part]
        residual = values - columns[part] @ self._solve(columns[part], values, names)[0]
        position = self.position[part] - self.position[part].min()
        travel = float(position.max())
        if not travel:
            return 0.0
        # the residual in narrow bins of the position: one FFT for all waves, then exactly near the best
        width = np.pi / (8.0 * _FASTEST)
        length = next_fast_len(int(8.0 * travel / width) + 1, real=True)
        power = np.abs(rfft(np.bincount((position / width).astype(int), residual), length))
        tried = 2.0 * np.pi / (length * width) * np.arange(len(power))
        power[(tried < max(_SLOWEST, 2.0 * np.pi * _PASSES / travel)) | (tried >= _FASTEST)] = 0.0
        best = int(np.argmax(power))
        if not power[best]:
            return 0.0
        near, finer = np.linspace(-tried[1], tried[1], _FINER, retstep=True)
        first = residual * np.exp(-1j * (tried[best] + near[0]) * position)
        waves = first @ np.vander(np.exp(-1j * finer * position), _FINER, increasing=True)
        return float(tried[best] + near[int(np.argmax(np.abs(waves)))])

    def _fitted(self, chosen: _Choice) -> Terms:
        columns, names = self._chosen(chosen)
        fit, rows, noise = self._solve(columns, self.values, names)
        size = np.linalg.norm(rows, axis=0)
        size[size == 0.0] = 1.0
        normal = np.linalg.pinv((rows / size).T @ (rows / size), hermitian=True) / np.outer(size, size)
        width = noise * np.sqrt(np.maximum(np.diag(normal), 0.0))
        values, widths = dict(zip(names, fit)), dict(zip(names, width))
        table = None
        if chosen.table:
            table = self._table(np.array([v for n, v in values.items() if n.startswith("table")]))
            values["load"], widths["load"] = self._secant(table)
            if table is not None:
                values["offset"] += np.mean(self.values - columns @ fit) + self._shift(
                    table, columns, names, fit
                )
        places = {"load": COMPLIANCE, "delay": DELAY, "offset": OFFSET, "lag": LAG, "friction": FRICTION}
        places |= {"once cosine": ECCENTRICITY, "once sine": ECCENTRICITY + 1}
        places |= {"cosine": RIPPLE, "sine": RIPPLE + 1}
        spring, deviation = np.zeros(KINDS), np.zeros(KINDS)
        for name, place in places.items():
            spring[place], deviation[place] = values.get(name, 0.0), widths.get(name, 0.0)
        curve = Curve(chosen.hardness, table, float(values.get("gap", 0.0)), self.width or 1.0)
        gap = float(widths.get("gap", 0.0))
        return Terms(chosen.friction, chosen.eccentricity, chosen.turns, spring, deviation, curve, gap)

    def _table(self, coefficients: Array) -> Array | None:
        return spring_table(table_columns(self.load)[1], coefficients)

    def _secant(self, table: Array | None) -> tuple[float, float]:
        """Return the compliance about no load, or about the middle of the loads."""
        if table is None:
            return 0.0, 0.0
        middle = float(np.clip(0.0, self.load.min(), self.load.max()))
        step = 0.05 * float(np.ptp(self.load))
        low, high = np.interp([middle - step, middle + step], *table)
        return float(high - low) / (2.0 * step), 0.0

    def _shift(self, table: Array, columns: Array, names: list[str], fit: Array) -> float:
        """Return what the constant of a spline is more than that of its table, which is zero without load."""
        of_table = [k for k, name in enumerate(names) if name.startswith("table")]
        return float(np.mean(columns[:, of_table] @ fit[of_table] - np.interp(self.load, *table)))


def _within(times: Array, stretches: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    """Return which times (N,) are in one of some stretches."""
    inside = np.zeros(len(times), dtype=bool)
    for begin, end in stretches:
        inside |= (times >= begin) & (times <= end)
    return inside


def _parts(position: Array) -> NDArray[np.int_]:
    """Return on which part of its way (N,) a joint is."""
    gone = np.cumsum(np.abs(np.diff(position, prepend=position[0])))
    return np.minimum((_PARTS * gone / max(gone[-1], 1e-300)).astype(int), _PARTS - 1)


def _least_squares(columns: Array, values: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    size[size < 1e-12 * size.max()] = np.inf  # such as a spline where there are no loads
    return np.asarray(np.linalg.lstsq(columns / size, values, rcond=None)[0] / size)


def share_behind(terms: Terms) -> tuple[float, float]:
    """Return the share of the friction that bends the spring, and its standard deviation."""
    compliance = float(terms.spring[COMPLIANCE])
    return float(terms.spring[FRICTION]) / compliance, float(terms.deviation[FRICTION]) / abs(compliance)


def wave_size(terms: Terms, kind: int) -> tuple[float, float]:
    """Return the amplitude of an eccentricity or ripple, by its place, [rad], and its standard deviation."""
    both = slice(kind, kind + 2)
    return float(np.hypot(*terms.spring[both])), float(np.sqrt(0.5 * (terms.deviation[both] ** 2).sum()))
