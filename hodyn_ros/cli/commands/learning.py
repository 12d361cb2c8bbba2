"""From recordings to what a robot is, and to what repetitions teach."""

from pathlib import Path
from typing import Annotated, Any, Optional, cast

import typer

from hodyn_ros.cli.arguments import (
    FloatingBase,
    Json,
    Picture,
    RobotFile,
    Settings,
    TrajectoryFile,
    chosen_robot,
    robot_first,
    share_of,
    words_beside,
)
from hodyn_ros.cli.figures import identified_figures, print_figures
from hodyn_ros.errors import InputError

Topics = Annotated[
    Optional[list[str]],
    typer.Option(
        help="Topic to read of bags in which several of its type have the joints; once or more.",
        show_default="none",
    ),
]


def _at_motor(text: str) -> bool:
    if text not in ("motor", "link"):
        raise InputError(f"--effort-at is motor or link, found {text!r}")
    return text == "motor"


def excite_robot(
    robot: RobotFile,
    out: Annotated[Path, typer.Option(help="Trajectory file to write.")] = Path("out/excitation.yaml"),
    duration: Annotated[
        float, typer.Option(help="Seconds of the motion, one period from rest to rest.", min=0.1, max=3600.0)
    ] = 20.0,
    harmonics: Annotated[int, typer.Option(help="Harmonics of the Fourier series.", min=4, max=50)] = 8,
    box: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Where the origin of a body or frame must stay, in m, such as 'hand: x -0.5..0.8, z 0.1..'; "
            "once or more.",
            show_default="none",
        ),
    ] = None,
    effort_at: Annotated[str, typer.Option(help="Where efforts are measured: motor or link.")] = "motor",
    compare: Annotated[
        Optional[str],
        typer.Option(help="Trajectory file whose condition is printed beside.", show_default="none"),
    ] = None,
    starts: Annotated[
        int, typer.Option(help="Random motions that the search starts from.", min=1, max=1000)
    ] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the random motions.", min=0)] = 0,
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
    choice = chosen_robot(robot, floating_base, settings)
    run_excite(choice, options, compare, out, picture, words_beside(out))


@robot_first
def identify_robot(
    robot: RobotFile,
    recordings: Annotated[
        list[Path],
        typer.Argument(help="Recordings: CSV, Parquet, NPZ, or bags with joint and motor states."),
    ],
    columns: Annotated[
        Optional[Path],
        typer.Option(help="YAML file that says which column is what.", show_default="by their names"),
    ] = None,
    topic: Topics = None,
    only: Annotated[str, typer.Option(help="What to identify: all, or payload on the last body.")] = "all",
    bandwidth: Annotated[
        Optional[float],
        typer.Option(
            help="Bandwidth of the motion [Hz]; what is faster is noise.",
            min=0.1,
            show_default="from the data",
        ),
    ] = None,
    trust: Annotated[
        float,
        typer.Option(help="Share by which the masses of the file may be wrong.", min=1e-6),
    ] = 1.0,
    effort_at: Annotated[str, typer.Option(help="Where efforts were measured: motor or link.")] = "motor",
    friction: Annotated[
        Optional[list[str]],
        typer.Option(
            help="What friction depends on beside the speed: load, temperature; once or more.",
            show_default="none",
        ),
    ] = None,
    validate: Annotated[
        Optional[list[Path]],
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
    choice = chosen_robot(robot, floating_base, settings)
    validations, said = validate or [], console(as_json)
    result = run_identify(
        choice, recordings, columns, topic or (), options, at_motor, validations, out, report, said
    )
    if as_json:
        print_figures(identified_figures(result))


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
        Optional[Path],
        typer.Option(help="Correction that they ran with, as an earlier call wrote it.", show_default="none"),
    ] = None,
    columns: Annotated[
        Optional[Path],
        typer.Option(help="YAML file that says which column is what.", show_default="by their names"),
    ] = None,
    topic: Topics = None,
    begin: Annotated[
        Optional[float],
        typer.Option(
            help="Stamp at which the motion begins, in s.",
            show_default="0; in bags by the desired motion",
        ),
    ] = None,
    bandwidth: Annotated[
        float, typer.Option(help="Frequency up to which errors are learnt from, in Hz.", min=0.2, max=100.0)
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
        float, typer.Option(help="Natural frequency of the motor feedback, in rad/s.", min=0.0, max=1000.0)
    ] = 30.0,
    damping_ratio: Annotated[
        float, typer.Option(help="Damping ratio of the motor feedback.", min=0.0, max=10.0)
    ] = 1.0,
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
    from hodyn_ros.cli.learn import Feedback, Runs, learned_figures, run_learn
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
        chosen_robot(robot, floating_base, settings),
        motion,
        Runs(recordings, columns, begin, topic or ()),
        correction,
        Feedback(natural_frequency, damping_ratio),
        config,
        out,
        picture,
        console(as_json),
    )
    if as_json:
        print_figures(learned_figures(learned))
