"""Robots with couplings and loops, simulated: against forward dynamics, by energy, and where they end."""

from collections.abc import Callable

import numpy as np
import pytest
from linkages import elastic_delta, motion_of, robot_of, shipped, with_drives
from oracles.mechanisms import FEW, MECHANISMS
from refusals import refused
from sweeps import some

from hodyn_ros import BaseMotion, ConvergenceError, InputError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.control.motor_pd import FeedforwardMode
from hodyn_ros.guard.guarded_robot import effort_model
from hodyn_ros.guard.transitions import Motion
from hodyn_ros.simulation.plant import Plant
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory.files.reader import read_motion

pytestmark = pytest.mark.thorough


_, RIGID, _, ELASTIC = FeedforwardMode


# A robot on rigid drives alone, on springs alone, and on both.
STIFFNESS: dict[str, Callable[[int], Array]] = {
    "rigid": lambda n: np.full(n, np.inf),
    "elastic": lambda n: np.linspace(300.0, 500.0, n),
    "mixed": lambda n: np.where(np.arange(n) % 2, 400.0, np.inf),
}


CASES = [*((name, "mixed") for name in FEW), ("four-bar", "rigid"), ("RSSR", "elastic"), ("6-UPS", "elastic")]


@pytest.mark.parametrize(
    ("name", "kind"), some([(name, kind) for name in MECHANISMS for kind in STIFFNESS], *CASES)
)
def test_links_accelerate_as_forward_dynamics_says(name: str, kind: str) -> None:
    """Under what drives leave them: springs their torque, rigid ones the effort that moves no motor."""
    mechanism = MECHANISMS[name]()
    bare = robot_of(mechanism)
    n = len(bare.driven_joints)
    robot = with_drives(bare, STIFFNESS[kind](n), np.linspace(0.1, 0.3, n))
    joints, given = motion_of(mechanism, 0)
    prescribed = robot.closure is not None and robot.closure.platform is None and given is not None
    plant = Plant(robot, 2.0, (lambda _: given) if prescribed else None)
    links, rng = plant.links, np.random.default_rng(2)
    x = links.coordinates(joints, given)
    state = np.concatenate([x[0], np.zeros(plant.size // 2 - links.size)])
    moving = rng.uniform(-0.2, 0.2, plant.size // 2 - links.size)
    drives = links.drives(x)
    elastic = np.isfinite(robot.drive_train.stiffness)
    state[links.size :] = drives.motion[0][elastic] + 0.1 * moving
    state = np.concatenate([state, x[1], drives.motion[1][elastic] + moving])
    effort = rng.uniform(-5.0, 5.0, n)
    rates = plant.rates(state, effort)
    found = rates[plant.size // 2 :][: links.size]

    springs = np.where(elastic, robot.drive_train.stiffness, 0.0)
    on_links = effort.copy()
    on_links[elastic] = (springs[elastic] * 0.1 + 2.0) * moving
    x[2] = found
    at = links.drives(x)
    on_links -= np.where(elastic, 0.0, robot.drive_train.motor_inertia * at.motion[2])
    q, base = links.robot_arguments(x)
    if base is None:
        expected = robot.forward_dynamics(q[:2], on_links[None])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        return
    wrench = None if at.base_wrench is None else at.base_wrench
    twists, expected = robot.forward_dynamics(q[:2], on_links[None], base, wrench)
    np.testing.assert_allclose(x[2][: robot.n_coordinates], expected[0], rtol=1e-9, atol=1e-9)
    if at.base_wrench is not None:
        np.testing.assert_allclose(
            base.in_representation(given.representation).twists[1], twists[0], rtol=1e-9, atol=1e-9
        )
        return
    # the platform itself, which may move besides as the rows of its pose do not say
    moved = robot.forward_kinematics(q[:2], base)
    platform = robot.tree.body_names[robot.closure.platform.body]
    spatial = BaseMotion(moved.pose_of(platform), np.stack([moved.twists_of(platform)[0], np.zeros(6)]))
    twists = (
        BaseMotion(base.pose, np.stack([base.twists[0], twists[0]]), representation="body_fixed")
        .in_representation("spatial")
        .twists
    )
    spatial = BaseMotion(spatial.pose, np.stack([spatial.twists[0], twists[1]]))
    q[2] = expected[0]
    again = robot.drive_state(q, spatial).motion
    np.testing.assert_allclose(at.motion, again, rtol=1e-9, atol=1e-9)


def energy(robot: Robot, simulation: RobotSimulation) -> tuple[float, float]:
    """Return the energy of links, motors, springs and weight [J], and the kinetic part of the links."""
    q, qd = simulation.coordinates, simulation.joints[1]
    x = np.stack([q, qd[list(robot.closure.joints)]])
    mass, stiffness = robot.mass_matrix(x[:1])[0], robot.drive_train.stiffness
    kinetic = 0.5 * x[1] @ mass @ x[1]
    weight = -robot.tree.masses.sum() * robot.gravity @ robot.com(x[:1])[0]
    motors = 0.5 * robot.drive_train.motor_inertia @ simulation.motor_velocity**2
    bent = simulation.motor_position - simulation.position
    springs = 0.5 * np.where(np.isfinite(stiffness), stiffness, 0.0) @ bent**2
    return float(kinetic + weight + motors + springs), float(kinetic)


@pytest.mark.parametrize("stiffness", [[500.0, 800.0, np.inf], [np.inf] * 3])
def test_a_delta_that_falls_keeps_its_energy(stiffness: list[float]) -> None:
    robot = with_drives(shipped("delta.yaml"), stiffness, 0.01)
    simulation = RobotSimulation(robot, [0.03, -0.02, -0.02], step_limit=0.02)
    before, _ = energy(robot, simulation)
    for _ in range(100):
        simulation.advance(0.001, np.zeros(3))
    after, kinetic = energy(robot, simulation)
    assert simulation.coordinates[2] < -0.04  # it falls
    assert abs(after - before) < 1e-7 * kinetic


def test_efforts_do_the_work_that_the_energy_grows_by() -> None:
    robot = shipped("palletiser.yaml")
    simulation = RobotSimulation(robot, [0.1, 0.6, 0.3, 0.2], step_limit=0.02)
    effort = simulation.gravity_effort() + [400.0, -900.0, 700.0, 100.0]
    start, (before, _) = simulation.motor_position, energy(robot, simulation)
    simulation.advance(0.05, effort)
    work = effort @ (simulation.motor_position - start)
    assert energy(robot, simulation)[0] - before == pytest.approx(work, rel=1e-7)


@pytest.mark.parametrize("name", ["delta.yaml", "palletiser.yaml", "panda_hand.yaml"])
def test_it_rests_where_it_is_put_down(name: str) -> None:
    robot = shipped(name)
    start = np.linspace(0.02, 0.04, robot.n_coordinates)
    simulation = RobotSimulation(robot, start, damping=10.0)
    hold = simulation.gravity_effort()
    for _ in range(50):
        simulation.advance(0.001, hold)
    np.testing.assert_allclose(simulation.coordinates, start, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(simulation.link_effort, hold, rtol=0.0, atol=1e-5)
    expected = robot.drive_state(np.stack([start, *np.zeros((2, len(start)))])).motion[0]
    np.testing.assert_allclose(simulation.position, expected, rtol=0.0, atol=1e-9)
    assert simulation.joints.shape == (2, robot.tree.n_joints)


def test_steps_are_those_of_an_integrator_at_its_tightest() -> None:
    robot = elastic_delta()
    simulation = RobotSimulation(robot, [0.02, 0.0, -0.03], damping=0.1, step_limit=0.05)
    effort = simulation.gravity_effort() + [1.0, -2.0, 0.5]
    exact = RobotSimulation(robot, [0.02, 0.0, -0.03], damping=0.1)
    exact.follow(effort, 0.05, method="DOP853", rtol=1e-12, atol=1e-14)
    simulation.advance(0.05, effort)
    assert np.abs(exact.coordinates - [0.02, 0.0, -0.03]).max() > 5e-3
    np.testing.assert_allclose(simulation.coordinates, exact.coordinates, rtol=0.0, atol=1e-10)


TRACKED = {
    "delta": elastic_delta,
    "palletiser": lambda: shipped("palletiser.yaml"),
    "planar_3rrr": lambda: shipped("planar_3rrr.yaml"),
}


@pytest.mark.parametrize("name", some(TRACKED, "delta"))
def test_the_elastic_feedforward_tracks_ten_times_better_than_the_rigid_one(name: str) -> None:
    motion = read_motion(share.find("config", f"{name}_motion.yaml"))
    study = TrackingStudy(TRACKED[name](), motion, StudyConfig(0.15, 0.1, Loop(order=3), settling=0.05))
    rigid, elastic = (study.run(RobotErrors(), mode).rms for mode in (RIGID, ELASTIC))
    assert 10.0 * elastic < rigid


def test_a_leg_follows_on_a_base_that_moves() -> None:
    motion = read_motion(share.find("config", "humanoid_leg_motion.yaml"))
    study = TrackingStudy(shipped("humanoid_leg.yaml"), motion, StudyConfig(0.1, 0.05, settling=0.02))
    rigid, elastic = (study.run(RobotErrors(), mode) for mode in (RIGID, ELASTIC))
    assert 10.0 * elastic.rms < rigid.rms


def test_a_base_must_be_given() -> None:
    refused(lambda: Plant(shipped("humanoid_leg.yaml")), "'humanoid_leg' has a floating base, which its")
    standing = BaseMotion(np.eye(4), np.zeros((4, 6)))
    simulation = RobotSimulation(shipped("humanoid_leg.yaml"), np.full(6, 0.1), base=lambda _: standing)
    assert simulation.position.shape == (6,)


@pytest.mark.parametrize("simulated", ["stepped", "integrated"])
def test_where_no_loop_closes_any_more_the_simulation_ends_with_one_line(simulated: str) -> None:
    robot = shipped("delta.yaml")
    pull = np.full(3, -30.0)  # the arms go up, until rods are flat
    simulation = RobotSimulation(robot, np.zeros((5, 3)))
    with pytest.raises(InputError, match=r"^the simulation ends at 0\.\d+ s: .*robot 'delta'") as caught:
        for _ in range(1000):
            if simulated == "stepped":
                simulation.advance(0.001, pull)
            else:
                simulation.follow(pull, 0.02, rtol=1e-3, atol=1e-5)  # it ends, however exact it was
    assert "\n" not in str(caught.value)
    before = simulation.coordinates
    assert np.isfinite(before).all() and np.abs(before).max() < 1.0
    links = Links(robot)
    links.at(np.stack([before, np.zeros(3)]))  # it stands at a pose that is sound
    joints = simulation.joints
    simulation.halt()
    np.testing.assert_array_equal(simulation.joints[0], joints[0])
    assert joints[1].any() and not simulation.joints[1].any() and not simulation.motor_velocity.any()


def test_driven_joints_say_where_the_coordinates_are() -> None:
    robot, links = shipped("delta.yaml"), Links(shipped("delta.yaml"))
    x = np.array([[0.08, -0.05, -0.06], [0.3, 0.2, -0.4], [2.0, -1.0, 3.0]])
    found = links.locate(robot.drive_state(x).motion, np.zeros(3))
    np.testing.assert_allclose(found, x, rtol=1e-10, atol=1e-12)
    refused(lambda: links.locate(np.full((1, 3), -3.0), np.zeros(3)), "robot 'delta'", ConvergenceError)


def test_no_one_is_kept_waiting_by_driven_joints_that_are_far_away() -> None:
    """The axes of the palletiser may turn without end, and would be followed over 1e5 rad for minutes."""
    links = Links(shipped("palletiser.yaml"))
    near, far = np.zeros((2, 1, 4))
    near[0, 0], far[0, 0] = 19.0, 21.0
    np.testing.assert_allclose(links.locate(near, links.home), near, atol=1e-9)
    refused(lambda: links.locate(far, links.home), "21 rad or m from where they were", ConvergenceError)
    refused(lambda: links.locate(1e30 * far, links.home), "nearer to the last ones", ConvergenceError)


def test_a_guard_does_not_go_to_and_fro_between_desired_commanded_and_measured_motion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a stop they go apart, and each is asked for in each cycle: every one is followed in one stride."""
    robot, strides = shipped("delta.yaml"), []
    model = effort_model(robot, robot.driven_joints, motor=True)
    approach = Links._approach
    monkeypatch.setattr(Links, "_approach", lambda *given: strides.append(None) or approach(*given))
    places = [[-0.1, -0.03, -0.05], [0.0, 0.0, 0.01], [0.1, 0.03, -0.05]]
    motions = [robot.drive_state(np.array([place, *np.zeros((2, 3))])).motion for place in places]
    assert min(np.abs(one[0] - other[0]).max() for one, other in zip(motions, motions[1:])) > 0.4
    calls = [lambda rows=rows: model(Motion(*rows)) for rows in motions[:2]] + [
        lambda: model.links(motions[2])
    ]
    found = [call() for call in calls]
    strides.clear()
    for _ in range(10):
        for call, before in zip(calls, found):
            np.testing.assert_allclose(call(), before, rtol=1e-9, atol=1e-9)
    assert len(strides) == 30


def test_a_stop_carries_a_robot_with_loops_as_far_as_its_pose_is_sound() -> None:
    """As a motion of its drives, which are not its coordinates; beyond, efforts stay as they are."""
    robot = shipped("delta.yaml")
    efforts = effort_model(robot, ["drive2", "drive1", "drive3"], motor=True)
    x = np.array([[0.03, -0.05, -0.06], [0.3, 0.2, -0.4], [2.0, -1.0, 3.0]])
    state = robot.drive_state(x)
    moved = Motion(*state.motion[:, [1, 0, 2]])
    expected = (state.efforts[0] + 0.01 * state.motion[2])[[1, 0, 2]]
    sound = efforts(moved)
    np.testing.assert_allclose(sound, expected, rtol=1e-9)
    np.testing.assert_array_equal(efforts(moved._replace(position=np.full(3, -3.0))), sound)
    np.testing.assert_allclose(efforts(moved), expected, rtol=1e-9)
    leg = shipped("humanoid_leg.yaml")
    assert effort_model(leg, leg.driven_joints, motor=True) is None
