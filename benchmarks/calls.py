"""Kinematics, matrices and forward dynamics from Python, each beside Pinocchio's call of the same content."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks import robots
from benchmarks.agreement import check
from benchmarks.peers import pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.stopwatch import Contender, python_call
from benchmarks.table import Bound, Row, Section

_FORWARD = "forward kinematics of all bodies, order 4"
_INVERSE = "inverse kinematics, order 4, from the sample before"


def measure(stage: Stage) -> Section:
    """Time compiled and named calls of the 7-joint arm."""
    title = "other calls, from Python"
    stage.say(f"{title}: compiling", 0.0)
    robot = robots.panda()
    n, body = robot.n_coordinates, robot.model.body_names[-1]
    twin = pinocchio_tree.build(robot.model)
    data = twin.createData()
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(3, n))
    one, state, torques = q[:1].copy(), q[:2].copy(), q[2:].copy()
    peer: dict[str, Any] = {"pin": pin, "m": twin, "d": data, "q": q[0].copy(), "v": q[1].copy()}
    peer |= {"a": q[2].copy(), "frame": twin.addFrame(_tip(twin))}
    data = peer["d"] = twin.createData()
    works = {
        "forward kinematics of all bodies, order 2": (
            "pin.forwardKinematics(m, d, q, v, a)",
            robot.compile(2, "forward_kinematics", representation="body_fixed"),
            "robot.forward_kinematics(x, representation='body_fixed')",
            (q,),
            1.0,
        ),
        "frame Jacobian": (
            "pin.computeFrameJacobian(m, d, q, frame)",
            robot.compile(0, "jacobian", [body], "body_fixed"),
            f"robot.jacobian(x, body={body!r}, representation='body_fixed')",
            (one,),
            1.0,
        ),
        "centre of mass": (
            "pin.centerOfMass(m, d, q)",
            robot.compile(0, "com"),
            "robot.com(x)",
            (one,),
            1.0,
        ),
        "mass matrix": (
            "pin.crba(m, d, q)",
            robot.compile(0, "mass_matrix"),
            "robot.mass_matrix(x)",
            (one,),
            1.0,
        ),
        "forward dynamics": (
            "pin.aba(m, d, q, v, a)",
            robot.compile(0, "forward_dynamics"),
            "robot.forward_dynamics(x, y)",
            (state, torques),
            0.6,
        ),
    }
    _check_all(works, robot, peer)
    contenders: list[Contender] = [*_inverse_kinematics(robot)]
    for work, (theirs, ours, named, arguments, _) in works.items():
        names = {"f": ours, "robot": robot, "x": arguments[0], "y": arguments[-1]}
        contenders.append(python_call(theirs, theirs, peer))
        contenders.append(python_call(work, "f(x)" if len(arguments) == 1 else "f(x, y)", names))
        contenders.append(python_call(f"{work}, named", named, names))
    for contender in contenders:
        contender.runs[0](100)  # first calls compile, and allocate
    times = stage.race(title, contenders)
    rows = []
    for work, (theirs, _, _, _, bound) in works.items():
        for name, must in ((work, Bound(bound)), (f"{work}, named", None)):
            rows.append(
                Row(
                    work=name,
                    against=theirs.split("(")[0].replace("pin.", "pinocchio."),
                    result=times.ratio(name, theirs),
                    ours=times.seconds(name).median,
                    theirs=times.seconds(theirs).median,
                    must=must,
                )
            )
    rows.append(
        Row(
            work=_INVERSE,
            against=_FORWARD,
            result=times.ratio(_INVERSE, _FORWARD),
            ours=times.seconds(_INVERSE).median,
            theirs=times.seconds(_FORWARD).median,
            must=Bound(20.0),
            aim=Bound(10.0),
        )
    )
    return Section(title, rows)


def _inverse_kinematics(robot: Any) -> list[Contender]:
    """Return inverse kinematics from the position of a sample before, and forward kinematics beside it."""
    q = np.random.default_rng(8).uniform(-1.0, 1.0, size=(5, robot.n_coordinates))
    q[0] = 0.2 * q[0] + [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]
    moved = robot.forward_kinematics(q)
    body = robot.model.body_names[-1]
    forward = robot.compile(4, "forward_kinematics", representation="body_fixed")
    names = {"f": robot.compile(4, "inverse_kinematics"), "s": q[:1] + 1e-3}
    names |= {"pose": np.ascontiguousarray(moved.pose_of(body))}
    names |= {"twists": np.ascontiguousarray(moved.twists_of(body))}
    found = names["f"](names["s"], names["pose"], names["twists"])
    right, done = (robot.forward_kinematics(x).twists_of(body) for x in (q, found))
    check("inverse kinematics", done, right)
    return [
        python_call(_FORWARD, "f(q)", {"f": forward, "q": q}),
        python_call(_INVERSE, "f(s, pose, twists)", names),
    ]


def _tip(twin: Any) -> Any:
    return pin.Frame("tip", twin.njoints - 1, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME)


def _check_all(works: dict[str, Any], robot: Any, peer: dict[str, Any]) -> None:
    """Hold what is timed against Pinocchio."""
    q, v, a, model, data = (peer[name] for name in ("q", "v", "a", "m", "d"))
    mass = pin.crba(model, data, q)
    mass = np.triu(mass) + np.triu(mass, 1).T
    check("the mass matrix", works["mass matrix"][1](q[None]), mass)
    check("the centre of mass", works["centre of mass"][1](q[None]), pin.centerOfMass(model, data, q)[None])
    found = works["forward dynamics"][1](np.stack([q, v]), a[None])
    check("forward dynamics", found, pin.aba(model, data, q, v, a)[None])
