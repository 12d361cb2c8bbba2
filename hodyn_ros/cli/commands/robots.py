"""What is asked of one robot: its figures, its picture, its code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Optional, cast

import typer

from hodyn_ros.cli.arguments import (
    FloatingBase,
    Json,
    Picture,
    RobotFile,
    Settings,
    chosen_robot,
    robot_first,
)
from hodyn_ros.cli.figures import print_figures, sheet_figures
from hodyn_ros.dynamics.operations import EXPORTED_OF_TREES, EXPORTED_WITH_LOOPS
from hodyn_ros.errors import InputError
from hodyn_ros.ros_presence import require_ros

_POINTS = 33


def export(
    robot: RobotFile,
    order: Annotated[
        Optional[int], typer.Option(help="Highest time derivative that is computed.", show_default="2")
    ] = None,
    what: Annotated[
        Optional[list[str]],
        typer.Option(
            help=f"What to export in C, once or more: {', '.join(EXPORTED_OF_TREES)}, propeller_thrusts, "
            f"momentum_observer; of robots with loops also {', '.join(EXPORTED_WITH_LOOPS)}.",
            show_default="inverse_dynamics",
        ),
    ] = None,
    frame: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Bodies and frames of forward_kinematics, and the one of jacobian; others have none.",
            show_default="all, or the last body",
        ),
    ] = None,
    representation: Annotated[
        Optional[str],
        typer.Option(help="Twists of frames: spatial, body_fixed or hybrid.", show_default="spatial"),
    ] = None,
    period: Annotated[
        Optional[float],
        typer.Option(help="Seconds between two calls; damped springs then keep their deflection."),
    ] = None,
    wrench: Annotated[
        Optional[list[str]], typer.Option(help="Body on which an external wrench acts; once or more.")
    ] = None,
    lang: Annotated[
        str,
        typer.Option(
            help="Language: c, C99 that C++ compiles as well; casadi, external functions of CasADi with "
            "exact derivatives; cuda, kernels of batches; linkage, a transmission for ros2_control and "
            "arrays for learning; python, a wheel with compiled functions; or mjcf, a model of MuJoCo."
        ),
    ] = "c",
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path(),
    name: Annotated[
        Optional[str],
        typer.Option(help="Prefix of all names in the code.", show_default="from the robot's name"),
    ] = None,
    floating_base: FloatingBase = False,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Compile it to lib<name>.so, for hodyn_ros/FeedforwardController of ros2_control; with "
            "--lang linkage to lib<name>_linkage.so, for hodyn_ros/LinkageTransmission.",
        ),
    ] = False,
    points: Annotated[
        int, typer.Option(help="Positions of each joint in the arrays of --lang linkage.")
    ] = _POINTS,
    float32: Annotated[
        bool, typer.Option("--float32", help="Numbers of 32 bits, for small processors.")
    ] = False,
    target: Annotated[
        Optional[str],
        typer.Option(help="Processor of --float32: generic or cortex-m7.", show_default="generic"),
    ] = None,
    settings: Settings = None,
) -> None:
    """Write the dynamics of a robot as one C file without dependencies, for hard real-time loops.

    A header and a self-test with expected numbers come with it. With --lang casadi, write functions that
    CasADi and acados take, with their derivatives; with --lang python, a wheel that needs NumPy alone; with
    --lang mjcf, the robot with its motors, springs, couplings and loops as a model of MuJoCo.
    """
    from hodyn_ros.export import (
        ExportRequest,
        export_c,
        export_linkage,
        export_mjcf,
        export_python,
        export_shared,
    )
    from hodyn_ros.export.request import has_frames
    from hodyn_ros.lie.representations import Representation

    if lang not in ("c", "casadi", "cuda", "linkage", "mjcf", "python"):
        raise InputError(
            f"there is no export to {lang!r}; choose --lang c, casadi, cuda, linkage, python or mjcf"
        )
    if points != _POINTS and lang != "linkage":
        raise InputError("--points is of --lang linkage; leave it out")
    if (float32 or target is not None) and (lang != "c" or shared):
        raise InputError("--float32 and --target are of --lang c without --shared")
    if target is not None and not float32:
        raise InputError("--target is of --float32; add it")
    of_functions = {
        "--what": what or None,
        "--frame": frame or None,
        "--representation": representation,
        "--wrench": wrench or None,
        "--period": period,
    }
    choice = chosen_robot(robot, floating_base, settings)
    if lang == "mjcf":
        _refuse("--lang mjcf", {"--order": order, **of_functions, "--shared": shared})
        model, file = export_mjcf(choice, out, name)
        print(f"wrote {file}")
        for note in model.notes:
            print(f"note: {note}")
        return
    if lang == "linkage":
        _refuse("--lang linkage", {"--order": order, **of_functions, "--floating-base": floating_base})
        arrays, written = export_linkage(choice, out, name, shared=shared, points=points)
        print(f"wrote {' and '.join(map(str, written))}")
        print(f"interpolated linearly, the Jacobian is off by {arrays.error:.1e} of its largest number")
        return
    if lang in ("casadi", "cuda"):
        _refuse(f"--lang {lang}", {"--shared": shared, "--wrench": wrench or None, "--period": period})
    if shared and lang == "python":
        raise InputError("--lang python takes no --shared")
    order = 2 if order is None else order
    if shared:
        _refuse("--shared, which exports the feedforward alone,", of_functions)
        print(f"wrote {export_shared(choice, order, out, name)}")
        return
    if representation is not None and not any(map(has_frames, what or ())):
        raise InputError("--representation is of functions of frames; leave it out, or ask for one of these")
    request = ExportRequest(
        order,
        name,
        what or ("inverse_dynamics",),
        frame or (),
        cast(Representation, representation or "spatial"),
        period,
        wrench or (),
        (target or "generic") if float32 else None,
    )
    if lang == "cuda":
        from hodyn_ros.interop.cuda import export_cuda

        print(f"wrote {export_cuda(choice, request, out)}")
        return
    if lang == "casadi":
        from hodyn_ros.interop.casadi import export_casadi

        print(f"wrote {' and '.join(map(str, export_casadi(choice, request, out)))}")
        return
    code, paths = (export_python if lang == "python" else export_c)(choice, request, out)
    print(f"wrote {' and '.join(map(str, paths))}: {code.operations} operations per call")
    for note in code.notes:
        print(f"note: {note}")


def _refuse(by: str, options: Mapping[str, object]) -> None:
    """Raise InputError for options that are given, and that nothing would come of."""
    if given := [name for name, value in options.items() if not (value is None or value is False)]:
        raise InputError(f"{by} takes no {', '.join(given)}; leave it out")


def show(
    robot: RobotFile,
    picture: Picture = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show what a robot file says: joints, limits, drives, masses, frames, and which figures are assumed.

    Of an arm, a tree, a parallel robot, or one that floats. The picture has lines from joint to joint.
    """
    from hodyn_ros.cli.show import run_show
    from hodyn_ros.tables import console

    sheet = run_show(chosen_robot(robot, floating_base, settings), picture, console(as_json))
    if as_json:
        print_figures(sheet_figures(sheet))


@robot_first
def view(
    robot: RobotFile,
    source: Annotated[
        Optional[str],
        typer.Argument(
            help="Motion or recording to show: a trajectory file, a shipped one, or a bag of rosbag2.",
            show_default="none: the robot stands",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show what the topics of a running robot say; needs ROS 2.")
    ] = False,
    duration: Annotated[
        Optional[float],
        typer.Option(
            help="Seconds of the motion to show.", min=0.0, show_default="all, or 10 of one without end"
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Which robot, where topics or bag are of several.", show_default="none")
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to serve at; 0.0.0.0 lets other machines look as well.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to serve at.", min=1, max=65535)] = 8080,
    floating_base: FloatingBase = False,
    settings: Settings = None,
) -> None:
    """Show a robot in a browser: standing, along a motion, from a recording, or live; Ctrl+C ends it.

    Meshes where its URDF has them, else bodies as lines; loops, frames, springs with their deflections
    magnified, torques of the drives beside their limits, and the desired motion beside the measured one.
    Needs the extra `view`.
    """
    if live:
        require_ros("hodyn view --live")
    from hodyn_ros.tables import console
    from hodyn_ros.view.view_command import run_view

    choice = chosen_robot(robot, floating_base, settings)
    run_view(choice, source, live, duration, namespace, host, port, console())
