"""Drives mixed by joint, damped springs over samples, and what the robot's file says about drives."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused, misshapen, not_finite, refused
from scipy.integrate import solve_ivp

from hodyn_ros import ModelError, Robot, series_elastic, share
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.errors import FigureWarning
from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import DriveLimits, DriveSpec, FrictionSpec, VariableStiffnessSpec
from hodyn_ros.planning.check import check
from hodyn_ros.trajectory import Cosines, read_trajectory

Writer = Callable[[str], Path]

FRICTION = FrictionSpec(0.4, 1.5, 0.1)
SPECS = {
    "rigid": DriveSpec(np.inf, 0.5),
    "linear": DriveSpec(900.0, 0.4),
    "damped": DriveSpec(700.0, 0.3, spring_damping=6.0),
    "hardening": DriveSpec(800.0, 0.2, cubic_stiffness=5e3, motor_friction=FRICTION),
    "pair": DriveSpec(500.0, 0.1, variable_stiffness=VariableStiffnessSpec("agonist_antagonist", 90.0)),
    "cam": DriveSpec(600.0, 0.1, variable_stiffness=VariableStiffnessSpec("cam", 800.0, 0.7, 0.02)),
}


@pytest.fixture(scope="module")
def samples(panda: Robot) -> tuple[Array, Array]:
    """Return a motion (100, 7, 7) at 1 kHz and its torques (100, 5, 7)."""
    trajectory = read_trajectory(share.find("config", "panda_validation.yaml"))
    q = trajectory.sample(np.arange(100) * 1e-3, 6)
    return q, panda.inverse_dynamics(q)


@pytest.mark.thorough
def test_each_joint_of_a_mixture_is_as_on_its_own(samples: tuple[Array, Array]) -> None:
    q, torques = (stack[..., : len(SPECS)] for stack in samples)
    train = DriveTrain(list(SPECS.values()), list(SPECS))
    assert train.n_motors == 8
    assert train.motor_names[4:6] == ("pair/first", "pair/second")
    found = train.feedforward(q, torques)
    assert found.position.shape == (100, 5, 8)
    assert found.effort.shape == (100, 3, 8)
    for j, (name, spec) in enumerate(SPECS.items()):
        own = DriveTrain([spec], [name]).feedforward(q[..., j : j + 1], torques[..., j : j + 1])
        motors = [m for m, joint in enumerate(train.motor_joints) if joint == j]
        assert np.array_equal(own.position[:, :5], found.position[..., motors])
        assert np.array_equal(own.effort[:, :3], found.effort[..., motors])


@pytest.mark.thorough
@pytest.mark.parametrize(("memory", "position", "effort"), [(2e-3, 5e-9, 7e-4), (2e-2, 5e-6, 7e-3)])
def test_what_answers_sample_by_sample_leave_out(
    panda: Robot, memory: float, position: float, effort: float
) -> None:
    """The figures of docs/control.md: the slow manifold at order 2 against the memory, advanced exactly."""
    springs = [replace(spec, spring_damping=memory * spec.stiffness) for spec in panda.drive_train.specs]
    train = DriveTrain(springs, panda.joint_names)
    motion = read_trajectory(share.find("config", "panda_validation.yaml"))
    q = motion.sample(np.arange(1500) * 1e-3, 8)
    torques = panda.inverse_dynamics(q)
    start = train.deflections(q[0, 0], train.feedforward(q[0], torques[0]).position[0])
    exact = train.follow(q, torques, 1e-3, start=start).motors
    found = train.feedforward(q[:, :5], torques[:, :3])
    settled = slice(200, None)
    assert np.abs(found.position[settled, 0] - exact.position[settled, 0]).max() <= position
    assert np.abs(found.effort[settled, 0] - exact.effort[settled, 0]).max() <= effort


def test_the_way_back_of_a_mixture_returns_the_torques(samples: tuple[Array, Array]) -> None:
    q, torques = (stack[..., : len(SPECS)] for stack in samples)
    train = DriveTrain(list(SPECS.values()), list(SPECS))
    theta = train.feedforward(q, torques).position
    found = train.link_torque(q[7, :3], theta[7, :3])
    assert (found[:, 0] == 0.0).all()  # rigid
    assert np.allclose(found[:, 1], torques[7, :2, 1], rtol=1e-9)
    assert np.allclose(found[:, 3:], torques[7, :2, 3:6], rtol=1e-9)
    # on the slow manifold up to the order given
    assert np.allclose(found[:, 2], torques[7, :2, 2], rtol=1e-6)
    deflection = train.deflections(q[7, 0], theta[7, 0])
    assert deflection[0] == 0.0
    assert deflection[1] == pytest.approx(torques[7, 0, 1] / 900.0, rel=1e-9)


def test_a_commanded_stiffness_moves_the_motors(samples: tuple[Array, Array]) -> None:
    q, torques = samples[0][0, :, 4:5], samples[1][0, :, 4:5]
    train = DriveTrain([SPECS["pair"]], ["pair"])
    command = np.array([[650.0], [40.0], [-300.0], [0.0], [0.0]])
    theta = train.feedforward(q, torques, stiffness=command).position
    # half the distance of the motors is the stretch sigma / (4 k)
    assert np.allclose(0.5 * (theta[:, 0] - theta[:, 1]), command[:, 0] / 360.0, rtol=1e-12, atol=1e-12)
    refused(lambda: train.feedforward(q, torques + 1e4), "joint 'pair': a spring goes slack")


@pytest.mark.thorough
@pytest.mark.parametrize("damping", [0.5, 20.0, 2000.0])
def test_damped_springs_follow_their_equation_from_sample_to_sample(
    damping: float, samples: tuple[Array, Array]
) -> None:
    """Against SciPy on the continuous torque: the samples' Taylor polynomials are good to rounding."""
    q, torques = samples[0][..., :1], samples[1][..., :1]
    train = DriveTrain([DriveSpec(700.0, 0.3, spring_damping=damping)], ["joint"])
    found = train.follow(q, torques, 1e-3, start=[0.01])
    trajectory = read_trajectory(share.find("config", "panda_validation.yaml"))
    robot = Robot.load(share.find("config", "panda.yaml"))
    inverse_dynamics = robot.compile(0)

    def rate(t: float, delta: Array) -> Array:
        load = inverse_dynamics(np.ascontiguousarray(trajectory.sample(t, 2)))[0, :1]
        return (load - 700.0 * delta) / damping

    times = np.arange(100) * 1e-3
    exact = solve_ivp(rate, (0.0, 0.1), [0.01], method="Radau", rtol=1e-11, atol=1e-14, t_eval=[*times, 0.1])
    assert np.allclose(found.deflections[:, 0], exact.y[0, :-1], rtol=1e-8, atol=1e-11)
    assert found.end[0] == pytest.approx(exact.y[0, -1], rel=1e-8)
    assert np.allclose(found.motors.position[:, 0, 0] - q[:, 0, 0], found.deflections[:, 0], rtol=1e-12)
    # D delta' + K delta = Q, and one order more than on the slow manifold
    delta = found.motors.position[..., 0] - q[:, : found.motors.position.shape[1], 0]
    assert found.motors.effort.shape[1] == 4
    balance = damping * delta[:, 1] + 700.0 * delta[:, 0] - torques[:, 0, 0]
    assert np.abs(balance).max() <= 1e-11 * np.abs(torques[:, 0, 0]).max()


def test_following_in_two_parts_is_following_at_once(samples: tuple[Array, Array]) -> None:
    q, torques = samples[0][..., :1], samples[1][..., :1]
    train = DriveTrain([DriveSpec(700.0, 0.3, spring_damping=20.0)], ["joint"])
    whole = train.follow(q, torques, 1e-3, start=[0.01])
    first = train.follow(q[:40], torques[:40], 1e-3, start=[0.01])
    second = train.follow(q[40:], torques[40:], 1e-3, start=first.end)
    assert np.array_equal(second.end, whole.end)
    assert np.array_equal(second.motors.effort, whole.motors.effort[40:])


@pytest.mark.parametrize("damping", [0.0, 1e-9, 1e-6])
def test_with_little_damping_following_is_that_of_a_spring(
    damping: float, samples: tuple[Array, Array]
) -> None:
    q, torques = samples[0][..., :1], samples[1][..., :1]
    found = DriveTrain([DriveSpec(700.0, 0.3, spring_damping=damping)], ["a"]).follow(q, torques, 1e-3)
    plain = DriveTrain(series_elastic(700.0, 0.3)).feedforward(q, torques)
    size = np.abs(plain.effort).max(axis=(0, 2), keepdims=True)
    assert found.motors.effort.shape == plain.effort.shape
    assert (
        np.abs(found.motors.effort - plain.effort) <= (100.0 * damping / 700.0 + 1e-14) * size * 1e3
    ).all()


def test_feedforward_uses_the_whole_drive_train(panda: Robot) -> None:
    specs = [
        DriveSpec(s.stiffness, s.motor_inertia, motor_friction=FRICTION) for s in panda.drive_train.specs
    ]
    robot = panda.with_drives(specs)
    assert not robot.require_drives().linear
    q = read_trajectory(share.find("config", "panda_validation.yaml")).sample(0.3, 6)
    with_friction, without = FeedforwardModel(robot, 4).compute(q), FeedforwardModel(panda, 4).compute(q)
    assert np.array_equal(with_friction.efforts, without.efforts)
    v = without.motor_positions[1]
    friction = 0.4 * v + 1.5 * v / np.sqrt(v**2 + 0.01)
    assert np.allclose(with_friction.motor_efforts[0], without.motor_efforts[0] + friction, rtol=1e-12)


def test_what_cannot_be_computed_is_refused_not_ignored(panda: Robot) -> None:
    pair = VariableStiffnessSpec("agonist_antagonist", 1e5)
    specs = [
        DriveSpec(s.stiffness, s.motor_inertia, variable_stiffness=pair) for s in panda.drive_train.specs
    ]
    robot = panda.with_drives(specs)
    refused(lambda: FeedforwardModel(robot, 2), "14 motors for 7 joints")


def test_bad_samples_are_refused(samples: tuple[Array, Array]) -> None:
    q, torques = samples
    train = DriveTrain([SPECS["damped"]] * 7, [str(j) for j in range(7)])
    bad_q, bad_torques = q.copy(), torques.copy()
    bad_q[50, 1, 3], bad_torques[50, 1, 3] = np.nan, np.inf
    assert_refused(
        ({"q": bad_q}, not_finite("link motion", (50, 1, 3))),
        ({"torques": bad_torques}, not_finite("torques", (50, 1, 3))),
        ({"q": "fast"}, "link motion must hold real numbers"),
        ({"period": 0.0}, "the period must be positive and finite, found 0.0 s"),
        ({"period": -1e-3}, "the period must be positive"),
        ({"period": np.nan}, "the period must be positive"),
        ({"start": [0.0]}, misshapen("start", (1,), "(7,)")),
        ({"q": q[:0], "torques": torques[:0]}, misshapen("torques", (0, 5, 7))),
        by=lambda change: train.follow(**{"q": q, "torques": torques, "period": 1e-3, **change}),
    )
    refused(lambda: train.feedforward(q, torques, deflection=np.zeros(2)), misshapen("deflection", (2,)))


# the robot's file

ROBOT = """
name: lever
bodies:
  - name: arm
    mass: 1
    com: [0.2, 0, 0]
    inertia: {about: com, ixx: 0.1, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}
joints:
  - name: hinge
    type: revolute
    parent: world
    child: arm
    axis: [0, 1, 0]
    drive: DRIVE
"""


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def writer(drive: str) -> Path:
        path = tmp_path / "lever.yaml"
        path.write_text(ROBOT.replace("DRIVE", drive), encoding="utf-8")
        return path

    return writer


def spec_of(path: Path) -> DriveSpec:
    specs = Robot.load(path).drive_train.specs
    return specs[0]


def test_a_file_says_everything_about_a_drive(write: Writer) -> None:
    friction = "{viscous: 0.4, coulomb: 1.5, transition: 0.1}"
    limits = "{torque: 50, torque_rate: {value: 900, source: x}, speed: 3, deflection: 0.05}"
    found = spec_of(
        write(
            "{motor_inertia: 0.2, stiffness: 800, cubic_stiffness: 5e3, gear_ratio: 100, "
            f"torque_constant: 0.05, motor_friction: {friction}, link_friction: {{viscous: 2}}, "
            f"limits: {limits}}}"
        )
    )
    assert found == DriveSpec(
        800.0,
        0.2,
        cubic_stiffness=5e3,
        motor_friction=FRICTION,
        link_friction=FrictionSpec(viscous=2.0),
        gear_ratio=100.0,
        torque_constant=0.05,
        limits=DriveLimits(50.0, 900.0, 3.0, 0.05),
    )
    cam = "{type: cam, spring: 800, curvature: 0.7, motor_inertia: 0.02}"
    found = spec_of(write(f"{{motor_inertia: 0.2, stiffness: 800, variable_stiffness: {cam}}}"))
    assert found.variable_stiffness == VariableStiffnessSpec("cam", 800.0, 0.7, 0.02)
    table = "{torque: [-3, -2, -1, 1, 2, 3], deflection: [-0.3, -0.2, -0.1, 0.1, 0.2, 0.3]}"
    path = write(f"{{motor_inertia: 0.2, stiffness: 10, spring_table: {table}}}")
    train = Robot.load(path).drive_train
    assert train.feedforward(np.zeros((5, 1)), np.array([[1.5], [0], [0]])).position[0, 0] == pytest.approx(
        0.15
    )


@pytest.mark.parametrize(("limits", "torque"), [("torque: 50, current: 8", 40.0), ("current: 20", 100.0)])
def test_a_limit_of_the_current_is_one_of_the_torque(write: Writer, limits: str, torque: float) -> None:
    figures = f"gear_ratio: 100, torque_constant: 0.05, limits: {{{limits}}}"
    robot = Robot.load(write(f"{{motor_inertia: 0.2, stiffness: 800, {figures}}}"))
    assert robot.drive_train.effort_limits([1e3])[0] == pytest.approx(torque, rel=1e-15)
    swing = Cosines([0.5], [3.0], duration=2.0)
    findings = {finding.column.quantity: finding for finding in check(robot, swing).findings}
    assert findings["motor torque"].column.upper == pytest.approx(torque, rel=1e-15)
    heavy = np.zeros((5, 1))
    heavy[2] = 1e3
    assert FeedforwardModel(robot, 2).compute(heavy).status & Status.EFFORT_LIMIT_EXCEEDED


REJECTED = {
    "negative stiffness": ("{motor_inertia: 1, stiffness: -3}", "stiffness...greater than 0"),
    "no stiffness": ("{motor_inertia: 1, stiffness: 0}", "stiffness...greater than 0"),
    "negative inertia": ("{motor_inertia: -1, stiffness: 10}", "motor_inertia...at least 0"),
    "no inertia": ("{motor_inertia: 0, stiffness: 10}", "hinge...motor inertia"),
    "unknown key": ("{motor_inertia: 1, stiffness: 10, spring_dampin: 1}", "spring_dampin...spring_damping"),
    "unknown limit": ("{motor_inertia: 1, stiffness: 10, limits: {tork: 1}}", "tork...torque"),
    "two kinds": (
        "{motor_inertia: 1, stiffness: 10, spring_damping: 1, cubic_stiffness: 2}",
        "hinge...spring_damping and cubic_stiffness exclude each other",
    ),
    "rigid spring": (
        "{motor_inertia: 1, stiffness: rigid, spring_damping: 1}",
        "hinge...belongs to a spring",
    ),
    "current without constant": (
        "{motor_inertia: 1, stiffness: 10, limits: {current: 3}}",
        "hinge...says nothing without a torque_constant",
    ),
    "half a cam": (
        "{motor_inertia: 1, stiffness: 10, variable_stiffness: {type: cam, spring: 3}}",
        "variable_stiffness...needs its curvature",
    ),
    "other kind": (
        "{motor_inertia: 1, stiffness: 10, variable_stiffness: {type: camm, spring: 3}}",
        "variable_stiffness.type...did you mean 'cam'",
    ),
}


def test_bad_drives_are_refused_by_name(write: Writer) -> None:
    assert_refused(
        {name: (drive, f"lever.yaml:...{words}") for name, (drive, words) in REJECTED.items()},
        by=lambda drive: Robot.load(write(drive)),
        error=ModelError,
    )


def test_figures_in_other_units_are_warned_about_by_name(write: Writer) -> None:
    with pytest.warns(FigureWarning, match=r"joint 'hinge': a stiffness of 1e\+09 N·m/rad is unheard of"):
        Robot.load(write("{motor_inertia: 1, stiffness: 1e9}"))
    with pytest.warns(FigureWarning, match=r"joint 'hinge': a motor inertia of 50000 kg m\^2"):
        Robot.load(write("{motor_inertia: 5e4, stiffness: rigid}"))
    with pytest.warns(FigureWarning, match=r"'hinge': a motor of 0.6 .* of 8 N·m/rad would swing at 0.58 Hz"):
        Robot.load(write("{motor_inertia: 0.6, stiffness: 8}"))  # kN·m/rad are meant
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Robot.load(share.find("config", "panda.yaml"))


def test_limits_of_a_drive_go_before_those_of_its_joint(panda: Robot) -> None:
    q = read_trajectory(share.find("config", "panda_validation.yaml")).sample(0.3, 5)
    plain = FeedforwardModel(panda, 3).compute(q)
    torque, speed = np.abs(plain.motor_efforts[0]).max(), np.abs(plain.motor_positions[1]).max()
    assert plain.status & ~Status.POSITION_LIMIT_EXCEEDED == Status.OK
    for limits, expected in (
        (DriveLimits(torque=0.99 * torque), Status.EFFORT_LIMIT_EXCEEDED),
        (DriveLimits(speed=0.99 * speed), Status.VELOCITY_LIMIT_EXCEEDED),
        (DriveLimits(torque=1.01 * torque, speed=1.01 * speed), Status.OK),
    ):
        specs = [DriveSpec(s.stiffness, s.motor_inertia, limits=limits) for s in panda.drive_train.specs]
        robot = panda.with_drives(specs)
        assert FeedforwardModel(robot, 3).compute(q).status & ~Status.POSITION_LIMIT_EXCEEDED == expected
