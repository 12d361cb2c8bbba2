"""Whether feedback that is held and late swings a robot up: against closed forms and simulated loops."""

from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.control.late_feedback import LateFeedback
from hodyn_ros.control.linear_drives import DAMPING_TIME, LinearDrives
from hodyn_ros.control.links import Links
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.errors import FigureWarning, InputError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.simulation.closed_loop import run_loop
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.simulation.tracking_study import Loop, RobotErrors, StudyConfig, TrackingStudy
from hodyn_ros.trajectory import WaypointSpline

ROD = """
name: rod
bodies:
  - {name: rod, mass: 0.5, com: [0, 0, 0],
     inertia: {about: com, ixx: 1.5, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 1}}
joints:
  - {name: axle, type: revolute, parent: world, child: rod, axis: [1, 0, 0], drive: DRIVE}
"""


def rod(tmp_path: Path, drive: str) -> Robot:
    file = tmp_path / "rod.yaml"
    file.write_text(ROD.replace("DRIVE", drive))
    return Robot.load(file)


def feedback(robot: Robot, gains: MotorGains, period: float) -> LateFeedback:
    found = LateFeedback.of_robot(robot, robot.require_drives(), gains, period)
    assert found is not None
    return found


def test_a_rigid_joint_swings_as_the_roots_of_its_equation_say(tmp_path: Path) -> None:
    """For `J x'' = u`, held over h, u of the sample before: z (z - 1)^2 + (a (z + 1) + b (z - 1)) = 0."""
    robot = rod(tmp_path, "{motor_inertia: 0.5, stiffness: rigid}")
    gains = MotorGains([1800.0], [30.0])
    for h in (0.02, 0.2):  # with the second one its samples change their sign each time
        a, b = 1800.0 * h**2 / (2.0 * 2.0), 30.0 * h / 2.0
        for delay, equation in ((0.0, [1.0, a + b - 2.0, a - b + 1.0]), (h, [1.0, -2.0, a + b + 1.0, a - b])):
            swing = feedback(robot, gains, h).slowest_swing(delay)
            roots = np.roots(equation).astype(complex)
            fastest = np.log(roots[np.abs(roots).argmax()]) / h
            assert swing.growth == pytest.approx(fastest.real, rel=1e-9)
            assert swing.frequency == pytest.approx(abs(fastest.imag), rel=1e-9)


def test_efforts_that_wait_for_many_periods_are_as_late_in_the_mean() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    gains = MotorGains.of_drives(robot.require_drives(), 30.0, 1.0)
    often, seldom = (feedback(robot, gains, period) for period in (1e-5, 1e-3))
    assert often.slowest_swing(0.0105).growth == pytest.approx(seldom.slowest_swing(0.01).growth, rel=0.01)
    assert often.bearable_delay(1.0) == pytest.approx(seldom.bearable_delay(1.0) + 0.0005, abs=5e-5)


def simulated(
    robot: Robot, gains: MotorGains, period: float, delay: float, duration: float, modes: int
) -> tuple[float, float]:
    """Return growth [1/s] and frequency [rad/s] of what a push of 1e-10 at home has become after a time [s].

    The robot has no weight. So many modes are left then: a sample is a sum of twice as many before, whose
    weights say the modes.
    """
    damping = robot.require_drives().damping(DAMPING_TIME)
    links = Links(robot)
    simulation = RobotSimulation(robot, links.home, damping=damping)
    start, held = simulation.measurement.motor_position.copy(), simulation.state
    simulation.state = held + 1e-10 * np.linspace(1.0, 2.0, len(held))

    def controller(_: float, measured: Measurement) -> Array:
        off = measured.motor_position - start
        return -gains.proportional * off - gains.derivative * measured.motor_velocity

    record = run_loop(simulation, controller, duration, period, delay=delay)
    x = record.motor_positions[-100:] - start
    assert 1e-7 < np.abs(x).max() < 1e-3
    count = 2 * modes
    known = np.stack([x[k : len(x) - count + k].ravel() for k in range(count)], axis=1)
    weights, *_ = np.linalg.lstsq(known, x[count:].ravel(), rcond=None)
    roots = np.roots([1.0, *-weights[::-1]])
    fastest = np.log(roots[np.abs(roots).argmax()]) / period
    return fastest.real, abs(fastest.imag)


@pytest.mark.parametrize(
    ("file", "rate", "delay", "modes"),
    [
        ("panda.yaml", 100.0, 0.006, 1),
        ("panda.yaml", 500.0, 0.009, 1),
        # the tool swings, and drives against each other
        ("planar_3rrr.yaml", 100.0, 0.006, 2),
    ],
)
def test_a_simulated_robot_swings_up_as_is_said(file: str, rate: float, delay: float, modes: int) -> None:
    robot = FeedforwardConfig(gravity=(0.0, 0.0, 0.0)).robot(Robot.load(share.find("config", file)))
    gains = MotorGains.of_drives(robot.require_drives(), 30.0, 1.0)
    swing = feedback(robot, gains, 1.0 / rate).slowest_swing(delay)
    assert swing.growth > 0.0
    growth, frequency = simulated(robot, gains, 1.0 / rate, delay, 14.0 / swing.growth, modes)
    assert swing.growth == pytest.approx(growth, rel=1e-3)
    assert swing.frequency == pytest.approx(frequency, rel=1e-3)


def test_friction_and_damping_that_are_said_count(tmp_path: Path) -> None:
    """A spring that nothing damps grows under late feedback; each of the two holds it."""
    gains, grows = MotorGains([450.0], [30.0]), []
    for more in ("", ", motor_friction: {viscous: 20}", ", spring_damping: 12"):
        robot = rod(tmp_path, "{motor_inertia: 0.5, stiffness: 2000" + more + "}")
        grows.append(feedback(robot, gains, 0.005).slowest_swing(0.015).growth)
    assert grows[0] > 0.0 > max(grows[1:])


def test_feedback_bears_the_delay_from_which_on_it_swings_up(tmp_path: Path) -> None:
    robot = rod(tmp_path, "{motor_inertia: 0.5, stiffness: rigid}")
    late = feedback(robot, MotorGains([1800.0], [120.0]), 0.001)
    bears = late.bearable_delay(0.1)
    assert late.slowest_swing(bears - 1e-4).growth < 0.0 < late.slowest_swing(bears + 1e-4).growth
    # the phase of (Kp + Kd s) / (J s^2) where its size is 1, but for half a period for which efforts are held
    stiff, slow = 1800.0 / 2.0, 120.0 / 2.0
    w = np.sqrt(0.5 * (slow**2 + np.sqrt(slow**4 + 4.0 * stiff**2)))
    assert bears + 0.0005 == pytest.approx(np.arctan(slow * w / stiff) / w, rel=1e-3)
    assert late.bearable_delay(0.5 * bears) == 0.5 * bears
    assert feedback(robot, MotorGains([1800.0], [1.0]), 0.1).bearable_delay(0.1) == 0.0


def test_nothing_is_said_where_nothing_can_be(tmp_path: Path) -> None:
    gains = MotorGains([1800.0], [30.0])
    leg = Robot.load(share.find("config", "humanoid_leg.yaml"))  # it floats
    of_leg = MotorGains.of_drives(leg.require_drives(), 30.0, 1.0)
    assert LateFeedback.of_robot(leg, leg.require_drives(), of_leg, 0.001) is None
    robot = rod(tmp_path, "{motor_inertia: 0.5, stiffness: rigid}")
    without_rotor = LinearDrives(*(np.array([x]) for x in (np.inf, 0.0, 0.0, 0.0)))
    with pytest.raises(np.linalg.LinAlgError):  # as of_robot expects of a home that is singular
        without_rotor.system(np.array([[-1e-18]]), np.ones((1, 1)))
    for period in (0.0, np.nan, np.inf):
        with pytest.raises(InputError, match="the period must be positive"):
            feedback(robot, gains, period)
    for delay in (-0.001, np.nan, np.inf):
        with pytest.raises(InputError, match="the delay must not be negative"):
            feedback(robot, gains, 0.001).slowest_swing(delay)


def end_of_a_stand(robot: Robot, rate: float) -> float:
    still = WaypointSpline([0.0, 2.0, 4.0], [[0.0], [0.01], [0.01]], order=6)
    study = TrackingStudy(robot, still, StudyConfig(settling=0.1, loop=Loop(rate)))
    return abs(float(study.run(RobotErrors(), study.modes[-1]).errors[-1, 0]))


def test_a_simulation_warns_of_robots_that_then_swing_up_and_of_no_others(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    robot = rod(tmp_path, "{motor_inertia: 0.5, stiffness: 2000}")
    assert end_of_a_stand(robot, 500.0) < 1e-4
    assert not [each for each in recwarn if issubclass(each.category, FigureWarning)]
    with pytest.warns(FigureWarning, match="the motor of joint 'axle' of robot 'rod' up at"):
        assert end_of_a_stand(robot, 25.0) > 0.1
