"""What the motors have to do, as C: the series elastic drives of a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.actuation.series_elastic import SeriesElastic
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.export.c_text import vector
from hodyn_ros.se3 import Array


@dataclass(frozen=True)
class Motors:
    """The drives of a robot at one order; `effort_rows` counts the motor effort and its derivatives."""

    drives: SeriesElastic
    order: int
    effort_rows: int

    def lines(self, name: str) -> list[str]:
        """Write the function `<name>_motor_feedforward` with its figures."""
        n = self.drives.n_joints
        acceleration = f"q[(k + 2) * {n} + j]"
        if self.drives.elastic.any():
            acceleration = f"({acceleration} + compliance[j] * tau[(k + 2) * {n} + j])"
        return [
            "/* [rad/(N.m) or m/N]; zero where the joint is rigid */",
            *vector("compliance", self.drives.compliance),
            "",
            "/* reflected to the link side [kg m^2 or kg] */",
            *vector("motor_inertia", self.drives.motor_inertia),
            "",
            f"void {name}_motor_feedforward({self.parameters})",
            "{",
            "  int j, k;",
            f"  for (k = 0; k < {self.order + 1}; ++k) {{",
            f"    for (j = 0; j < {n}; ++j) {{",
            f"      position[k * {n} + j] = q[k * {n} + j] + compliance[j] * tau[k * {n} + j];",
            "    }",
            "  }",
            f"  for (k = 0; k < {self.effort_rows}; ++k) {{",
            f"    for (j = 0; j < {n}; ++j) {{",
            f"      effort[k * {n} + j] = motor_inertia[j] * {acceleration} + tau[k * {n} + j];",
            "    }",
            "  }",
            "}",
        ]

    @property
    def parameters(self) -> str:
        """The parameters of the function."""
        n, rows = self.drives.n_joints, self.order + 1
        return (
            f"const double q[{(self.order + 3) * n}], const double tau[{rows * n}], "
            f"double position[{rows * n}], double effort[{self.effort_rows * n}]"
        )

    def expected(self, q: Array, tau: Array) -> tuple[Array, Array]:
        """Return motor positions and efforts by order."""
        motion = self.drives.feedforward(q, tau)
        return motion.position, motion.effort


def motors_of(robot: Robot, order: int) -> Motors | None:
    """Return the motors of a robot; None where it has no such drives or the order does not suffice."""
    drives = robot.actuation
    if not isinstance(drives, SeriesElastic):
        return None
    rows = order - 1 if np.any(drives.elastic) else order + 1
    return Motors(drives, order, rows) if rows > 0 else None
