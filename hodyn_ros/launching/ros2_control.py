"""What launch files for ros2_control share: hardware and controllers, and a node of ours in front of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hodyn_ros import share
from hodyn_ros.errors import InputError
from hodyn_ros.launching.parts import dynamics_node, existing, node
from hodyn_ros.launching.processes import Argument, Node, Values, installed

_NEEDED = ("controller_manager", "joint_state_broadcaster", "robot_state_publisher")


def ros2_control_arguments(controllers_file: str) -> tuple[Argument, ...]:
    """Return what `hardware` and `commander` need; `controllers_file` is a shipped one."""
    return (
        Argument(
            "hardware",
            True,
            "Whether ros2_control is started, with the hardware of `urdf`; false where it runs already.",
        ),
        Argument(
            "active",
            True,
            "Whether the controllers are activated at once; false: loaded and configured only.",
        ),
        Argument(
            "urdf", str(share.find("config", "panda.urdf")), "URDF with a ros2_control part, as a path."
        ),
        Argument(
            "controllers",
            str(share.find("config", controllers_file)),
            "Parameters of the controllers and of the node that commands them, path of a YAML file.",
        ),
        Argument(
            "join_within",
            0.05,
            "How near [rad or m] to joint_states a motion has to be, for commands to begin; 0: anywhere.",
            low=0.0,
            high=1.0,
        ),
        Argument(
            "tracking_error",
            0.2,
            "How far [rad or m] joint_states may be from the motion until commands stop.",
            low=0.0001,
            high=1000.0,
        ),
    )


def start_argument() -> Argument:
    """Return `auto_start`, for a robot that is to stand still until told to move."""
    return Argument(
        "auto_start",
        False,
        "Whether the motion of `trajectory` starts at once; false: when ~/start is called.",
    )


def gravity_argument() -> Argument:
    """Return what `dynamics` needs."""
    return Argument(
        "gravity",
        True,
        "Whether efforts carry the robot's weight; false where drives do so, as Franka's do.",
    )


def commander(
    executable: str,
    values: Values,
    remappings: Mapping[str, str],
    *,
    safe_to_respawn: bool = False,
    **parameters: Any,
) -> Node:
    """Return a node that commands controllers, with its parameters from the file `controllers`."""
    file = existing("controllers", values["controllers"])
    return node(
        executable,
        values,
        files=(file,),
        remappings=remappings,
        safe_to_respawn=safe_to_respawn,
        **parameters,
    )


def guarded(values: Values, *controllers: str) -> dict[str, Any]:
    """Return what a commander knows of the robot whose limits it keeps, and of its controllers."""
    return {
        "robot_config": values["robot_config"],
        "join_within": values["join_within"],
        "tracking_error": values["tracking_error"],
        **({"controllers": list(controllers)} if values["hardware"] else {}),
        **_gravity(values),
    }


def dynamics(values: Values) -> Node:
    """Return dynamics_node, with the robot's weight in its efforts or without."""
    return dynamics_node(values, **_gravity(values))


def _gravity(values: Values) -> dict[str, Any]:
    return {} if values["gravity"] else {"gravity": [0.0, 0.0, 0.0]}


def hardware(values: Values, *controllers: str) -> Iterator[Node]:
    """Yield a controller manager, which finds the robot on `robot_description`, and controllers.

    Nothing where `hardware:=false`. Raises InputError where ros2_control is not installed.
    """
    if not values["hardware"]:
        return
    missing = [package for package in _NEEDED if not installed(package)]
    if missing:
        raise InputError(
            f"hardware:=true needs {', '.join(missing)}, not installed here; install ros2_control "
            "and ros2_controllers, or start hardware and controllers elsewhere and say hardware:=false"
        )
    namespace, clock = values["namespace"], {"use_sim_time": values["use_sim_time"]}
    description = existing("urdf", values["urdf"]).read_text(encoding="utf-8")
    file = existing("controllers", values["controllers"])
    how = "--activate-as-group" if values["active"] else "--inactive"
    yield Node(
        "robot_state_publisher",
        namespace,
        (clock, {"robot_description": description}),
        package="robot_state_publisher",
        required=False,
    )
    yield Node("ros2_control_node", namespace, (clock, file), package="controller_manager")
    # these end when controllers are there
    for name, arguments in (
        ("spawner_of_states", ("joint_state_broadcaster",)),
        ("spawner_of_commands", (*controllers, "--param-file", str(file), how)),
    ):
        yield Node(
            "spawner",
            namespace,
            package="controller_manager",
            name=name,
            arguments=arguments,
            required=False,
        )
