"""Learning in a process of its own: linearising takes seconds, and samples are not to wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import HodynError
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning.config import LearningConfig
from hodyn_ros.learning.learn import Learned, Learner
from hodyn_ros.scheduling import lower_priority
from hodyn_ros.trajectory.files.reader import read_motion

_NICE = 10  # what it gives way to others by
_END_WITHIN = 1.0  # [s]
# From a node with real-time scheduling the process has that as well, and would keep a processor from all
# nodes: it gives it up before it imports anything, which alone takes a second.
_SERVE = """import os, sys
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
from hodyn_ros.learning.background import serve
serve(int(sys.argv[1]))"""


class Repetition(NamedTuple):
    """One recording, and the stamp [s] at which the motion begins in it."""

    recording: JointRecording
    begin: float


class Answer(NamedTuple):
    """What was learnt, or why nothing was."""

    learned: Learned | None
    error: str = ""


def make_learner(
    robot: Path, motion: Path, natural_frequency: float, damping_ratio: float, config: LearningConfig
) -> Learner:
    """Return what learns, from files: in another process there is nothing else. Raises InputError."""
    model = Robot.load(robot)
    path = read_motion(motion).for_joints(model.joint_names).trajectory
    gains = MotorGains.of_drives(model.require_drives(), natural_frequency, damping_ratio)
    return Learner(model, path, gains, config)


class LearningProcess:
    """Has another process make a `Learner` by `make`, which is pickled, and asks that.

    The process ends with this one, and when `end` is called. It is a Python of its own, as multiprocessing
    would begin it by running the main module once more: a second node, where that is a script of a node.
    """

    def __init__(self, make: Callable[[], Learner]) -> None:
        self._ours, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(theirs.fileno())],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # the SIGINT of a terminal is for its parent, which ends it
        )
        theirs.close()
        self.busy = False
        with suppress(OSError):
            self._ours.send(make)

    def ask(self, repetition: Repetition, before: Learned | None) -> None:
        """Learn from a repetition that ran under `before`; one at a time."""
        with suppress(OSError):  # it has ended, which the answer will say
            self._ours.send((repetition, before))
        self.busy = True

    def answer(self) -> Answer | None:
        """Return what has come of it; None while it goes on."""
        if not self.busy:
            return None
        try:
            if not self._ours.poll():
                return None
            answer: Answer = self._ours.recv()
        except (OSError, EOFError):
            answer = Answer(None, f"the process that learns has ended with {self._process.wait()}")
        self.busy = False
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._ours.close()
        self._process.terminate()
        try:
            self._process.wait(_END_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve(descriptor: int) -> None:
    """Learn from what comes on a connection, until its other end is closed: what the other process does."""
    lower_priority(_NICE)
    connection = Connection(descriptor)
    learner: Learner | None = None
    with suppress(EOFError, OSError):  # the parent has ended
        make = connection.recv()
        while True:
            (recording, begin), before = connection.recv()
            try:
                learner = learner or make()
                answer = Answer(learner.learn([recording], before, [begin]))
            except HodynError as error:
                answer = Answer(None, str(error))
            except Exception as error:  # whatever it is, the robot goes on as before
                answer = Answer(None, f"{type(error).__name__}: {error}")
            connection.send(answer)
