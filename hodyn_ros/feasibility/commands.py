"""What `hodyn check` and `hodyn retime` do, once their arguments are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isinf
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feasibility.check import check
from hodyn_ros.feasibility.picture import draw_usage
from hodyn_ros.feasibility.report import findings_table, verdict
from hodyn_ros.feasibility.retime import retime
from hodyn_ros.parallel.config import is_parallel
from hodyn_ros.parallel.robot import ParallelRobot
from hodyn_ros.trajectory.reader import read_motion
from hodyn_ros.trajectory.retimed_file import retimed_text
from hodyn_ros.trajectory.robot_motion import RobotMotion


def run_check(
    trajectory: str, robot: str, duration: float | None, samples: int, picture: Path | None, console: Console
) -> bool:
    """Print the table of a check and draw its picture; return whether all limits hold.

    `trajectory`, `robot`: paths of YAML files, or names of shipped ones.
    """
    motion, machine = _motion(share.find("config", trajectory), duration), _machine(robot)
    with _shown(console, "checking") as progress:
        report = check(machine, motion, duration, samples, progress)
    console.print(findings_table(report))
    if picture is not None:
        title = f"{Path(trajectory).name} on {machine.model.name}: what it uses of the limits"
        console.print(f"wrote {draw_usage(report, title, picture)}", soft_wrap=True)
    console.print(verdict(report), soft_wrap=True)
    return not report.violations


def run_retime(
    trajectory: str,
    robot: str,
    duration: float | None,
    samples: int,
    out: Path,
    picture: Path | None,
    console: Console,
) -> None:
    """Write a trajectory file that is just slow enough, and say by how much. Raises InfeasibleError."""
    source = share.find("config", trajectory)
    motion, machine = _motion(source, duration), _machine(robot)
    with _shown(console, "searching the speed") as progress:
        found = retime(machine, motion, duration, samples, progress)
    limit = f"{found.column.quantity} of {found.column.joint} at {found.time:.4f} s"
    if found.speed == 1.0:
        console.print(f"nothing to slow down: at most {100.0 * found.usage:.1f} % are used, by the {limit}")
    else:
        console.print(
            f"slowed to {found.speed:.9f} of its speed, so it lasts {found.stretch:.6f} times as long; the "
            f"{limit} is at its limit",
            soft_wrap=True,
        )
    note = f"Retimed to {found.speed:.9f} of its speed for {machine.model.name}."
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(retimed_text(source, found.speed, note), encoding="utf-8")
    console.print(f"wrote {out}", soft_wrap=True)
    if picture is not None:
        lasts = None if duration is None else duration / found.speed
        report = check(machine, found.motion, lasts, samples)
        title = (
            f"{Path(trajectory).name} on {machine.model.name}, at {100.0 * found.speed:.2f} % of its speed"
        )
        console.print(f"wrote {draw_usage(report, title, picture)}", soft_wrap=True)


def _motion(source: Path, duration: float | None) -> RobotMotion:
    motion = read_motion(source)
    if duration is None and isinf(motion.trajectory.duration):
        raise InputError("the motion has no end; say with --duration how many seconds count")
    return motion


def _machine(name: str) -> Robot | ParallelRobot:
    path = share.find("config", name)
    return ParallelRobot.from_config(path) if is_parallel(path) else Robot.from_config(path)


@contextmanager
def _shown(console: Console, what: str) -> Iterator[Callable[[float], None]]:
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share_done: bar.update(task, completed=share_done)
