"""Least squares for everything at once: efforts and deflections tell of the same inertias.

    effort_j(t)     = (A p)_j (t - D)
    motor_j - link_j = (Y pi)_j / K_j + ...     as `deflection` has it

The second line is bilinear in inertias and compliances: encoders on both sides of a gear weigh the arm. Both
sides of an equation pass the same filter. Those of each joint have their own noise by frequency, estimated
from the residuals, which stays what it is while the unknowns are sought: weights that follow them all the way
may give up what is slow, and the size of all inertias with it. Outliers count less (Huber's weights).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.holds import HeldRows, seek_hold
from hodyn_ros.identification.least_squares.residuals import Key, Noise, Rows, changing, linearised, residuals
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.springs.deflection import (
    COMPLIANCE,
    DELAY,
    FRICTION,
    KINDS,
    LAG,
    OFFSET,
    coefficients,
    jacobian,
)
from hodyn_ros.identification.torque_model import TorqueModel

_LOOKS = 5  # at samples about reversals, at most
_TURNS, _INNER = 10, 6  # linearisations after each look, and steps of each of them, at most
_CONVERGED = 0.05  # standard deviations that a turn moves an unknown at most, at the end
_SHAPE = 1.0, 1.0  # spreads of the logarithm of a transition speed about the file's, and of the sharpness
_LARGEST_STEP = 0.5  # of these, as friction is far from linear in them
_LEAST_SHARE = 0.1  # of what certain rates seem to tell of the delay, that they tell at least
_DRAWS = 16  # of noise of the encoders, with both signs
_LARGEST_NOISE = 0.9  # share of what rows seem to tell, that counts as noise at most
_WEAK = 3.0  # times as far as usual from the prior, where rows alone are looked at
_LEAST_LOAD = 0.02  # of what it was, that a load becomes at least
_LONGEST_LAG = 3e-3  # [s] spread of D / K of a spring


@dataclass(frozen=True, eq=False)
class Estimate:
    """Unknowns with their covariance, and how they fit."""

    unknowns: Unknowns
    covariance: Array  # of all unknowns, those of the prior included
    information: Array  # (P, P) of the parameters, from the rows alone
    deflections: dict[int, Rows]  # of the first run, by joint
    noise: Mapping[Key, Noise]  # by which rows were weighed
    elastic: list[int]  # (e,) joints with two encoders
    bandwidths: tuple[float, ...]


class _Step(NamedTuple):
    """What one linearisation leads to."""

    unknowns: Unknowns
    information: Array  # of all unknowns, from the rows alone
    gain: Array  # from A^T times the noise of rows over their deviations to unknowns
    covariance: Array
    far: float  # from the solution at the start, in deviations


def estimate(
    model: TorqueModel,
    runs: Sequence[Data],
    prior_deviations: Array,
    progress: Callable[[float], None] | None = None,
) -> Estimate:
    """Return what fits all runs best; their channels are those of the same joints.

    `prior_deviations` (P,): how far parameters may leave the prior, 0 where they may not.
    """
    data = runs[0]
    for each in runs:
        each.compare(model)
    start, spreads = _prior(model, data, prior_deviations)
    now, noise, of_shape = start, dict[Key, Noise](), start.of_shape
    of_held = np.zeros(of_shape.stop - of_shape.start)  # variances of shapes that are no longer looked at
    for look in range(_LOOKS):
        now, last, noise = _sought(model, runs, now, start, spreads, noise, look, progress)
        rows, systems = linearised(model, runs, now, noise, whole=True)
        weights = {key: each.noise for key, each in rows.items()}
        leverages = {key: _leverage(model, key, of_one, now, last.covariance) for key, of_one in systems}
        noise = {key: each.noise_by_frequency(leverages[key]) for key, each in rows.items()}
        if look == 1:  # near enough that what is left tells, and one look to come
            _seek_holds(model, runs, rows, systems, now, noise)
        left_out = [each.reversals_left_out for each in runs]
        # where friction hardly sticks, the second look tells how it turns over, and is the last to look at it
        looks_back = [each.leave_reversals_out(model, now, near=look > 0) for each in runs]
        sticking, hidden = np.logical_or.reduce(looks_back)
        # the look after holds were found still weighs by noise that has them in it
        enough = 2 if any(each.held for each in runs) else 1
        if look > enough and np.array_equal([each.reversals_left_out for each in runs], left_out):
            break
        for each in runs:
            each.instrument_is_slow = each.vibrates
        now = now.turning_sharply(model, sticking)
        # near enough for a prior among all laws: files have the bluntest one, whatever the gear does
        start = start.turning_sharply(model, sticking | (look > 0))
        variances = np.diag(last.covariance)[of_shape]
        of_held = np.where(spreads[of_shape] > 0.0, variances, of_held) * np.tile(~sticking, 2)
        spreads[of_shape] *= np.tile(~hidden, 2)
    now, covariance = _without_noise(model, runs, now, start, spreads, weights, last)
    covariance[of_shape, of_shape] += np.diag(np.where(spreads[of_shape] > 0.0, 0.0, of_held))
    bent = {j: rows[Key(0, j, i)] for i, j in enumerate(data.elastic)}
    bandwidths = tuple(band for each in runs for band in each.bandwidths)
    p = len(prior_deviations)
    return Estimate(now, covariance, last.information[:p, :p], bent, weights, data.elastic, bandwidths)


def _prior(model: TorqueModel, data: Data, deviations: Array) -> tuple[Unknowns, Array]:
    """Return the unknowns by the file, and how far all may be from them: infinite where it says nothing."""
    springs = np.zeros((KINDS, len(data.elastic)))
    springs[COMPLIANCE] = [1.0 / model.specs[j].stiffness for j in data.elastic]
    of_springs = np.full(springs.shape, np.inf)
    of_springs[FRICTION:] = 0.0  # `spring_terms` seeks them
    of_springs[LAG] = _LONGEST_LAG * springs[COMPLIANCE]
    of_shape = (deviations[model.place(2)] > 0.0) * np.array(_SHAPE)[:, None]
    spreads = np.concatenate([deviations, of_shape.ravel(), of_springs.ravel(), [np.inf]])
    return Unknowns(model.prior, springs, 0.0, model.friction_shape), spreads


def _sought(
    model: TorqueModel,
    runs: Sequence[Data],
    now: Unknowns,
    start: Unknowns,
    spreads: Array,
    noise: dict[Key, Noise],
    look: int,
    progress: Callable[[float], None] | None,
) -> tuple[Unknowns, _Step, dict[Key, Noise]]:
    """Return the unknowns where steps from `now` end, the last step, and the noise by which they were sought.

    In the first look, noise follows from what each step leaves, and is white.
    """
    nearest, least = now, np.inf
    for turn in range(_TURNS):
        _, systems = linearised(model, runs, now, noise)
        step = _solved(model, systems, now, start, spreads)
        if look > 0 and step.far > least:  # the step was too long; in the first look noise changes too
            now = now.moved(0.5 * (nearest.vector - now.vector))
            continue
        nearest, least, now, last = now, step.far, step.unknowns, step
        if look == 0:
            left = residuals(model, runs, now, noise)
            noise = {key: each.white_noise() for key, each in left.items()}
        if progress is not None:
            progress((look + (turn + 1) / _TURNS) / _LOOKS)
        if (np.abs(now.vector - nearest.vector) <= _CONVERGED * np.sqrt(np.diag(last.covariance))).all():
            return now, last, noise
    return nearest, last, noise


def _seek_holds(
    model: TorqueModel,
    runs: Sequence[Data],
    rows: Mapping[Key, Rows],
    systems: Sequence[tuple[Key, Array]],
    now: Unknowns,
    noise: Mapping[Key, Noise],
) -> None:
    """Let runs know whether a controller held their efforts, from what their noise does not explain.

    That is what is left now: by an earlier look, noise has what sticking friction leaves at reversals.
    """
    for run, data in enumerate(runs):
        joints = []
        motion = data.fast_motion(data.acted(now.effort_delay), data.late(now))
        columns = model.columns(motion, data.recording.at_motor, now.friction_shape, now.parameters)
        known = changing(model, data, columns, now.parameters, columns @ now.parameters)
        for key, of_one in systems:
            if key.run != run or key.spring is not None:
                continue
            of_joint = rows[key]
            deviations = noise[key].deviations
            rate = of_joint.low_pass.spline(known[:, key.joint])(of_joint.low_pass.even, nu=1)
            left = of_joint.low_pass.spectrum(of_joint.measured - of_joint.predicted) / deviations
            block = by_unknowns(model, key, of_one, now) * (of_joint.noise.deviations / deviations)[:, None]
            joints.append(HeldRows(of_joint.low_pass, rate, deviations, left, block))
        if joints:
            period = float(np.median(np.diff(data.recording.efforts.times)))
            data.held = seek_hold(joints, period, 2.0 * data.moving_frequency)


def _solved(
    model: TorqueModel,
    systems: list[tuple[Key, Array]],
    now: Unknowns,
    start: Unknowns,
    spreads: Array,
) -> _Step:
    """Solve the bilinear problem by Gauss-Newton.

    With an instrumental variable no square falls, but how far the solution was at the start does. Of the
    delay of efforts the rows hold an instrumental variable Z; derivatives are J = Z + E, and E is zero but
    for that delay, so that (Z^T J)^-1 follows from (Z^T Z)^-1 by one product (Sherman & Morrison, 1950), and
    the covariance is (Z^T J)^-1 (Z^T Z) (J^T Z)^-1. Every step counts E: with Z alone, steps grow from one to
    the next where Z tells less than half of the delay. `spreads` are those of all unknowns about the prior:
    zero where they are held, infinite where it says nothing.
    """
    size = len(spreads)
    moving = spreads > 0.0
    pull = np.diag(1.0 / spreads[moving])
    normal = np.zeros((size, size))
    delay = now.effort_delay  # at which rows were taken
    far, counted = 0.0, 1.0  # the latter: share of what rates have beside the certain ones that counts
    for inner in range(_INNER):
        blocks, left, beside = [], [], []  # last: what the rates of efforts have beside the certain ones
        x = now.vector
        for key, triangle in systems:
            block = by_unknowns(model, key, triangle, now)
            if key.spring is None:
                modelled = block @ x
            else:
                spring = now.springs[:, key.spring]
                modelled = triangle[:, :-1] @ coefficients(model, now.parameters, spring, key.joint)
            blocks.append(block)
            beside.append(triangle[:, -2] if key.spring is None else np.zeros(len(block)))
            left.append(triangle[:, -1] - modelled - counted * beside[-1] * (now.effort_delay - delay))
        rows = np.concatenate(blocks)
        normal = rows.T @ rows
        system = np.concatenate([rows[:, moving], pull])
        right = np.concatenate([*left, pull @ (start.vector - x)[moving]])
        size_of = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
        both = np.column_stack([right, np.concatenate([*beside, np.zeros(len(pull))])])
        step, rest = np.zeros((2, size))
        solution = np.linalg.lstsq(system / size_of, both, rcond=1e-13)[0] / size_of[:, None]
        step[moving], rest[moving] = solution.T
        if inner == 0:
            far = float(np.linalg.norm(system @ step[moving]))
        counted = min(1.0, (1.0 - _LEAST_SHARE) / max(-rest[-1], 1e-12))
        rest *= counted / (1.0 + counted * rest[-1])
        step -= rest * step[-1]
        step[now.of_shape] = np.clip(step[now.of_shape], -_LARGEST_STEP, _LARGEST_STEP)
        now = now.moved(step)
    change = np.eye(size)  # from least squares to the instrumental variable of the delay
    change[:, -1] -= rest
    gain = change @ _covariance(normal, spreads)
    return _Step(now, normal, gain, gain @ change.T, far)


def _without_noise(
    model: TorqueModel,
    runs: Sequence[Data],
    now: Unknowns,
    start: Unknowns,
    spreads: Array,
    noise: Mapping[Key, Noise],
    step: _Step,
) -> tuple[Unknowns, Array]:
    """Return the unknowns without what noise of the encoders makes of them, and their covariance."""
    shaken = _shaken(model, runs, now, noise)
    change, covariance = _taken_off(shaken, now.vector - start.vector, spreads, step)
    if not now.springs.size:
        return now.moved(change), covariance
    return _moved_with_loads(model, runs, now, change, covariance)


class _Shaken(NamedTuple):
    """What noise of the encoders, once more, makes of the equations A^T (P(x) - y) = 0, in draws of it."""

    mean: Array  # b, (unknowns,)
    scattered: Array  # (draws, unknowns) about that
    squares: Array  # M, of the columns
    alike: Array  # what it would scatter, were it as loud all the time


def _shaken(model: TorqueModel, runs: Sequence[Data], now: Unknowns, noise: Mapping[Key, Noise]) -> _Shaken:
    """Add noise of the encoders once more, with both signs.

    Accelerations have that noise in them, and with every column A of the efforts P(x) that hangs on them,
    squares of noise come in: inertias shrink, and the delay with them, as viscous friction takes one for the
    other. Deflections y have it themselves, and damping of springs comes out small. Noise n of the same size
    added to it makes as much once more (simulation extrapolation; J. R. Cook and L. A. Stefanski, J. Am.
    Stat. Assoc. 89, 1994): in the equations the mean b over both signs of A(n)^T ((P - y)(n) - (P - y)(0)),
    and with further x, M = E[(A(n) - A)^T (A(n) - A)] more of it.
    """
    usual, systems = linearised(model, runs, now, noise, whole=True)
    blocks = {key: by_unknowns(model, key, of_one, now) for key, of_one in systems}
    shares = {key: np.zeros(len(block)) for key, block in blocks.items()}  # of noise, that encoders make
    size = len(now.vector)
    mean, scattered, squares = np.zeros(size), np.zeros((_DRAWS, size)), np.zeros((size, size))

    def beyond(shaken: Sequence[Data]) -> Iterator[tuple[Key, Array, Array]]:
        rows, systems = linearised(model, shaken, now, noise, whole=True)
        for key, of_one in systems:
            more = rows[key].low_pass.spectrum(rows[key].beyond - usual[key].beyond)
            yield key, by_unknowns(model, key, of_one, now), more / noise[key].deviations

    random = np.random.default_rng(0)
    draws = zip(*(each.with_noise_again(random) for each in runs))
    for scatter, shaken in zip(scattered, draws):
        for (key, block, more), (_, other_block, less) in zip(*map(beyond, zip(*shaken))):
            mean += 0.5 * (block.T @ more + other_block.T @ less) / _DRAWS
            wave, shaking = 0.5 * (more - less), 0.5 * (block - other_block)
            scatter += blocks[key].T @ wave
            squares += shaking.T @ shaking / _DRAWS
            shares[key] += wave**2 / _DRAWS
    alike = sum(block.T @ (np.minimum(shares[key], 1.0)[:, None] * block) for key, block in blocks.items())
    return _Shaken(mean, scattered, squares, np.asarray(alike))


def _taken_off(shaken: _Shaken, away: Array, spreads: Array, step: _Step) -> tuple[Array, Array]:
    """Return the change of the unknowns by which the mean of noise is taken off, and their covariance.

    `away` is where they are from the prior x0, of which they have the `spreads` S. Where M is a large part of
    the information N = A^T A, what rows seem to tell is noise: the difference of motor and link acceleration
    is hardly more, and would have motor and link of equal inertia. So equations count the less the more noise
    they have, beside the prior, by R = 1 - M N^-1, which makes the variance of x' least:

        (S^-2 + R (N - M)) (x' - x0) = R (A^T (y - A x0) + b(x0))

    What noise scatters, A^T (P - y)(n), takes the place of what it would, were it alike all the time, as
    noise by frequency has it: it is loudest where friction turns over, and there rates of efforts, which
    tell their delay, are largest.
    """
    deviations = np.sqrt(np.diag(step.covariance))
    scale = np.where(deviations > 0.0, deviations, 1.0)  # by which unknowns are made alike in size
    both, one = np.outer(scale, scale), np.eye(len(scale))
    with np.errstate(divide="ignore"):
        prior = np.where(spreads > 0.0, (scale / spreads) ** 2, 0.0)
    gain, squares = step.gain / both, shaken.squares * both
    squares *= min(1.0, _LARGEST_NOISE / max(np.abs(np.linalg.eigvals(squares @ gain)).max(), 1e-12))
    left_out = squares @ (_covariance(step.information, _WEAK * spreads) / both)
    counts = one - left_out  # R
    solve = gain @ np.linalg.inv(one - left_out @ (one - prior[:, None] * gain) - counts @ squares @ gain)
    of_rows = solve @ counts
    change = of_rows @ (scale * shaken.mean) - solve @ left_out @ (prior * away / scale)
    covariance = of_rows @ ((step.information - shaken.alike) * both) @ of_rows.T + (solve * prior) @ solve.T
    waves = (scale * shaken.scattered) @ of_rows.T
    return scale * change, both * (_positive(covariance) + waves.T @ waves / _DRAWS)


def _moved_with_loads(
    model: TorqueModel, runs: Sequence[Data], now: Unknowns, step: Array, covariance: Array
) -> tuple[Unknowns, Array]:
    """Return the unknowns a step further, and their covariance there.

    Deflections tell the product of a load and a compliance. A step is linear in both; the product is what it
    keeps, and the compliance is that over the load.
    """
    moved, turn = now.moved(step), np.eye(len(step))
    for i, sway in enumerate(load_sways(model, runs, now)):
        grows = max(_LEAST_LOAD, 1.0 + float(sway @ step[: model.bodies]))
        for kind in (COMPLIANCE, LAG):
            at, before = now.of_spring(kind, i), now.springs[kind, i]
            moved.springs[kind, i] = (before * grows + step[at]) / grows
            turn[at] /= grows
            turn[at, : model.bodies] = (before - moved.springs[kind, i]) * sway / grows
    return moved, turn @ covariance @ turn.T


def load_sways(model: TorqueModel, runs: Sequence[Data], now: Unknowns) -> Array:
    """Return by which share the swaying load of each spring grows with the parameters of bodies (e, bodies).

    Least squares of the load about its mean, as offsets of encoders take the mean.
    """
    swayed, squares = 0.0, 0.0
    for data in runs:
        loads = np.array([part[:, : model.bodies] for part in data.springs(model, now)])
        loads -= loads.mean(axis=1, keepdims=True)
        own = loads @ now.parameters[: model.bodies]
        swayed = swayed + np.einsum("eN,eNb->eb", own, loads)
        squares = squares + np.einsum("eN,eN->e", own, own)[:, None]
    return np.asarray(swayed / np.maximum(squares, 1e-300))


def _positive(covariance: Array) -> Array:
    """Return a covariance without variances below zero, which outliers that hardly count may leave."""
    size = np.sqrt(np.abs(np.diag(covariance)))
    scale = np.outer(size, size)
    variances, axes = np.linalg.eigh(covariance / np.where(scale > 0.0, scale, 1.0))
    return np.asarray(scale * ((axes * np.maximum(variances, 0.0)) @ axes.T))


def refitted_springs(
    model: TorqueModel, runs: Sequence[Data], now: Unknowns, noise: Mapping[Key, Noise]
) -> Unknowns:
    """Return the unknowns with those springs that fit best, all else held.

    A deflection is a product of inertias and compliance: a step that is linear in both is no guide where
    inertias go far, as they do where those that fit best are not of bodies.
    """
    kinds = [COMPLIANCE, DELAY, OFFSET, LAG]
    places = np.array([[now.of_spring(kind, i) for kind in kinds] for i in range(now.springs.shape[1])])
    for _ in range(_TURNS):
        _, systems = linearised(model, runs, now, noise)
        springs = now.springs.copy()
        for i, j in enumerate(runs[0].elastic):
            triangles = [triangle for key, triangle in systems if key.spring == i]
            blocks = [by_unknowns(model, Key(0, j, i), each, now)[:, places[i]] for each in triangles]
            pull = np.array([[0.0, 0.0, 0.0, model.specs[j].stiffness / _LONGEST_LAG]])
            rows = np.concatenate([*blocks, pull])
            size = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
            measured = np.concatenate([*(each[:, -1] for each in triangles), [0.0]])
            springs[kinds, i] = np.linalg.lstsq(rows / size, measured, rcond=1e-13)[0] / size
        before, now = now, replace(now, springs=springs)
        if np.allclose(springs, before.springs, rtol=1e-4, atol=0.0):
            break
    return now


def by_unknowns(model: TorqueModel, key: Key, rows: Array, now: Unknowns) -> Array:
    """Return derivatives of rows, of which the last column is what was measured, by all unknowns."""
    p, known = len(now.parameters), now.of_shape.stop
    result = np.zeros((len(rows), len(now.vector)))
    if key.spring is None:
        result[:, :known], result[:, -1] = rows[:, :known], rows[:, known]
    else:
        of_all = jacobian(model, rows[:, :-1], now.parameters, now.springs, key.spring)
        result[:, :p], result[:, now.of_springs] = of_all[:, :p], of_all[:, p:]
    return result


def _leverage(model: TorqueModel, key: Key, rows: Array, now: Unknowns, covariance: Array) -> Array:
    """Return the share of each row's noise (m,) that the fit takes for motion."""
    block = by_unknowns(model, key, rows, now)
    return np.minimum(np.einsum("ki,ij,kj->k", block, covariance, block), 1.0)


def _covariance(normal: Array, spreads: Array) -> Array:
    """Return the covariance of all unknowns, from the information of rows and prior."""
    moving = np.ix_(spreads > 0.0, spreads > 0.0)
    covariance = np.zeros_like(normal)
    with np.errstate(divide="ignore"):
        information = (normal + np.diag(spreads**-2.0))[moving]
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    both = np.outer(size, size)
    covariance[moving] = np.linalg.pinv(information / both, hermitian=True) / both
    return covariance
