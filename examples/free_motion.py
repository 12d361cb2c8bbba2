"""The fastest motion of an elastic Panda between two postures, free and along a straight line.

Torques, torque rates and speeds of its motors, behind elastic joints, follow from five derivatives of the
motion (De Luca 1998): with the motion itself unknown, a spline, there is no stiff dynamics to integrate, and
limits are exact functions of what is sought. Ipopt takes them with Jacobian and Hessian from
`hodyn_ros.interop.casadi`, all nodes at once.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from pictures import JOINT_COLOURS, grid, save
from scipy.interpolate import BSpline

from hodyn_ros import Robot, share
from hodyn_ros.errors import InputError
from hodyn_ros.interop.casadi import function
from hodyn_ros.planning.check import Report, check
from hodyn_ros.planning.retime import retime
from hodyn_ros.planning.time_optimal.planner import time_optimal
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

Array = NDArray[np.float64]

FROM = np.array([0.0, 1.2, 0.0, -0.5, 0.0, 1.6, 0.0])  # stretched out in front, and behind
TO = np.array([0.0, -1.2, 0.0, -0.5, 0.0, 1.6, 0.0])
EFFORT = 0.7  # of what the motors can
WITHIN = (0.01, 0.34, 0.66, 0.99)  # nodes between two knots, at either side of what jumps there
DEGREE, REST = 6, 5  # of the spline, and control points at each end that keep four derivatives zero
STEP = 1e-4  # of the duration, from one torque to the next where derivatives are differences of them
# Derivatives 0 to 3 of what is known at five places, a step apart.
DIFFERENCES = np.array(
    [
        [0, 0, 1, 0, 0],
        [1 / 12, -2 / 3, 0, 2 / 3, -1 / 12],
        [-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12],
        [-0.5, 1, 0, -1, 0.5],
    ]
)


class SplineMotion(Trajectory):
    """A spline of time with clamped ends at rest."""

    def __init__(self, points: Array, duration: float, names: tuple[str, ...]) -> None:
        self.n_joints, self.joint_names, self.duration = points.shape[1], names, duration
        self.smoothness, self.starts_at_rest, self.ends_at_rest = min(REST - 1, DEGREE - 1), True, True
        self._spline = BSpline(knots(len(points)) * duration, points, DEGREE)

    @property
    def breakpoints(self) -> Array:
        """Knots, where the highest derivative jumps."""
        return np.unique(self._spline.t)

    @property
    def polynomial_degree(self) -> int:
        """That of the spline."""
        return DEGREE

    def _smoother(self, order: int) -> str:
        return "take a higher degree"

    def _derivatives(self, times: Array, order: int) -> Array:
        return np.stack([self._spline(times, nu=k) for k in range(order + 1)])


def knots(count: int) -> Array:
    """Return clamped knots from 0 to 1 of a spline with that many control points."""
    inner = np.linspace(0.0, 1.0, count - DEGREE + 1)
    return np.concatenate([np.zeros(DEGREE), inner, np.ones(DEGREE)])


class FreeMotion:
    """The problem: control points and duration, limits at nodes of the path.

    Derivatives of the torques are exact, or differences of torques, for who has no more than these. Without
    drives the joints are rigid, and limits those of speeds and torques alone.
    """

    def __init__(self, robot: Robot, free: int, exact: bool = True) -> None:
        import casadi as ca

        self.robot, self.count = robot, free + 2 * REST
        train, limits, n = robot.drive_train, robot.limits, robot.n_joints
        basis = BSpline(knots(self.count), np.eye(self.count), DEGREE)
        spans = self.count - DEGREE
        places = ((np.arange(spans)[:, None] + WITHIN) / spans).ravel()
        x, duration = ca.MX.sym("x", n, free), ca.MX.sym("T")
        points = ca.horzcat(np.tile(FROM[:, None], REST), x, np.tile(TO[:, None], REST))

        def motion(places: Array, orders: int) -> Any:
            """Return the motion's derivatives below `orders`, columns place by place."""
            shares = np.stack([basis(places, nu=k) for k in range(orders)], axis=1)
            powers = ca.repmat(ca.vertcat(*[duration**-k for k in range(orders)]).T, 1, len(places))
            along = ca.mtimes(points, ca.sparsify(ca.DM(shares.reshape(orders * len(places), -1).T)))
            return along * ca.repmat(powers, n, 1)

        def torques(places: Array, order: int) -> list[Any]:
            """Return the torques and their derivatives, a matrix of columns for each order."""
            given = motion(places, order + 3)
            found = function(robot, "inverse_dynamics", order, samples=len(places))(given)
            return [found[:, k :: order + 1] for k in range(order + 1)]

        moving = motion(places, 6)
        q = [moving[:, k::6] for k in range(6)]
        if exact:
            tau = torques(places, 3)
        else:
            around = (places[:, None] + STEP * np.arange(-2, 3)).ravel()
            near = torques(around, 0)[0]
            tau = [
                sum(float(share) * near[:, k::5] for k, share in enumerate(shares))
                / (STEP * duration) ** order
                for order, shares in enumerate(DIFFERENCES)
            ]
        parts = [(q[1], limits.velocity), (tau[0], limits.effort)]
        if train is not None:
            stiffness, inertia = train.stiffness, train.motor_inertia
            # the motors' motion is that of the links with the deflections tau / K
            parts += [
                (q[1] + tau[1] / stiffness, limits.velocity),
                (tau[1], limits.effort_rate),
                (tau[0] + inertia * (q[2] + tau[2] / stiffness), limits.effort),
                (tau[1] + inertia * (q[3] + tau[3] / stiffness), limits.effort_rate),
            ]
        usage = ca.vertcat(*[ca.vec(value / bound) for value, bound in parts])
        self._unknowns = ca.vertcat(ca.vec(x), duration)
        self._problem = {"x": self._unknowns, "f": duration, "g": usage}
        self._free, self._rows = free, usage.size1()

    def solve(self, start: float, **options: Any) -> tuple[SplineMotion, dict[str, Any]]:
        """Return the fastest motion from one of `start` seconds along a line, and what Ipopt says."""
        import casadi as ca

        quiet = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-6}
        solver = ca.nlpsol("fastest", "ipopt", self._problem, {**quiet, **options})
        n, limits = self.robot.n_joints, self.robot.limits
        along = np.linspace(0.0, 1.0, self._free + 2)[1:-1]
        points = FROM[:, None] + (TO - FROM)[:, None] * along
        lower, upper = (
            np.tile(bound, self._free) for bound in (limits.position_lower, limits.position_upper)
        )
        begun = time.perf_counter()
        found = solver(
            x0=np.append(points.T.ravel(), start),
            lbx=np.append(lower, 0.05),
            ubx=np.append(upper, 20.0),
            lbg=np.full(self._rows, -1.0),
            ubg=np.full(self._rows, 1.0),
        )
        stats = solver.stats() | {"seconds": time.perf_counter() - begun}
        if not stats["success"]:
            raise InputError(f"Ipopt did not arrive: {stats['return_status']}")
        values = np.array(found["x"]).ravel()
        inside = values[:-1].reshape(self._free, n)
        whole = np.concatenate([np.tile(FROM, (REST, 1)), inside, np.tile(TO, (REST, 1))])
        return SplineMotion(whole, float(values[-1]), self.robot.joint_names), stats


def weak_panda(elastic: bool = True) -> Robot:
    """Return the Panda with less torque, so that gravity counts; rigid, it has no motors beside its links."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    limits = replace(panda.limits, effort=EFFORT * panda.limits.effort)
    return Robot(panda.model, limits, panda.drive_train if elastic else None, panda.frames)


def straight(robot: Robot) -> Any:
    """Return the plan of the fastest motion along the straight line, as `hodyn plan` computes it."""
    line = WaypointSpline([0.0, 1.0], np.stack([FROM, TO]), order=5, joint_names=robot.joint_names)
    return time_optimal(line, robot)


def comparisons(robot: Robot, problem: FreeMotion) -> list[tuple[str, FreeMotion, dict[str, Any]]]:
    """Return the same problem with less than exact derivatives: a name, the problem, and options of Ipopt."""
    no_hessian = {"ipopt.hessian_approximation": "limited-memory"}
    no_derivatives = no_hessian | {"ipopt.jacobian_approximation": "finite-difference-values"}
    return [
        ("torque rates as differences of torques", FreeMotion(robot, 18, exact=False), {}),
        ("no Hessian", problem, no_hessian),
        ("no Hessian, and the Jacobian by differences", problem, no_derivatives),
    ]


def draw(reports: dict[str, Report], path: Path) -> Path:
    """Draw speeds and torques of the motors of both motions."""
    figure, axes = grid(
        2, len(reports), 7.5, "From posture to posture in the least time", "motors of an elastic Panda"
    )
    for column, (title, report) in zip(np.asarray(axes).reshape(2, -1).T, reports.items()):
        for ax, quantity in zip(column, ("motor speed", "motor torque")):
            for colour, place in zip(
                JOINT_COLOURS, [i for i, f in enumerate(report.findings) if f.column.quantity == quantity]
            ):
                ax.plot(report.times, report.values[:, place], color=colour, linewidth=1.5)
            unit = next(f.column.unit for f in report.findings if f.column.quantity == quantity)
            ax.set_title(f"{title}: {quantity} [{unit}]", loc="left", fontsize=10)
            ax.set_xlim(0.0, report.times[-1])
        column[-1].set_xlabel("time [s]")
    return save(figure, path)


def main(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out/examples"),
    quick: Annotated[
        bool, typer.Option("--quick", help="A coarser spline, and nothing by differences.")
    ] = False,
) -> None:
    """Plan the fastest free motion of the Panda, and the fastest one along the straight line."""
    robot = weak_panda()
    plan = straight(robot)
    print(f"along the straight line: {plan.duration:.4f} s")
    problem = FreeMotion(robot, 12 if quick else 18)
    found, stats = problem.solve(1.3 * plan.duration)
    slowed = retime(robot, found)  # for what happens between the nodes
    motion = slowed.trajectory
    print(
        f"free: {motion.duration:.4f} s, {stats['iter_count']} iterations in {stats['seconds']:.2f} s "
        "with exact Hessians"
    )
    if not quick:
        for name, other, options in comparisons(robot, problem):
            rough, stats = other.solve(1.3 * plan.duration, **{"ipopt.max_iter": 3000, **options})
            print(
                f"{name}: {rough.duration / found.duration:.4f} of the duration, "
                f"{stats['iter_count']} iterations in {stats['seconds']:.2f} s"
            )
    reports = {"straight": check(robot, plan.motion), "free": check(robot, motion)}
    print("largest share of a limit [%]  straight       free")
    for quantity in dict.fromkeys(f.column.quantity for f in reports["free"].findings):
        shares = [
            100.0 * max(f.usage for f in report.findings if f.column.quantity == quantity)
            for report in reports.values()
        ]
        print(f"{quantity:28s}" + "".join(f"  {value:9.3f}" for value in shares))
    print(f"wrote {draw(reports, out / 'free_motion.png')}")


if __name__ == "__main__":
    typer.run(main)
