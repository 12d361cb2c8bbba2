"""What `hodyn check` and `hodyn retime` do, once their arguments are known."""

from __future__ import annotations

from math import isinf
from pathlib import Path

from rich.console import Console

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.outputs import complete, require_writable, write_text
from hodyn_ros.planning.check import Report, check
from hodyn_ros.planning.report import certainty, findings_table, percent, print_whole, verdict
from hodyn_ros.planning.retime import retime
from hodyn_ros.tables import progress_bar, say
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.trajectory.files.retimed_file import retimed_text
from hodyn_ros.trajectory.robot_motion import RobotMotion

_ATTEMPTS = 5  # to write a file that keeps its limits in spite of rounding


def run_check(
    robot: RobotChoice,
    trajectory: str,
    duration: float | None,
    tolerance: float,
    picture: Path | None,
    console: Console,
) -> Report:
    """Print the table of a check, draw its picture, and return it.

    `trajectory`: path of a YAML file, or a shipped one.
    """
    motion = _motion(share.find("config", trajectory), duration)
    machine = read_machine(robot, console)
    with progress_bar(console, "checking") as progress:
        report = check(machine, motion, duration, tolerance, progress)
    print_whole(console, findings_table(report))
    draw(report, f"{Path(trajectory).name} on {machine.name}: what it uses of the limits", picture, console)
    say(console, verdict(report), certainty(report))
    return report


def run_retime(
    robot: RobotChoice,
    trajectory: str,
    duration: float | None,
    tolerance: float,
    out: Path,
    picture: Path | None,
    console: Console,
) -> None:
    """Write a trajectory file that is just slow enough, and say by how much. Raises InfeasibleError."""
    require_writable(out)
    source = share.find("config", trajectory)
    motion = _motion(source, duration)
    machine = read_machine(robot, console)
    with progress_bar(console, "searching the speed") as progress:
        retimed = retime(machine, motion, duration, tolerance, progress)
    limit = f"{retimed.column.quantity} of {retimed.column.joint} at {retimed.time:.4f} s"
    speed, report = _written(source, machine, retimed.speed, duration, tolerance, out)
    if speed == 1.0:
        say(console, f"nothing to slow down: at most {percent(retimed.usage)} are used, by the {limit}")
    else:
        say(
            console,
            f"slowed to {speed:.9f} of its speed, so it lasts {1.0 / speed:.6f} times as long; the {limit} "
            "is at its limit",
        )
    say(console, f"wrote {out}")
    how = f"{Path(trajectory).name} on {machine.name}, at {100.0 * speed:.2f} % of its speed"
    draw(report, how, picture, console)
    say(console, f"checked as it was written: {verdict(report)}")


def draw(report: Report, title: str, picture: Path | None, console: Console) -> None:
    """Draw what a motion uses of the limits, where a picture is asked for."""
    if picture is not None:
        from hodyn_ros.planning.picture import draw_usage

        say(console, f"wrote {draw_usage(report, title, picture)}")


def read_machine(robot: RobotChoice, console: Console) -> Robot:
    """Read a robot whose motors are held to limits, and say what of its file these leave out."""
    machine = robot.robot()
    if machine.drive_train is not None and any(spec.rotor for spec in machine.drive_train.specs):
        say(
            console,
            "note: limits are held without the turning of rotors with the links (`rotor` of the drives)",
        )
    return machine


def _written(
    source: Path,
    machine: Robot,
    speed: float,
    duration: float | None,
    tolerance: float,
    out: Path,
) -> tuple[float, Report]:
    """Write the file and check what it says; where rounding leaves it beyond a limit, a little slower."""
    with complete(out) as part:
        for _ in range(_ATTEMPTS):
            note = f"Retimed to {speed:.9f} of its speed for {machine.name}."
            write_text(part, retimed_text(source, speed, note))
            until = None if duration is None else duration / speed
            report = check(machine, read_motion(part), until, tolerance)
            if not report.violations:
                return speed, report
            speed *= 1.0 - 2.0 * (report.tightest.usage - 1.0)
        raise InputError(f"the motion exceeds limits by rounding: {verdict(report)}")


def _motion(source: Path, duration: float | None) -> RobotMotion:
    motion = read_motion(source)
    if duration is None and isinf(motion.trajectory.duration):
        raise InputError("the motion has no end; say with --duration how many seconds count")
    return motion
