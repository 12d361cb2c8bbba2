"""Sizes and times of exported C code, for the table in docs/export.md: `python -m benchmarks.exported`.

Every program times its own calls, in turn with the same calls from Python; the table holds medians.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.export import c_source
from hodyn_ros.export.c_function import CFunction
from hodyn_ros.export.loops import loop_function
from hodyn_ros.export.request import Request
from hodyn_ros.export.straight_line import Tables
from hodyn_ros.export.trees import tree_function

_ROWS = (
    ("panda", "inverse_dynamics", (0, 2, 4)),
    ("panda", "feedforward", (2,)),
    ("panda", "forward_dynamics", (0, 2)),
    ("panda", "forward_kinematics", (2,)),
    ("panda", "jacobian", (2,)),
    ("panda", "mass_matrix", (0,)),
    ("panda", "inverse_dynamics_derivatives", (0,)),
    ("aerial_manipulator", "inverse_dynamics", (2,)),
    ("delta", "inverse_dynamics", (0, 2, 4)),
    ("delta", "jacobian", (2,)),
    ("delta", "mass_matrix", (0,)),
    ("delta", "coriolis_matrix", (0,)),
    ("delta", "gravity_torque", (0,)),
    ("delta", "com", (2,)),
    ("delta", "regressor", (0,)),
    ("delta", "forward_dynamics", (0,)),
    ("delta", "forward_kinematics", (2,)),
    ("delta", "inverse_dynamics_derivatives", (0, 1)),
    ("delta", "forward_dynamics_derivatives", (0,)),
    ("humanoid_leg", "inverse_dynamics", (0, 2, 4)),
    ("humanoid_leg", "feedforward", (2,)),
    ("humanoid_leg", "forward_kinematics", (2,)),
    ("humanoid_leg", "mass_matrix", (0,)),
    ("humanoid_leg", "inverse_dynamics_derivatives", (0,)),
    ("humanoid_leg", "forward_dynamics_derivatives", (0,)),
    ("palletiser", "inverse_dynamics", (2,)),
    ("palletiser", "forward_dynamics", (2,)),
    ("palletiser", "inverse_dynamics_derivatives", (2,)),
    ("palletiser", "forward_dynamics_derivatives", (1,)),
    ("planar_3rrr", "inverse_dynamics_derivatives", (1,)),
    ("planar_3rrr", "forward_dynamics_derivatives", (1,)),
    ("panda_hand", "inverse_dynamics", (2,)),
)
_ROUNDS = 9
_CALLS = 2000


def main() -> None:
    """Print the table."""
    print("| robot | what | order | lines | object [bytes] | C / Python | Python [us] |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, what, orders in _ROWS:
        for order in orders:
            with tempfile.TemporaryDirectory() as folder:
                print(_row(name, what, order, Path(folder)), flush=True)


def _row(name: str, what: str, order: int, folder: Path) -> str:
    robot = Robot.from_config(share.find("config", f"{name}.yaml"))
    written = "inverse_dynamics" if what == "feedforward" else what
    code = c_source(robot, order, "robot", what=written)
    source, program = folder / "robot.c", folder / "robot"
    (folder / "robot.h").write_text(code.header)
    source.write_text(code.source)
    flags = ("cc", "-std=c99", "-O2", source)
    subprocess.run([*flags, "-c", "-o", folder / "robot.o"], check=True)
    subprocess.run([*flags, "-DROBOT_MAIN", "-o", program, "-lm"], check=True)
    sizes = subprocess.run(["size", folder / "robot.o"], check=True, capture_output=True, text=True).stdout
    python = _python_call(robot, what, order)
    ratios, seconds = [], []
    for _ in range(_ROUNDS):
        told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        found = re.search(rf"robot_{what}: ([0-9.]+) microseconds", told)
        assert found is not None
        seconds.append(timeit.timeit(python, number=_CALLS, timer=time.process_time) / _CALLS)
        ratios.append(1e-6 * float(found[1]) / seconds[-1])
    lines, text = code.source.count("\n"), sizes.splitlines()[1].split()[0]
    ratio, call = float(np.median(ratios)), 1e6 * float(np.median(seconds))
    return f"| {name} | {what} | {order} | {lines} | {text} | {ratio:.2f} | {call:.2g} |"


def _python_call(robot: Robot, what: str, order: int) -> Callable[[], Any]:
    """Return the same calls, one after the other, from Python."""
    request = Request("robot", order)
    written = "inverse_dynamics" if what == "feedforward" else what
    write: Callable[..., CFunction] = tree_function if robot.closure is None else loop_function
    cases = write(robot, request, written, Tables()).cases
    given = [np.array(values[cases.failing :]) for values in cases.inputs.values()]
    calls = itertools.cycle([tuple(map(np.ascontiguousarray, one)) for one in zip(*given)])
    compute: Any
    if what == "inverse_dynamics_derivatives" and robot.closure is None:
        compute = robot.inverse_dynamics_derivatives
    else:
        compute = robot.compile(order, written)  # type: ignore[arg-type]
    if what != "feedforward":
        return lambda: compute(*next(calls))
    motors = robot.drive_train
    assert motors is not None
    if robot.closure is not None:

        def with_loops() -> Any:
            state = robot.drive_state(*_with_base(next(calls)))
            return motors.feedforward(state.motion, state.efforts)

        return with_loops

    def both() -> Any:
        one = next(calls)
        return motors.feedforward(one[0], compute(*one))

    return both


def _with_base(call: tuple[Any, ...]) -> tuple[Any, ...]:
    q, *base = call
    return (q, BaseMotion(*base)) if base else (q,)


if __name__ == "__main__":
    main()
