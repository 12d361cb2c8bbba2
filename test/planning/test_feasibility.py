"""Limits along motions, found between samples, with time, joint and margin; motions slowed to keep them."""

import io
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from refusals import assert_refused, refused
from rich.console import Console

from hodyn_ros import Robot, share
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec
from hodyn_ros.model.limits import JointLimit, JointLimits
from hodyn_ros.planning.check import check
from hodyn_ros.planning.report import findings_table, percent, print_whole
from hodyn_ros.planning.retime import InfeasibleError, retime
from hodyn_ros.tables import number
from hodyn_ros.trajectory import (
    Cosines,
    FourierSeries,
    PiecewisePolynomial,
    Trajectory,
    WaypointSpline,
    read_trajectory,
)
from hodyn_ros.trajectory.combined import ScaledTime
from hodyn_ros.trajectory.files.retimed_file import retimed_text

pytestmark = pytest.mark.thorough


UP_AND_DOWN = [[0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0], [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]]
FAST = WaypointSpline([0.0, 0.4, 0.8], [UP_AND_DOWN[0], UP_AND_DOWN[1], UP_AND_DOWN[0]])


def pendulum(limit: JointLimit, spec: DriveSpec | None = None, gravity: float = 0.0) -> Robot:
    """Return a lever of 1 kg m^2 about its axis, horizontal at zero; gravity takes `gravity` [N.m] there."""
    screw = [[0.0, -1.0, 0.0, 0.0, 0.0, 0.0]]  # turns the arm up
    robot = Robot.from_screws(
        [-1], screw, [np.eye(4)], [1.0], [[0.5, 0.0, 0.0]], [np.eye(3) * 0.75], [0.0, 0.0, -2.0 * gravity]
    )
    return Robot(robot.model, JointLimits.of(robot.joint_names, [limit]), None if spec is None else [spec])


def swing(frequency: float, duration: float = 3.0, amplitude: float = 0.5) -> Cosines:
    return Cosines([amplitude], [frequency], duration=duration)


# q = 1/2 cos(w t) without gravity: torque - w^2/2 cos, rate w^3/2 sin; K = 50, B = 0.2
W = 3.0
SPEC = DriveSpec(50.0, 0.2, limits=DriveLimits(torque=9.0, torque_rate=99.0, speed=4.0, deflection=0.2))
EXACT_PEAKS = {
    "position": 0.5,
    "velocity": 0.5 * W,
    "torque": 0.5 * W**2,
    "torque rate": 0.5 * W**3,
    "motor speed": 0.5 * W * (1.0 - W**2 / 50.0),
    "motor torque": 0.5 * W**2 * (1.0 + 0.2 * (1.0 - W**2 / 50.0)),
    "motor torque rate": 0.5 * W**3 * (1.0 + 0.2 * (1.0 - W**2 / 50.0)),
    "deflection": 0.5 * W**2 / 50.0,
}


@pytest.mark.parametrize("tolerance", [0.3, 1e-3, 1e-6])
def test_peaks_are_found_between_samples(tolerance: float) -> None:
    """Known in closed form; a tolerance is about the whole motion, peaks are known better."""
    robot = pendulum(JointLimit(-0.6, 0.7, 2.0, 5.0, 20.0), SPEC)
    report = check(robot, swing(W), tolerance=tolerance)
    found = {finding.column.quantity: finding for finding in report.findings}
    assert set(found) == set(EXACT_PEAKS)
    for quantity, peak in EXACT_PEAKS.items():
        finding = found[quantity]
        assert abs(finding.value) == pytest.approx(peak, rel=1e-9), quantity
        phase = W * finding.time / (0.5 * np.pi)  # in quarters of a turn: extrema are at whole ones
        assert abs(phase - round(phase)) <= 1e-4
    assert found["velocity"].usage == pytest.approx(0.5 * W / 2.0, rel=1e-9)
    assert found["torque"].margin == pytest.approx(5.0 - 4.5, rel=1e-8)
    # from the middle of its range, 0.05, the lower bound is nearer
    assert found["position"].value == pytest.approx(-0.5, rel=1e-9)
    assert found["position"].margin == pytest.approx(0.1, rel=1e-8)
    assert not report.violations


def test_the_power_of_a_motor_is_its_torque_times_its_speed() -> None:
    # cos times sin: half of the product of both peaks
    peak = 0.5 * EXACT_PEAKS["motor speed"] * EXACT_PEAKS["motor torque"]
    drive = replace(SPEC, limits=DriveLimits(power=2.0 * peak))
    robot = pendulum(JointLimit(), drive)
    (finding,) = check(robot, swing(W)).findings
    assert (finding.column.quantity, finding.column.unit) == ("motor power", "W")
    assert abs(finding.value) == pytest.approx(peak, rel=1e-9)
    weak = pendulum(JointLimit(), replace(drive, limits=DriveLimits(power=0.25 * peak)))
    slow = retime(weak, swing(W))
    assert abs(check(weak, slow.trajectory).tightest.usage - 1.0) < 1e-8
    assert slow.speed < 0.7


def test_violations_are_named_the_worst_first() -> None:
    robot = pendulum(JointLimit(-0.6, 0.45, 1.4, 3.0, np.inf))
    report = check(robot, swing(W))
    # by 50 %, 10 % and 7 % of the limit
    names = [finding.column.quantity for finding in report.violations]
    assert names == ["torque", "position", "velocity"]
    assert report.violations[0].margin == pytest.approx(-1.5, rel=1e-8)
    assert report.tightest.column.joint == "joint1"


def test_a_bound_on_one_side_alone() -> None:
    report = check(pendulum(JointLimit(upper=0.45)), swing(W))
    assert report.violations[0].margin == pytest.approx(-0.05, rel=1e-9)
    assert not check(pendulum(JointLimit(upper=0.51)), swing(W)).violations
    call = partial(retime, pendulum(JointLimit(upper=0.45)), swing(W))
    refused(call, "of joint 'joint1': it goes to 0.5", InfeasibleError)


@pytest.mark.parametrize(("lower", "upper"), [(-0.1, 0.3), (-1.0, 0.7), (-0.2, 1.1), (-0.7, 0.7)])
def test_a_motion_may_end_at_a_position_limit(lower: float, upper: float) -> None:
    motion = WaypointSpline([0.0, 1.0], [[0.0], [upper]])
    free = pendulum(JointLimit(lower, upper))
    assert not check(free, motion).violations
    found = retime(free, motion)
    assert found.speed == 1.0
    assert found.column.quantity == "position"
    assert found.usage == pytest.approx(1.0, abs=1e-9)
    slow = pendulum(JointLimit(lower, upper, 0.1))
    found = retime(slow, motion)
    assert found.column.quantity == "velocity"
    assert 1.0 - 1e-9 <= found.usage <= 1.0
    assert not check(slow, found.motion).violations


def test_a_joint_may_have_no_room_at_all() -> None:
    robot = pendulum(JointLimit(0.2, 0.2))
    assert not check(robot, WaypointSpline([0.0, 1.0], [[0.2], [0.2]])).violations
    (violation,) = check(robot, WaypointSpline([0.0, 1.0], [[0.2], [0.3]])).violations
    assert violation.usage == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("limit", "speed"),
    [
        (JointLimit(velocity=1.2), 1.2 / (0.5 * W)),
        (JointLimit(effort=2.0), np.sqrt(2.0 / (0.5 * W**2))),
        (JointLimit(effort_rate=5.0), np.cbrt(5.0 / (0.5 * W**3))),
        (JointLimit(velocity=1.2, effort=2.0, effort_rate=5.0), np.sqrt(2.0 / (0.5 * W**2))),
    ],
)
def test_the_speed_is_that_of_the_closed_form(limit: JointLimit, speed: float) -> None:
    robot = pendulum(limit)
    found = retime(robot, swing(W))
    assert found.speed == pytest.approx(speed, rel=1e-9)
    assert found.stretch == pytest.approx(1.0 / speed, rel=1e-9)
    assert found.trajectory.duration == pytest.approx(3.0 / speed, rel=1e-9)


def test_what_holds_is_left_alone() -> None:
    trajectory = swing(W)
    found = retime(pendulum(JointLimit(velocity=2.0)), trajectory)
    assert found.speed == 1.0
    assert found.trajectory is trajectory
    assert found.usage == pytest.approx(0.75, rel=1e-9)


def test_where_gravity_alone_is_too_much_no_speed_helps() -> None:
    """At the horizontal, half way of the swing, the lever needs g whatever its speed."""
    call = partial(retime, pendulum(JointLimit(effort=9.9), gravity=10.0), swing(4.0))
    refused(call, "no speed ... 10 N·m at joint 'joint1'", InfeasibleError)


@pytest.mark.parametrize("width", [0.2, 0.01, 1e-4])
def test_a_band_of_speeds_is_found_between_two_limits(width: float) -> None:
    """From the top nearly to the horizontal, inertia helps against gravity: slower needs more torque.

    `Q = g cos(cos(x) / 2) - 8 s^2 cos x` at the phase x from 0 to 81 degrees. The limit of the torque holds
    from some speed on, that of the velocity up to another one, a little above.
    """
    g, w, end = 10.0, 4.0, 0.45 * np.pi
    trajectory = Cosines([0.5], [w], duration=end / w)
    exact = 0.75  # the speed at which the velocity meets its limit

    def torque(s: float) -> float:
        x = np.linspace(0.0, end, 200001)
        return float(np.abs(g * np.cos(0.5 * np.cos(x)) - 8.0 * s**2 * np.cos(x)).max())

    limit = JointLimit(velocity=exact * 0.5 * w * np.sin(end), effort=torque(exact * (1.0 - width)))
    assert torque(exact) < limit.effort < torque(0.5 * exact)
    robot = pendulum(limit, gravity=g)
    assert retime(robot, trajectory).speed == pytest.approx(exact, rel=1e-9)
    slow = check(robot, ScaledTime(trajectory, 0.5 * exact))
    assert [finding.column.quantity for finding in slow.violations] == ["torque"]


def test_independent_samples_of_the_retimed_motion_hold(panda: Robot) -> None:
    """Without the module's own machinery: dense samples, inverse dynamics and springs by hand."""
    found = retime(panda, FAST)
    times = np.linspace(0.0, found.trajectory.duration, 20001)
    q = FAST.sample(times * found.speed, 5) * found.speed ** np.arange(6.0)[:, None]
    torques = panda.inverse_dynamics(q)
    K, B = panda.drive_train.stiffness, panda.drive_train.motor_inertia
    speed = q[:, 1] + torques[:, 1] / K
    efforts = [B * (q[:, 2 + k] + torques[:, 2 + k] / K) + torques[:, k] for k in range(2)]
    limits = panda.limits
    shares = [
        np.abs(q[:, 1]) / limits.velocity,
        np.abs(speed) / limits.velocity,
        *(np.abs(row) / limits.effort for row in (torques[:, 0], efforts[0])),
        *(np.abs(row) / limits.effort_rate for row in (torques[:, 1], efforts[1])),
    ]
    highest = max(float(share_.max()) for share_ in shares)
    assert 1.0 - 1e-6 <= highest <= 1.0 + 1e-9


def test_rigid_drives_and_none_need_fewer_derivatives(panda: Robot) -> None:
    cubic = PiecewisePolynomial([0.0, 1.0], UP_AND_DOWN, np.zeros((2, 7)))
    positions = JointLimits.of(
        panda.joint_names, [replace(panda.limits.row(i), effort=np.inf, effort_rate=np.inf) for i in range(7)]
    )
    assert len(check(Robot(panda.model, positions), cubic).findings) == 14
    refused(lambda: check(panda, cubic), "continuous up to its snap ... but the acceleration")


def test_motions_that_do_not_fit_are_refused(panda: Robot) -> None:
    endless = Cosines(np.full(7, 0.1).tolist(), np.full(7, 1.0).tolist())
    named = WaypointSpline([0.0, 1.0], UP_AND_DOWN, joint_names=tuple("abcdefg"))
    assert_refused(
        (lambda: check(panda, swing(W)), "moves 1 joints without naming them, but the robot has"),
        (lambda: check(Robot(panda.model), FAST), "has no limits"),
        (lambda: check(panda, endless), "give a positive and finite duration"),
        (lambda: check(panda, FAST, duration=2.0), "lasts 0.8 s, less than the 2 s"),
        (lambda: check(panda, named), "names joint 'a', but the robot has ['panda_joint1'"),
    )


def test_progress_is_told(panda: Robot) -> None:
    told: list[float] = []
    check(panda, FAST, progress=told.append)
    assert told[-1] == 1.0 and told == sorted(told) and len(told) >= 1


# files

FILES = {
    "fourier": (
        "type: fourier\nangular_frequency: 2\nsine: [[0.1], [0.2]]\ncosine: [[0.3], [0.1]]\n"
        "offsets: [0.4]\nduration: 3\n"
    ),
    "cosines": "type: cosines\namplitudes: [0.4]\nangular_frequencies: [3]\nduration: 2\n",
    "waypoints": (
        "type: waypoints\npoints:\n- {time: 0, positions: [0]}\n"
        "- {time: 1, positions: [1], velocities: [0.3], accelerations: [0.2]}\n"
        "- {time: 3, positions: [0.5]}\n"
    ),
    "piecewise": (
        "type: waypoints\ninterpolation: piecewise\npoints:\n"
        "- {time: 0, positions: [0], velocities: [0]}\n- {time: 1, positions: [1], velocities: [0]}\n"
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_retimed_file_is_the_motion_at_its_speed(kind: str, tmp_path: Path) -> None:
    original, retimed = tmp_path / "original.yaml", tmp_path / "retimed.yaml"
    original.write_text(FILES[kind], encoding="utf-8")
    retimed.write_text(retimed_text(original, 0.37, "slow"), encoding="utf-8")
    motion: Trajectory = ScaledTime(read_trajectory(original), 0.37)
    found = read_trajectory(retimed)
    assert found.duration == pytest.approx(motion.duration, rel=1e-14)
    times = np.linspace(0.0, motion.duration, 40)[1:-1]
    exact = motion.sample(times, 4)
    size = np.abs(exact).max(axis=(0, 2))[:, None] + 1e-300
    assert (np.abs(found.sample(times, 4) - exact) <= 1e-9 * size + 1e-12).all()
    assert "note: slow" in retimed.read_text(encoding="utf-8")


def test_scaled_time_holds_at_its_ends() -> None:
    spline = WaypointSpline([0.5, 1.0], [[0.0], [1.0]])
    slow = ScaledTime(spline, 0.5)
    assert (slow.duration, slow.starts_at_rest, slow.smoothness) == (2.0, True, 4)
    assert slow.sample(5.0, 2)[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert slow.sample(0.9, 2)[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert np.allclose(slow.sample(1.4, 3)[:, 0], spline.sample(0.7, 3)[:, 0] * 0.5 ** np.arange(4.0))
    fourier = FourierSeries(2.0, [[0.1]], [[0.0]], [0.0], duration=1.0)
    assert_refused(
        (lambda: ScaledTime(spline, 0.0), "speed"),
        (lambda: ScaledTime(fourier, 0.5).sample(2.1, 0), "ends in motion"),
    )


FAST_FILE = """type: waypoints
points:
- {time: 0, positions: [0, -0.5, 0, -2, 0, 1.5, 0]}
- {time: 0.5, positions: [0.8, 0.3, 0.5, -1.2, 0.5, 2.2, 0.5]}
- {time: 1, positions: [0, -0.5, 0, -2, 0, 1.5, 0]}
"""


def png_size(path: Path) -> tuple[int, int]:
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", header[16:24])


def test_check_and_retime_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, slow = tmp_path / "fast.yaml", tmp_path / "sub" / "slow.yaml"
    fast.write_text(FAST_FILE, encoding="utf-8")
    picture = tmp_path / "pictures" / "check.png"
    assert run(monkeypatch, "check", "panda.yaml", str(fast), "--picture", str(picture)) == 1
    out = capsys.readouterr().out
    assert "limits are exceeded; the worst" in out and "motor speed of panda_joint4" in out
    assert "torque rate [N·m/s]" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith("wrote")) <= 100
    assert png_size(picture) > (800, 600)

    assert run(monkeypatch, "retime", "panda.yaml", str(fast), "--out", str(slow)) == 0
    out = capsys.readouterr().out
    assert "of its speed, so it lasts" in out and "is at its limit" in out
    assert "checked as it was written: all 49 limits hold; the tightest, 100.0 %" in out

    assert run(monkeypatch, "check", "panda.yaml", "nothing.yaml") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "nothing.yaml" in error


@pytest.mark.parametrize("command", ["check", "retime"])
def test_a_motion_without_end_needs_a_duration(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (command, "panda.yaml", "panda_excitation.yaml")
    where = ("--out", str(tmp_path / "slow.yaml")) if command == "retime" else ()
    assert run(monkeypatch, *arguments, *where) == 2
    assert (
        capsys.readouterr().err
        == "error: the motion has no end; say with --duration how many seconds count\n"
    )
    assert run(monkeypatch, *arguments, *where, "--duration", "1") == 0


URDF_MOVE = """type: waypoints
joint_names: [panda_joint6, panda_joint4, panda_joint2]
standing: {panda_joint1: 0, panda_joint3: 0, panda_joint5: 0, panda_joint7: 0}
points:
- {time: 0, positions: [1.5, -2, -0.5]}
- {time: 0.5, positions: [2.2, -1.2, 0.3]}
"""


def test_a_urdf_file_with_some_of_its_joints_in_another_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Written to the standard output, which holds nothing but the file."""
    move, slow = tmp_path / "move.yaml", tmp_path / "slow.yaml"
    move.write_text(URDF_MOVE, encoding="utf-8")
    assert run(monkeypatch, "check", "panda.urdf", str(move)) == 1
    out = capfd.readouterr().out
    assert "of 21 limits are exceeded; the worst" in out and "velocity of panda_joint" in out
    assert run(monkeypatch, "retime", "panda.urdf", str(move), "--out", "/dev/stdout") == 0
    out, words = capfd.readouterr()
    assert "checked as it was written: all 21 limits hold; the tightest, 100.0 %" in words
    slow.write_text(out, encoding="utf-8")
    assert run(monkeypatch, "check", "panda.urdf", str(slow)) == 0


def test_accelerations_and_jerks_have_limits() -> None:
    """`q = 1/2 cos(w t)`: w^2/2 and w^3/2 at most."""
    report = check(pendulum(JointLimit(acceleration=5.0, jerk=10.0)), swing(W))
    found = {finding.column.quantity: finding for finding in report.findings}
    assert set(found) == {"acceleration", "jerk"}
    assert found["acceleration"].usage == pytest.approx(0.5 * W**2 / 5.0, rel=1e-9)
    assert abs(found["jerk"].value) == pytest.approx(0.5 * W**3, rel=1e-9)
    assert (found["acceleration"].column.unit, found["jerk"].column.unit) == ("rad/s²", "rad/s³")
    assert retime(pendulum(JointLimit(jerk=10.0)), swing(W)).speed == pytest.approx(
        np.cbrt(10.0 / (0.5 * W**3)), rel=1e-9
    )
    cubic = PiecewisePolynomial([0.0, 1.0], [[0.0], [1.0]], [[0.0], [0.0]])
    assert check(pendulum(JointLimit(acceleration=5.0)), cubic).tightest.value == pytest.approx(6.0)
    refused(lambda: check(pendulum(JointLimit(jerk=5.0)), cubic), "acceleration")


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_cut_from_a_table(terminal: bool) -> None:
    """Names longer than the screen: on a terminal they go on in the next line, a file has room."""
    name = "left_arm_of_the_second_robot_in_the_cell_upper_shoulder_pan_joint"
    robot = pendulum(JointLimit(-100.0, 123.456, 2345.678, 12345.678, 1e-5))
    model = replace(robot.model, joint_names=(name,))
    report = check(Robot(model, robot.limits), swing(W))
    for width in (80, 120):
        file = io.StringIO()
        console = Console(file=file, width=width, force_terminal=terminal, color_system=None)
        print_whole(console, findings_table(report))
        text = file.getvalue()
        assert "…" not in text and "time [s]" in text
        assert terminal or text.count(name) == len(report.findings) == 4
        for finding in report.findings:
            row = (
                f"{finding.time:.4f}",
                number(finding.value, 5),
                number(finding.margin, 3),
                percent(finding.usage),
            )
            assert all(figure in text for figure in row)
        if terminal:
            assert max(map(len, text.splitlines())) <= width


def test_rotors_that_turn_with_the_links_are_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = share.find("config", "panda.yaml").read_text(encoding="utf-8")
    head, *drives = text.split("    drive:\n")
    drives[3] = "      rotor: {body: panda_link3, axis: [0, -1, 0]}\n" + drives[3]
    (tmp_path / "robot.yaml").write_text("    drive:\n".join([head, *drives]), encoding="utf-8")
    for robot, told in ((str(tmp_path / "robot.yaml"), True), ("panda.yaml", False)):
        run(monkeypatch, "check", robot, "panda_validation.yaml")
        assert ("without the turning of rotors" in capsys.readouterr().out) == told
