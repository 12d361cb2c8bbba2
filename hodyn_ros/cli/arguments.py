"""What several commands take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional, TypeVar

import typer
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.errors import HodynError, InputError
from hodyn_ros.outputs import STDOUT


def files(incomplete: str) -> list[str]:
    """Return files that a shell may complete: shipped ones, and those in folders."""
    from hodyn_ros.share import available

    folder, slash, start = incomplete.rpartition("/")
    place = Path(folder or slash or ".")
    here = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    shipped = [name for name in available("config") if name.startswith(incomplete)]
    return [*shipped, *(f"{folder}{slash}{name}" for name in here if name.startswith(start))]


def drawable(picture: Path | None) -> Path | None:
    """Return a picture to draw as it is; raises InputError for one of an unknown type, before any work."""
    if picture is not None:
        from hodyn_ros.simulation.pictures import check_file_type  # Matplotlib takes a moment

        check_file_type(picture)
    return picture


def share_of(text: str) -> float:
    """Return the share that a text such as 20% or 0.2 stands for. Raises InputError."""
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        raise InputError(f"{text!r} is no share; write one as 20% or 0.2") from None


def shares_of(texts: Sequence[str]) -> list[float]:
    """Return the shares in texts, each of which may hold several with commas between them."""
    return [share_of(part.strip()) for text in texts for part in text.split(",")]


Json = Annotated[
    bool, typer.Option("--json", help="Print the figures as JSON, and tables and words to standard error.")
]
TrajectoryFile = Annotated[
    str, typer.Argument(help="Trajectory: path of a YAML file, or a shipped one.", autocompletion=files)
]
RobotFile = Annotated[
    str,
    typer.Argument(help="Robot: path of a YAML, URDF or MJCF file, or a shipped one.", autocompletion=files),
]
FloatingBase = Annotated[bool, typer.Option("--floating-base", help="Let the root of a URDF file float.")]
Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        help="Key of robot files and its value, such as keyframe=home, limits.velocity=2, knee.locked=0 "
        "or knee.drive.stiffness=9000, in place of what the file says; once or more.",
        show_default="none",
    ),
]
Duration = Annotated[
    Optional[float], typer.Option(help="Seconds of the motion that count.", show_default="all")
]
Tolerance = Annotated[
    float,
    typer.Option(
        help="Share of a limit to which quantities are known between samples; their peaks are known better.",
        min=1e-9,
        max=0.5,
    ),
]
Picture = Annotated[
    Optional[Path],
    typer.Option(help="Picture to draw, such as out/picture.png.", show_default="none", callback=drawable),
]
Recording = Annotated[Path, typer.Argument(help="Recording of rosbag2, mcap or sqlite3; it may be cut off.")]


def words_beside(out: Path, as_json: bool = False) -> Console:
    """Return a console for words: the standard output, or standard error where that takes data."""
    return Console(stderr=as_json or out == STDOUT)


def chosen_robot(robot: str, floating_base: bool, settings: list[str] | None) -> Any:
    """Return the robot of a command."""
    from hodyn_ros.dynamics.robot_choice import RobotChoice

    return RobotChoice(robot, floating_base, tuple(settings or ()))


_Result = TypeVar("_Result")

_ROBOT_KEYS = frozenset({"urdf", "mjcf", "bodies", "joints", "limbs"})


def robot_first(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Let a command say that its first two arguments look swapped, where that is why it fails.

    Only then, and only where the second is the file of a robot and the first is not: whoever writes them in
    the order that some commands had before learns the new one, and a right call reads no file twice.
    """
    names = list(inspect.signature(command).parameters)[:2]

    @functools.wraps(command)
    def named(*arguments: object, **options: object) -> _Result:
        try:
            return command(*arguments, **options)
        except (HodynError, OSError) as error:
            first, second = (_first_file(options.get(name)) for name in names)
            if describes_robot(second) and not describes_robot(first):
                raise InputError(
                    f"these two look swapped: {second} is the file of a robot, which comes first: "
                    f"hodyn {command.__name__.split('_')[0]} {second} {first}"
                ) from error
            raise

    return named


def _first_file(argument: object) -> str:
    """Return the file of an argument, or the first one of several."""
    files = argument if isinstance(argument, list) else [argument]
    return str(files[0] or "")


def describes_robot(file: str) -> bool:
    """Say whether a file, or a shipped one, is meant to be a robot: URDF, MJCF or YAML, right or not."""
    from hodyn_ros.dynamics.read_robot import format_of  # takes a moment
    from hodyn_ros.model.readers.yaml_text import read_yaml

    try:
        path = share.find("config", file)
        if format_of(path) != "yaml":
            return True
        if path.suffix.lower() not in (".yaml", ".yml"):
            return False
        data = read_yaml(path).data
    except (HodynError, OSError):
        return False
    # a motion says its `type`; columns of a recording and other YAML have neither
    return isinstance(data, dict) and "type" not in data and not _ROBOT_KEYS.isdisjoint(data)
