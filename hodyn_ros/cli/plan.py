"""What `hodyn plan` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.cli.arguments import share_of
from hodyn_ros.cli.check_and_retime import read_machine
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.outputs import complete, require_writable, write_text
from hodyn_ros.planning.check import check
from hodyn_ros.planning.report import print_whole, verdict
from hodyn_ros.planning.space.frame_path_file import is_frame_path, path_text, read_frame_path
from hodyn_ros.planning.time_optimal.insensitive import Uncertainty
from hodyn_ros.planning.time_optimal.planner import TimeOptimal, time_optimal
from hodyn_ros.planning.time_optimal.report import bindings_table, outcome
from hodyn_ros.tables import progress_bar, say
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.trajectory.files.retimed_file import timed_text


def limit_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return shares of limits by quantity from texts such as `velocity=80%`; InputError names what is none.

    >>> limit_shares(["velocity=80%", "motor torque=0.5"])
    {'velocity': 0.8, 'motor torque': 0.5}
    """
    shares = {}
    for text in texts:
        name, equals, value = text.partition("=")
        value = value.strip()
        try:
            number = float(value.removesuffix("%")) * (0.01 if value.endswith("%") else 1.0)
        except ValueError:
            equals = ""
            number = 0.0
        if not equals:
            raise InputError(f"--limit takes a quantity and its share, such as velocity=80%, found {text!r}")
        shares[name.strip()] = number
    return shares


_HELPS = "start from another posture, or turn the frame otherwise there, and it is faster"


class Request(NamedTuple):
    """How a motion is to be planned; see `time_optimal`."""

    limits: dict[str, float]
    uncertainty: Uncertainty | None
    start: list[float] | None
    end: list[float] | None
    pieces: int


def uncertainty_of(stiffness: str, payload: float) -> Uncertainty | None:
    """Return what may be wrong, from a share such as `20%` and kilograms; None where nothing may."""
    share = share_of(stiffness)
    return Uncertainty(share, payload) if share or payload else None


def rates_of(where: str, text: str | None) -> list[float] | None:
    """Return numbers with commas between them; InputError names what is none.

    >>> rates_of("start", "1, 0,0,0")
    [1.0, 0.0, 0.0, 0.0]
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{where} takes four numbers such as 1,0,0,0, found {text!r}") from None


def check_speed_limits(robot: Robot) -> None:
    """Reject a robot with drives that may turn as fast as they like; InputError says how to state limits.

    Torques alone bound accelerations, so that what is planned within them is as fast as no robot is.
    """
    bounded = np.isfinite(robot.limits.velocity)
    if robot.drive_train is not None:
        bounded |= [np.isfinite(spec.limits.speed) for spec in robot.drive_train.specs]
    free = [name for name, has in zip(robot.driven_joints, bounded) if not has]
    if free:
        names = ", ".join(map(repr, free[:4])) + (f" and {len(free) - 4} more" if len(free) > 4 else "")
        raise InputError(
            f"no limit of velocity is known of {names}, and without one a plan is faster than any robot; "
            "state what they may do, for all as in --set limits.velocity=2, for one as in "
            f"--set {free[0]}.limits.velocity=2 [rad/s or m/s], or under limits in a robot file"
        )


def run_plan(
    robot: RobotChoice,
    path: str,
    request: Request,
    out: Path,
    picture: Path | None,
    console: Console,
) -> TimeOptimal:
    """Write the fastest motion along a path as a trajectory file; say what binds, and return it.

    `path`: a trajectory file, a path in space, or a shipped one. Raises InfeasibleError.
    """
    require_writable(out)
    source = share.find("config", path)
    in_space = is_frame_path(source)
    motion = None if in_space else read_motion(source)
    machine = read_machine(robot, console)
    check_speed_limits(machine)
    speed = None
    if motion is None:
        joint_path, speed = read_frame_path(source, machine)
        motion = joint_path.motion
        for near in joint_path.near:
            say(console, f"{near}; {_HELPS}")
        say(console, f"off the path by {1e6 * joint_path.deviation[0]:.2g} µm at most")
    with progress_bar(console, "searching the fastest speed") as progress:
        timed = time_optimal(
            motion,
            machine,
            request.limits,
            start=request.start,
            end=request.end,
            uncertainty=request.uncertainty,
            speed=speed,
            pieces=request.pieces,
            progress=progress,
        )
    print_whole(console, bindings_table(timed))
    note = f"Timed for {machine.name}: {timed.duration:.6f} s."
    with complete(out) as part:
        if in_space:  # what is timed is the path of the joints
            write_text(part, path_text(joint_path, f"From {Path(path).name}, by its way in m."))
            source = part
        write_text(part, timed_text(source, timed.timing, note))
        as_written = verdict(check(machine, read_motion(part)))
    say(console, f"wrote {out}")
    if picture is not None:
        from hodyn_ros.planning.time_optimal.picture import draw_plan

        title = f"{Path(path).name} on {machine.name}: what is used of the limits"
        say(console, f"wrote {draw_plan(timed, title, picture)}")
    say(console, outcome(timed), f"checked as it was written: {as_written}")
    return timed
