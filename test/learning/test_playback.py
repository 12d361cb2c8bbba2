"""The place on a path, corrections that change without a step, and the process that learns."""

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from hodyn_ros.array import Array
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.learning import Correction, Learned
from hodyn_ros.learning.background import LearningProcess, Repetition
from hodyn_ros.learning.playback import PathPlace, Phase, Playback, check_fits
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

STEP = 4e-3
THERE = [0.9, -0.2]


def motion(end: tuple[float, float] = (0.2, 0.5)) -> WaypointSpline:
    points = np.array([[0.2, 0.5], THERE, end])
    return WaypointSpline(np.array([0.0, 0.7, 1.4]), points, order=6)


def at(path: Trajectory, place: float, speed: float, change: float = 0.0) -> Array:
    """Return a desired motion (3, n) that runs through a path."""
    p, v, a = path.sample(min(max(place, 0.0), path.duration), 2)
    return np.array([p, v * speed, a * speed**2 + v * change])


@pytest.mark.parametrize(("speed", "step"), [(1.0, STEP), (1.0, 1.3e-3), (0.8, STEP), (0.4, STEP)])
def test_the_place_is_found_at_any_speed(speed: float, step: float) -> None:
    path = motion()
    place, seen = PathPlace(path), []
    for t in np.arange(-0.1013, path.duration / speed + 0.3, step).tolist():
        seen.append(place.follow(at(path, speed * t, speed if speed * t < path.duration else 0.0), step))
        if 0.2 < t * speed < path.duration - step:
            assert seen[-1] is Phase.RUNNING
            # as exact as a step of Newton; the turning point is passed by what was known before it
            np.testing.assert_allclose(place.after(0.1 * step)[0], speed * (t + 0.1 * step), atol=1e-4)
            np.testing.assert_allclose(place.speed, speed, atol=2e-3)
        elif 0.0 < t < 0.1 and speed == 1.0 and seen[-1] is Phase.RUNNING:
            np.testing.assert_allclose(place.place, t, atol=3e-4)  # from the very start
    order = [phase for i, phase in enumerate(seen) if i == 0 or phase is not seen[i - 1]]
    assert order == [Phase.STARTING, Phase.RUNNING, Phase.ENDED, Phase.STARTING]
    assert place.own_speed is (speed == 1.0)


def test_what_is_not_the_path_is_left() -> None:
    path = motion((0.3, 0.4))
    place = PathPlace(path)
    assert place.follow(at(path, 0.5, 1.0), STEP) is Phase.AWAY  # not from its start
    assert place.follow(at(path, 0.0, 0.0), STEP) is Phase.STARTING
    for t in np.arange(STEP, 0.4, STEP).tolist():
        phase = place.follow(at(path, t, 1.0), STEP)
    assert phase is Phase.RUNNING
    other = at(path, 0.4, 1.0)
    other[0, 1] += 0.01
    assert place.follow(other, STEP) is Phase.AWAY
    assert place.follow(at(path, 0.404, 1.0), STEP) is Phase.AWAY  # until it begins again
    place.follow(at(path, 0.0, 0.0), STEP)
    for t in np.arange(STEP, 0.4, STEP).tolist():
        place.follow(at(path, t, 1.0), STEP)
    for t in np.arange(0.4, 0.3, -STEP).tolist():  # back: dry friction acts the other way
        phase = place.follow(at(path, t, -1.0), STEP)
    assert phase is Phase.AWAY
    place.follow(at(path, 0.0, 0.0), STEP)
    for t in np.arange(STEP, 1.6, STEP).tolist():
        phase = place.follow(at(path, t, float(t < 1.4)), STEP)
    assert phase is Phase.ENDED and place.place == path.duration  # what is held there goes on


def test_nothing_that_changes_makes_a_step() -> None:
    """Efforts are the integrals of the derivatives that are sent with them, through all changes."""
    random, fade, h = np.random.default_rng(1), 0.3, 1e-3
    corrections = [Correction(("a", "b"), 1.4, random.uniform(-20.0, 20.0, (15, 2))) for _ in range(3)]
    playback, rows = Playback(2, fade), []
    path = motion()
    for i in range(2500):
        t = i * h
        phase = min(max(t - 0.5, 0.0), path.duration) if t < 2.1 else 0.0
        moving = float(0.0 < phase < path.duration)
        if i in (100, 1000, 2300):  # standing, running, fading
            playback.change(corrections[i % 3])
        if i in (1200, 2250):
            playback.change(None)
        if i == 2100:
            playback.moved()
        rows.append(playback.at(t, phase, (moving, 0.0)))
    found = np.array(rows)
    assert np.abs(found[:100]).max() == 0.0 and np.abs(found[600:1000]).max() > 5.0
    assert np.abs(found[1501:2100]).max() == 0.0 and not playback.fading(2.7)
    steps = np.diff(found[:, 0], axis=0)
    off = np.abs(steps - 0.5 * h * (found[1:, 1] + found[:-1, 1])).max(axis=1)
    for kink in (500, 1900):  # where the place sets off at once
        off[kink - 1 : kink + 1] = 0.0
    assert off.max() < 2e-3 * np.abs(found[:, 0]).max()
    assert np.abs(steps).max() < 1.1 * h * np.abs(found[:, 1]).max()


def test_efforts_after_a_gap_begin_where_they_were() -> None:
    playback = Playback(1, 0.5)
    playback.change(Correction(("a",), 1.0, np.full((8, 1), 7.0)))
    playback.at(0.0, 0.5, (1.0, 0.0))
    np.testing.assert_allclose(playback.at(0.6, 0.5, (1.0, 0.0))[0], 7.0)
    playback.change(None)
    np.testing.assert_allclose(playback.at(3.0, 0.5, (1.0, 0.0)), [[7.0], [0.0], [0.0]], atol=1e-9)
    np.testing.assert_allclose(playback.at(3.6, 0.5, (1.0, 0.0)), 0.0)


def test_corrections_that_do_not_fit_are_refused_by_name() -> None:
    path, names, limit = motion(), ("a", "b"), np.array([50.0, 50.0])
    times = np.linspace(0.0, 1.4, 100)
    correction = Correction(names, 1.4, np.full((10, 2), 20.0))
    masks = np.zeros(20, dtype=bool)
    positions = path.sample(times, 0)[:, 0]
    good = Learned(correction, positions, correction, np.zeros((20, 2)), masks, masks, 1.0, ())
    check_fits(good, names, path, limit)
    large = replace(correction, coefficients=np.full((10, 2), [20.0, 70.0]))
    for learned, words in (
        (replace(good, correction=replace(correction, joint_names=("a", "c"))), "of the joints ['a', 'c']"),
        (replace(good, correction=replace(correction, duration=1.5)), "along a motion of 1.5 s"),
        (replace(good, motion=positions + [0.0, 0.1]), "another motion: b is off by 0.1"),
        (replace(good, correction=large), "asks the drive of b for 70 N.m or N, whose limit is 50"),
        (replace(good, best=large), "asks the drive of b for 70"),
    ):
        refused(partial(check_fits, learned, names, path, limit), words)


def test_another_process_says_what_was_wrong_and_may_end() -> None:
    times = np.linspace(0.0, 0.5, 200)
    channel = Channel(times, np.sin(times)[:, None] + np.arange(3.0))
    repetition = Repetition(JointRecording("run", ("a", "b", "c"), channel, None, channel), 0.0)
    os.sched_setscheduler(
        0, os.SCHED_BATCH, os.sched_param(0)
    )  # as SCHED_FIFO, which not everybody may ask for
    try:
        process = LearningProcess(partial(int, "none"))  # type: ignore[arg-type]
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    assert process.answer() is None
    for words in ("ValueError: invalid literal", "has ended with -9"):
        process.ask(repetition, None)
        end = time.monotonic() + 60.0
        while (answer := process.answer()) is None and time.monotonic() < end:
            time.sleep(0.01)
        assert answer is not None and answer.learned is None and words in answer.error
        if process.alive:  # it learns without the scheduling of its node, and after all nodes
            assert os.sched_getscheduler(process._process.pid) == os.SCHED_OTHER
            assert os.getpriority(os.PRIO_PROCESS, process._process.pid) == 10
            shares = Path(f"/proc/{process._process.pid}/autogroup")
            assert not shares.exists() or shares.read_text().endswith(" nice 10\n")
        process._process.kill()
        process._process.wait()
    assert not process.alive
    process.end()
