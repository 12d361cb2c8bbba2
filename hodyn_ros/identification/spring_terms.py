"""Friction behind springs, and ripples of gears: sought where both halves of a recording show them.

Parameters are held: what efforts have beyond the model would else be explained by inertias. A term that makes
one half fit better and the other worse is no property of the robot, so a term is taken only where, fitted to
either half, it predicts the other one better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len, rfft

from hodyn_ros.identification.deflection import COMPLIANCE, FRICTION, KINDS, RIPPLE
from hodyn_ros.identification.estimate import Data, Unknowns, correlation_length
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.lie.jets import Array

_BETTER = 0.95  # of the residual of each half that a term may leave
_SLOWEST, _FASTEST = 60.0, 3000.0  # ripples in a turn that are tried
_FINER = 65  # ripples about the best of a grid
_PASSES = 4.0  # periods of a ripple that the motion goes over, at least


@dataclass(frozen=True, eq=False)
class Terms:
    """What was found for one joint."""

    friction: bool
    turns: float  # of a ripple, 0 without
    spring: Array  # (6,)
    deviation: Array  # (6,), without that of the load


def spring_terms(model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns) -> dict[int, Terms]:
    """Return joints that have more than compliance, delay and offset, by joint."""
    found = {}
    for i, j in enumerate(data.elastic):
        data.ripples[j] = 0.0
        measured = data.recording.at_motor and bool(data.recording.efforts.measured[j])
        terms = _Search(model, data, parameters, unknowns, i, measured).terms()
        if terms is not None:
            found[j] = terms
            data.ripples[j] = terms.turns
    return found


class _Search:
    """One joint: its columns, of which some are taken."""

    def __init__(
        self, model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns, i: int, measured: bool
    ) -> None:
        joint = data.elastic[i]
        columns = data.springs(model, unknowns)[i]
        bodies = model.bodies
        load = columns[:, :bodies] @ parameters[:bodies]
        rotor = columns[:, bodies] * parameters[model.place(0)][joint]
        friction = columns[:, bodies + 1] - load - rotor
        self.measured = measured
        self.columns = np.column_stack([load, columns[:, bodies + 2], columns[:, bodies + 3], friction])
        self.values = data.deflections[:, joint]
        self.position = data.recorded_positions()[:, joint]
        gone = np.cumsum(np.abs(np.diff(self.position, prepend=self.position[0])))
        self.halves = gone < 0.5 * gone[-1], gone >= 0.5 * gone[-1]

    def terms(self) -> Terms | None:
        friction, turns = False, 0.0
        scores = self._scores(friction, turns)
        while True:
            tried = [(True, turns)] if self.measured and not friction else []
            if not turns and (candidate := self._ripple(friction)):
                tried.append((friction, candidate))
            better = [(self._scores(*each), each) for each in tried]
            better = [(score, each) for score, each in better if (score < _BETTER * scores).all()]
            if not better:
                break
            scores, (friction, turns) = min(better, key=lambda pair: float(pair[0].sum()))
        if not friction and not turns:
            return None
        return self._fitted(friction, turns)

    def _chosen(self, friction: bool, turns: float) -> tuple[Array, list[int]]:
        wave = turns * self.position
        places = [0, 1, 2, *([3] if friction else []), *([4, 5] if turns else [])]
        return np.column_stack([self.columns, np.cos(wave), np.sin(wave)])[:, places], places

    def _scores(self, friction: bool, turns: float) -> Array:
        """Return what is left of each half (2,) by what was fitted to the other, about its mean."""
        columns, _ = self._chosen(friction, turns)
        left = []
        for half in self.halves:
            fit = _solve(columns[half], self.values[half])
            left.append(np.std(self.values[~half] - columns[~half] @ fit))
        return np.array(left)

    def _ripple(self, friction: bool) -> float:
        """Return how often in a turn of the link the largest ripple of what is left comes."""
        columns, _ = self._chosen(friction, 0.0)
        residual = self.values - columns @ _solve(columns, self.values)
        position = self.position - self.position.min()
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

    def _fitted(self, friction: bool, turns: float) -> Terms:
        columns, places = self._chosen(friction, turns)
        fit = _solve(columns, self.values)
        residual = self.values - columns @ fit
        size = np.linalg.norm(columns, axis=0)
        normal = np.linalg.inv((columns / size).T @ (columns / size)) / np.outer(size, size)
        noise = residual.var() * correlation_length(residual)
        spring, deviation = np.zeros(KINDS), np.zeros(KINDS)
        spring[places], deviation[places] = fit, np.sqrt(noise * np.diag(normal))
        return Terms(friction, turns, spring, deviation)


def _solve(columns: Array, values: Array) -> Array:
    size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
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
