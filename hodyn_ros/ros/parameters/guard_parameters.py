"""The parameters of the guard between feedforwards and motors, for all nodes that command a robot."""

from __future__ import annotations

from rclpy.node import Node

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.guard.guard_config import End, FirstEffort, GuardConfig
from hodyn_ros.ros.parameters.parameters import ParameterSpec, chosen, value

# What `stop_on` names, by the bits of a feedforward's status.
_STATUS = {
    "effort": Status.EFFORT_LIMIT_EXCEEDED,
    "effort_rate": Status.EFFORT_RATE_LIMIT_EXCEEDED,
    "velocity": Status.VELOCITY_LIMIT_EXCEEDED,
    "position": Status.POSITION_LIMIT_EXCEEDED,
    "clamped": Status.EFFORT_CLAMPED,
    "singularity": Status.NEAR_SINGULARITY,
}
NOTHING = "nothing"
_COARSE = 0.05  # [rad or m] by which positions on joint_states may jump
ENDS = tuple(end.value for end in End)
_DEFAULTS = GuardConfig()


def guard_settings(
    *, lead: float, end: str, measurement_timeout: float, tracking_error: float
) -> tuple[ParameterSpec, ...]:
    """Return the parameters; their defaults are those of `GuardConfig` but for those given."""
    return (
        _number(
            "timeout",
            0.001,
            1.0,
            "How far [s] a feedforward is carried on by its derivatives, and how early "
            "one may come; without a newer one the robot stops.",
        ),
        _number(
            "lead",
            0.0,
            0.1,
            "From the calculation of a command to the middle of the time it acts [s]: the way "
            "to the drive and half of its period.",
            lead,
        ),
        _number(
            "join_within",
            0.0,
            1.0,
            "A motion is joined where it is within this [rad or m] of the robot, in "
            "every joint; 0: wherever it is, which makes a robot jump that stands somewhere else.",
        ),
        _number(
            "join_speed",
            0.0,
            100.0,
            "A motion is joined where its speed is within this [rad/s or m/s] of the robot's.",
        ),
        _number("settle", 0.0, 10.0, "How long [s] all has to be sound before a motion is joined."),
        _number("fade", 0.001, 10.0, "How long [s] joining a motion takes, and efforts that go to zero."),
        _number(
            "measurement_timeout",
            0.001,
            10.0,
            "How old [s] a measurement may be; with feedback, and for the start.",
            measurement_timeout,
        ),
        _number(
            "tracking_error",
            1e-4,
            1e3,
            "The robot stops where a joint is further than this [rad or m] from its reference.",
            tracking_error,
        ),
        _number(
            "speed_margin", 0.1, 10.0, "The robot stops where a joint is faster than this times its limit."
        ),
        _number(
            "effort_step",
            0.0,
            1e6,
            "A command may differ from the last one by the rate of the effort that the "
            "robot's file allows, or by this [N.m or N] in a millisecond.",
        ),
        _number(
            "saturation_time", 0.0, 1e3, "How long [s] efforts may be at their limits before the robot stops."
        ),
        ParameterSpec(
            "stop_on",
            "effort velocity position singularity",
            "What of a feedforward's status the robot stops for: some of "
            f"{', '.join(_STATUS)}, with spaces between; or {NOTHING}.",
            read_only=True,
        ),
        _number("deceleration", 0.1, 1e4, "How hard [rad/s^2 or m/s^2] the reference brakes at most."),
        ParameterSpec(
            "end",
            end,
            "What is commanded once the robot stands: hold, the efforts (and the feedback) go on; zero, "
            "they go to zero.",
            read_only=True,
        ),
        _number("release_after", 0.0, 1e4, "How long [s] after the stop efforts go to zero, with end: zero."),
    )


def guard_config(
    node: Node, *, feedback: bool, first_effort: FirstEffort, end: str | None = None
) -> GuardConfig:
    """Return what the parameters of a node say; `end` in place of its parameter. Raises InputError."""
    numbers = {
        name: value(node, name)
        for name in (
            "timeout",
            "lead",
            "join_within",
            "join_speed",
            "settle",
            "fade",
            "measurement_timeout",
            "tracking_error",
            "speed_margin",
            "effort_step",
            "saturation_time",
            "deceleration",
            "release_after",
        )
    }
    if feedback:
        numbers["latency"] = value(node, "latency")
    else:  # joint states serve to see where the robot is, and come late now and then
        numbers["resolution"] = _COARSE
    return GuardConfig(
        **numbers,
        measured=feedback,
        stop_on=_status(value(node, "stop_on")),
        end=End(chosen(node, "end", ENDS) if end is None else end),
        first_effort=first_effort,
    )


GRAVITY = ParameterSpec(
    "gravity",
    [],
    "Gravity [m/s^2] in the world frame that efforts count with while the robot stops, as in dynamics_node; "
    "empty: that of the robot's file.",
    read_only=True,
)


def guarded_robot(node: Node) -> Robot | None:
    """Return the robot of `robot_config` under `gravity`; None for none, and for one with a platform."""
    name = value(node, "robot_config")
    if not name:
        return None
    path = share.find("config", name)
    robot = Robot.from_config(path)
    return None if robot.platform is not None else with_gravity(node, robot)


def with_gravity(node: Node, robot: Robot) -> Robot:
    """Return a robot under the gravity that the parameter says."""
    return FeedforwardConfig(gravity=tuple(value(node, "gravity"))).robot(robot)


def _number(
    name: str, low: float, high: float, description: str, default: float | None = None
) -> ParameterSpec:
    default = getattr(_DEFAULTS, name) if default is None else default
    return ParameterSpec(name, default, description, low=low, high=high, read_only=True)


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
