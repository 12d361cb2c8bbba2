"""Sizes and times of exported C, for docs/developing/export_sizes.md: `python -m benchmarks.exported`.

Every program times its own calls, in turn with the same calls from Python; the table holds medians.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drives import KINDS, LINEAR, PLAIN
from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.export import CSource, c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.drive_spec import RotorSpec

_ROWS = (
    ("panda", "inverse_dynamics", (0, 2, 4)),
    ("panda", "feedforward", (2,)),
    ("panda", "forward_dynamics", (0, 2)),
    ("panda", "forward_kinematics", (2,)),
    ("panda", "jacobian", (2,)),
    ("panda", "com", (2,)),
    ("panda", "mass_matrix", (0,)),
    ("panda", "coriolis_matrix", (0,)),
    ("panda", "gravity_torque", (0,)),
    ("panda", "regressor", (0,)),
    ("panda", "inverse_dynamics_derivatives", (0, 2)),
    ("panda", "forward_dynamics_derivatives", (0, 2)),
    ("aerial_manipulator", "inverse_dynamics", (2,)),
    ("aerial_manipulator", "forward_dynamics", (0, 2)),
    ("aerial_manipulator", "forward_kinematics", (2,)),
    ("aerial_manipulator", "mass_matrix", (0,)),
    ("aerial_manipulator", "inverse_dynamics_derivatives", (0,)),
    ("aerial_manipulator", "forward_dynamics_derivatives", (0,)),
    ("aerial_manipulator", "propeller_thrusts", (2,)),
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
    ("delta", "joint_motion", (2,)),
    ("delta", "motion_from_drives", (2,)),
    ("palletiser", "joint_motion", (2,)),
    ("palletiser", "motion_from_drives", (2,)),
    ("planar_3rrr", "joint_motion", (2,)),
    ("planar_3rrr", "motion_from_drives", (2,)),
    ("gough_stewart_6ups", "joint_motion", (2,)),
    ("gough_stewart_6ups", "motion_from_drives", (2,)),
    ("panda_hand", "inverse_dynamics", (2,)),
)
_ROUNDS = 9
_CALLS = 2000


def main() -> None:
    """Print both tables."""
    print("| robot | what | order | lines | object [bytes] | C over Python | Python [µs] |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, what, orders in _ROWS:
        robot = Robot.load(share.find("config", f"{name}.yaml"))
        for order in orders:
            written = "inverse_dynamics" if what == "feedforward" else what
            code = c_source(robot, ExportRequest(order, "robot", what=written))
            cells = _measured(code, what, _python_call(robot, code, what, order))
            print(f"| {name} | {what} | {order} | {cells} |", flush=True)
    print("| drives of 7 joints, order 2 | lines | object [bytes] | C over Python | Python [µs] |")
    print("| --- | --- | --- | --- | --- |")
    for kind, robot, period in _driven():
        code = c_source(robot, ExportRequest(2, "robot", period=period))
        names = [function.name for function in code.functions]
        what = "motor_feedforward" if "motor_feedforward" in names else "feedforward"
        print(f"| {kind} | {_measured(code, what, _motors_call(robot, code, what))} |", flush=True)


def _driven() -> Iterator[tuple[str, Robot, float | None]]:
    """Yield the Panda with drives of every kind, and the period between two calls where springs remember."""
    panda = Robot.load(share.find("config", "panda.yaml"))
    bodies = panda.tree.body_names
    for kind, spec in {PLAIN: LINEAR, **KINDS}.items():
        robot = panda.with_drives([spec] * panda.n_joints)
        yield kind, robot, None
        if spec.spring_damping:
            yield f"{kind}, which remember", robot, 1e-3
    rotors = [replace(LINEAR, rotor=RotorSpec(bodies[j - 1]) if j else None) for j in range(panda.n_joints)]
    yield "rotors that turn with the links, torques included", panda.with_drives(rotors), None


def _measured(code: CSource, what: str, python: Callable[[], Any]) -> str:
    """Return lines, bytes, and the time of a call as a share of that from Python, and of that [us]."""
    ratios, seconds = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, program = folder / "robot.c", folder / "robot"
        (folder / "robot.h").write_text(code.header)
        source.write_text(code.source)
        flags = ("cc", "-std=c99", "-O2", source)
        subprocess.run([*flags, "-c", "-o", folder / "robot.o"], check=True)
        subprocess.run([*flags, "-DROBOT_MAIN", "-o", program, "-lm"], check=True)
        sizes = subprocess.run(
            ["size", folder / "robot.o"], check=True, capture_output=True, text=True
        ).stdout
        for _ in range(_ROUNDS):
            told = subprocess.run([program], check=True, capture_output=True, text=True).stdout
            found = re.search(rf"robot_{what}: ([0-9.]+) microseconds", told)
            assert found is not None
            seconds.append(timeit.timeit(python, number=_CALLS, timer=time.process_time) / _CALLS)
            ratios.append(1e-6 * float(found[1]) / seconds[-1])
    lines, text = code.source.count("\n"), sizes.splitlines()[1].split()[0]
    return f"{lines} | {text} | {np.median(ratios):.2g} | {1e6 * np.median(seconds):.2g}"


def _calls(code: CSource, what: str) -> Iterator[tuple[Array, ...]]:
    """Return the arguments of the calls that the self-test makes, again and again."""
    (function,) = (function for function in code.functions if function.name == what)
    cases = function.cases
    given = [np.array(values[cases.failing :]) for values in cases.inputs.values()]
    return itertools.cycle([tuple(map(np.ascontiguousarray, one)) for one in zip(*given)])


def _motors_call(robot: Robot, code: CSource, what: str) -> Callable[[], Any]:
    calls = _calls(code, what)
    if what == "feedforward":
        law = FeedforwardModel(robot, 2)
        return lambda: law.compute(next(calls)[0])
    return lambda: robot.require_drives().feedforward(*next(calls))


def _python_call(robot: Robot, code: CSource, what: str, order: int) -> Callable[[], Any]:
    """Return the same calls, one after the other, from Python."""
    calls = _calls(code, "inverse_dynamics" if what == "feedforward" else what)
    if what == "propeller_thrusts":
        propellers = robot.propellers
        assert propellers is not None

        def thrusts() -> Any:
            wrench, pose, twists = next(calls)
            return propellers.motion(wrench, BaseMotion(pose, twists))

        return thrusts
    if what == "joint_motion":
        calls = (tuple(array for array in one if array.size) for one in calls)
    compute: Any = robot.compile(order, "inverse_dynamics" if what == "feedforward" else what)  # type: ignore[arg-type]
    if what != "feedforward":
        return lambda: compute(*next(calls))
    motors = robot.require_drives()
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
