"""crocoddyl (PyPI): a motion of a rigid arm from rest to rest in a given time, by BoxFDDP.

Torques are bounded, speeds and positions by a quadratic barrier, as crocoddyl has no other way; joints behind
springs, torque rates and the time itself are beyond its models.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.pinocchio_tree import build
from benchmarks.stopwatch import Array
from hodyn_ros import Robot

_NODES, _ITERATIONS = 80, 500
_BARRIER, _GOAL, _EFFORT = 1e3, 1e4, 1e-6  # weights


@dataclass(frozen=True)
class Arrival:
    """Seconds and iterations that it took, the distance from the goal, and the largest share of a limit."""

    seconds: float
    iterations: int
    distance: float
    usage: float


def drive(robot: Robot, start: Array, goal: Array, duration: float) -> Arrival:
    """Return how crocoddyl brings a robot from one posture (n,) to another in a time [s]."""
    import crocoddyl

    limits, n = robot.limits, robot.n_joints
    state = crocoddyl.StateMultibody(build(robot.model))
    actuation = crocoddyl.ActuationModelFull(state)
    rest = np.zeros(n)

    def node(costs: dict[str, tuple[Any, Any, float]], step: float) -> Any:
        total = crocoddyl.CostModelSum(state)
        for name, (activation, residual, weight) in costs.items():
            given = [] if activation is None else [activation]
            total.addCost(name, crocoddyl.CostModelResidual(state, *given, residual), weight)
        model = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, total)
        model.u_lb, model.u_ub = -limits.effort, limits.effort
        return crocoddyl.IntegratedActionModelEuler(model, step)

    bounds = crocoddyl.ActivationBounds(
        np.append(limits.position_lower, -limits.velocity), np.append(limits.position_upper, limits.velocity)
    )
    inside = crocoddyl.ActivationModelQuadraticBarrier(bounds)
    running = {
        "limits": (inside, crocoddyl.ResidualModelState(state, np.zeros(2 * n), n), _BARRIER),
        "effort": (None, crocoddyl.ResidualModelControl(state, n), _EFFORT),
    }
    there = np.append(goal, rest)
    arriving = {"goal": (None, crocoddyl.ResidualModelState(state, there, n), _GOAL)}
    nodes = [node(running, duration / _NODES)] * _NODES
    solver = crocoddyl.SolverBoxFDDP(
        crocoddyl.ShootingProblem(np.append(start, rest), nodes, node(arriving, 0.0))
    )
    line = start + (goal - start) * np.linspace(0.0, 1.0, _NODES + 1)[:, None]
    guess = [np.append(q, (goal - start) / duration) for q in line]
    holding = [robot.gravity_torque(q[None])[0] for q in line[:-1]]
    begun = time.perf_counter()
    solver.solve(guess, holding, _ITERATIONS, False)
    seconds = time.perf_counter() - begun
    states, efforts = np.array(solver.xs), np.array(solver.us)
    usage = max(np.abs(states[:, n:] / limits.velocity).max(), np.abs(efforts / limits.effort).max())
    return Arrival(seconds, solver.iter, float(np.abs(states[-1] - there).max()), float(usage))
