"""Motions of a robot: checked, simulated, planned, slowed down."""

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from hodyn_ros.cli.arguments import (
    Duration,
    FloatingBase,
    Json,
    Picture,
    RobotFile,
    Settings,
    Tolerance,
    TrajectoryFile,
    chosen_robot,
    drawable,
    robot_first,
    share_of,
    shares_of,
    words_beside,
)
from hodyn_ros.cli.figures import check_figures, fail, plan_figures, print_figures


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

    choice = chosen_robot(robot, floating_base, settings)
    report = run_check(choice, trajectory, duration, tolerance, picture, Console(stderr=as_json))
    if as_json:
        print_figures(check_figures(report))
    if report.violations:
        raise SystemExit(1)


@robot_first
def simulate(
    robot: RobotFile,
    motion: TrajectoryFile,
    stiffness_error: Annotated[
        Optional[list[str]],
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
        float, typer.Option(help="Natural frequency of the motor feedback, in rad/s.", min=0.0, max=1000.0)
    ] = 30.0,
    damping_ratio: Annotated[
        float, typer.Option(help="Damping ratio of the motor feedback.", min=0.0, max=10.0)
    ] = 1.0,
    order: Annotated[
        int, typer.Option(help="Highest derivative of the efforts in the feedforward.", min=2, max=6)
    ] = 2,
    real: Annotated[
        Optional[str],
        typer.Option(help="Robot that runs, where it is not that of the file.", show_default="as the file"),
    ] = None,
    correction: Annotated[
        Optional[Path],
        typer.Option(help="What `hodyn learn` wrote, added to the feedforward.", show_default="none"),
    ] = None,
    record: Annotated[
        Optional[Path],
        typer.Option(help="CSV or bag to write, of what sensors show of the run.", show_default="none"),
    ] = None,
    encoder_noise: Annotated[
        float, typer.Option(help="Standard deviation of encoders in a record, in rad or m.", min=0.0)
    ] = 5e-6,
    effort_noise: Annotated[
        float, typer.Option(help="Standard deviation of efforts in a record, in N·m or N.", min=0.0)
    ] = 0.1,
    link_delay: Annotated[
        float, typer.Option(help="Delay of link encoders behind their stamps in a record, in s.", min=0.0)
    ] = 2e-3,
    effort_delay: Annotated[
        float, typer.Option(help="Delay of efforts behind their stamps in a record, in s.", min=0.0)
    ] = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the noise in a record.", min=0)] = 0,
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
    from hodyn_ros.cli.simulate import SensorRecord, run_simulate
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
        chosen_robot(robot, floating_base, settings),
        motion,
        [RobotErrors(stiffness, inertia, payload_error) for stiffness in stiffness_errors],
        StudyConfig(duration, ramp, Loop(rate, natural_frequency, damping_ratio, order=order)),
        out,
        console(as_json),
        real=None if real is None else chosen_robot(real, floating_base, settings),
        sensor_record=None if record is None else SensorRecord(record, instruments),
        correction=correction,
    )
    if as_json:
        print_figures(figures)


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
        Optional[list[str]],
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
        Optional[str],
        typer.Option(
            help="First four time derivatives of the path parameter at the start, as 1,0,0,0 for a motion "
            "that goes on at the pace of the path.",
            show_default="from rest",
        ),
    ] = None,
    end: Annotated[Optional[str], typer.Option(help="The same at the end.", show_default="to rest")] = None,
    pieces: Annotated[
        int,
        typer.Option(
            help="Pieces of the speed along the path; more are faster, and take longer.", min=4, max=2000
        ),
    ] = 120,
    picture: Annotated[
        Optional[Path],
        typer.Option(
            "--picture",
            "--plot",
            help="Picture to draw, such as out/picture.png.",
            show_default="none",
            callback=drawable,
        ),
    ] = None,
    floating_base: FloatingBase = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Find the fastest motion along a path that keeps all limits of a robot.

    Limits as `check` has them, torque rates and motors behind springs among them; the motion is smooth up to
    its snap. Says which limit binds where, and what a larger one would bring. With --stiffness-error or
    --payload-error hardly anything swings after its end, even if the model is as wrong. Exit code 1 where no
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
        choice = chosen_robot(robot, floating_base, settings)
        timed = run_plan(choice, path, request, out, picture, words_beside(out, as_json))
    except InfeasibleError as error:
        raise SystemExit(fail(error, 1)) from None
    if as_json:
        print_figures(plan_figures(timed))


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
        choice = chosen_robot(robot, floating_base, settings)
        run_retime(choice, trajectory, duration, tolerance, out, picture, words_beside(out))
    except InfeasibleError as error:
        raise SystemExit(fail(error, 1)) from None
