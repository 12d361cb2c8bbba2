"""`hodyn simulate`: how well each feedforward tracks on robots that are not quite as modelled."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from PIL import Image
from refusals import refused
from scipy.optimize import fsolve
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.cli.arguments import share_of, shares_of
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.guard.reasons import Fault, Progress, Reason, State, Transition
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy, why_stopped
from hodyn_ros.trajectory import Cosines, WaypointSpline

pytestmark = pytest.mark.thorough

NONE, RIGID, OFFSET, ELASTIC = FeedforwardMode
PENDULUM = """
name: pendulum
gravity: [0, 0, -9.81]
bodies:
  - {name: arm, mass: 2, com: [0.5, 0, 0], inertia: INERTIA}
joints:
  - name: hinge
    type: revolute
    parent: world
    child: arm
    axis: [0, -1, 0]
    drive: {motor_inertia: 0.2, stiffness: 500}
""".replace("INERTIA", "{about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}")


@pytest.fixture(name="pendulum")
def make_pendulum(tmp_path: Path) -> Robot:
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM)
    return Robot.load(file)


def swing() -> WaypointSpline:
    return WaypointSpline([0.0, 0.6, 1.2], [[0.0], [0.8], [0.0]], order=6)


def test_the_elastic_feedforward_tracks_where_the_model_is_right(pendulum: Robot) -> None:
    study = TrackingStudy(pendulum, swing(), StudyConfig(settling=0.3))
    found = {mode: study.run(RobotErrors(), mode) for mode in study.modes}
    assert found[ELASTIC].rms < 2e-3 * found[RIGID].rms < found[NONE].rms
    assert 3.0 * found[ELASTIC].rms < found[OFFSET].rms < 0.5 * found[RIGID].rms
    assert len(found[ELASTIC].times) == 1201
    assert found[ELASTIC].largest >= found[ELASTIC].rms


@pytest.mark.parametrize("error", some([0.2, -0.2, -0.5], -0.5))
def test_a_wrong_stiffness_shows_as_the_statics_say(pendulum: Robot, error: float) -> None:
    """A robot that stands still is where its spring, its weight and the feedback on its motor agree."""
    at = 0.3
    still = WaypointSpline([0.0, 0.3, 0.6], [[at], [at], [at]], order=6)
    study = TrackingStudy(pendulum, still, StudyConfig())
    gain = 0.2 * 30.0**2  # B w^2

    def weight(q: float) -> float:
        return float(pendulum.inverse_dynamics(np.array([[q], [0.0], [0.0]]))[0, 0])

    def unbalanced(place: np.ndarray) -> list[float]:
        link, motor = place
        spring = 500.0 * (1.0 + error) * (motor - link)
        wanted = at + weight(at) / 500.0
        return [spring - weight(link), weight(at) + gain * (wanted - motor) - spring]

    link, _ = fsolve(unbalanced, [at, at])
    found = study.run(RobotErrors(stiffness=error), ELASTIC)
    np.testing.assert_allclose(found.errors[-1, 0], link - at, rtol=1e-3)


def test_payload_and_inertia_are_those_of_the_robot_alone(pendulum: Robot) -> None:
    heavy = RobotErrors(inertia=0.1, payload=0.5).applied(pendulum)
    assert heavy.model.masses[0] == pytest.approx(2.0 * 1.1 + 0.5)
    assert heavy.drive_train.specs == pendulum.drive_train.specs
    softer = RobotErrors(stiffness=-0.5).applied(pendulum)
    assert softer.drive_train is not None and softer.drive_train.stiffness[0] == 250.0
    for wrong in (RobotErrors(stiffness=-1.0), RobotErrors(inertia=-2.0)):
        refused(partial(wrong.applied, pendulum), "leaves nothing")


def test_a_motion_that_the_guard_stops_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its errors are those of a robot that was stopped, and no figure tells them from others."""
    weak, motion = tmp_path / "weak.yaml", tmp_path / "motion.yaml"
    weak.write_text(PENDULUM.replace("    drive:", "    limits: {effort: 12}\n    drive:"))
    motion.write_text("type: waypoints\npoints: [{time: 0, positions: [0]}, {time: 0.1, positions: [0.8]}]\n")
    out = tmp_path / "out"
    assert run(monkeypatch, "simulate", str(weak), str(motion), "--rate", "500", "--out", str(out)) == 0
    assert "the guard stopped 3 of 4 runs" in " ".join(capsys.readouterr().out.split())
    runs = json.loads((out / "simulate.json").read_text())["cases"][0]["runs"]
    assert "derivative 1 of the effort of joint 'hinge'" in runs["elastic"]["stopped"]
    assert not runs["none"]["stopped"]


def test_a_robot_that_is_let_go_without_a_stop_is_said() -> None:
    """As where efforts are no numbers any more; what comes after the first end of the motion counts not."""
    joined = Transition(State.WAITING, State.JOINING, Reason(Progress.JOINED))
    let_go = Transition(State.FOLLOWING, State.STOPPED, Reason(Fault.MISMATCH, value=np.inf, tripped=True))
    later = Transition(State.STOPPED, State.STOPPED, Reason(Fault.VELOCITY))
    assert why_stopped([joined, let_go, later]) == str(let_go.reason)
    assert not why_stopped([joined])


@pytest.mark.parametrize("option", ["--record", "--out"])
def test_what_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    monkeypatch.setattr("hodyn_ros.cli.simulate.all_runs", None)  # the work
    command = ("simulate", "panda.yaml", "panda_repetition.yaml", "--out", str(tmp_path / "out"))
    assert run(monkeypatch, *command, option, str(taken)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "taken" in line and "exists" in line


def test_only_what_is_between_the_ramps_counts(pendulum: Robot) -> None:
    motion = Cosines([0.5], [2.0])
    study = TrackingStudy(pendulum, motion, StudyConfig(1.0, 0.5, Loop(rate=500.0)))
    outcome = study.run(RobotErrors(), ELASTIC)
    assert (outcome.times[0], outcome.times[-1]) == pytest.approx((0.0, 1.0), abs=2e-3)
    refused(lambda: TrackingStudy(pendulum, motion, StudyConfig(ramp=0.5)), "the motion has no end")


@pytest.mark.parametrize(("text", "share"), [("20%", 0.2), ("-50%", -0.5), ("0.05", 0.05), ("0", 0.0)])
def test_shares_are_read(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)
    assert shares_of([f"{text},5%", "1"]) == pytest.approx([share, 0.05, 1.0])


def test_the_command_leaves_a_table_a_picture_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robot, motion = tmp_path / "pendulum.yaml", tmp_path / "motion.yaml"
    robot.write_text(PENDULUM)
    motion.write_text("type: cosines\namplitudes: [0.4]\nangular_frequencies: [3.0]\n")
    arguments = (
        "--duration",
        "0.3",
        "--ramp",
        "0.2",
        "--rate",
        "250",
        "--stiffness-error",
        "0,-50%",
        "--out",
        str(tmp_path / "out"),
    )
    assert run(monkeypatch, "simulate", str(robot), str(motion), *arguments) == 0
    out = capsys.readouterr().out
    assert "as modelled" in out and "-50 %" in out and "gain over" in out
    cases = json.loads((tmp_path / "out" / "simulate.json").read_text())["cases"]
    assert [case["stiffness_error"] for case in cases] == [0.0, -0.5]
    right, wrong = (case["runs"]["elastic"]["rms_error"] for case in cases)
    assert right < 0.01 * wrong
    assert Image.open(tmp_path / "out" / "simulate.png").width > 800


@pytest.mark.parametrize(
    ("robot", "motion", "wanted"),
    [
        ("gough_stewart_6ups.yaml", "gough_stewart_motion.yaml", "has no drives; describe them in its file"),
        ("delta.yaml", "planar_3rrr_motion.yaml", "moves a platform or a floating base, and robot 'delta'"),
        (
            "planar_3rrr.yaml",
            "delta_motion.yaml",
            "does not move the base or platform of robot",
        ),
        ("panda.urdf", "panda_excitation.yaml", "has no drives; describe them in its file"),
        ("panda.yaml", "panda_excitation.yaml", "the motion has no end; say with --duration"),
        ("panda.yaml", "planar_3rrr_motion.yaml", "moves a platform or a floating base"),
    ],
)
def test_what_cannot_be_simulated_is_said(
    robot: str, motion: str, wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert share.find("config", robot).exists()
    assert run(monkeypatch, "simulate", robot, motion) == 2
    assert wanted in capsys.readouterr().err
