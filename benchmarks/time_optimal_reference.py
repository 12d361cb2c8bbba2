"""Compute the reference durations of `benchmarks.plans`: `python -m benchmarks.time_optimal_reference 0 1 2`.

A fine direct collocation, solved by IPOPT with exact second derivatives: the squared speed of the path
parameter is a chain of five integrators along the path, whose input is constant in each of 300 intervals; all
limits hold at two Gauss points of each. Takes minutes for each path, and is kept in
data/time_optimal_reference.json.
"""

from __future__ import annotations

import json
import sys
from math import factorial
from typing import Any

import casadi
import numpy as np

from benchmarks.plans import REFERENCE, panda, random_path
from hodyn_ros import Robot
from hodyn_ros.planning.limit_set import LimitSet
from hodyn_ros.planning.time_optimal.path_dynamics import PathDynamics
from hodyn_ros.planning.time_optimal.path_usage import PathUsage
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.trajectory import RobotMotion, WaypointSpline

INTERVALS = 300
_POINTS = 2
_ORDER = 5


def reference(robot: Robot, path: WaypointSpline, intervals: int = INTERVALS) -> float:
    """Return the least duration [s] that is found for a path."""
    demand = LimitSet(robot)
    usage = PathUsage(demand)
    motion = demand.fitted(RobotMotion.of(path))
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    step = path.duration / intervals
    offsets = 0.5 * step * (points + 1.0)
    u = (np.arange(intervals)[:, None] * step + offsets).ravel()
    along = PathDynamics.of(demand, motion, u)

    start = time_optimal(path, robot)
    speeds = casadi.MX.sym("b", _ORDER, intervals + 1)  # b and its derivatives, times powers of the step
    inputs = casadi.MX.sym("w", 1, intervals)
    ends = [_advanced(speeds[:, :-1], inputs, 1.0) - speeds[:, 1:]]
    rates = _rates()
    durations, used = 0, []
    for i, offset in enumerate(offsets):
        inside = _advanced(speeds[:, :-1], inputs, offset / step)
        y = casadi.vertcat(*(inside[k, :] / step**k for k in range(_ORDER)))
        durations += 0.5 * step * weights[i] * casadi.sum2(y[0, :] ** -0.5)
        used.append(_used(rates, usage, along, y, slice(i, None, _POINTS)))
    equal, unequal = casadi.vec(ends[0]), casadi.vec(casadi.vertcat(*used))
    unknowns = casadi.vertcat(casadi.vec(speeds), casadi.vec(inputs))
    problem = {"x": unknowns, "f": durations, "g": casadi.vertcat(equal, unequal)}
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-6, "ipopt.max_iter": 500}
    solver = casadi.nlpsol("solver", "ipopt", problem, options)
    bound = np.concatenate([np.zeros(equal.shape[0]), np.ones(unequal.shape[0])])
    # b alone has to be positive, with some room
    least = np.full(unknowns.shape[0], -np.inf)
    least[: _ORDER * (intervals + 1) : _ORDER] = 1e-4
    # where the search starts counts little: even speed
    guess = np.zeros(unknowns.shape[0])
    guess[: _ORDER * (intervals + 1) : _ORDER] = (0.9 * path.duration / start.even_duration) ** 2
    solution = solver(x0=guess, lbx=least, lbg=-bound, ubg=bound)
    if not solver.stats()["success"]:
        raise RuntimeError(solver.stats()["return_status"])
    return float(solution["f"])


def _advanced(speeds: Any, inputs: Any, share: float) -> Any:
    """Return the integrators after a share of an interval."""
    rows = [
        sum(speeds[j, :] * share ** (j - k) / factorial(j - k) for j in range(k, _ORDER))
        + inputs * share ** (_ORDER - k) / factorial(_ORDER - k)
        for k in range(_ORDER)
    ]
    return casadi.vertcat(*rows)


def _rates() -> Any:
    """Return a function of (y, factors of motion, constant, factors of torque) to rates of one joint.

    By repeated `d/dt = sqrt(b) d/du`, not by the formulas of `chain_rule`.
    """
    y = casadi.SX.sym("y", _ORDER + 1)
    motion, constant = casadi.SX.sym("q", _ORDER + 1), casadi.SX.sym("g", _ORDER - 1)
    factors = casadi.SX.sym("a", _ORDER - 1, _ORDER)
    root = casadi.sqrt(y[0])

    def rate(term: Any, functions: list[Any]) -> Any:
        """Differentiate a term of y and derivatives of a function by time."""
        by_y = sum(casadi.gradient(term, y)[k] * y[k + 1] for k in range(_ORDER))
        by_f = sum(casadi.gradient(term, f)[0] * g for f, g in zip(functions, functions[1:]))
        return root * (by_y + by_f)

    f = [casadi.SX.sym(f"f{k}") for k in range(_ORDER + 1)]
    terms = [f[0]]
    for _ in range(_ORDER):
        terms.append(rate(terms[-1], f))
    torques = constant + factors @ y[:_ORDER]
    found = [casadi.substitute(casadi.vertcat(*terms), casadi.vertcat(*f), motion)]
    low = casadi.vertcat(*terms[: _ORDER - 1])
    found.append(casadi.substitute(low, casadi.vertcat(*f[: _ORDER - 1]), torques))
    whole = casadi.substitute(casadi.vertcat(*found), y[_ORDER], 0)
    return casadi.Function("rates", [y[:_ORDER], motion, constant, casadi.vec(factors)], [whole])


def _used(rates: Any, usage: PathUsage, along: PathDynamics, y: Any, some: slice) -> Any:
    """Return the relative quantities (columns, intervals)."""
    assert usage.linear_weights is not None
    count = y.shape[1]
    rows = []
    for joint in range(along.motion.shape[-1]):
        factors = along.factors[some, :, :, joint]
        found = rates.map(count)(
            y,
            along.motion[some, :, joint].T,
            along.constant[some, :, joint].T,
            factors.transpose(0, 2, 1).reshape(count, -1).T,
        )
        own = np.flatnonzero(usage.channel == joint)
        rows.append(usage.linear_weights[:, own].T @ found + usage.offset[own])
    return casadi.vertcat(*rows)


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
