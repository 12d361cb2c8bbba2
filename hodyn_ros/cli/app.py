"""The command line, `hodyn`. It needs no ROS until a command does."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import warnings
from enum import Enum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from hodyn_ros.cli.figures import (
    check_figures,
    comparison_figures,
    identified_figures,
    plan_figures,
    print_figures,
    report_figures,
    sheet_figures,
)
from hodyn_ros.cli.robot_first import robot_first
from hodyn_ros.dynamics.operations import EXPORTED_OF_TREES, EXPORTED_WITH_LOOPS
from hodyn_ros.errors import FigureWarning, HodynError, InputError
from hodyn_ros.extras import missing_extra
from hodyn_ros.ros_presence import require_ros

# Matrices here are small: threads of BLAS would wait for each other, on a busy machine for ten times as long
# as they compute. It counts before NumPy is imported; who wants threads sets it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_PLAIN_WARNING = warnings.showwarning

app = typer.Typer(
    help="Feedforward torques and their time derivatives for robots with elastic joints.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _files(incomplete: str) -> list[str]:
    """Return files that a shell may complete: shipped ones, and those in folders."""
    from hodyn_ros.share import available

    folder, slash, start = incomplete.rpartition("/")
    place = Path(folder or slash or ".")
    here = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    shipped = [name for name in available("config") if name.startswith(incomplete)]
    return [*shipped, *(f"{folder}{slash}{name}" for name in here if name.startswith(start))]


def _drawable(picture: Path | None) -> Path | None:
    """Return a picture to draw as it is; raises InputError for one of an unknown type, before any work."""
    if picture is not None:
        from hodyn_ros.simulation.pictures import check_file_type  # Matplotlib takes a moment

        check_file_type(picture)
    return picture


# arguments of several commands
Json = Annotated[
    bool, typer.Option("--json", help="Print the figures as JSON, and tables and words to standard error.")
]
TrajectoryFile = Annotated[
    str, typer.Argument(help="Trajectory: path of a YAML file, or a shipped one.", autocompletion=_files)
]
RobotFile = Annotated[
    str,
    typer.Argument(help="Robot: path of a YAML, URDF or MJCF file, or a shipped one.", autocompletion=_files),
]
FloatingBase = Annotated[bool, typer.Option("--floating-base", help="Let the root of a URDF file float.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Key of robot files and its value, such as keyframe=home, limits.velocity=2, knee.locked=0 "
        "or knee.drive.stiffness=9000, in place of what the file says; once or more.",
        show_default="none",
    ),
]
Duration = Annotated[float | None, typer.Option(help="Seconds of the motion that count.", show_default="all")]
Tolerance = Annotated[
    float,
    typer.Option(
        help="Share of a limit to which quantities are known between samples; their peaks are known better.",
        min=1e-9,
        max=0.5,
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(help="Picture to draw, such as out/picture.png.", show_default="none", callback=_drawable),
]
Recording = Annotated[Path, typer.Argument(help="Recording of rosbag2, mcap or sqlite3; it may be cut off.")]


def _choice(robot: str, floating_base: bool, settings: list[str] | None) -> Any:
    """Return the robot of a command."""
    from hodyn_ros.dynamics.robot_choice import RobotChoice

    return RobotChoice(robot, floating_base, tuple(settings or ()))


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


class Demo(str, Enum):
    """What `hodyn demo` shows."""

    FEEDFORWARD = "feedforward"
    MODEL_ERRORS = "model-errors"


@app.command()
def demo(
    what: Annotated[
        Demo,
        typer.Argument(
            help="feedforward: nodes, with each kind of feedforward; model-errors: errors of the links as "
            "the model becomes known, without ROS."
        ),
    ] = Demo.FEEDFORWARD,
    duration: Annotated[
        float, typer.Option(help="Seconds of the motion that are counted.", min=0.5, max=3600.0)
    ] = 10.0,
    out: Annotated[Path, typer.Option(help="Folder for figure, summary and recordings.")] = Path("out/demo"),
    rate: Annotated[float, typer.Option(help="Samples per second [Hz].", min=50.0, max=2000.0)] = 500.0,
    mujoco: Annotated[
        bool, typer.Option("--mujoco", help="Of model-errors: simulate in MuJoCo (hodyn_ros[mjcf]).")
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
        from hodyn_ros.cli.model_errors import run_model_errors

        figures = run_model_errors(out, console(as_json), mujoco)
        if as_json:
            print_figures(figures)
        return
    from hodyn_ros.demo.run import run_demo

    figures = run_demo(duration, out, rate, console(as_json))
    if as_json:
        print_figures(figures)
    if figures["too_slow"]:
        raise SystemExit(1)


_POINTS = 33


@app.command()
def export(
    robot: Annotated[
        str | None,
        typer.Argument(
            help="Robot: path of a YAML, URDF or MJCF file, or a shipped one.", show_default="that of --robot"
        ),
    ] = None,
    option: Annotated[
        str | None, typer.Option("--robot", help="The same as an option.", show_default="none")
    ] = None,
    order: Annotated[int, typer.Option(help="Highest time derivative that is computed.")] = 2,
    what: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What to export in C, once or more: {', '.join(EXPORTED_OF_TREES)}, propeller_thrusts, "
            f"momentum_observer; of robots with loops also {', '.join(EXPORTED_WITH_LOOPS)}.",
            show_default="inverse_dynamics",
        ),
    ] = None,
    frame: Annotated[
        list[str] | None,
        typer.Option(
            help="Bodies and frames of forward_kinematics, or the one of jacobian.",
            show_default="all, or the last body",
        ),
    ] = None,
    representation: Annotated[
        str, typer.Option(help="Of twists of frames: spatial, body_fixed or hybrid.")
    ] = "spatial",
    period: Annotated[
        float | None,
        typer.Option(help="Seconds between two calls; damped springs then keep their deflection."),
    ] = None,
    wrench: Annotated[
        list[str] | None, typer.Option(help="Body on which an external wrench acts; once or more.")
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
        str | None,
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
        int, typer.Option(help="Of --lang linkage: positions of each joint in the arrays.")
    ] = _POINTS,
    float32: Annotated[
        bool, typer.Option("--float32", help="Numbers of 32 bits, for small processors.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(help="Processor of --float32: generic or cortex-m7.", show_default="generic"),
    ] = None,
    settings: Settings = None,
) -> None:
    """Write the dynamics of a robot as one C file without dependencies, for hard real-time loops.

    A header and a self-test with expected numbers come with it. With --lang casadi, write functions that
    CasADi and acados take, with their derivatives; with --lang python, a wheel that needs NumPy alone; with
    --lang mjcf, the robot with its motors, springs, couplings and loops as a model of MuJoCo.
    """
    from hodyn_ros.export import export_c, export_linkage, export_mjcf, export_python, export_shared
    from hodyn_ros.lie.representations import Representation

    if (robot is None) == (option is None):
        raise InputError("say once which robot to export, as in: hodyn export panda.yaml")
    robot = robot or cast(str, option)
    if points != _POINTS and lang != "linkage":
        raise InputError("--points is of --lang linkage; leave it out")
    if (float32 or target is not None) and (lang != "c" or shared):
        raise InputError("--float32 and --target are of --lang c without --shared")
    if target is not None and not float32:
        raise InputError("--target is of --float32; add it")
    if lang == "mjcf":
        model, file = export_mjcf(robot, out, name, floating_base, settings or ())
        print(f"wrote {file}")
        for note in model.notes:
            print(f"note: {note}")
        return
    if lang == "linkage":
        if what or frame or wrench or period is not None or floating_base:
            raise InputError(
                "--lang linkage takes no --what, --frame, --wrench, --period and --floating-base"
            )
        arrays, files_ = export_linkage(robot, out, name, settings or (), shared=shared, points=points)
        print(f"wrote {' and '.join(map(str, files_))}")
        print(f"interpolated linearly, the Jacobian is off by {arrays.error:.1e} of its largest number")
        return
    if lang in ("casadi", "cuda") and (shared or wrench or period is not None):
        raise InputError(f"--lang {lang} takes no --shared, --wrench and --period")
    if lang == "cuda":
        from hodyn_ros.interop.cuda import export_cuda

        chosen = _choice(robot, floating_base, settings)
        of: dict[str, Any] = {"frames": frame, "representation": representation}
        print(f"wrote {export_cuda(chosen, what or ['inverse_dynamics'], order, out, name, **of)}")
        return
    if lang == "casadi":
        from hodyn_ros.interop.casadi import export_casadi

        files = export_casadi(
            _choice(robot, floating_base, settings),
            what or ["inverse_dynamics"],
            order,
            out,
            name,
            frames=frame,
            representation=cast(Representation, representation),
        )
        print(f"wrote {' and '.join(map(str, files))}")
        return
    if lang not in ("c", "python"):
        raise InputError(
            f"there is no export to {lang!r}; choose --lang c, casadi, cuda, linkage, python or mjcf"
        )
    if shared and lang == "python":
        raise InputError("--lang python takes no --shared")
    if shared:
        if what or frame or wrench or period is not None:
            raise InputError(
                "--shared exports the feedforward alone; leave out --what, --frame, --wrench and --period"
            )
        print(f"wrote {export_shared(robot, order, out, name, floating_base, settings or ())}")
        return
    write = partial(export_c, target=(target or "generic") if float32 else None)
    code, paths = (export_python if lang == "python" else write)(
        robot,
        order,
        out,
        name,
        floating_base,
        what or "inverse_dynamics",
        frame,
        cast(Representation, representation),
        period,
        wrench or (),
        settings or (),
    )
    print(f"wrote {' and '.join(map(str, paths))}: {code.operations} operations per call")
    for note in code.notes:
        print(f"note: {note}")


@app.command()
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

    sheet = run_show(_choice(robot, floating_base, settings), picture, console(as_json))
    if as_json:
        print_figures(sheet_figures(sheet))


@app.command()
@robot_first
def view(
    robot: RobotFile,
    source: Annotated[
        str | None,
        typer.Argument(
            help="Motion or recording to show: a trajectory file, a shipped one, or a bag of rosbag2.",
            show_default="none: the robot stands",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show what the topics of a running robot say; needs ROS 2.")
    ] = False,
    duration: Annotated[
        float | None,
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

    choice = _choice(robot, floating_base, settings)
    run_view(choice, source, live, duration, namespace, host, port, console())


@app.command()
@robot_first
def check(
    robot: RobotFile,
    trajectory: TrajectoryFile,
    duration: Duration = None,
    tolerance: Tolerance = 1e-3,
    picture: Picture = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Compare a motion with every limit of a robot; exit code 1 where one is exceeded.

    Of an arm, a parallel robot, or one that floats: position, velocity, acceleration, jerk, torque and torque
    rate of the driven joints; speed, torque and torque rate of the motors; deflection of the springs, with
    time and margin. Peaks are found however short they are beside the motion.
    """
    from hodyn_ros.cli.check_and_retime import run_check

    choice = _choice(robot, floating_base, settings)
    report = run_check(choice, trajectory, duration, tolerance, picture, Console(stderr=as_json))
    if as_json:
        print_figures(check_figures(report))
    if report.violations:
        raise SystemExit(1)


@app.command()
@robot_first
def simulate(
    robot: RobotFile,
    motion: TrajectoryFile,
    stiffness_error: Annotated[
        list[str] | None,
        typer.Option(
            help="Share by which the springs are stiffer than in the file: 20%, or several, 0,5%,-50%.",
            show_default="0",
        ),
    ] = None,
    inertia_error: Annotated[
        str, typer.Option(help="Share by which masses and inertias are larger, such as 5%.")
    ] = "0",
    payload_error: Annotated[
        float, typer.Option(help="Kilograms on the last body that the file does not contain.", min=0.0)
    ] = 0.0,
    duration: Duration = None,
    ramp: Annotated[
        float, typer.Option(help="Seconds from rest to full speed where the motion has no start.", min=0.0)
    ] = 2.0,
    rate: Annotated[float, typer.Option(help="Commands per second [Hz].", min=10.0, max=10000.0)] = 1000.0,
    natural_frequency: Annotated[
        float, typer.Option(help="Of the feedback on each motor, in rad/s.", min=0.0, max=1000.0)
    ] = 30.0,
    damping_ratio: Annotated[float, typer.Option(help="Of the same feedback.", min=0.0, max=10.0)] = 1.0,
    order: Annotated[
        int, typer.Option(help="Highest derivative of the efforts in the feedforward.", min=2, max=6)
    ] = 2,
    real: Annotated[
        str | None,
        typer.Option(help="Robot that runs, where it is not that of the file.", show_default="as the file"),
    ] = None,
    correction: Annotated[
        Path | None,
        typer.Option(help="What `hodyn learn` wrote, added to the feedforward.", show_default="none"),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="CSV or bag to write, of what sensors show of the run.", show_default="none"),
    ] = None,
    encoder_noise: Annotated[
        float, typer.Option(help="Standard deviation of encoders in a record, in rad.", min=0.0)
    ] = 5e-6,
    effort_noise: Annotated[
        float, typer.Option(help="Standard deviation of efforts in a record, in N·m.", min=0.0)
    ] = 0.1,
    link_delay: Annotated[
        float, typer.Option(help="Delay of link encoders behind their stamps in a record, in s.", min=0.0)
    ] = 2e-3,
    effort_delay: Annotated[
        float, typer.Option(help="Delay of efforts behind their stamps in a record, in s.", min=0.0)
    ] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of the noise of a record.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="Folder for picture and figures.")] = Path("out/simulate"),
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Simulate a robot that follows a motion with each kind of feedforward; without ROS.

    A robot with the drives of its file, with couplings and loops or without, and feedback on its motors as
    controller_node has it; a base that floats moves as the motion says. What the feedforward is worth on the
    real robot depends on how well its stiffness is known: say with --stiffness-error how wrong it may be, or
    with --real what robot it is. --record writes what sensors show of the first case with elastic
    feedforward, for `hodyn identify`.
    """
    from hodyn_ros.cli.simulate import SensorRecord, run_simulate, share_of, shares_of
    from hodyn_ros.simulation.instruments import Instruments
    from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig
    from hodyn_ros.tables import console

    instruments = Instruments(
        encoder_noise=encoder_noise,
        effort_noise=effort_noise,
        link_delay=link_delay,
        effort_delay=effort_delay,
        seed=seed,
    )
    stiffness_errors, inertia = shares_of(stiffness_error or ["0"]), share_of(inertia_error)
    figures = run_simulate(
        _choice(robot, floating_base, settings),
        motion,
        [RobotErrors(stiffness, inertia, payload_error) for stiffness in stiffness_errors],
        StudyConfig(duration, ramp, Loop(rate, natural_frequency, damping_ratio, order=order)),
        out,
        console(as_json),
        real=None if real is None else _choice(real, floating_base, settings),
        sensor_record=None if record is None else SensorRecord(record, instruments),
        correction=correction,
    )
    if as_json:
        print_figures(figures)


@app.command()
@robot_first
def plan(
    robot: RobotFile,
    path: Annotated[
        str,
        typer.Argument(
            help="Path: a trajectory file, whose times may be left out, lines and arcs of a frame in space "
            "(type: frame_path), or a shipped one."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Trajectory file to write.")] = Path("out/planned.yaml"),
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="Share of a limit that may be used, such as velocity=80%; once or more.", show_default="all"
        ),
    ] = None,
    stiffness_error: Annotated[
        str,
        typer.Option(help="Share by which springs may be stiffer or softer than in the file, such as 20%."),
    ] = "0",
    payload_error: Annotated[
        float, typer.Option(help="Kilograms that may be carried and are not in the file.", min=0.0)
    ] = 0.0,
    start: Annotated[
        str | None,
        typer.Option(
            help="First four time derivatives of the path parameter at the start, as 1,0,0,0 for a motion "
            "that goes on at the pace of the path.",
            show_default="from rest",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option(help="The same at the end.", show_default="to rest")] = None,
    pieces: Annotated[
        int,
        typer.Option(
            help="Pieces of the speed along the path; more are faster, and take longer.", min=4, max=2000
        ),
    ] = 120,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            "--plot",
            help="Picture to draw, such as out/picture.png.",
            show_default="none",
            callback=_drawable,
        ),
    ] = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Find the fastest motion along a path that keeps all limits of a robot.

    Limits as `check` has them, torque rates and motors behind springs among them; the motion is smooth up to
    its snap. Says which limit binds where, and what a larger one would bring. With --stiffness-error or
    --payload-error hardly anything swings after its end, though the model be as wrong. Exit code 1 where no
    speed keeps all limits.
    """
    from hodyn_ros.cli.plan import Request, limit_shares, rates_of, run_plan, uncertainty_of
    from hodyn_ros.planning.retime import InfeasibleError

    try:
        request = Request(
            limit_shares(limit or []),
            uncertainty_of(stiffness_error, payload_error),
            rates_of("start", start),
            rates_of("end", end),
            pieces,
        )
        choice = _choice(robot, floating_base, settings)
        timed = run_plan(choice, path, request, out, picture, Console(stderr=as_json))
    except InfeasibleError as error:
        raise SystemExit(_fail(error, 1)) from None
    if as_json:
        print_figures(plan_figures(timed))


@app.command()
@robot_first
def retime(
    robot: RobotFile,
    trajectory: TrajectoryFile,
    out: Annotated[Path, typer.Option(help="Trajectory file to write.")] = Path("out/retimed.yaml"),
    duration: Duration = None,
    tolerance: Tolerance = 1e-3,
    picture: Picture = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
) -> None:
    """Slow a motion down just enough that a robot keeps all its limits, and say by how much.

    The new motion touches a limit and exceeds none. Exit code 1 where no speed keeps them all.
    """
    from hodyn_ros.cli.check_and_retime import run_retime
    from hodyn_ros.planning.retime import InfeasibleError

    try:
        choice = _choice(robot, floating_base, settings)
        run_retime(choice, trajectory, duration, tolerance, out, picture, Console())
    except InfeasibleError as error:
        raise SystemExit(_fail(error, 1)) from None


@app.command("excite")
def excite_robot(
    robot: RobotFile,
    out: Annotated[Path, typer.Option(help="Trajectory file to write.")] = Path("out/excitation.yaml"),
    duration: Annotated[
        float, typer.Option(help="Seconds of the motion, one period from rest to rest.", min=0.1, max=3600.0)
    ] = 20.0,
    harmonics: Annotated[int, typer.Option(help="Of the Fourier series.", min=4, max=50)] = 8,
    box: Annotated[
        list[str] | None,
        typer.Option(
            help="Where the origin of a body or frame must stay, in m, such as 'hand: x -0.5..0.8, z 0.1..'; "
            "once or more.",
            show_default="none",
        ),
    ] = None,
    effort_at: Annotated[str, typer.Option(help="Where efforts are measured: motor or link.")] = "motor",
    compare: Annotated[
        str | None,
        typer.Option(help="Trajectory file whose condition is printed beside.", show_default="none"),
    ] = None,
    starts: Annotated[
        int, typer.Option(help="Random motions that the search starts from.", min=1, max=1000)
    ] = 2,
    seed: Annotated[int, typer.Option(help="Of the random motions.", min=0)] = 0,
    picture: Picture = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
) -> None:
    """Find a motion that makes the parameters of a robot visible, for a recording to identify it from.

    Of all Fourier series within the limits of the robot file and boxes for its bodies, between samples too,
    one whose base parameters are told apart well: by the condition of their weighted regressor. It starts and
    ends at rest.
    """
    from hodyn_ros.cli.excite import run_excite
    from hodyn_ros.identification.excitation import Box, ExcitationOptions

    boxes = tuple(Box.parse(text) for text in box or ())
    at_motor = _at_motor(effort_at)
    options = ExcitationOptions(duration, harmonics, starts, seed, at_motor, boxes)
    choice = _choice(robot, floating_base, settings)
    run_excite(choice, options, compare, out, picture, Console())


def _at_motor(text: str) -> bool:
    if text not in ("motor", "link"):
        raise InputError(f"--effort-at is motor or link, found {text!r}")
    return text == "motor"


@app.command("identify")
@robot_first
def identify_robot(
    robot: RobotFile,
    recordings: Annotated[
        list[Path],
        typer.Argument(help="Recordings: CSV, Parquet, NPZ, or bags with joint and motor states."),
    ],
    columns: Annotated[
        Path | None,
        typer.Option(help="YAML file that says which column is what.", show_default="by their names"),
    ] = None,
    only: Annotated[str, typer.Option(help="What to identify: all, or payload on the last body.")] = "all",
    bandwidth: Annotated[
        float | None,
        typer.Option(help="Of the motion [Hz]; above it is noise.", min=0.1, show_default="from the data"),
    ] = None,
    trust: Annotated[
        float,
        typer.Option(help="Share by which the masses of the file may be wrong.", min=1e-6),
    ] = 1.0,
    effort_at: Annotated[str, typer.Option(help="Where efforts were measured: motor or link.")] = "motor",
    friction: Annotated[
        list[str] | None,
        typer.Option(
            help="What friction depends on beside the speed: load, temperature; once or more.",
            show_default="none",
        ),
    ] = None,
    validate: Annotated[
        list[Path] | None,
        typer.Option(help="Other recording to predict, once or more.", show_default="none"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Robot file to write.")] = Path("out/identified.yaml"),
    report: Annotated[Path, typer.Option(help="Folder for figures and pictures.")] = Path("out/identify"),
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Identify inertias, friction, motors, springs and delays of a robot from recordings.

    The figures of the robot file hold where the recordings say nothing. Writes a robot file in which every
    figure has its source and standard deviation, and says what could not be identified, and why.
    """
    from hodyn_ros.cli.identify import run_identify
    from hodyn_ros.identification.identify import Options
    from hodyn_ros.tables import console

    if only not in ("all", "payload"):
        raise InputError(f"--only is all or payload, found {only!r}")
    if wrong := set(friction or ()) - {"load", "temperature"}:
        raise InputError(f"--friction is load or temperature, found {min(wrong)!r}")
    options = Options(cast(Any, only), bandwidth, trust, cast(Any, tuple(friction or ())))
    at_motor = _at_motor(effort_at)
    choice = _choice(robot, floating_base, settings)
    validations, said = validate or [], console(as_json)
    result = run_identify(choice, recordings, columns, options, at_motor, validations, out, report, said)
    if as_json:
        print_figures(identified_figures(result))


@app.command()
@robot_first
def learn(
    robot: RobotFile,
    motion: TrajectoryFile,
    recordings: Annotated[
        list[Path],
        typer.Argument(
            help="Repetitions under one correction: CSV, Parquet, NPZ, or bags; a bag may hold several."
        ),
    ],
    correction: Annotated[
        Path | None,
        typer.Option(help="Correction that they ran with, as an earlier call wrote it.", show_default="none"),
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(help="YAML file that says which column is what.", show_default="by their names"),
    ] = None,
    begin: Annotated[
        float | None,
        typer.Option(
            help="Stamp at which the motion begins, in s.",
            show_default="0; in bags by the desired motion",
        ),
    ] = None,
    bandwidth: Annotated[
        float, typer.Option(help="Up to which errors are learnt from, in Hz.", min=0.2, max=100.0)
    ] = 8.0,
    stiffness_uncertainty: Annotated[
        str, typer.Option(help="Share by which springs may be stiffer or softer than in the file.")
    ] = "25%",
    inertia_uncertainty: Annotated[
        str, typer.Option(help="Share by which bodies, with what they carry, may be heavier or lighter.")
    ] = "30%",
    contraction: Annotated[
        str, typer.Option(help="Largest share of an error that one repetition may leave.")
    ] = "70%",
    natural_frequency: Annotated[
        float, typer.Option(help="Of the feedback on each motor, in rad/s.", min=0.0, max=1000.0)
    ] = 30.0,
    damping_ratio: Annotated[float, typer.Option(help="Of the same feedback.", min=0.0, max=10.0)] = 1.0,
    link_delay: Annotated[
        float, typer.Option(help="Seconds by which links are read before their stamps.", min=0.0, max=0.1)
    ] = 0.0,
    out: Annotated[Path, typer.Option(help="Correction to write.")] = Path("out/learned.yaml"),
    picture: Picture = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Learn from repetitions of one motion what to add to its feedforward.

    Efforts of the motors that take away what repeats of the errors, by the dynamics linearised along the
    motion; how much a repetition leaves is computed for robots at the corners of the uncertainty. Links
    without encoders are seen through the model. What is worse than before is taken back. Play the correction,
    record, and call this again with it.
    """
    from hodyn_ros.cli.learn import Feedback, learned_figures, run_learn
    from hodyn_ros.cli.simulate import share_of
    from hodyn_ros.learning import LearningConfig, Uncertainty
    from hodyn_ros.tables import console

    config = LearningConfig(
        bandwidth=bandwidth,
        contraction=share_of(contraction),
        link_delay=link_delay,
        uncertainty=Uncertainty(
            stiffness=share_of(stiffness_uncertainty), inertia=share_of(inertia_uncertainty)
        ),
    )
    learned = run_learn(
        _choice(robot, floating_base, settings),
        motion,
        recordings,
        columns,
        begin,
        correction,
        Feedback(natural_frequency, damping_ratio),
        config,
        out,
        picture,
        console(as_json),
    )
    if as_json:
        print_figures(learned_figures(learned))


@app.command()
def replay(
    bag: Recording,
    out: Annotated[Path, typer.Option(help="Bag to write: a copy with the answers computed again.")],
    robot: Annotated[
        str | None,
        typer.Option(
            help="Another robot: path of a YAML, URDF or MJCF file, or a shipped one.",
            show_default="as recorded",
        ),
    ] = None,
    floating_base: FloatingBase = False,
    order: Annotated[
        int | None,
        typer.Option(
            help="Another highest derivative of the efforts.", min=0, max=6, show_default="as recorded"
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(help="Which robot, where the bag holds several.", show_default="the only one"),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic of the desired motion.", show_default="the only one")
    ] = None,
) -> None:
    """Compute the feedforward of a recording again: same stamps, same numbers as the node published live.

    Exit code 2, and no bag, where none of its motions could be answered. Needs ROS 2 for the messages, but
    no running node.
    """
    require_ros("hodyn replay")
    from hodyn_ros.replay.replay import Changes
    from hodyn_ros.replay.replay_command import run_replay

    run_replay(bag, out, Changes(robot, order, floating_base), namespace, topic, Console())


@app.command()
def compare(
    bag: Recording,
    other: Annotated[Path, typer.Argument(help="Recording to compare it with.")],
    tolerance: Annotated[
        float, typer.Option(help="Largest difference that counts as none; 0: every bit counts.", min=0.0)
    ] = 0.0,
    topic: Annotated[
        list[str] | None,
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


@app.command()
def policy(
    node: Annotated[
        list[str] | None, typer.Argument(help="Nodes, such as dynamics_node.", show_default="all")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespace of the nodes, such as /left.")] = "/",
) -> None:
    """Print a policy for SROS2 that grants each node the topics, services and actions that it uses.

    Give it to ros2 security create_permission; each node has an enclave of its own name.
    """
    from hodyn_ros.ros import access

    print(access.policy(namespace, node or access.NODES), end="")


@app.command()
def top(
    node: Annotated[
        list[str] | None,
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


@app.command("run")
def run_launch_file(
    launch_file: Annotated[str, typer.Argument(help="Launch file: its path, or the name of a shipped one.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the launch file, as name:=value.")
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


def _unfold(text: str) -> str:
    """Return a help text whose paragraphs are single lines, which are then as wide as the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


for _command in app.registered_commands:
    _command.help = _unfold(inspect.getdoc(_command.callback) or "")


def main() -> None:
    """Run the command line: exit code 2 and one line for what the user can correct, no traceback."""
    signal.signal(signal.SIGTERM, _end)
    warnings.showwarning = _warn
    try:
        app(standalone_mode=True)
    except (HodynError, OSError) as error:
        raise SystemExit(_fail(error, 2)) from None
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise SystemExit(_fail(HodynError(missing), 2)) from None


def _fail(error: Exception, code: int) -> int:
    """Print what went wrong in one line, and return the exit code."""
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def _warn(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
    """Print what is doubtful in a file in one line, and other warnings as Python does."""
    if issubclass(category, FigureWarning):
        print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)
    else:
        _PLAIN_WARNING(message, category, *place, **named)


def _end(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that whatever has been started is ended as well."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
