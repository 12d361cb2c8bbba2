"""Torques and accelerations alone, order 0, from Python: every library from PyPI beside this one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.agreement import check
from benchmarks.peers import libraries
from benchmarks.stage import Stage
from benchmarks.stopwatch import Contender, python_call
from benchmarks.table import Row, Section
from hodyn_ros import Robot, share

_INVERSE, _FORWARD = "inverse dynamics, r = 0, f(q)", "forward dynamics, r = 0, f(state, torques)"


def measure(stage: Stage) -> Section:
    """Time one call of each on the URDF of the Panda."""
    title = "7-joint arm beside libraries from PyPI, one call from Python"
    stage.say(f"{title}: loading", 0.0)
    urdf = Path(share.find("config", "panda.urdf"))
    robot = Robot(Robot.from_urdf(urdf).model.with_gravity((0.0, 0.0, -libraries.GRAVITY)))
    q = np.random.default_rng(7).uniform(-1.0, 1.0, size=(3, robot.n_coordinates))
    torques = np.asarray(robot.inverse_dynamics(q, formulation="body_fixed"))
    ours = {"f": robot.compile(0), "g": robot.compile(0, "forward_dynamics"), "q": q}
    ours |= {"state": q[:2].copy(), "torques": torques}
    contenders: list[Contender] = [
        python_call(_INVERSE, "f(q)", ours),
        python_call(_FORWARD, "g(state, torques)", ours),
    ]
    compared, missing = [], []
    for name in libraries.NAMES:
        library = libraries.load(name, urdf, q, torques[0])
        if library is None:
            missing.append(Row(_INVERSE, name, None, note="not installed"))
            continue
        for work, call, right in ((_INVERSE, library.inverse, torques), (_FORWARD, library.forward, q[2:])):
            if call:
                check(f"{library.name}, {work}", library.run(call), right)
                peer = f"{library.name}: {call.partition('(')[0]}"
                contenders.append(python_call(peer, call, library.names))
                compared.append((work, peer))
    times = stage.race(title, contenders)
    rows = [
        Row(work, peer, times.ratio(work, peer), times.seconds(work).median, times.seconds(peer).median)
        for work, peer in sorted(compared, key=lambda pair: pair[0] != _INVERSE)
    ]
    return Section(title, [*rows, *missing])
