"""Fixed motions and the numbers that the exported functions must give for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.export.c_text import table
from hodyn_ros.export.interface import Interface
from hodyn_ros.se3 import Array

_MOTIONS = 5
_TOLERANCE = "1e-9"  # of the program
_REACH = 2.0  # of positions without limits, and of all derivatives [rad or m, /s^k]


@dataclass(frozen=True, eq=False)
class SelfTest:
    """Arguments and expected results by the names of the arrays, (motions, rows, columns) each."""

    interface: Interface
    arguments: dict[str, Array]
    results: dict[str, Array]

    def lines(self) -> list[str]:
        """Write the tables, the function `<name>_self_test`, and a program that calls it."""
        return [*self._tables(), *_DEVIATION, "", *self._function(), "", *self._program()]

    def _tables(self) -> list[str]:
        lines: list[str] = []
        for name, values in {**self.arguments, **self.results}.items():
            lines += [*table(f"test_{name}", values.reshape(len(values), -1)), ""]
        return lines

    def _function(self) -> list[str]:
        checks = [
            f"    largest = fmax(largest, deviation({name}, test_{name}[m], {rows}, {columns}));"
            for name, (_, rows, columns) in self._shapes().items()
        ]
        return [
            f"double {self.interface.name}_self_test(void)",
            "{",
            "  double largest = 0.0;",
            *self._declarations(),
            "  int m;",
            f"  for (m = 0; m < {_MOTIONS}; ++m) {{",
            *[f"    {function}({self._passed(a, 'm')});" for function, a in self.interface.calls.items()],
            *checks,
            "  }",
            "  return largest;",
            "}",
        ]

    def _program(self) -> list[str]:
        """Write a `main` that reports the error of the self-test and the time of a call of all functions."""
        calls = self.interface.calls.items()
        return [
            f"#ifdef {self.interface.macro}_MAIN",
            "int main(void)",
            "{",
            f"  const double error = {self.interface.name}_self_test();",
            "  const int calls = 20000;",
            "  double seconds, sum = 0.0;",
            *self._declarations(),
            "  clock_t start = clock();",
            "  int i;",
            "  for (i = 0; i < calls; ++i) {",
            *[f"    {function}({self._passed(arrays, f'i % {_MOTIONS}')});" for function, arrays in calls],
            f"    sum += {' + '.join(f'{name}[0]' for name in self.results)};",
            "  }",
            "  seconds = (double)(clock() - start) / CLOCKS_PER_SEC;",
            "  /* the mean is printed so that no compiler leaves the calls out */",
            '  printf("largest relative error %.2g; %.3f microseconds per call (mean %.3g)\\n", error,',
            "         1e6 * seconds / calls, sum / calls);",
            f"  return error <= {_TOLERANCE} ? 0 : 1;",
            "}",
            "#endif",
        ]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: values.shape for name, values in self.results.items()}

    def _declarations(self) -> list[str]:
        return [f"  double {name}[{rows * columns}];" for name, (_, rows, columns) in self._shapes().items()]

    def _passed(self, arrays: Sequence[str], motion: str) -> str:
        return ", ".join(f"test_{name}[{motion}]" if name in self.arguments else name for name in arrays)


_DEVIATION = [
    "/* Order by order, the largest error against the largest expected number; infinite where not finite. */",
    "static double deviation(const double *found, const double *expected, int rows, int columns)",
    "{",
    "  double largest = 0.0;",
    "  int j, k;",
    "  for (k = 0; k < rows; ++k) {",
    "    double scale = 0.0, error = 0.0;",
    "    for (j = k * columns; j < (k + 1) * columns; ++j) {",
    "      const double difference = fabs(found[j] - expected[j]);",
    "      if (!(difference < HUGE_VAL)) {",
    "        return HUGE_VAL;",
    "      }",
    "      error = fmax(error, difference);",
    "      scale = fmax(scale, fabs(expected[j]));",
    "    }",
    "    largest = fmax(largest, scale > 0.0 ? error / scale : error);",
    "  }",
    "  return largest;",
    "}",
]


def self_test(robot: Robot, interface: Interface) -> SelfTest:
    """Choose motions within the limits, the same ones every time, and compute what is expected for them."""
    random, order, motors = Random(1), interface.order, interface.motors
    compute = robot.compile(order)
    arguments: dict[str, list[Array]] = {"q": []}
    results: dict[str, list[Array]] = {"tau": []}
    for _ in range(_MOTIONS):
        q = _motion(robot, order, random)
        arguments["q"].append(q)
        if robot.model.floating_base:
            pose, twists = _pose(random), _numbers(random, order + 2, 6)
            efforts = compute(q, pose, twists)
            wrench, tau = efforts[:, :6], np.ascontiguousarray(efforts[:, 6:])
            arguments.setdefault("pose", []).append(pose)
            arguments.setdefault("twists", []).append(twists)
            results.setdefault("base_wrench", []).append(wrench)
        else:
            tau = compute(q)
        results["tau"].append(tau)
        if motors is not None:
            position, effort = motors.expected(q, tau)
            results.setdefault("position", []).append(position)
            results.setdefault("effort", []).append(effort)
    return SelfTest(
        interface,
        {name: np.stack(values) for name, values in arguments.items()},
        {name: np.stack(values) for name, values in results.items()},
    )


def _motion(robot: Robot, order: int, random: Random) -> Array:
    q = _numbers(random, order + 3, robot.n_joints)
    lower = np.maximum(robot.limits.position_lower, -_REACH)
    upper = np.minimum(robot.limits.position_upper, _REACH)
    # limits that lie beyond the reach altogether are kept all the same
    lower, upper = (
        np.minimum(lower, robot.limits.position_upper),
        np.maximum(upper, robot.limits.position_lower),
    )
    q[0] = lower + (q[0] + _REACH) / (2.0 * _REACH) * (upper - lower)
    return q


def _numbers(random: Random, rows: int, columns: int) -> Array:
    return np.array(
        [[round(random.uniform(-_REACH, _REACH), 3) for _ in range(columns)] for _ in range(rows)]
    )


def _pose(random: Random) -> Array:
    w, x, y, z = (random.gauss(0.0, 1.0) for _ in range(4))
    s = 2.0 / (w * w + x * x + y * y + z * z)
    pose = np.eye(4)
    pose[:3, :3] = [
        [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
        [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
        [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
    ]
    pose[:3, 3] = _numbers(random, 1, 3)[0]
    return pose
