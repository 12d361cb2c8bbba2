"""What the links of a Panda are off by as more and more becomes known of it.

Its file knows nothing of its friction and of the box that it carries, and has other stiffnesses. The arm,
still without its box, is recorded on a motion that excites it, and identified. Then it takes the box: one
repetition of an ordinary motion tells what it carries, and five repetitions of it are learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hodyn_ros import share
from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.identification import Channel, Identified, JointRecording, identify
from hodyn_ros.learning import Learned, Learner
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.observers.payload import PayloadEstimate, PayloadEstimator
from hodyn_ros.simulation.closed_loop import Simulated
from hodyn_ros.simulation.instruments import Instruments, SensorLog
from hodyn_ros.simulation.simulation import RobotSimulation
from hodyn_ros.simulation.tracking_study import (
    SETTLING,
    Loop,
    Outcome,
    RobotErrors,
    StudyConfig,
    TrackingStudy,
)
from hodyn_ros.trajectory import read_trajectory
from hodyn_ros.trajectory.base import Trajectory
from hodyn_ros.trajectory.robot_motion import RobotMotion

ROBOT, EXCITATION, REPEATED = "panda.yaml", "panda_excitation.yaml", "panda_repetition.yaml"
BOX = Payload(1.0, (0.02, -0.01, 0.12), (2e-3, 0.0, 0.0, 3e-3, 0.0, 2.5e-3))
SOFTER = (0.8, 1.2, 0.85, 0.8, 1.2, 0.85, 1.15)  # springs, of what the file says
DRY = VISCOUS = 0.04  # friction of the motors, of their largest torque, viscous at 1 rad/s
DAMPING_TIME = 2e-4  # [s] of the springs, which no model here knows
# [rad/s] at which friction turns over, in all models: slow enough for the torque rates that the motors allow
TRANSITION = 0.03

EXACT, WRONG, IDENTIFIED, CARRYING, LEARNT = (
    "exact model",
    "wrong model",
    "identified",
    "payload estimated",
    "learnt",
)
_RAMP = 1.0  # [s] from rest to the motion that excites, and back

STEPS = (EXACT, WRONG, IDENTIFIED, CARRYING, LEARNT)

Plant = Callable[[RobotSimulation], Simulated]  # takes a robot that is at rest
Show = Callable[[str, float], None]  # what is being done, and which share of all is done


@dataclass(frozen=True, eq=False)
class Course:
    """An arm as its file says, a motion to record it on, and one that it repeats, from rest to rest."""

    file: Robot
    excitation: Trajectory
    repeated: Trajectory
    recorded: float = 12.0  # [s] to identify it from
    repetitions: int = 5  # to learn from
    rate: float = 1000.0  # [Hz] of the controller

    @classmethod
    def of_panda(cls) -> Course:
        """Return that of the shipped Panda; of its friction, the file says how fast it turns over alone."""
        file = Robot.load(share.find("config", ROBOT))
        rubs = FrictionSpec(transition=TRANSITION)
        specs = [replace(spec, motor_friction=rubs) for spec in file.require_drives().specs]
        excitation, repeated = (
            read_trajectory(share.find("config", name)) for name in (EXCITATION, REPEATED)
        )
        return cls(file.with_drives(specs), excitation, repeated)


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """What the links were off, and what became known.

    Attributes:
        runs: The motion with each model, by the names in `STEPS`.
        repetitions: Errors of the links (repetitions + 1,), RMS [rad]; the last with what all have taught.
        real: The robot without its box.
        identified: What the recording told.
        payload: What one repetition told of the box.
        learned: What the repetitions taught.
    """

    runs: Mapping[str, Outcome]
    repetitions: Array
    real: Robot
    identified: Identified
    payload: PayloadEstimate
    learned: Learned

    def left(self, step: str) -> float:
        """Return the error of a step, as a share of what it is with the wrong model."""
        return self.runs[step].rms / self.runs[WRONG].rms


def real_robot(file: Robot) -> Robot:
    """Return the arm as it is: with friction, and other springs than its file says."""
    specs = [
        replace(
            spec,
            stiffness=softer * spec.stiffness,
            motor_friction=FrictionSpec(VISCOUS * limit, DRY * limit, TRANSITION),
        )
        for spec, softer, limit in zip(file.require_drives().specs, SOFTER, file.limits.effort.tolist())
    ]
    return file.with_drives(specs)


def model_errors(
    simulator: Plant | None = None, show: Show | None = None, course: Course | None = None
) -> ModelErrors:
    """Let the arm follow its motion with each model; `simulator` by default that of this package."""
    course, show = course or Course.of_panda(), show or (lambda what, done: None)
    bench = _Bench(course, simulator)
    file, real = course.file, bench.real
    show("recording", 0.0)
    recorded = bench.excite(file)
    identified = identify(
        file, _recording(recorded, file), progress=partial(_within, show, "identifying", 0.15, 0.55)
    )
    show("following the motion", 0.55)
    models = {EXACT: _carrying(real, BOX), WRONG: file, IDENTIFIED: identified.robot}
    runs = {step: bench.follow(model) for step, model in models.items()}
    show("what does it carry?", 0.65)
    payload = _carried(identified, recorded, bench.log(runs[IDENTIFIED]))
    model = _carrying(identified.robot, payload.payload)
    runs[CARRYING] = last = bench.follow(model)
    learner = Learner(
        model, bench.motion, bench.gains(model), progress=partial(_within, show, "linearising", 0.7, 0.8)
    )
    learned: Learned | None = None
    errors = [last.rms]
    for i in range(course.repetitions):
        show("learning", 0.8 + 0.2 * i / course.repetitions)
        seen = _recording(bench.log(last), model)
        learned = learner.learn([seen], learned, [0.0])
        last = bench.follow(model, learned)
        errors.append(last.rms)
    assert learned is not None
    runs[LEARNT] = last
    return ModelErrors(runs, np.array(errors), real, identified, payload, learned)


def _within(show: Show, what: str, begin: float, end: float, done: float) -> None:
    show(what, begin + (end - begin) * done)


class _Bench:
    """The arm, which carries its box along the motion that repeats, and what its sensors see."""

    def __init__(self, course: Course, simulator: Plant | None) -> None:
        self._course, self._simulator, self._loop = (
            course,
            simulator,
            Loop(course.rate, damping_time=DAMPING_TIME),
        )
        self.real = real_robot(course.file)
        self.motion = RobotMotion.of(course.repeated).for_joints(course.file.joint_names).trajectory
        self._loaded = _carrying(self.real, BOX)
        self._instruments = Instruments(min(course.rate, 500.0), jitter=0.0, link_delay=0.0, effort_delay=0.0)

    def gains(self, model: Robot) -> MotorGains:
        """Return those of the feedback."""
        return MotorGains.of_drives(
            model.require_drives(), self._loop.natural_frequency, self._loop.damping_ratio
        )

    def excite(self, model: Robot) -> SensorLog:
        """Return what is recorded of the arm without its box, under the feedforward of a model."""
        config = StudyConfig(self._course.recorded, _RAMP, self._loop)
        return self.log(self._run(TrackingStudy(model, self._course.excitation, config, self.real)))

    def follow(self, model: Robot, learned: Learned | None = None) -> Outcome:
        """Let the arm follow the motion, under the feedforward of a model and what was learnt."""
        added = None if learned is None else learned.correction.at
        return self._run(TrackingStudy(model, self.motion, StudyConfig(loop=self._loop), self._loaded, added))

    def log(self, outcome: Outcome) -> SensorLog:
        """Return what sensors see of a run; its motion begins at zero."""
        assert outcome.record is not None
        seen = self._instruments.measure(outcome.record, SETTLING)
        return replace(seen, times=seen.times - SETTLING)

    def _run(self, study: TrackingStudy) -> Outcome:
        return study.run(RobotErrors(), FeedforwardMode.ELASTIC, simulator=self._simulator)


def _recording(log: SensorLog, robot: Robot) -> JointRecording:
    efforts, motors, links = (Channel(log.times, values) for values in (log.efforts, log.motors, log.links))
    return JointRecording("the simulated arm", robot.joint_names, efforts, motors, links)


def _carrying(robot: Robot, payload: Payload) -> Robot:
    return robot.with_tree(payload.on_tree(robot))


def _carried(identified: Identified, empty: SensorLog, loaded: SensorLog) -> PayloadEstimate:
    """Return what a motion with a load says of it; the noise is that of a motion without one.

    Identified masses are a few thousandths off; their covariance, of noise alone, says a tenth of that.
    """
    sensed = Sensed(links=True, motors=True, motor_efforts=True, rates=False)

    def observer(config: ObserverConfig) -> MomentumObserver:
        return MomentumObserver(identified.robot, config, sensed)

    def samples(log: SensorLog) -> Array:
        return np.stack([log.links, log.motors, log.efforts], axis=1)

    config = ObserverConfig(
        smoothing=200.0, stiffness_deviation=0.02, friction_deviation=0.05, inertia_deviation=0.005
    )
    noise = observer(config).noise_of(empty.times, samples(empty))
    watching = observer(replace(config, effort_noise=noise))
    estimator = PayloadEstimator(watching)
    for time, sample in zip(loaded.times.tolist(), samples(loaded)):
        estimator.update(watching.update(time, sample))
    return estimator.estimate
