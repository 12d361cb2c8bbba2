"""What a robot carries, from ordinary motion: mass, centre and inertia of a body on its last link.

A load that the model does not know acts like an external effort, `r = -Y_L pi` with the ten columns of the
regressor of the body that carries it, both through the poles of the observer. Weighted with the deviations of
r, the squares make A and b, which take a load in whatever order of samples. The estimate is the minimum of

    1/2 pi^T A pi - b^T pi + tr(P_0^-1 P(pi)) - log det P(pi)

with the pseudo-inertia `P = [[S, h], [h^T, m]]`, `S = 1/2 tr(I) 1 - I`: there is a body with these figures
where P is positive definite, and no other one. The last term keeps it so at every step
(Wensing, Kim and Slotine, Linear matrix inequalities for physically-consistent inertial parameter
identification, IEEE RA-L 3(1), 2018; Lee, Wensing and Park, Geometric robot dynamic identification, IEEE T-RO
36(2), 2020). The last two are the prior, of Wishart's kind. Each sample brings one damped step of Newton's
method, `1 / (1 + l)` of it with its length l in the metric of `-log det P`. As that is self-concordant and
the rest is quadratic, such a step lowers the objective, and never leaves the bodies that can be (Nesterov and
Nemirovskii 1994).

The deviations of r are those of a robot without a load. How large its errors were with the load is what the
estimate leaves, `r + Y_L pi`. A is kept by joint, and the part A_j of a joint counts s_j^2 times: the squares
that its r leaves by the number of samples that say something new, less what the fit takes of them (variance
components; Koch, Parameter Estimation and Hypothesis Testing in Linear Models, 1999, section 3.6); once at
least, as errors of a model last, and what lasts hides in the fit. The covariance is
`H^-1 (B + sum_j s_j^2 A_j + J) H^-1`, with H the Hessian of the above, and B that of its last two terms. J
adds a share of the efforts that the load needs, for what the fit hides as well, such as the stiffness of a
spring that is wrong all the time. This leaves the estimate alone; lower weights would let a wrong one silence
what mends it. Deviations count how far the prior has moved the estimate too, as that holds small inertias
away from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import Kernel, Shape, Stack, Traceable
from hodyn_ros.engine.matrix_kernels import regressors
from hodyn_ros.engine.recursions.regressor import PER_BODY
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.model.keys import key
from hodyn_ros.observers.layout import Layout
from hodyn_ros.observers.momentum_observer import ExternalEfforts, MomentumObserver

Row = list[Any]

_PAIRS = ("xx", "yy", "zz", "xy", "xz", "yz")
NAMES = ("mass", *(f"centre {axis}" for axis in "xyz"), *(f"inertia {pair}" for pair in _PAIRS))
_SETTLED = 8.0  # times 1 / L after which nothing is left of what was before the first sample
_LEARNT = 0.5  # share of the spread of the prior that a figure has to come to, to be shown
_BELIEVED = 5.0  # independent samples that the deviations of the observer count for beside those that came
_INTERVAL = 1.959963984540054  # deviations of 95 %


@dataclass(frozen=True)
class PayloadConfig:
    """What is known of a load before it is carried, and of errors that last."""

    mass: float = key("Mass of usual loads [kg].", default=1.0, within=(1e-3, 1e4))
    size: float = key("Their size, a root mean square of distances along each axis [m].", default=0.1,
                      within=(1e-3, 10.0))  # fmt: skip
    error_time: float = key(
        "Time [s] for which errors of the external efforts last: samples closer than that say the same.",
        default=0.05,
        within=(1e-4, 100.0),
    )
    effort_deviation: float = key(
        "Share of the efforts that the load needs which stays unsure.", default=0.01, within=(0.0, 1.0)
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
        if robot.closure is not None or robot.moves_base:
            raise InputError(
                f"robot {robot.name!r} has loops or a base that moves; its load is not estimated"
            )
        names = robot.tree.body_names
        self.body = body or names[-1]
        if self.body not in names:
            raise InputError(f"there is no body {body!r}; robot {robot.name!r} has {list(names)}")
        self._observer, self._robot, self.config = observer, robot, config
        n = robot.n_coordinates
        sums = PER_BODY * (PER_BODY + 1) // 2
        self._state = Layout(
            q=n, v=n, filtered=PER_BODY * n, smooth=PER_BODY * n, information=sums * n, spread=sums,
            pull=PER_BODY * n, squares=n, samples=1, parameters=PER_BODY,
        )  # fmt: skip
        self._prior = np.diag([config.mass * config.size**2] * 3 + [config.mass])
        self._figures, self._sample = np.zeros((1, 6)), np.zeros((4, n))
        self._step = Kernel(*self.trace()).function
        self.restart()

    def restart(self) -> None:
        """Forget the load, as when it is put down or another one is taken."""
        fresh = self._state.unpack([0.0] * self._state.size)
        fresh["parameters"] = parameters_of(self._prior).tolist()
        self._memory = np.array([self._state.pack(fresh)])
        self._elapsed: float | None = None

    def update(self, found: ExternalEfforts | None) -> None:
        """Take what the observer has just said; nothing where that has begun anew."""
        observer = self._observer
        motion = observer.link_motion
        if found is None or self._elapsed is None:
            self._memory[0, self._state["q"]], self._memory[0, self._state["v"]] = motion
            self._elapsed = 0.0
            return
        period, config = observer.period, observer.config
        self._elapsed += period
        share = period / max(self.config.error_time, period)
        smoothing = 1.0 / config.smoothing if config.smoothing else 0.0
        self._figures[0] = (
            period,
            config.bandwidth,
            smoothing,
            share if self._elapsed > _SETTLED * (1.0 / config.bandwidth + smoothing) else 0.0,
            exp(-period / self.config.forgetting),
            self.config.effort_deviation,
        )
        self._sample[:2] = motion
        self._sample[2], self._sample[3] = found.efforts, found.deviations
        self._memory = self._step(self._sample, self._figures, self._memory)

    @property
    def estimate(self) -> PayloadEstimate:
        """What is known of the load by now."""
        state, n = self._state.unpack(self._memory[0].tolist()), self._robot.n_coordinates
        parameters = np.array(state["parameters"])
        by_joint = np.array([_symmetric(rows) for rows in np.reshape(state["information"], (n, -1))])
        values, slopes = _figures_of(parameters)
        before = np.linalg.inv(_curvature(self._prior))
        pseudo = pseudo_inertia(parameters)
        curvature = _curvature(pseudo)
        bend = np.linalg.inv(by_joint.sum(axis=0) + curvature)
        pulled = np.tensordot(_BASIS, np.linalg.inv(self._prior) - np.linalg.inv(pseudo))
        moved = slopes @ bend @ pulled
        pulls = np.reshape(state["pull"], (n, -1))
        left = np.maximum(state["squares"] + (by_joint @ parameters - 2.0 * pulls) @ parameters, 0.0)
        free = np.maximum(state["samples"][0] - np.tensordot(by_joint, bend), 0.0)
        shares = np.maximum((_BELIEVED + left) / (_BELIEVED + free), 1.0)
        spread = np.tensordot(shares, by_joint, axes=1) + _symmetric(state["spread"])
        root = slopes @ bend @ np.linalg.cholesky(curvature + spread)
        deviations = np.sqrt((root**2).sum(axis=1) + moved**2)
        open_before = np.sqrt(np.diag(slopes @ before @ slopes.T))
        xx, yy, zz, xy, xz, yz = values[4:].tolist()
        payload = Payload(float(values[0]), tuple(values[1:4].tolist()), (xx, xy, xz, yy, yz, zz), self.body)
        return PayloadEstimate(payload, values, deviations, deviations < _LEARNT * open_before)

    def trace(self) -> Traceable:
        """Return what is compiled: `sample (4, n), figures, memory -> memory`."""
        tree = self._robot.tree
        law, _ = regressors(tree, 0)
        first = PER_BODY * tree.body_names.index(self.body)
        own = slice(first, first + PER_BODY)
        layout, inverse_prior = self._state, np.linalg.inv(self._prior)
        pull_of_prior = [float(np.sum(inverse_prior * basis)) for basis in _BASIS]

        def trace(sample: Stack, figures: Stack, memory: Stack) -> Stack:
            q, v, efforts, deviations = sample
            period, bandwidth, smoothing, share, kept, unsure = figures[0]
            before = layout.unpack(memory[0])
            middle = [
                [
                    0.5 * (a + b) - 0.125 * period * (d - c)
                    for a, b, c, d in zip(before["q"], q, before["v"], v)
                ],
                [0.5 * (a + b) for a, b in zip(before["v"], v)],
                [(b - a) / period for a, b in zip(before["v"], v)],
            ]
            rows = [row[own] for row in law(middle)]
            x = bandwidth * period
            even = 1.0 + x * x * (1.0 / 12.0)  # as `Filters` does
            blend, faded = x / (even + 0.5 * x), smoothing / (smoothing + period)
            flat = [value for row in rows for value in row]
            filtered = [a + blend * (b - a) for a, b in zip(before["filtered"], flat)]
            smooth = [b + faded * (a - b) for a, b in zip(before["smooth"], filtered)]
            seen = [smooth[k : k + PER_BODY] for k in range(0, len(smooth), PER_BODY)]
            weights = [share / (d * d) for d in deviations]
            needed = [unsure * _sum(a * b for a, b in zip(y, before["parameters"])) for y in seen]
            grown = [w * e * e / (d * d) for w, e, d in zip(weights, needed, deviations)]
            upper = [(a, b) for a in range(PER_BODY) for b in range(a, PER_BODY)]
            # joint after joint, so that what each leaves is known whatever the load turns out to be
            products = [w * (y[a] * y[b]) for w, y in zip(weights, seen) for a, b in upper]
            information = [kept * old + new for old, new in zip(before["information"], products)]
            moments = [w * e * value for w, e, y in zip(weights, efforts, seen) for value in y]
            pull = [kept * old - new for old, new in zip(before["pull"], moments)]
            squares = [kept * old + w * (e * e) for old, w, e in zip(before["squares"], weights, efforts)]
            spread = [
                kept * old + _sum(w * (y[a] * y[b]) for w, y in zip(grown, seen))
                for old, (a, b) in zip(before["spread"], upper)
            ]
            total = dict(zip(upper, _of_joints(information, len(upper))))
            found = _newton(before["parameters"], total, _of_joints(pull, PER_BODY), pull_of_prior)
            return [
                layout.pack(
                    {
                        "q": q, "v": v, "filtered": filtered, "smooth": smooth,
                        "information": information, "spread": spread, "pull": pull, "squares": squares,
                        "samples": [kept * before["samples"][0] + share], "parameters": found,
                    }
                )
            ]  # fmt: skip

        shapes: list[tuple[str, Shape]] = [
            ("sample", (4, self._robot.n_coordinates)),
            ("figures", (1, 6)),
            ("memory", (1, layout.size)),
        ]
        return trace, shapes


def _symmetric(upper: Sequence[float]) -> Array:
    """Return the symmetric matrix (10, 10) with these entries from its diagonal on, row by row."""
    matrix = np.zeros((PER_BODY, PER_BODY))
    matrix[np.triu_indices(PER_BODY)] = upper
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
    found = np.zeros((PER_BODY, 4, 4))
    found[0, 3, 3] = 1.0
    for i in range(3):
        found[1 + i, i, 3] = found[1 + i, 3, i] = 1.0
        found[4 + i, :3, :3] = 0.5 * np.eye(3)
        found[4 + i, i, i] -= 1.0
    for k, (i, j) in enumerate(_ENTRIES[3:]):
        found[7 + k, i, j] = found[7 + k, j, i] = -1.0
    return found


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
    size = len(root)
    forward: Row = []
    for i in range(size):
        forward.append((right[i] - _sum(root[i][k] * forward[k] for k in range(i))) / root[i][i])
    found: Row = [0.0] * size
    for i in reversed(range(size)):
        rest = forward[i] - _sum(root[k][i] * found[k] for k in range(i + 1, size))
        found[i] = rest / root[i][i]
    return found


def _of_joints(values: Row, size: int) -> Row:
    """Return the sums over joints of what is kept of each, `size` numbers."""
    return [_sum(values[k::size]) for k in range(size)]


def _sum(values: Any) -> Any:
    total: Any = 0.0
    for value in values:
        total = total + value
    return total
