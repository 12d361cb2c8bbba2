"""Robots as functions of CasADi, with exact Jacobian, directional derivatives and Hessian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.export.c_text import checked_name, name_from
from hodyn_ros.interop.casadi_functions import externals
from hodyn_ros.interop.casadi_library import library, write_library
from hodyn_ros.interop.needed import needed
from hodyn_ros.interop.traced_function import TracedFunction
from hodyn_ros.lie.representations import Representation


def function(
    robot: Robot,
    what: str = "inverse_dynamics",
    order: int = 0,
    *,
    frames: Sequence[str | int] | None = None,
    representation: Representation = "spatial",
    name: str | None = None,
) -> Any:
    """Return a `casadi.Function` of one operation of a robot without loops, as machine code.

    `what`: "inverse_dynamics", "forward_dynamics", "forward_kinematics", "jacobian", "com", "mass_matrix",
    "coriolis_matrix" or "gravity_torque", with arguments and results of one order as of `Robot.compile`,
    transposed: a column for each derivative order. Inverse dynamics of order 0 takes q (n, 3), the positions,
    velocities and accelerations, and gives tau (n, 1). `jac`, `fwd`, `adj` and the Hessian of a sum are exact
    and compiled along; all numbers of the arguments count as independent, entries of a pose too. `name`
    begins with a letter; by default it is made of the robot's.

    The function is a shared object in the cache of machine code, which no compiler or linker makes: code that
    CasADi generates can be linked with it. Raises InputError for what is not offered.
    """
    casadi = needed("casadi", "casadi")
    traced = TracedFunction.of(robot, what, order, frames, representation)
    called = checked_name(f"{name_from(robot.name)}_{what}_{order}" if name is None else name)
    path = write_library(library(externals(traced, called)))
    return casadi.external(called, str(path))
