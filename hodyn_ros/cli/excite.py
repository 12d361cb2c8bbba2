"""What `hodyn excite` does, once its arguments are known."""

from __future__ import annotations

from pathlib import Path

import yaml
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.cli.check_and_retime import draw
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.identification.excitation import Excitation, ExcitationOptions, excite
from hodyn_ros.outputs import complete, require_writable, write_text
from hodyn_ros.planning.check import check
from hodyn_ros.planning.report import percent, verdict
from hodyn_ros.tables import number, progress_bar, say
from hodyn_ros.trajectory.files.reader import read_trajectory


def run_excite(
    robot: RobotChoice,
    options: ExcitationOptions,
    compare: str | None,
    out: Path,
    picture: Path | None,
    console: Console,
) -> None:
    """Write a motion that makes the parameters of a robot visible as a trajectory file; print its condition.

    `compare`: a trajectory file, or a shipped one, whose condition is printed beside.
    """
    require_writable(out)
    machine = robot.robot()
    other = None if compare is None else read_trajectory(share.find("config", compare))
    with progress_bar(console, "searching a motion") as progress:
        best = excite(machine, options, progress)
    with complete(out) as part:
        write_text(part, _text(best, machine, options))
        motion = read_trajectory(part)
    say(
        console,
        f"{machine.name}: condition {number(best.condition)} of {len(best.parameters)} base parameters; "
        f"that of random motions within the limits is {number(best.random)} (median)",
    )
    if other is not None:
        until = min(other.duration, motion.duration)
        its = best.measure(other, until)
        say(
            console,
            f"{compare}: condition {number(its)} in {until:g} s, {number(its / best.condition, 3)} times as "
            "large",
        )
    say(console, f"{percent(best.usage)} are used of the limits and boxes: {best.limit}")
    report = check(machine, motion)
    draw(report, f"{out.name} on {machine.name}: what it uses of the limits", picture, console)
    say(console, f"wrote {out}", f"checked as it was written: {verdict(report)}")


def _text(best: Excitation, machine: Robot, options: ExcitationOptions) -> str:
    motion = best.motion
    boxes = "".join(f", {box.frame} in its box" for box in options.boxes)
    data = {
        "type": "fourier",
        "note": f"Made by hodyn excite for {machine.name}: condition {best.condition:.4g} of the weighted "
        f"base regressor (seed {options.seed}){boxes}.",
        "joint_names": list(machine.joint_names),
        "angular_frequency": motion.angular_frequency,
        "sine": motion.sine.tolist(),
        "cosine": motion.cosine.tolist(),
        "offsets": motion.offsets.tolist(),
        "duration": motion.duration,
        "at_rest": True,
    }
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
