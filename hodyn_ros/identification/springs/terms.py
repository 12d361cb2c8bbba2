"""What a spring has beyond stiffness, delay and offset: sought where both halves of a recording show it.

Friction behind the spring, a ripple of its gear, damping, backlash, and a spring that is no line. Parameters
are held: what efforts have beyond the model would else be explained by inertias. A term that makes one half
fit better and the other worse is no property of the robot, so a term is taken only where, fitted to either
half, it predicts the other one better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

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
    FRICTION,
    KINDS,
    LAG,
    OFFSET,
    RIPPLE,
)
from hodyn_ros.identification.torque_model import TorqueModel

_BETTER = 0.95  # of the residual of each half that a term may leave
_MUCH_BETTER = 0.8  # of one that changes what the stiffness means: a curve, damping, backlash
_SLOWEST, _FASTEST = 60.0, 3000.0  # ripples in a turn that are tried
_FINER = 65  # ripples about the best of a grid
_ALL = slice(None)
_PASSES = 4.0  # periods of a ripple that the motion goes over, at least


@dataclass(frozen=True)
class _Choice:
    """Which terms are taken."""

    friction: bool = False
    damping: bool = False
    backlash: bool = False
    shape: Literal["line", "hardening", "table"] = "line"
    turns: float = 0.0  # of a ripple, 0 without

    @property
    def plain(self) -> bool:
        return self == _Choice()


@dataclass(frozen=True, eq=False)
class Terms:
    """What was found for one joint."""

    friction: bool
    turns: float  # of a ripple, 0 without
    spring: Array  # (7,)
    deviation: Array  # (7,), without that of the load
    curve: Curve
    gap_deviation: float = 0.0  # [rad]


def spring_terms(
    model: TorqueModel, runs: Sequence[Data], parameters: Array, unknowns: Unknowns
) -> dict[int, Terms]:
    """Return joints that have more than compliance, delay and offset, by joint."""
    terms_by_joint = {}
    for i, j in enumerate(runs[0].elastic):
        for data in runs:
            data.ripples[j] = 0.0
        recording = runs[0].recording
        measured = recording.at_motor and bool(recording.efforts.measured[j])
        terms = _Search(model, runs, parameters, unknowns, i, measured).terms()
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
        measured: bool,
    ) -> None:
        joint = runs[0].elastic[i]
        columns = np.concatenate([data.springs(model, unknowns)[i] for data in runs])
        lengths = [len(data.link_times) for data in runs]
        self.later = np.repeat(np.eye(len(runs)), lengths, axis=0)[
            :, 1:
        ]  # runs after the first count from elsewhere
        bodies = model.bodies
        self.load = columns[:, :bodies] @ parameters[:bodies]
        rotor = columns[:, bodies] * parameters[model.place(0)][joint]
        self.friction = columns[:, bodies + 1] - self.load - rotor
        self.measured = measured
        self.velocity = columns[:, bodies + 2]
        loads = np.split(self.load, np.cumsum(lengths)[:-1])
        self.rate = np.concatenate([np.gradient(load, data.link_times) for load, data in zip(loads, runs)])
        self.values = np.concatenate([data.deflections[:, joint] for data in runs])
        positions = [data.recorded_positions()[:, joint] for data in runs]
        self.position = np.concatenate(positions)
        self.width = backlash_width(self.load, self.rate, min(data.of_deflections for data in runs))
        self.hardness = 0.0
        first = np.concatenate([_first_half(each) for each in positions])
        self.halves = first, ~first

    def terms(self) -> Terms | None:
        chosen = _Choice()
        scores = self._scores(chosen)
        while True:
            better = [(self._scores(each), each) for each in self._further(chosen)]
            better = [(s, each) for s, each in better if (s < _needed(chosen, each) * scores).all()]
            better = [pair for pair in better if self._can_be(pair[1])]
            if not better:
                break
            scores, chosen = min(better, key=lambda pair: float(pair[0].sum()))
        return None if chosen.plain else self._fitted(chosen)

    def _further(self, chosen: _Choice) -> list[_Choice]:
        """Return choices with one term more."""
        tried = []
        if self.measured and not chosen.friction:
            tried.append(replace(chosen, friction=True))
        if not chosen.damping:
            tried.append(replace(chosen, damping=True))
        if self.width and not chosen.backlash:
            tried.append(replace(chosen, backlash=True))
        if chosen.shape == "line":
            columns, _ = self._chosen(replace(chosen, shape="line"))
            self.hardness = hardness_of(self.load, columns[:, 1:], self.values)
            tried.append(replace(chosen, shape="hardening"))
        if chosen.shape != "table":
            tried.append(replace(chosen, shape="table"))
        if not chosen.turns and (turns := self._ripple(chosen)):
            tried.append(replace(chosen, turns=turns))
        return tried

    def _can_be(self, chosen: _Choice) -> bool:
        """Whether it is a spring: no negative damping, gap or stiffness, not more friction than there is."""
        fit = self._fitted(chosen)
        curve = fit.curve
        if chosen.friction and not 0.0 <= share_behind(fit)[0] <= 1.0:
            return False
        if (chosen.shape == "table") == (curve.table is None):
            return False
        return fit.spring[LAG] >= 0.0 and curve.gap >= 0.0 and (chosen.shape == "line" or fit.spring[0] > 0.0)

    def _chosen(self, chosen: _Choice) -> tuple[Array, list[str]]:
        """Return columns (N, k) and what each is."""
        one = np.ones_like(self.load)
        named = {"load": self.load, "delay": self.velocity, "offset": one}
        named |= {f"offset of run {k}": column for k, column in enumerate(self.later.T, 2)}
        if chosen.shape == "hardening":
            named["load"] = hardened(self.load, self.hardness)
        if chosen.friction:
            named["friction"] = self.friction
        if chosen.damping:
            named["lag"] = -self.rate
        if chosen.backlash:
            named["gap"] = 0.5 * np.tanh(self.load / self.width)
        if chosen.turns:
            wave = chosen.turns * self.position
            named |= {"cosine": np.cos(wave), "sine": np.sin(wave)}
        if chosen.shape == "table":
            del named["load"]
            spline, _ = table_columns(self.load)
            named |= {f"table {k}": column for k, column in enumerate(spline.T)}
        return np.column_stack(list(named.values())), list(named)

    def _scores(self, chosen: _Choice) -> Array:
        """Return what is left of each half (2,) by what was fitted to the other, about its mean.

        How often a ripple comes is sought anew in the half that is fitted: of so many that are tried, the one
        that suits all data would suit either half of noise as well.
        """
        left = []
        for half in self.halves:
            one = (
                replace(chosen, turns=self._ripple(replace(chosen, turns=0.0), half))
                if chosen.turns
                else chosen
            )
            columns, _ = self._chosen(one)
            fit = _solve(columns[half], self.values[half])
            left.append(np.std(self.values[~half] - columns[~half] @ fit))
        return np.array(left)

    def _ripple(self, chosen: _Choice, part: NDArray[np.bool_] | slice = _ALL) -> float:
        """Return how often in a turn of the link the largest ripple of what is left of a part comes."""
        columns, values = self._chosen(chosen)[0][part], self.values[part]
        residual = values - columns @ _solve(columns, values)
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
        near = tried[best] + tried[1] * np.linspace(-1.0, 1.0, _FINER)
        return float(near[int(np.argmax(np.abs(np.exp(-1j * np.outer(near, position)) @ residual)))])

    def _fitted(self, chosen: _Choice) -> Terms:
        columns, names = self._chosen(chosen)
        fit = _solve(columns, self.values)
        residual = self.values - columns @ fit
        size = np.linalg.norm(columns, axis=0)
        normal = np.linalg.pinv((columns / size).T @ (columns / size), hermitian=True) / np.outer(size, size)
        width = np.sqrt(residual.var() * correlation_length(residual) * np.maximum(np.diag(normal), 0.0))
        values, widths = dict(zip(names, fit)), dict(zip(names, width))
        table = None
        if chosen.shape == "table":
            table = self._table(np.array([v for n, v in values.items() if n.startswith("table")]))
            values["load"], widths["load"] = self._secant(table)
            if table is not None:
                values["offset"] += np.mean(self.values - columns @ fit) + self._shift(
                    table, columns, names, fit
                )
        places = {"load": COMPLIANCE, "delay": DELAY, "offset": OFFSET, "lag": LAG, "friction": FRICTION}
        places |= {"cosine": RIPPLE, "sine": RIPPLE + 1}
        spring, deviation = np.zeros(KINDS), np.zeros(KINDS)
        for name, place in places.items():
            spring[place], deviation[place] = values.get(name, 0.0), widths.get(name, 0.0)
        curve = Curve(
            self.hardness if chosen.shape == "hardening" else 0.0,
            table,
            float(values.get("gap", 0.0)),
            self.width or 1.0,
        )
        gap = float(widths.get("gap", 0.0))
        return Terms(chosen.friction, chosen.turns, spring, deviation, curve, gap)

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


def _first_half(position: Array) -> NDArray[np.bool_]:
    """Return which samples (N,) are on the first half of the way."""
    gone = np.cumsum(np.abs(np.diff(position, prepend=position[0])))
    return np.asarray(gone < 0.5 * gone[-1])


def _needed(before: _Choice, after: _Choice) -> float:
    """Return the share of each half's residual that a further term may leave."""
    plain = replace(after, friction=before.friction, turns=before.turns) == before
    return _BETTER if plain else _MUCH_BETTER


def _solve(columns: Array, values: Array) -> Array:
    size = np.linalg.norm(columns, axis=0)
    size[size < 1e-12 * size.max()] = np.inf  # such as a spline where there are no loads
    return np.asarray(np.linalg.lstsq(columns / size, values, rcond=None)[0] / size)


def share_behind(terms: Terms) -> tuple[float, float]:
    """Return the share of the friction that bends the spring, and its standard deviation."""
    compliance = float(terms.spring[COMPLIANCE])
    return float(terms.spring[FRICTION]) / compliance, float(terms.deviation[FRICTION]) / abs(compliance)


def ripple_size(terms: Terms) -> tuple[float, float]:
    """Return the amplitude of the ripple [rad], and its standard deviation."""
    return float(np.hypot(*terms.spring[RIPPLE:])), float(
        np.sqrt(0.5 * (terms.deviation[RIPPLE:] ** 2).sum())
    )
