"""The command line, `hodyn`. It needs no ROS until a command does."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from hodyn_ros.errors import HodynError, InputError

app = typer.Typer(
    help="Feedforward torques and their time derivatives for robots with elastic joints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def hodyn() -> None:
    """Feedforward torques and their time derivatives for robots with elastic joints."""


@app.command()
def demo(
    duration: Annotated[
        float, typer.Option(help="Seconds of the motion that are counted.", min=0.5, max=3600.0)
    ] = 10.0,
    out: Annotated[Path, typer.Option(help="Folder for figure, summary and recordings.")] = Path("out/demo"),
    rate: Annotated[float, typer.Option(help="Samples per second [Hz].", min=50.0, max=2000.0)] = 1000.0,
) -> None:
    """Let a simulated Panda follow a motion without, with rigid, and with elastic feedforward.

    Its joints are elastic, its nodes separate processes that talk over DDS. Writes a figure, and the tracking
    errors, rates, latencies and losses.
    """
    from hodyn_ros.demo.run import run_demo

    run_demo(duration, out, rate, Console())


@app.command()
def export(
    robot: Annotated[str, typer.Option(help="Robot: a YAML file as in config/, or a URDF file.")],
    order: Annotated[int, typer.Option(help="Highest time derivative of the torques.")] = 2,
    lang: Annotated[str, typer.Option(help="Language; c is C99 that C++ compiles as well.")] = "c",
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path(),
    name: Annotated[
        str | None, typer.Option(help="Start of all names in the code [default: from the robot's name].")
    ] = None,
    floating_base: Annotated[
        bool, typer.Option("--floating-base", help="Let the root of a URDF file float.")
    ] = False,
) -> None:
    """Write the inverse dynamics of a robot as one C file without dependencies, for hard real-time loops.

    A header and a self-test with expected numbers come with it.
    """
    from hodyn_ros.export import export_c

    if lang != "c":
        raise InputError(f"there is no export to {lang!r}; choose --lang c")
    code, paths = export_c(robot, order, out, name, floating_base)
    print(f"wrote {' and '.join(map(str, paths))}: {code.operations} operations per call")
    for note in code.notes:
        print(f"note: {note}")


@app.command()
def check(
    trajectory: Annotated[str, typer.Argument(help="Trajectory: path of a YAML file, or a shipped one.")],
    robot: Annotated[str, typer.Argument(help="Robot: path of a YAML file, or a shipped one.")],
    duration: Annotated[
        float | None, typer.Option(help="Seconds of the motion that count [default: all].")
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Instants looked at before peaks are refined.", min=3, max=1_000_000)
    ] = 2001,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to draw, such as out/check.png.", show_default="none")
    ] = None,
) -> None:
    """Hold a motion against every limit of a robot; exit code 1 where one is exceeded.

    Position, velocity, torque and torque rate of the joints; speed, torque and torque rate of the motors;
    deflection of the springs: each with time, joint and margin.
    """
    from hodyn_ros.feasibility.commands import run_check

    if not run_check(trajectory, robot, duration, samples, picture, Console()):
        raise SystemExit(1)


@app.command()
def retime(
    trajectory: Annotated[str, typer.Argument(help="Trajectory: path of a YAML file, or a shipped one.")],
    robot: Annotated[str, typer.Argument(help="Robot: path of a YAML file, or a shipped one.")],
    out: Annotated[Path, typer.Option(help="Trajectory file to write.")] = Path("out/retimed.yaml"),
    duration: Annotated[
        float | None, typer.Option(help="Seconds of the motion that count [default: all].")
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Instants looked at before peaks are refined.", min=3, max=1_000_000)
    ] = 2001,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to draw, such as out/retimed.png.", show_default="none")
    ] = None,
) -> None:
    """Slow a motion down just enough that a robot keeps all its limits, and say by how much.

    The new motion touches a limit and exceeds none. Exit code 1 where no speed keeps them all.
    """
    from hodyn_ros.feasibility.commands import run_retime

    run_retime(trajectory, robot, duration, samples, out, picture, Console())


def main() -> None:
    """Run the command line: exit code 1 and one line for what the user can mend, no traceback."""
    signal.signal(signal.SIGTERM, _end)
    try:
        app(standalone_mode=True)
    except (HodynError, OSError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(1) from None


def _end(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that whatever has been started is ended as well."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
