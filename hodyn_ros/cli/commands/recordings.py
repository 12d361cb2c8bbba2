"""Recordings: answers computed again, and compared."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from hodyn_ros.cli.arguments import FloatingBase, Json, Picture, Recording
from hodyn_ros.cli.figures import comparison_figures, print_figures
from hodyn_ros.ros_presence import require_ros


def replay(
    bag: Recording,
    out: Annotated[Path, typer.Option(help="Bag to write: a copy with the answers computed again.")],
    robot: Annotated[
        Optional[str],
        typer.Option(
            help="Another robot: path of a YAML, URDF or MJCF file, or a shipped one.",
            show_default="as recorded",
        ),
    ] = None,
    floating_base: FloatingBase = False,
    order: Annotated[
        Optional[int],
        typer.Option(
            help="Another highest derivative of the efforts.", min=0, max=6, show_default="as recorded"
        ),
    ] = None,
    namespace: Annotated[
        Optional[str],
        typer.Option(help="Which robot, where the bag holds several.", show_default="the only one"),
    ] = None,
    topic: Annotated[
        Optional[str], typer.Option(help="Topic of the desired motion.", show_default="the only one")
    ] = None,
) -> None:
    """Compute the feedforward of a recording again: same stamps, same numbers as the node published live.

    And what an observer_node said. Exit code 2, and no bag, where none of its motions could be answered.
    Needs ROS 2 for the messages, but no running node.
    """
    require_ros("hodyn replay")
    from hodyn_ros.replay.replay import Changes
    from hodyn_ros.replay.replay_command import run_replay

    run_replay(bag, out, Changes(robot, order, floating_base), namespace, topic, Console())


def compare(
    bag: Recording,
    other: Annotated[Path, typer.Argument(help="Recording to compare it with.")],
    tolerance: Annotated[
        float, typer.Option(help="Largest difference that counts as none; 0: every bit counts.", min=0.0)
    ] = 0.0,
    topic: Annotated[
        Optional[list[str]],
        typer.Option(help="Topic to compare; repeat it for more.", show_default="all in both"),
    ] = None,
    ignore_edges: Annotated[
        bool,
        typer.Option(
            "--ignore-edges",
            help="Ignore messages before or after the time that both have of a topic.",
        ),
    ] = False,
    picture: Picture = None,
    as_json: Json = False,
) -> None:
    """Show where two recordings differ, by topic and field.

    Messages are matched by their stamps. computation_time is left out: it depends on the machine alone. Exit
    code 0 where the recordings agree, 1 where they differ, 2 where they cannot be compared.
    """
    from hodyn_ros.bags.comparison.commands import run_compare

    said = Console(stderr=as_json)
    comparison = run_compare(bag, other, tolerance, topic or [], picture, said, ignore_edges)
    if as_json:
        print_figures(comparison_figures(comparison))
    if not comparison.agree:
        raise SystemExit(1)
