"""What runs nodes, or watches them."""

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from hodyn_ros.cli.arguments import Json
from hodyn_ros.cli.figures import print_figures, report_figures
from hodyn_ros.errors import InputError
from hodyn_ros.ros_presence import require_ros

_DURATION = 10.0  # [s] of the demo of feedforwards


class Demo(str, Enum):
    """What `hodyn demo` shows."""

    FEEDFORWARD = "feedforward"
    MODEL_ERRORS = "model-errors"


def demo(
    what: Annotated[
        Demo,
        typer.Argument(
            help="feedforward: nodes, with each kind of feedforward; model-errors: errors of the links as "
            "the model becomes known, without ROS."
        ),
    ] = Demo.FEEDFORWARD,
    duration: Annotated[
        Optional[float],
        typer.Option(
            help="Seconds of the motion that are counted.", min=0.5, max=3600.0, show_default=f"{_DURATION:g}"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figure, summary and recordings.")] = Path("out/demo"),
    rate: Annotated[
        Optional[float],
        typer.Option(
            help="Samples per second [Hz].",
            min=50.0,
            max=2000.0,
            show_default="500, or less where the machine does not keep up",
        ),
    ] = None,
    mujoco: Annotated[
        bool, typer.Option("--mujoco", help="Simulate model-errors in MuJoCo (extra mjcf).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate a Panda that follows a motion with each kind of feedforward, or as more becomes known of it.

    Its joints are elastic, its nodes separate processes that talk over DDS. Writes a figure, and the tracking
    errors, rates, latencies and losses. Exit code 1 where the machine was too slow for them to hold.

    model-errors: the errors of its links with an exact and with a wrong model, after it was identified, after
    its payload was estimated, and after five repetitions were learnt from; in one process, about a minute.
    """
    from hodyn_ros.tables import console

    if what is Demo.MODEL_ERRORS:
        if duration is not None or rate is not None:
            raise InputError("model-errors takes no --duration and --rate: its motions are always the same")
        from hodyn_ros.cli.model_errors import run_model_errors

        figures = run_model_errors(out, console(as_json), mujoco)
        if as_json:
            print_figures(figures)
        return
    if mujoco:
        raise InputError("--mujoco is of model-errors: hodyn demo model-errors --mujoco")
    require_ros("the demo")  # before an extra is asked for
    from hodyn_ros.demo.run import run_demo

    figures = run_demo(duration or _DURATION, out, rate, console(as_json))
    if as_json:
        print_figures(figures)
    if figures["too_slow"]:
        raise SystemExit(1)


def policy(
    node: Annotated[
        Optional[list[str]], typer.Argument(help="Nodes, such as dynamics_node.", show_default="all")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the nodes, such as /left.")] = "/",
) -> None:
    """Print a policy for SROS2 that grants each node the topics, services and actions that it uses.

    Give it to ros2 security create_permission; each node has an enclave of its own name.
    """
    from hodyn_ros.ros import access

    print(access.policy(namespace, node or access.NODES), end="")


def top(
    node: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Only this node, such as dynamics_node or left/*; repeat it for more.", show_default="all"
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Print one table and exit, with 1 where a node reports an error, 2 where no node reports.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(help="Seconds that --once waits for nodes at most.", min=0.1, max=3600.0)
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Show the state of the running nodes, from /diagnostics; Ctrl+C ends it.

    Rates, ages, latency percentiles, rejected messages by reason, exceeded limits, engine and order.
    """
    require_ros("hodyn top")
    from hodyn_ros.ros.top import run_top

    if as_json and not once:
        raise InputError("--json goes with --once; the live view is for a terminal")
    reports = run_top(node or [], once, timeout, Console(stderr=as_json))
    if as_json:
        print_figures(report_figures(reports))
    if once and not reports:
        raise SystemExit(2)
    if once and any(report.failed for report in reports):
        raise SystemExit(1)


def run_launch_file(
    launch_file: Annotated[str, typer.Argument(help="Launch file: its path, or the name of a shipped one.")],
    arguments: Annotated[
        Optional[list[str]], typer.Argument(help="Arguments of the launch file, as name:=value.")
    ] = None,
    show_args: Annotated[
        bool, typer.Option("--show-args", help="Print the arguments of the launch file and exit.")
    ] = False,
) -> None:
    """Start the nodes of a launch file, as `ros2 launch` does, where that is not installed.

    The same nodes, parameters, namespaces and topics; what they write comes line by line. Ctrl+C ends them
    all. When one ends that the others need, all end, a line says which and how, and the exit code is 2.
    """
    from hodyn_ros.launching.run import run_launch, show_arguments

    console = Console()
    if show_args:
        show_arguments(launch_file, console)
    elif not run_launch(launch_file, arguments or [], console):
        raise SystemExit(2)
