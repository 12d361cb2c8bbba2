"""Learning in a process of its own: linearising takes seconds, and samples are not to wait for it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from hodyn_ros.errors import HodynError
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.learning.learn import Learned, Learner

_NICE = 10  # what it gives way to others by
_END_WITHIN = 1.0  # [s]


class Repetition(NamedTuple):
    """One recording, and the stamp [s] at which the motion begins in it."""

    recording: JointRecording
    begin: float


class Answer(NamedTuple):
    """What was learnt, or why nothing was."""

    learned: Learned | None
    error: str = ""


class LearningProcess:
    """Makes a `Learner` in another process by `make`, a function that can be pickled, and asks it.

    The process ends with this one, and when `end` is called.
    """

    def __init__(self, make: Callable[[], Learner]) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make), name="learning", daemon=True)
        self._process.start()
        theirs.close()
        self.busy = False

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
            answer = Answer(None, f"the process that learns has ended with {self._process.exitcode}")
        self.busy = False
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.is_alive()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._ours.close()
        self._process.terminate()
        self._process.join(_END_WITHIN)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(connection: Connection, make: Callable[[], Learner]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the parent ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.nice(_NICE)
    learner: Learner | None = None
    while True:
        try:
            (recording, begin), before = connection.recv()
        except (EOFError, OSError):  # the parent has ended
            return
        try:
            learner = learner or make()
            answer = Answer(learner.learn([recording], before, [begin]))
        except HodynError as error:
            answer = Answer(None, str(error))
        except Exception as error:  # whatever it is, the robot goes on as before
            answer = Answer(None, f"{type(error).__name__}: {error}")
        connection.send(answer)
