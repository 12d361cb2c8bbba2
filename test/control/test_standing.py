"""Whether feedback holds a robot against its weight, against pendulums and potential energies."""

from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.array import Array
from hodyn_ros.control.links import Links
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.control.standing import stiffness_needed, warn_if_tipped
from hodyn_ros.errors import FigureWarning
from hodyn_ros.learning.learn import Learner
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.streaming.chunk_bounds import ChunkBounds
from hodyn_ros.streaming.chunk_executor import ChunkExecutor
from hodyn_ros.trajectory import WaypointSpline

PENDULUM = """
name: pendulum
bodies:
  - {name: rod, mass: 3, com: [0, 0, SIDE0.5],
     inertia: {about: com, ixx: 0.1, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}}
joints:
  - {name: foot, type: revolute, parent: world, child: rod, axis: [0, 1, 0],
     drive: {motor_inertia: 0.5, stiffness: STIFFNESS}}
"""


def pendulum(tmp_path: Path, side: str = "", stiffness: str = "rigid") -> Robot:
    file = tmp_path / "pendulum.yaml"
    file.write_text(PENDULUM.replace("SIDE", side).replace("STIFFNESS", stiffness))
    return Robot.load(file)


def needed(robot: Robot, proportional: float) -> float:
    gains = MotorGains([proportional], [1.0])
    return stiffness_needed(robot, robot.require_drives(), gains)


def test_a_rod_that_stands_needs_what_its_weight_tips(tmp_path: Path) -> None:
    weight = -3.0 * 0.5 * pendulum(tmp_path).gravity[2]  # [N.m/rad]
    assert needed(pendulum(tmp_path), 10.0) == pytest.approx(weight / 10.0, rel=1e-7)
    series = 1.0 / (1.0 / 100.0 + 1.0 / 20.0)  # of feedback and spring
    assert needed(pendulum(tmp_path, stiffness="20"), 100.0) == pytest.approx(weight / series, rel=1e-7)
    assert needed(pendulum(tmp_path, side="-"), 10.0) == 0.0  # it hangs
    assert needed(pendulum(tmp_path), 0.0) == 0.0  # nobody wants it held


def test_a_platform_stands_where_its_energy_is_least() -> None:
    """The energy of weight and springs has a least at home where the answer is below 1, and else a saddle."""
    robot = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
    train = DriveTrain([DriveSpec(np.inf, 2.0)] * 6, robot.driven_joints)
    links, mass, still = Links(robot), robot.tree.masses.sum(), np.zeros((2, 6))

    def legs(x: Array) -> tuple[Array, Array]:
        state = links.drives(np.stack([x, *still]))
        return state.motion[0], state.efforts[0]

    begin, carries = legs(links.home)

    def energy(x: Array, stiffness: float) -> float:
        height = -robot.com(*links.robot_arguments(x[None]))[0] @ robot.gravity
        bent = legs(x)[0] - begin
        return float(mass * height + 0.5 * stiffness * bent @ bent - carries @ bent)

    def curvatures(stiffness: float) -> Array:
        """Return those of the energy, by second differences."""
        steps, home = 2e-4 * np.eye(6), links.home
        table = [
            [
                sum(a * b * energy(home + a * one + b * other, stiffness) for a in (1, -1) for b in (1, -1))
                for one in steps
            ]
            for other in steps
        ]
        return np.linalg.eigvalsh(np.array(table))

    gains = MotorGains([1800.0] * 6, [120.0] * 6)  # of 30 rad/s
    least = 1800.0 * stiffness_needed(robot, train, gains)
    assert least / 1800.0 == pytest.approx(7.4425, rel=1e-4)
    assert curvatures(0.999 * least)[0] < 0.0 < curvatures(1.001 * least)[0]


def end_of_a_stand(robot: Robot, natural_frequency: float) -> float:
    """Return how far [rad] a rod that is to stand upright is off after 8 s, a hundredth away from there."""
    still = WaypointSpline([0.0, 4.0, 8.0], [[0.01]] * 3, order=6)
    config = StudyConfig(settling=0.1, loop=Loop(200.0, natural_frequency))
    study = TrackingStudy(robot, still, config)
    return abs(float(study.run(RobotErrors(inertia=0.1), study.modes[-1]).errors[-1, 0]))


def test_a_simulation_warns_of_robots_that_then_fall_and_of_no_others(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """The rod weighs 14.7 N.m/rad, and a tenth more; 0.5 kg m^2 of its motor give 12.5, 18 and 50."""
    robot = pendulum(tmp_path)
    assert end_of_a_stand(robot, 6.0) < 0.01
    assert not [each for each in recwarn if issubclass(each.category, FigureWarning)]
    with pytest.warns(FigureWarning, match="robot 'pendulum' tips it.* 1.29 times as stiff"):
        assert end_of_a_stand(robot, 5.0) > 0.1


def test_drives_with_gains_of_their_own_are_looked_at_too(tmp_path: Path) -> None:
    with pytest.warns(FigureWarning, match="1.47 times as stiff"):
        ChunkExecutor(pendulum(tmp_path), MotorGains([10.0], [1.0]), ChunkBounds(0.1, np.ones(1)))
    swing = WaypointSpline([0.0, 1.0], [[0.0], [0.3]], order=6, joint_names=["foot"])
    with pytest.warns(FigureWarning, match="1.47 times as stiff"):
        Learner(pendulum(tmp_path), swing, MotorGains([10.0], [1.0]))
    with pytest.warns(FigureWarning, match="1.47 times as stiff"):
        warn_if_tipped(pendulum(tmp_path), None, MotorGains([10.0], [1.0]))
