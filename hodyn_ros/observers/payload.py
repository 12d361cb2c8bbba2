"""What a robot carries, from ordinary motion: mass, centre and inertia of a body on its last link.

A load that the model does not know acts like an external effort. What the observer leaves at a joint is

    r = -Y_L pi + sum_i h_i x_i + noise

with the ten columns Y_L of the regressor of the body that carries it, through the poles of the observer, and
errors that last: shares x_i, one draw for a robot and the same over the whole motion, of efforts h_i. They
are those of `Filters.joint_errors`, an offset, as of friction that is larger one way or an encoder that
counts from elsewhere, and a delay of the effort that acts on the joint, as damping of a spring or sensors
bring. Of a spring whose motor is checked, mean and variance come from the equation of the motor, by sums of
the same kind that go on when another load is taken: no load is in it. What a law does not say of
friction may last for a stroke. So the variance is the larger one of two: of white noise, and by the scores,
what each sample moves the estimate by, behind a pole of `_FRICTION_TIME` (White, A heteroskedasticity-
consistent covariance matrix estimator, Econometrica 48(4), 1980; Newey and West, Econometrica 55(3), 1987).

Noise averages out: two more poles of half the `error_time`, over r and all columns alike, take away what is
faster than motions. With one, noise of positions, which accelerations raise by the square of the frequency,
would count as twice what it is where motions are. The poles begin at zero, r and columns alike: from a single
sample they would begin with all its noise. Samples count as new where they are as far apart as white noise
behind all poles asks for (`_apart`).

The squares of all columns, by joint and weighted with the noise of the observer, make a matrix that takes a
load and errors in whatever order of samples. Without the x_i, which take their most probable values for any
load (Schur's complement of these sums with the prior of x), A_j, b_j and c_j are left. The estimate is the
minimum of

    sum_j (1/2 pi^T A_j pi - b_j^T pi) / s_j^2 + tr(P_0^-1 P(pi)) - log det P(pi)

with the pseudo-inertia `P = [[S, h], [h^T, m]]`, `S = 1/2 tr(I) 1 - I`: there is a body with these figures
where P is positive definite, and no other one. The last term keeps it so at every step
(Wensing, Kim and Slotine, Linear matrix inequalities for physically-consistent inertial parameter
identification, IEEE RA-L 3(1), 2018; Lee, Wensing and Park, Geometric robot dynamic identification, IEEE T-RO
36(2), 2020). The last two are the prior, of Wishart's kind. Each sample brings one damped step of Newton's
method, `1 / (1 + l)` of it with its length l in the metric of `-log det P`. As that is self-concordant and
the rest is quadratic, such a step lowers the objective, and never leaves the bodies that can be (Nesterov and
Nemirovskii 1994).

How large noise was is what the estimate leaves: s_j^2 is the sum of squares that is left at a joint, by the
number of samples that say something new (variance components; Koch, Parameter Estimation and Hypothesis
Testing in Linear Models, 1999, section 3.6). For the covariance `H^-1 (B + sum_j S_j^2 / s_j^4 A_j) H^-1`,
S_j^2 is the same by the number of these less what the fit takes of them, H the Hessian of the above, and B
that of its last two terms.
Deviations count how far the prior has moved the estimate too, as that holds small inertias away from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Shape, Stack, Traceable
from hodyn_ros.engine.matrix_kernels import REGRESSOR
from hodyn_ros.engine.recursions.regressor import PER_BODY
from hodyn_ros.errors import InputError, UnknownNameError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.model.keys import key
from hodyn_ros.observers.filters import JointErrors
from hodyn_ros.observers.layout import Layout, upper_places
from hodyn_ros.observers.momentum_observer import ExternalEfforts, MomentumObserver

Row = list[Any]

_PAIRS = ("xx", "yy", "zz", "xy", "xz", "yz")
NAMES = ("mass", *(f"centre {axis}" for axis in "xyz"), *(f"inertia {pair}" for pair in _PAIRS))
_SETTLED = 8.0  # times 1 / L after which nothing is left of what was before the first sample
_LEARNT = 0.5  # share of the spread of the prior that a figure has to come to, to be shown
_BELIEVED = 0.02  # samples that the noise of the observer, often far too large, counts for beside those there
_FRICTION_TIME = 0.25  # [s] of a pole, behind which errors are left that last for about a stroke
_LARGEST = 1e4  # share of the stated variance that noise counts for in weights at most
_NONE = 1e-30  # a variance that is none, but may stand in a denominator
_KEPT = PER_BODY + 1  # columns of load and effort
_REDUCED = _KEPT * (_KEPT + 1) // 2
_ANGLES = 256  # at which gains of poles are summed
_INTERVAL = 1.959963984540054  # deviations of 95 %


@dataclass(frozen=True)
class PayloadConfig:
    """What is known of a load before it is carried, and of errors that last."""

    mass: float = key("Mass of usual loads [kg].", default=1.0, within=(1e-3, 1e4))
    size: float = key(
        "Their size, a root mean square of distances from the origin of the body along each axis [m].",
        default=0.1,
        within=(1e-3, 10.0),
    )
    error_time: float = key(
        "Time [s] for which errors last that are not there all the time, beyond what the observer smooths: "
        "samples closer than that say the same.",
        default=0.05,
        within=(1e-4, 100.0),
    )
    delay_deviation: float = key(
        "Time [s] by which efforts may be early or late against motions, as by sensors, or by damping of "
        "springs that the robot's file does not know.",
        default=1e-3,
        within=(0.0, 0.1),
    )
    offset_deviation: float = key(
        "What efforts and springs are off by all the time, as where friction is larger one way, or encoders "
        "count from other zeros: its deviation, in those of the observer's effort_noise.",
        default=0.1,
        within=(0.0, 1000.0),
    )
    forgetting: float = key(
        "Time [s] after which a sample counts for a third; a load that is put down is better restarted.",
        default=30.0,
        within=(0.1, 1e6),
    )


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A load, as far as the motion has shown it; in the frame of its body, the inertia about the centre.

    Attributes:
        payload: Mass, centre and inertia; a body that can be.
        values: The ten figures: mass [kg], centre [m], inertia xx, yy, zz, xy, xz, yz [kg m^2].
        deviations: Their standard deviations (10,), with what the prior has moved them by.
        shown: By figure, whether the motion has halved what was open before (10,).
    """

    payload: Payload
    values: Array
    deviations: Array
    shown: NDArray[np.bool_]

    @property
    def intervals(self) -> Array:
        """The ends of intervals of 95 % (10, 2)."""
        reach = _INTERVAL * self.deviations
        return np.stack([self.values - reach, self.values + reach], axis=1)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The figures that the motion has not shown; they stay near those of usual loads."""
        return tuple(name for name, shown in zip(NAMES, self.shown) if not shown)


class PayloadEstimator:
    """Estimates what the last body of a tree carries, beside a `MomentumObserver` of the robot without it.

    After each update of the observer give its result to `update`. `body`: which one carries the load, by
    default the last. For robots on the ground without loops. Raises InputError for others.
    """

    def __init__(
        self,
        observer: MomentumObserver,
        config: PayloadConfig = PayloadConfig(),
        body: str = "",  # noqa: B008
    ) -> None:
        robot = observer.robot
        if not robot.is_arm:
            raise InputError(
                f"robot {robot.name!r} has loops or a base that moves; its load is not estimated"
            )
        names = robot.tree.body_names
        self.body = body or names[-1]
        if self.body not in names:
            raise UnknownNameError("body", body, names)
        self._observer, self._robot, self.config = observer, observer.robot, config
        self._prior = np.diag([config.mass * config.size**2] * 3 + [config.mass])
        self._figures = np.zeros((1, 10))
        self._compile()

    def _compile(self) -> None:
        """Draw up what an update computes; the observer may have other poles than before."""
        n = self._robot.n_coordinates
        self._equations = equations = self._observer.equations
        filters = equations.filters
        state = filters.state.unpack([0.0] * filters.state.size)
        figures = filters.figures.unpack([1.0] * filters.figures.size)
        errors = [filters.joint_errors(j, state, figures) for j in range(n)]
        columns = [_KEPT + len(one.lasting) + 2 for one in errors]  # an offset and a delay besides
        motors = [len(one.motor) + 3 if one.motor else 0 for one in errors]  # and the error of the motor
        self._state = Layout(
            q=n, v=n, filtered=PER_BODY * n, smooth=PER_BODY * n, slow=2 * sum(columns),
            **{f"sums{j}": size * (size + 1) // 2 for j, size in enumerate(columns)},
            slow_motors=2 * sum(max(size - 1, 0) for size in motors),
            **{f"motor{j}": size * (size + 1) // 2 for j, size in enumerate(motors)},
            motor_samples=1, motor_shares=n, motor_scores=2 * sum(size > 0 for size in motors),
            reduced=_REDUCED * n, samples=1, shares=n, parameters=PER_BODY,
        )  # fmt: skip
        self._step = Kernel(*self.trace()).function
        self.restart(drives=True)

    def restart(self, drives: bool = False) -> None:
        """Forget the load, as when it is put down or another one is taken; with `drives` these as well."""
        fresh = self._state.unpack([0.0] * self._state.size)
        fresh["parameters"] = parameters_of(self._prior).tolist()
        fresh["shares"] = fresh["motor_shares"] = [1.0] * self._robot.n_coordinates
        if not drives:
            before = self._state.unpack(self._memory[0].tolist())
            fresh.update({name: values for name, values in before.items() if "motor" in name})
        self._memory: Array = np.array([self._state.pack(fresh)])
        self._elapsed: float | None = None

    def update(self, external: ExternalEfforts | None) -> None:
        """Take what the observer has just said; nothing where that has begun anew."""
        observer = self._observer
        if observer.equations is not self._equations:
            self._compile()
        if external is None or self._elapsed is None:
            self._memory[0, self._state["q"]], self._memory[0, self._state["v"]] = observer.link_motion
            self._elapsed = 0.0
            return
        period, config = observer.period, observer.config
        self._elapsed += period
        smoothing = 1.0 / config.smoothing if config.smoothing else 0.0
        poles, lasts = 1.0 / config.bandwidth + smoothing, 0.5 * self.config.error_time
        settled = self._elapsed > _SETTLED * poles
        alike = max(_apart(1.0 / config.bandwidth, smoothing, lasts), period)
        self._figures[0] = (
            period,
            config.bandwidth,
            smoothing,
            lasts / (lasts + period) if settled else 1.0,
            period / alike if settled else 0.0,
            exp(-period / self.config.forgetting),
            self.config.delay_deviation**2 + _NONE,
            _FRICTION_TIME / (_FRICTION_TIME + period),
            (2.0 * _FRICTION_TIME + alike) / period,
            self.config.offset_deviation**2,
        )
        self._memory = self._step(external[0], observer.numbers, self._figures, self._memory)
        if not isfinite(self._memory.item(-1)):  # rounding led out of the bodies that can be: begin inside
            self._memory[0, self._state["parameters"]] = parameters_of(self._prior)
            self._memory[0, self._state["shares"]] = _LARGEST

    @property
    def estimate(self) -> PayloadEstimate:
        """What is known of the load by now."""
        state, n = self._state.unpack(self._memory[0].tolist()), self._robot.n_coordinates
        parameters = np.array(state["parameters"])
        reduced = np.array([_symmetric(rows) for rows in np.reshape(state["reduced"], (n, _REDUCED))])
        by_joint, pulls, squares = reduced[:, :-1, :-1], reduced[:, :-1, -1], reduced[:, -1, -1]
        values, slopes = _figures_of(parameters)
        before = np.linalg.inv(_curvature(self._prior))
        pseudo = pseudo_inertia(parameters)
        curvature = _curvature(pseudo)
        weights = 1.0 / np.array(state["shares"])
        bend = np.linalg.inv(np.tensordot(weights, by_joint, axes=1) + curvature)
        pulled = np.tensordot(_BASIS, np.linalg.inv(self._prior) - np.linalg.inv(pseudo))
        moved = slopes @ bend @ pulled
        left = np.maximum(squares + (by_joint @ parameters - 2.0 * pulls) @ parameters, 0.0)
        fitted = weights * np.tensordot(by_joint, bend)
        free = np.maximum(state["samples"][0] - fitted, 0.0)
        scatter = np.tensordot((_BELIEVED + left) / (_BELIEVED + free) * weights**2, by_joint, axes=1)
        root = slopes @ bend @ np.linalg.cholesky(curvature + scatter)
        deviations = np.sqrt((root**2).sum(axis=1) + moved**2)
        open_before = np.sqrt(np.diag(slopes @ before @ slopes.T))
        xx, yy, zz, xy, xz, yz = values[4:].tolist()
        payload = Payload(float(values[0]), tuple(values[1:4].tolist()), (xx, xy, xz, yy, yz, zz), self.body)
        return PayloadEstimate(payload, values, deviations, deviations < _LEARNT * open_before)

    def trace(self) -> Traceable:
        """Return what is compiled: `row of the observer, its numbers, figures, memory -> memory`."""
        tree = self._robot.tree
        law, _ = REGRESSOR.of_tree(tree, 0)
        first = PER_BODY * tree.body_names.index(self.body)
        own = slice(first, first + PER_BODY)
        equations, layout, inverse_prior = self._equations, self._state, np.linalg.inv(self._prior)
        filters = equations.filters
        pull_of_prior = [float(np.sum(inverse_prior * basis)) for basis in _BASIS]

        def trace(row: Stack, numbers: Stack, figures: Stack, memory: Stack) -> Stack:
            period, bandwidth, smoothing, slowness, share, kept, delay, slower, longer, off = figures[0]
            before = layout.unpack(memory[0])
            motion = equations.balance.state.unpack(row[0][equations.memory["balance"]])
            seen = filters.state.unpack(row[0][equations.memory["filters"]])
            known = filters.figures.unpack(numbers[0])
            q, v = motion["q"], motion["v"]
            middle = [
                [
                    0.5 * (a + b) - 0.125 * period * (d - c)
                    for a, b, c, d in zip(before["q"], q, before["v"], v)
                ],
                [0.5 * (a + b) for a, b in zip(before["v"], v)],
                [(b - a) / period for a, b in zip(before["v"], v)],
            ]
            x = bandwidth * period
            even = 1.0 + x * x * (1.0 / 12.0)  # as `Filters` does
            blend, faded = x / (even + 0.5 * x), smoothing / (smoothing + period)
            weights = [value for line in law(middle) for value in line[own]]
            filtered = [a + blend * (b - a) for a, b in zip(before["filtered"], weights)]
            smooth = [b + faded * (a - b) for a, b in zip(before["smooth"], filtered)]
            now: dict[str, Row] = {"q": q, "v": v, "filtered": filtered, "smooth": smooth}
            now.update({name: [] for name in ("slow", "slow_motors", "motor_scores", "reduced", "shares")})
            now["samples"] = [kept * before["samples"][0] + share]
            now["motor_samples"] = [kept * before["motor_samples"][0] + share]
            now["motor_shares"] = list(before["motor_shares"])

            def slowly(name: str, columns: Row) -> tuple[Row, Row]:
                """Let columns of a joint through two more poles; return them as they were, and are now."""
                for _ in range(2):
                    old = before[name][len(now[name]) :][: len(columns)]
                    columns = [b + slowness * (a - b) for a, b in zip(old, columns)]
                    now[name] += columns
                return old, columns

            def by_motor(j: int, errors: JointErrors, offset: Any) -> tuple[Any, Any]:
                """Return mean and variance of what a spring is off, by the equation of its motor."""
                columns = [0.0 - errors.error, *(one.effort for one in errors.motor), 1.0]
                old, slow = slowly("slow_motors", columns)
                columns = [*slow, (slow[1] - old[1]) / period]
                weight, scale = share / errors.error_noise, before["motor_shares"][j]
                sums = now[f"motor{j}"] = _added(before[f"motor{j}"], kept, columns, weight)
                firm = [
                    scale / variance for variance in (*(one.variance for one in errors.motor), offset, delay)
                ]
                root = _cholesky(_with_prior(dict(zip(upper_places(len(columns)), sums)), firm, 1))
                squares, *coupled = sums[: len(columns)]
                shares = _solved(root, coupled)
                gains = _solved(root, [1.0] + [0.0] * (len(firm) - 1))
                now["motor_shares"][j] = _ratio(abs(squares - _dot(shares, coupled)), now["motor_samples"][0])
                error, gain = columns[0] - _dot(shares, columns[1:]), _dot(gains, columns[1:]) / gains[0]
                score = weight * error * gain  # by which a sample moves the first share, over gains[0]
                last, scores = before["motor_scores"][len(now["motor_scores"]) :][:2]
                last = score + slower * (last - score)
                scores = kept * scores + last * last
                now["motor_scores"] += [last, scores]
                return shares[0], gains[0] * _larger(scale, longer * gains[0] * scores)

            parts: list[tuple[Row, Any]] = []
            for j in range(len(q)):
                errors = filters.joint_errors(j, seen, known)
                acting = errors.needed - errors.residual
                columns = [0.0 - value for value in smooth[PER_BODY * j : PER_BODY * (j + 1)]]
                columns += [errors.residual, *(one.effort for one in errors.lasting), 1.0, acting]
                old, slow = slowly("slow", columns)
                columns = [*slow[:-1], (slow[-1] - old[-1]) / period]
                sums = now[f"sums{j}"] = _added(before[f"sums{j}"], kept, columns, share / errors.noise)
                offset = off * known["noise_variance"][j] + _NONE
                prior = [(one.mean, one.variance) for one in errors.lasting] + [(0.0, offset), (0.0, delay)]
                now[f"motor{j}"] = []
                if errors.motor:
                    prior[0] = by_motor(j, errors, offset)
                scale = before["shares"][j]
                reduced = _without(sums, prior, scale)
                now["reduced"] += reduced
                parts.append((reduced, 1.0 / scale))
            upper = upper_places(_KEPT)
            total = {
                pair: _sum(weight * reduced[k] for reduced, weight in parts) for k, pair in enumerate(upper)
            }
            pull = [total[i, PER_BODY] for i in range(PER_BODY)]
            now["parameters"] = solution = _newton(before["parameters"], total, pull, pull_of_prior)
            extended = [*solution, -1.0]
            for reduced, _ in parts:
                left = _sum(
                    (1.0 if a == b else 2.0) * extended[a] * extended[b] * value
                    for (a, b), value in zip(upper, reduced)
                )
                now["shares"].append(_ratio(abs(left), now["samples"][0]))
            return [layout.pack(now)]

        shapes: list[tuple[str, Shape]] = [
            ("row", (1, equations.memory.size)),
            ("numbers", (1, filters.figures.size)),
            ("figures", (1, 10)),
            ("memory", (1, layout.size)),
        ]
        return trace, shapes


@lru_cache(maxsize=64)
def _apart(first: float, second: float, third: float) -> float:
    """Return how far apart [s] samples of white noise say as much as all of them, behind poles.

    That is its density over the variance behind poles of these times [s], the third one twice: the inverse
    of the integral of their squared gain over frequencies, here over `tan(angle) / largest`.
    """
    *shorter, largest = sorted((first, second, third, third))
    squares = np.tan(np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES) ** 2
    gains = np.prod([1.0 / (1.0 + (time / largest) ** 2 * squares) for time in shorter], axis=0)
    return float(2.0 * largest / gains.mean())


def _added(sums: Row, kept: Any, columns: Row, weight: Any) -> Row:
    """Return sums of squares and products of columns, with those of one more sample."""
    products = [weight * (columns[a] * columns[b]) for a, b in upper_places(len(columns))]
    return [kept * old + new for old, new in zip(sums, products)]


def _ratio(left: Any, free: Any) -> Any:
    """Return the variance of noise, as a share of what was stated, by squares that some samples leave."""
    ratio = (_BELIEVED + left) / (_BELIEVED + free)
    return 0.5 * (_LARGEST + ratio - abs(_LARGEST - ratio))


def _without(sums: Row, prior: Sequence[tuple[Any, Any]], scale: Any) -> Row:
    """Return sums of the columns of load and effort alone, without errors that last.

    These have the columns that come last, and mean and variance each, `prior`; the last one kept is what all
    others explain. `scale`: the s_j^2 of the joint.
    """
    entries, count = dict(zip(upper_places(_KEPT + len(prior)), sums)), len(prior)
    firm = [scale / variance for _, variance in prior]
    root = _cholesky(_with_prior(entries, firm, _KEPT))
    coupled = [[entries[i, _KEPT + a] for a in range(count)] for i in range(_KEPT)]
    coupled[-1] = [value + f * mean for value, f, (mean, _) in zip(coupled[-1], firm, prior)]
    moved = [_forward(root, column) for column in coupled]
    whole = {pair: entries[pair] for pair in upper_places(_KEPT)}
    last = (PER_BODY, PER_BODY)
    whole[last] = whole[last] + _sum(f * mean * mean for f, (mean, _) in zip(firm, prior))
    return [value - _dot(moved[i], moved[j]) for (i, j), value in whole.items()]


def _with_prior(entries: dict[tuple[int, int], Any], firm: Row, first: int) -> list[Row]:
    """Return the lower half of the matrix of the columns from `first` on, with what is known before."""
    return [
        [entries[first + b, first + a] + (value if a == b else 0.0) for b in range(a + 1)]
        for a, value in enumerate(firm)
    ]


def _symmetric(upper: Sequence[float]) -> Array:
    """Return the symmetric matrix (11, 11) with these entries from its diagonal on, row by row."""
    size = PER_BODY + 1
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


def pseudo_inertia(parameters: Sequence[Any] | Array) -> Array:
    """Return P (4, 4) of parameters (10,): m, m r, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the origin."""
    return np.tensordot(np.asarray(parameters), _BASIS, axes=1)


def parameters_of(pseudo: Array) -> Array:
    """Return the parameters (10,) of a pseudo-inertia (4, 4)."""
    second = pseudo[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    return np.array([pseudo[3, 3], *pseudo[:3, 3], *(inertia[i, j] for i, j in _ENTRIES)])


_ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def _basis() -> Array:
    """Return the matrices (10, 4, 4) that `P = sum_i pi_i basis_i` holds."""
    basis = np.zeros((PER_BODY, 4, 4))
    basis[0, 3, 3] = 1.0
    for i in range(3):
        basis[1 + i, i, 3] = basis[1 + i, 3, i] = 1.0
        basis[4 + i, :3, :3] = 0.5 * np.eye(3)
        basis[4 + i, i, i] -= 1.0
    for k, (i, j) in enumerate(_ENTRIES[3:]):
        basis[7 + k, i, j] = basis[7 + k, j, i] = -1.0
    return basis


_BASIS = _basis()


def _curvature(pseudo: Array) -> Array:
    """Return the second derivative (10, 10) of `-log det P`."""
    moved = np.linalg.solve(pseudo, _BASIS)
    return np.asarray(np.einsum("iab,jba->ij", moved, moved))


def _figures_of(parameters: Array) -> tuple[Array, Array]:
    """Return mass, centre and inertia about it (10,), and their slopes by the parameters (10, 10)."""

    def figures(pi: Any) -> Any:
        mass, first = pi[0], pi[1:4]
        centre = first / mass
        inertia = np.array([[pi[4], pi[7], pi[8]], [pi[7], pi[5], pi[9]], [pi[8], pi[9], pi[6]]])
        about = inertia - mass * ((centre @ centre) * np.eye(3) - np.outer(centre, centre))
        return np.array([mass, *centre, *(about[i, j] for i, j in _ENTRIES)])

    step = 1e-20  # of complex arithmetic: exact to rounding
    slopes = np.stack([figures(parameters + 1j * step * e).imag / step for e in np.eye(PER_BODY)], axis=1)
    return figures(parameters), slopes


def _newton(
    parameters: Row, information: dict[tuple[int, int], Any], pull: Row, pull_of_prior: Sequence[float]
) -> Row:
    """Return parameters after a damped step of Newton's method."""
    pseudo = [
        [_sum(float(_BASIS[k, i, j]) * parameters[k] for k in range(PER_BODY)) for j in range(4)]
        for i in range(4)
    ]
    root = _cholesky(pseudo)
    columns = [_solved(root, [float(i == j) for i in range(4)]) for j in range(4)]  # of the inverse
    moved = [
        [[_sum(columns[c][a] * float(basis[c, b]) for c in range(4)) for b in range(4)] for a in range(4)]
        for basis in _BASIS
    ]
    size = range(PER_BODY)
    hessian = [
        [
            information[min(i, j), max(i, j)]
            + _sum(moved[i][a][b] * moved[j][b][a] for a in range(4) for b in range(4))
            if i >= j
            else 0.0
            for j in size
        ]
        for i in size
    ]
    slope = [
        _sum(information[min(i, j), max(i, j)] * parameters[j] for j in size)
        - pull[i]
        + pull_of_prior[i]
        - _sum(moved[i][a][a] for a in range(4))
        for i in size
    ]
    step = _solved(_cholesky(hessian), slope)
    turned = [[_sum(step[k] * moved[k][a][b] for k in size) for b in range(4)] for a in range(4)]
    length = abs(_sum(turned[a][b] * turned[b][a] for a in range(4) for b in range(4))) ** 0.5
    share = 1.0 / (1.0 + length)
    return [value - share * change for value, change in zip(parameters, step)]


def _cholesky(matrix: Sequence[Row]) -> list[Row]:
    """Return the lower root of a positive definite matrix, whose lower half is read."""
    root: list[Row] = []
    for i, row in enumerate(matrix):
        root.append([])
        for j in range(i + 1):
            rest = row[j] - _sum(root[i][k] * root[j][k] for k in range(j))
            root[i].append(rest**0.5 if i == j else rest / root[j][j])
    return root


def _solved(root: list[Row], right: Row) -> Row:
    """Return what a matrix with this lower root takes to the right side."""
    size, forward = len(root), _forward(root, right)
    solution: Row = [0.0] * size
    for i in reversed(range(size)):
        rest = forward[i] - _sum(root[k][i] * solution[k] for k in range(i + 1, size))
        solution[i] = rest / root[i][i]
    return solution


def _forward(root: list[Row], right: Row) -> Row:
    """Return what a lower root takes to the right side."""
    solution: Row = []
    for i in range(len(root)):
        solution.append((right[i] - _sum(root[i][k] * solution[k] for k in range(i))) / root[i][i])
    return solution


def _dot(first: Row, second: Row) -> Any:
    return _sum(a * b for a, b in zip(first, second))


def _larger(first: Any, second: Any) -> Any:
    return 0.5 * (first + second + abs(first - second))


def _sum(values: Any) -> Any:
    total: Any = 0.0
    for value in values:
        total = total + value
    return total
