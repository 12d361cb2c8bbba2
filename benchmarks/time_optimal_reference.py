"""Compute the reference durations of `benchmarks.plans`: `python -m benchmarks.time_optimal_reference 0 1 2`.

A fine direct collocation, solved by IPOPT with exact second derivatives: the squared speed of the path
parameter has a fifth derivative that is free and constant in each of 300 intervals; all limits hold at two
Gauss points of each. The search starts from even speed, by a coarse collocation; limits that this one stays
far away from are left out of the fine one until it exceeds them. Takes seconds for each path, and is kept in
data/time_optimal_reference.json.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import casadi
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_lsq_spline

from benchmarks.plans import REFERENCE, panda, random_path
from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics, torque_factors
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.trajectory import RobotMotion, WaypointSpline

INTERVALS = 300
_COARSE = 60  # intervals
_POINTS = 2
_ORDER = 5
_FAR = 0.5  # of a limit: where a coarse solution uses less, the limit is left out at first
_MISSED = 1e-6  # of a limit: by which one that was left out may be exceeded
_STARTS = (0.8, 0.6, 0.4)  # of the squared speed that is even along the path: a search may fail from one
_OPTIONS: dict[str, Any] = {
    "print_time": False,
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "ipopt.tol": 1e-7,  # barriers of 1e-6 on all limits together would cost 4e-4 of a duration
    "ipopt.max_iter": 500,
    "ipopt.mu_strategy": "adaptive",
}


def reference(robot: Robot, path: WaypointSpline, intervals: int = INTERVALS) -> float:
    """Return the least duration [s] that is found for a path."""
    even = (path.duration / time_optimal(path, robot).even_duration) ** 2
    coarse, fine = (_Collocation(robot, path, count, even) for count in (_COARSE, intervals))
    for start in _STARTS:
        try:
            return _least(coarse, fine, start)
        except RuntimeError as error:
            failed = error
    raise failed


def _least(coarse: _Collocation, fine: _Collocation, start: float) -> float:
    """Return the least duration [s] that is found from a share of the even speed; RuntimeError for none."""
    speeds, _ = coarse.solved(np.full(coarse.count, start), np.arange(coarse.limits))
    speeds = fine.fitted(BSpline(coarse.knots, speeds, _ORDER))
    kept = np.flatnonzero(fine.sizes(speeds) > _FAR)
    while True:
        speeds, duration = fine.solved(speeds, kept)
        missed = np.setdiff1d(np.flatnonzero(fine.sizes(speeds) > 1.0 + _MISSED), kept)
        if not len(missed):
            return duration
        kept = np.union1d(kept, missed)


class _Collocation:
    """The squared speed along a path as a spline, and what it uses of the limits at N stations.

    Coefficients are relative to the squared speed that is even. A limit is a column at a station; they are
    counted station by station.
    """

    def __init__(self, robot: Robot, path: WaypointSpline, intervals: int, even: float) -> None:
        demand = LimitSet(robot)
        usage = PathUsage(demand)
        points, weights = np.polynomial.legendre.leggauss(_POINTS)
        step = path.duration / intervals
        u = (np.arange(intervals)[:, None] * step + 0.5 * step * (points + 1.0)).ravel()
        along = PathDynamics.of(demand, demand.fitted(RobotMotion.of(path)), u)
        self.knots = np.pad(np.linspace(0.0, path.duration, intervals + 1), _ORDER, mode="edge")
        self.count = intervals + _ORDER
        self._stations, self._columns = len(u), len(usage.columns)
        self.limits = self._stations * self._columns
        # coefficients that are seen by each station
        self._seen = np.arange(intervals).repeat(_POINTS)[:, None] + np.arange(_ORDER + 1)
        splines = BSpline(self.knots, even * np.eye(self.count), _ORDER)
        basis = [np.take_along_axis(splines(u, nu=k), self._seen, axis=1) for k in range(_ORDER)]
        seconds = 0.5 * step * np.tile(weights, intervals)
        constant, a1, a2 = along.torques
        none = np.zeros(constant[:, 0].shape)
        rows = torque_factors([*a1.swapaxes(0, 1)], [*a2.swapaxes(0, 1)])
        factors = [[none + each for each in row] for row in rows]
        by_station = np.array(factors).transpose(2, 0, 1, 3)
        numbers = [seconds, np.stack(basis, axis=1), along.motion, constant, by_station]
        self._numbers = np.concatenate([one.reshape(len(u), -1) for one in numbers], axis=1).T
        self._functions = [one.map(len(u)) for one in _station(usage, along.motion.shape[2])]
        self._x = casadi.MX.sym("x", self.count)
        self._own = casadi.reshape(self._x[self._seen.ravel().tolist()], _ORDER + 1, len(u))
        found = self._functions[0](self._own, self._numbers)
        self._duration, self._used = casadi.sum2(found[0, :]), casadi.vec(found[1:, :])
        self._all_used = casadi.Function("used", [self._x], [self._used])

    def fitted(self, speeds: BSpline) -> Array:
        """Return the coefficients of a spline that has some of the knots."""
        places = np.linspace(self.knots[0], self.knots[-1], 4 * self.count)
        return np.asarray(make_lsq_spline(places, speeds(places), self.knots, _ORDER).c)

    def sizes(self, coefficients: Array) -> Array:
        """Return what is used of all limits (limits,)."""
        return np.abs(np.asarray(self._all_used(coefficients))[:, 0])

    def solved(self, start: Array, kept: NDArray[np.intp]) -> tuple[Array, float]:
        """Return coefficients and duration [s] of the fastest motion that keeps some of the limits."""
        x, none = self._x, casadi.MX.sym("p", 0)
        scale, multipliers = casadi.MX.sym("scale"), casadi.MX.sym("multipliers", len(kept))
        problem = {"x": x, "p": none, "f": self._duration, "g": self._used[kept.tolist()]}
        gradient, slopes = self._slopes(kept)
        bends = self._bends(kept, scale, multipliers)
        names = ["x", "p"], ["lam_f", "lam_g"]
        derivatives = {
            "grad_f": ([x, none], [problem["f"], gradient], names[0], ["f", "grad_f_x"]),
            "jac_g": ([x, none], [problem["g"], slopes], names[0], ["g", "jac_g_x"]),
            "hess_lag": ([x, none, scale, multipliers], [bends], sum(names, []), ["triu_hess_gamma_x_x"]),
        }
        given = {name: casadi.Function(f"nlp_{name}", *one) for name, one in derivatives.items()}
        solver = casadi.nlpsol("solver", "ipopt", problem, {**_OPTIONS, **given})
        # the squared speed has to be positive, with some room
        solution = solver(x0=start, lbx=1e-4, lbg=-1.0, ubg=1.0)
        if not solver.stats()["success"]:
            raise RuntimeError(solver.stats()["return_status"])
        return np.asarray(solution["x"])[:, 0], float(solution["f"])

    def _slopes(self, kept: NDArray[np.intp]) -> tuple[Any, Any]:
        """Return the derivatives of the duration, and of some limits, by the coefficients."""
        found = self._functions[1](self._own, self._numbers)
        station, column = np.divmod(kept, self._columns)
        own = np.arange(_ORDER + 1)
        rows = np.broadcast_to(np.arange(len(kept))[:, None], (len(kept), len(own)))
        source = (station[:, None] * len(own) + own) * (1 + self._columns)
        slopes = _summed(
            found, source + 1 + column[:, None], rows, self._seen[station], (len(kept), self.count)
        )
        source = np.arange(self._seen.size) * (1 + self._columns)
        seen = self._seen.ravel()
        return _summed(found, source, seen, np.zeros_like(seen), (self.count, 1)), slopes

    def _bends(self, kept: NDArray[np.intp], scale: Any, multipliers: Any) -> Any:
        """Return the second derivatives of the Lagrangian by the coefficients, those above the diagonal."""
        pattern = casadi.Sparsity.triplet(self.limits, 1, kept.tolist(), [0] * len(kept))
        weights = casadi.densify(casadi.MX(pattern, multipliers))
        weights = casadi.reshape(weights, self._columns, self._stations)
        both = casadi.vertcat(casadi.repmat(scale, 1, self._stations), weights)
        row, column = np.triu_indices(_ORDER + 1)
        source = np.arange(self._stations)[:, None] * (_ORDER + 1) ** 2 + column * (_ORDER + 1) + row
        found = self._functions[2](self._own, self._numbers, both)
        return _summed(found, source, self._seen[:, row], self._seen[:, column], (self.count, self.count))


def _summed(found: Any, source: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix of entries that are drawn from others, and summed where they meet."""
    places, entry = np.unique((columns * shape[0] + rows).ravel(), return_inverse=True)
    pattern = casadi.Sparsity.triplet(*shape, (places % shape[0]).tolist(), (places // shape[0]).tolist())
    ones, size = np.ones(source.size), (len(places), found.numel())
    sums = casadi.DM.triplet(entry.tolist(), source.ravel().tolist(), ones, *size)
    return casadi.MX(pattern, sums @ casadi.vec(found))


def _station(usage: PathUsage, joints: int) -> list[Any]:
    """Return functions of one station: duration and limits used, their derivatives, second ones weighted."""
    assert usage.linear_weights is not None
    own = casadi.SX.sym("c", _ORDER + 1)
    sizes = (1, _ORDER * (_ORDER + 1), (_ORDER + 1) * joints, (_ORDER - 1) * joints)
    parts = [casadi.SX.sym("numbers", size) for size in (*sizes, (_ORDER - 1) * _ORDER * joints)]
    y = casadi.reshape(parts[1], _ORDER + 1, _ORDER).T @ own
    motion, constant, factors = (casadi.reshape(one, joints, -1) for one in parts[2:])
    rates, found = _rates(), [parts[0] * y[0] ** -0.5]
    for joint in range(joints):
        torques = constant[joint, :].T + casadi.reshape(factors[joint, :], _ORDER, -1).T @ y
        columns = np.flatnonzero(usage.channel == joint)
        by_time = rates(y, motion[joint, :].T, torques)
        found.append(usage.linear_weights[:, columns].T @ by_time + usage.offset[columns])
    numbers, values = casadi.vertcat(*parts), casadi.vertcat(*found)
    weights = casadi.SX.sym("weights", values.shape[0])
    slopes = casadi.jacobian(values, own)
    bends = casadi.hessian(casadi.dot(weights, values), own)[0]
    return [
        casadi.Function("values", [own, numbers], [values]),
        casadi.Function("slopes", [own, numbers], [casadi.densify(slopes)]),
        casadi.Function("bends", [own, numbers, weights], [casadi.densify(bends)]),
    ]


def _rates() -> Any:
    """Return a function of (y, motion, torques) and their derivatives by u to rates of one joint.

    By repeated `d/dt = sqrt(b) d/du`, not by the formulas of `chain_rule`.
    """
    y = casadi.SX.sym("y", _ORDER + 1)
    f = [casadi.SX.sym(f"f{k}") for k in range(_ORDER + 1)]
    terms = [f[0]]
    for _ in range(_ORDER):
        by_y = sum(casadi.gradient(terms[-1], y)[k] * y[k + 1] for k in range(_ORDER))
        by_f = sum(casadi.gradient(terms[-1], one)[0] * rise for one, rise in zip(f, f[1:]))
        terms.append(casadi.sqrt(y[0]) * (by_y + by_f))
    motion, torques = casadi.SX.sym("motion", _ORDER + 1), casadi.SX.sym("torques", _ORDER - 1)
    found = casadi.substitute(casadi.vertcat(*terms), casadi.vertcat(*f), motion)
    low = casadi.substitute(casadi.vertcat(*terms[: _ORDER - 1]), casadi.vertcat(*f[: _ORDER - 1]), torques)
    whole = casadi.substitute(casadi.vertcat(found, low), y[_ORDER], 0)
    return casadi.Function("rates", [y[:_ORDER], motion, torques], [whole])


def main() -> None:
    """Add the durations of the paths that are named by their seeds to the data."""
    robot = panda()
    for seed in map(int, sys.argv[1:]):
        duration = reference(robot, random_path(robot, seed))
        data = json.loads(REFERENCE.read_text()) if REFERENCE.exists() else {}
        durations = {**data.get("durations", {}), str(seed): round(duration, 6)}
        data = {
            "made by": "python -m benchmarks.time_optimal_reference SEED ...",
            "intervals": INTERVALS,
            "durations": dict(sorted(durations.items(), key=lambda one: int(one[0]))),
        }
        REFERENCE.write_text(json.dumps(data, indent=1) + "\n")
        print(seed, duration, flush=True)


if __name__ == "__main__":
    main()
