"""The command line, `hodyn`. It needs no ROS until a command does."""

import inspect
import signal
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

from hodyn_ros.blas import take_one_thread
from hodyn_ros.cli.commands import learning, motions, processes, recordings, robots
from hodyn_ros.cli.figures import fail
from hodyn_ros.errors import HodynError, print_figures_in_one_line
from hodyn_ros.extras import missing_extra

take_one_thread()


app = typer.Typer(
    help="Feedforward torques and their time derivatives for robots with elastic joints.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"hodyn_ros {version('hodyn_ros')}")
        raise typer.Exit()


@app.callback()
def hodyn(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Feedforward torques and their time derivatives for robots with elastic joints.

    Exit codes: 0 done, and what was asked holds; 1 a limit is exceeded, or recordings differ; 2 it could not
    be done.
    """


def _unfold(text: str) -> str:
    """Return a help text whose paragraphs are single lines, which are then as wide as the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": processes.demo,
    "export": robots.export,
    "show": robots.show,
    "view": robots.view,
    "check": motions.check,
    "simulate": motions.simulate,
    "plan": motions.plan,
    "retime": motions.retime,
    "excite": learning.excite_robot,
    "identify": learning.identify_robot,
    "learn": learning.learn,
    "replay": recordings.replay,
    "compare": recordings.compare,
    "policy": processes.policy,
    "top": processes.top,
    "run": processes.run_launch_file,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, help=_unfold(inspect.getdoc(_command) or ""))(_command)


def main() -> None:
    """Run the command line: exit code 2 and one line for what the user can correct, no traceback."""
    signal.signal(signal.SIGTERM, _end)
    print_figures_in_one_line()
    try:
        app(standalone_mode=True)
    except (HodynError, OSError) as error:
        raise SystemExit(fail(error, 2)) from None
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise SystemExit(fail(HodynError(missing), 2)) from None


def _end(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that whatever has been started is ended as well."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
