"""The parameters of the guard between feedforwards and motors, for all nodes that command a robot."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig, Rejoin
from hodyn_ros.ros.parameters.dynamics_settings import LOAD_TAKING
from hodyn_ros.ros.parameters.parameters import ParameterSpec, choice, config_of, parameters, specs_of, value

# What `stop_on` names, by the bits of a feedforward's status.
_STATUS = {
    "effort": Status.EFFORT_LIMIT_EXCEEDED,
    "effort_rate": Status.EFFORT_RATE_LIMIT_EXCEEDED,
    "velocity": Status.VELOCITY_LIMIT_EXCEEDED,
    "position": Status.POSITION_LIMIT_EXCEEDED,
    "clamped": Status.EFFORT_CLAMPED,
    "singularity": Status.NEAR_SINGULARITY,
    "thrust": Status.THRUST_LIMIT_EXCEEDED,
    "thrust_rate": Status.THRUST_RATE_LIMIT_EXCEEDED,
    "base_wrench": Status.BASE_WRENCH_UNREACHED,
}
NOTHING = "nothing"
_COARSE = 0.05  # [rad or m] by which positions on joint_states may jump
ENDS = tuple(end.value for end in End)
_REJOINS = tuple(rejoin.value for rejoin in Rejoin)


def guard_settings(*, end: str, **defaults: Any) -> tuple[ParameterSpec, ...]:
    """Return the parameters; their defaults are those of `GuardConfig` but for those given."""
    return (
        *specs_of(GuardConfig, **defaults),
        *LOAD_TAKING,
        *parameters(
            stop_on=ParameterSpec(
                "effort velocity position singularity",
                "What of a feedforward's status the robot stops for: some of "
                f"{', '.join(_STATUS)}, with spaces between; or {NOTHING}.",
            ),
            end=ParameterSpec(
                end,
                "What is commanded once the robot stands: hold, the efforts (and the feedback) go on; "
                "zero, they go to zero.",
            ),
            rejoin=ParameterSpec(
                Rejoin.GAP.value,
                "When a robot that has stopped may join a motion by itself: never, only when the service "
                "~/start asks for it; gap, after an end or a gap of the stream of feedforwards alone; "
                "always.",
            ),
        ),
    )


def guard_config(
    node: Node,
    *,
    feedback: bool,
    first_effort: FirstEffort,
    end: str | None = None,
    efforts_act: bool = True,
) -> GuardConfig:
    """Return what the parameters of a node say; `end` in place of its parameter. Raises InputError."""
    # without feedback joint states serve to see where the robot is, and come late now and then
    measuring = {"latency": value(node, "latency")} if feedback else {"resolution": _COARSE}
    return config_of(
        node,
        GuardConfig,
        **measuring,
        measured=feedback,
        stop_on=_status(value(node, "stop_on")),
        end=End(choice(node, "end", ENDS) if end is None else end),
        first_effort=first_effort,
        rejoin=Rejoin(choice(node, "rejoin", _REJOINS)),
        efforts_act=efforts_act,
    )


GRAVITY = ParameterSpec(
    [],
    "Gravity [m/s^2] in the world frame that efforts count with while the robot stops, as in "
    "dynamics_node; empty: that of the robot's file.",
    name="gravity",
)


def guarded_robot(node: Node) -> Robot | None:
    """Return the robot of `robot_config` under `gravity`; None for none, and for one with a platform."""
    name = value(node, "robot_config")
    if not name:
        return None
    path = share.find("config", name)
    robot = Robot.load(path)
    return None if robot.platform is not None else with_gravity(node, robot)


def with_gravity(node: Node, robot: Robot) -> Robot:
    """Return a robot under the gravity that the parameter says."""
    return FeedforwardConfig(gravity=tuple(value(node, "gravity"))).robot(robot)


def _status(names: str) -> Status:
    status = Status.OK
    for name in names.split():
        if name == NOTHING:
            continue
        if name not in _STATUS:
            raise InputError(
                f"parameter 'stop_on' names {name!r}; choose from {', '.join(_STATUS)}, or {NOTHING}"
            )
        status |= _STATUS[name]
    return status
