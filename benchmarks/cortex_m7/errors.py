"""Errors of float32 exports on motions at random, for docs: `python -m benchmarks.cortex_m7.errors`.

On this machine, with fused products, against the same functions in double: the largest error of a number of
one order relative to the largest number of that order and call, with positions up to `_REACH` from home.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros import Robot, share
from hodyn_ros.export import CSource, c_source
from hodyn_ros.export.c_function import FAILED, CFunction, rounded, sizes
from hodyn_ros.export.loops.operations import inverse_dynamics
from hodyn_ros.export.request import ExportRequest

_ROBOTS = {
    **dict.fromkeys(("panda_hand", "ankle_linkage", "humanoid_leg", "palletiser", "planar_3rrr", "delta"), 2),
    "gough_stewart_6ups": 0,
}
_REACH, _MOTIONS = 0.1, 60  # [rad or m]
_FLAGS = ("-std=c99", "-O1", "-ffp-contract=fast", "-march=native", "-fPIC", "-shared")
Array = NDArray[np.float64]


def main() -> None:
    """Print the table."""
    print("| robot | order | motions | efforts | positions | derivatives of positions |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, order in _ROBOTS.items():
        robot = Robot.load(share.find("config", f"{name}.yaml"))
        count, errors = largest_errors(robot, order, _REACH)
        positions, *rates = errors.pop("motion")
        cells = [max(map(max, errors.values())), positions, max(rates)]
        print(f"| {name} | {order} | {count} | {' | '.join(f'{x:.1e}' for x in cells)} |", flush=True)


def largest_errors(robot: Robot, order: int, reach: float, *flags: str) -> tuple[int, dict[str, Array]]:
    """Return how many motions could be, and the largest errors of each result by order.

    Inputs are numbers that float32 holds, but poses, which would no longer be those of rigid bodies.
    """
    plan, random = inverse_dynamics(robot, ExportRequest(order), "inverse_dynamics"), Random(5)
    with tempfile.TemporaryDirectory() as folder:
        small, exact = (
            _Compiled(
                c_source(robot, ExportRequest(order, "robot", target=target)), number, Path(folder), flags
            )
            for target, number in (("generic", np.float32), (None, np.float64))
        )
        count, errors = 0, dict[str, Array]()
        for _ in range(_MOTIONS):
            motion = dict(zip(plan.inputs, plan.motion(random, reach)))
            motion = {name: x if name == "pose" else rounded(x) for name, x in motion.items()}
            found, expected = (one(motion) for one in (small, exact))
            if found is None or expected is None:
                continue
            count += 1
            for name, values in expected.items():
                scale = np.abs(values).max(axis=1)
                error = np.abs(found[name] - values).max(axis=1) / np.where(scale > 0.0, scale, 1.0)
                errors[name] = np.maximum(errors.get(name, 0.0), error)
    return count, errors


class _Compiled:
    """Inverse dynamics of an export, each call from home."""

    def __init__(self, code: CSource, number: type, folder: Path, flags: Sequence[str]) -> None:
        folder /= number.__name__
        folder.mkdir()
        (folder / "robot.h").write_text(code.header)
        (folder / "robot.c").write_text(code.source)
        command = ["cc", *_FLAGS, *flags, "robot.c", "-lm", "-o", "robot.so"]
        subprocess.run(command, check=True, cwd=folder, timeout=900)
        self._library = ctypes.CDLL(str(folder / "robot.so"))
        self._function: CFunction = code.functions[0]
        self._type = number

    def __call__(self, motion: Mapping[str, Array]) -> dict[str, Array] | None:
        memory = np.zeros(1000)
        of, shapes = self._function, self._function.results
        results: dict[str, NDArray[Any]] = {
            name: np.zeros(shapes[name], self._type) for name in sizes(shapes)
        }
        passed: list[NDArray[Any]] = [
            np.ascontiguousarray(motion[name], self._type) for name in sizes(of.inputs)
        ]
        passed += results.values()
        self._library.robot_home(memory.ctypes)
        code = self._library.robot_inverse_dynamics(memory.ctypes, *(array.ctypes for array in passed))
        return None if code == FAILED else {name: x.astype(np.float64) for name, x in results.items()}


if __name__ == "__main__":
    main()
