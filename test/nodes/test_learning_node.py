"""learning_node as a process, over real DDS, in the place between dynamics_node and controller_node."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")

from ros_processes import RosProcess
from ros_talk import Talk, talking
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from hodyn_ros.array import Array
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning import Correction, Learned, LearningConfig, read_correction, write_correction
from hodyn_ros.learning.background import make_learner
from hodyn_ros.learning.learn import Step
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.messages import (
    nanoseconds,
    time_message,
    write_desired_motion,
    write_feedforward_torque,
)

ROBOT = """
name: lift
bodies:
  - {name: link, mass: 4, com: [0.2, 0, 0],
     inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}}
joints:
  - {name: lift, type: revolute, parent: world, child: link, axis: [0, -1, 0], limits: {effort: 60},
     drive: {motor_inertia: 0.8, gear_ratio: 100, stiffness: 6000}}
"""
MOTION = """
type: waypoints
joint_names: [lift]
order: 6
points:
  - {time: 0, positions: [0.2]}
  - {time: 0.4, positions: [0.7]}
  - {time: 0.8, positions: [0.2]}
"""
GIVEN = {"robot_config": "lift.yaml", "trajectory": "move.yaml", "bandwidth": 4.0, "fade": 0.2}
STEP = 4_000_000  # [ns]


class Line:
    """What comes before and behind the node, sample by sample in stamps of its own."""

    def __init__(self, talk: Talk) -> None:
        self._talk, self.stamp = talk, 1_000_000_000
        self.learner = make_learner(
            Path("lift.yaml"), Path("move.yaml"), 30.0, 1.0, LearningConfig(bandwidth=4.0)
        )
        self._model = FeedforwardModel(self.learner.robot, 3)
        self.heard = talk.hear_nothing_yet(FeedforwardTorque, "corrected_feedforward_torque")
        self._motions = talk.publisher(DesiredMotion, "desired_motion")
        self._feedforwards = talk.publisher(FeedforwardTorque, "feedforward_torque")
        self._states = [talk.publisher(JointState, name) for name in ("joint_states", "motor_states")]
        while not self.heard:  # what the node says before it knows who hears it reaches nobody
            self._publish(0.0, 0.0, moves=True)
            talk.pause(0.1)
        talk.hear_out(self.heard)

    def send(self, place: float, error: float = 0.0, moves: bool = True, **changes: Any) -> FeedforwardTorque:
        """Send a sample, and return the feedforward; the link is off by an error [rad]."""
        before = len(self.heard)
        message = self._publish(place, error, moves, **changes)
        self._talk.wait_until(lambda: len(self.heard) > before, "the feedforward")
        return message

    def _publish(self, place: float, error: float, moves: bool, **changes: Any) -> FeedforwardTorque:
        self.stamp += STEP
        path = self.learner.motion
        sample = path.sample(min(max(place, 0.0), path.duration), 5)
        stamp = time_message(self.stamp)
        message = write_feedforward_torque(
            Header(stamp=stamp), ["lift"], self._model.compute(np.ascontiguousarray(sample)), 0.0
        )
        for field, values in changes.items():
            setattr(message, field, values)
        if moves:
            self._motions.publish(write_desired_motion(["lift"], stamp, sample))
        for publisher in self._states:
            state = JointState(name=["lift"], position=sample[0] + error, effort=[np.sin(3.0 * place)])
            state.header.stamp = stamp
            publisher.publish(state)
        self._feedforwards.publish(message)
        return message

    def added(self, place: float, **options: Any) -> float:
        """Send a sample, and return what the effort of its motor has got."""
        sent = self.send(place, **options)
        assert self.heard[-1].header.stamp == sent.header.stamp
        return float(self.heard[-1].motor_efforts[0] - sent.motor_efforts[0])

    def rest(self, count: int = 60) -> list[float]:
        """Stand where the motion begins."""
        return [self.added(0.0) for _ in range(count)]

    def repeat(self, error: float, until: float = 0.8) -> tuple[list[float], int]:
        """Run the motion; return what is added, and the stamp at which it began."""
        begin, added = self.stamp, []
        # half a step off, so that no sample lies where a window ends
        for place in np.arange(0.5e-9 * STEP, until, 1e-9 * STEP):
            added.append(self.added(place, error=error * np.sin(4.0 * place)))
        return added, begin


@contextmanager
def between(namespace: str, **parameters: object) -> Iterator[tuple[RosProcess, Talk, Line]]:
    given = GIVEN | parameters
    with talking("learning_node", given, namespace) as (node, talk):
        yield node, talk, Line(talk)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lift.yaml").write_text(ROBOT)
    Path("move.yaml").write_text(MOTION)


def expected(line: Line, error: float, before: Learned | None = None) -> Learned:
    """Return what is to be learnt from a repetition, by what `hodyn learn` does."""
    motion = line.learner.motion
    times = np.linspace(-10.5e-9 * STEP, 212.5e-9 * STEP, 224)
    q = motion.sample(np.clip(times, 0.0, motion.duration), 0)[:, 0]
    off = np.where((times > 0.0) & (times < 0.8), error * np.sin(4.0 * times), 0.0)[:, None]
    efforts = Channel(times, np.sin(3.0 * times)[:, None])
    run = JointRecording("run", ("lift",), efforts, Channel(times, q + off), Channel(times, q + off))
    return line.learner.learn([run], before)


def test_what_a_repetition_teaches_is_played_in_the_next_one_without_a_step() -> None:
    with between("ln_learn", out="kept.yaml") as (node, talk, line):
        assert not any(line.rest())
        added, _ = line.repeat(2e-3)
        assert not any(added)
        line.rest()
        talk.wait_for_line(node, "rad off (RMS), learnt")
        # the process that learns is no second node
        assert talk.node.count_publishers("/ln_learn/corrected_feedforward_torque") == 1
        first = expected(line, 2e-3)
        learned = read_correction(Path("kept.yaml"))
        scale = np.abs(first.correction.coefficients).max()
        np.testing.assert_allclose(
            learned.correction.coefficients, first.correction.coefficients, atol=2e-3 * scale
        )
        faded = line.rest()
        start = learned.correction.at(0.0)[0, 0]
        np.testing.assert_allclose(faded[-1], start, rtol=1e-6)
        assert np.abs(np.diff(faded)).max() < 0.06 * abs(start)  # within 50 samples
        added, _ = line.repeat(4e-3)  # it made it worse
        # in its first samples a motion is as good as at rest
        places = np.array([1e-9 * STEP * (i + 0.5) for i in range(2, len(added))])
        np.testing.assert_allclose(added[2:], learned.correction.sampled(places)[:, 0], atol=1e-3 * scale)
        line.rest()
        talk.wait_for_line(node, "taken back")
        assert abs(line.rest()[-1]) < 1e-9  # the best one was none
        values = talk.status("learning_node", lambda _, values: values["learnt from"] == "2")
        assert (values["repetitions"], values["verdict"]) == ("2", "taken back")
        assert talk.call(Trigger, "learning_node/forget", Trigger.Request()).success


def test_a_correction_is_faded_where_something_is_missing_and_by_service() -> None:
    learner = make_learner(Path("lift.yaml"), Path("move.yaml"), 30.0, 1.0, LearningConfig(bandwidth=4.0))
    write(learner.motion.sample(np.linspace(0.0, 0.8, 82), 0)[:, 0], 5.0)
    with between("ln_fade", correction="known.yaml") as (node, talk, line):
        assert max(line.rest()) == pytest.approx(5.0)
        line.repeat(0.0, 0.3)
        without = [line.added(0.3, moves=False) for _ in range(80)]
        assert without[5] == pytest.approx(5.0) and without[-1] == 0.0  # patience, and then it fades
        assert np.abs(np.diff(without)).max() < 0.3
        assert line.added(0.304) == 0.0  # until it begins again
        assert line.rest()[-1] == pytest.approx(5.0)
        sent = line.send(0.0, motor_efforts=[float("nan")])
        assert np.isnan(line.heard[-1].motor_efforts[0])  # for the guard to reject
        sent = line.send(0.0, motor_efforts=[], motor_effort_rates=[], higher_motor_effort_derivatives=[])
        assert line.heard[-1] == sent
        talk.wait_for_line(node, "motor_efforts holds 0 values for 1 joints")
        line.send(0.0, motor_efforts=[58.0])
        assert line.heard[-1].status & FeedforwardTorque.EFFORT_LIMIT_EXCEEDED
        assert talk.call(Trigger, "learning_node/stop", Trigger.Request()).success
        assert line.rest()[-1] == 0.0
        talk.status("learning_node", lambda status, _: status.message.startswith("stopped"))
        assert talk.call(Trigger, "learning_node/start", Trigger.Request()).success
        line.repeat(0.0)
        assert line.rest()[-1] == pytest.approx(5.0)


def write(positions: Array, effort: float) -> None:
    """Write a correction of a constant effort [N·m]."""
    correction = Correction(("lift",), 0.8, np.full((10, 1), effort))
    masks = np.zeros(13, dtype=bool)
    learned = Learned(
        correction,
        positions,
        correction,
        np.zeros((13, 1)),
        masks,
        masks,
        1.0,
        (Step(1e-3, 1e-6, 1, "learnt"),),
    )
    write_correction(learned, "lift", Path("known.yaml"))


def test_a_correction_that_is_bad_is_refused_by_name_and_feedforwards_go_through() -> None:
    write(np.linspace(0.2, 0.9, 82)[:, None], 5.0)
    with between("ln_bad", correction="known.yaml") as (_, talk, line):
        talk.status(
            "learning_node",
            lambda status, _: "'known.yaml' is refused: it was learnt along another" in status.message,
        )
        for place in (0.0, 0.004, 0.1):
            sent = line.send(place)
            assert line.heard[-1] == sent and nanoseconds(sent.header.stamp) == line.stamp
        asked = talk.call(Trigger, "learning_node/start", Trigger.Request())
        assert not asked.success and "lift is off by" in asked.message
        assert talk.call(Trigger, "learning_node/forget", Trigger.Request()).success
        talk.status("learning_node", lambda status, _: "refused" not in status.message)
