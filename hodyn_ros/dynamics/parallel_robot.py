"""Robots with a platform on serial limbs, described limb by limb."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.model.parallel.closure import closure_of
from hodyn_ros.model.parallel.mobility import check_mobility
from hodyn_ros.model.parallel.model import ParallelModel

_Arguments = ParamSpec("_Arguments")


def _as_robot(build: Callable[_Arguments, ParallelModel]) -> Callable[_Arguments, Robot]:
    @wraps(build)
    def from_screws(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> Robot:
        model = build(*arguments, **named)
        closure = closure_of(model, check_mobility(model))
        return Robot(closure.tree, closure=closure)

    return from_screws


class ParallelRobot:
    """Describes a platform on serial limbs; what it returns is a `Robot` like others.

    The platform is its floating base, and the pose of the platform its coordinate: motions come as
    `BaseMotion`, without `q`. Each limb hangs from the platform, its joints from there to the ground, where
    it closes a loop that has the name of the limb; bodies have its name in front, such as "leg1_body1".
    Efforts are those of the driven joints, limb after limb. Wrenches may act on any body.
    """

    from_screws = staticmethod(_as_robot(ParallelModel.build))
