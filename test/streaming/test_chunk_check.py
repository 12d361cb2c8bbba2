"""Chunks with faults are caught and named, and sound ones are not."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from refusals import assert_refused, refused

from benchmarks.chunk_streams import SPACING, Chunk, Fault, Policy, with_fault
from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.streaming import ChunkBounds, ChunkCheck, ChunkError, ChunkFault
from hodyn_ros.streaming.chunk_bounds import longest_repeat

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
NAMES = tuple("abcdefg")
TIMES = 0.02 * np.arange(50)
WORDS = {Fault.NAN: "numbers"}


def bounds(seed: int = 0) -> ChunkBounds:
    recorded = Policy(HOME, 1000 + seed)
    return ChunkBounds.of_actions([recorded.chunk(t).positions for t in np.arange(0.0, 10.0, 0.5)], SPACING)


def found(chunks: Sequence[Chunk], seed: int = 0) -> list[str | None]:
    """Return what is wrong with each chunk of a stream."""
    check, faults = ChunkCheck(NAMES, bounds(seed)), []
    check.restart(HOME, -1.0)
    for chunk in chunks:
        try:
            check(chunk.times, chunk.positions)
            faults.append(None)
        except ChunkError as error:
            faults.append(error.fault.value)
    assert sum(check.faults.values()) == sum(each is not None for each in faults)
    return faults


@pytest.mark.parametrize("fault", list(Fault))
def test_faults_are_caught_where_they_are_and_mostly_named(fault: Fault) -> None:
    named = 0
    for seed in range(25):
        chunks, place = with_fault(Policy(HOME, seed).stream(0.0, 12), fault, seed)
        faults = found(chunks, seed)
        assert faults[place] is not None, seed
        assert not any(faults[:place]), seed
        named += faults[place] == WORDS.get(fault, fault.value)
    assert named >= 24


def test_sound_streams_pass() -> None:
    assert not any(any(found(Policy(HOME, seed).stream(0.0, 20), seed)) for seed in range(40))


def line(slope: float = 0.3) -> Array:
    """Return points on the way, no two of which bend."""
    return np.asarray(HOME + slope * TIMES[:, None] * np.linspace(0.5, 1.0, 7))


def check() -> ChunkCheck:
    return ChunkCheck(NAMES, ChunkBounds(0.02, np.full(7, 1e-3)))


def require(fault: ChunkFault, words: str, times: Array, points: Array, of: ChunkCheck | None = None) -> None:
    assert refused(lambda: (of or check())(times, points), words, ChunkError).fault is fault


def test_errors_name_the_place() -> None:
    points = line()
    broken = points.copy()
    broken[7, 2] = np.nan
    require(ChunkFault.NUMBERS, "point 7 of joint 'c'", TIMES, broken)
    times = TIMES.copy()
    times[9] = times[8]
    require(ChunkFault.TIMES, "point 9", times, points)
    require(ChunkFault.GAP, "between points 4 and 5", np.delete(TIMES, [5, 6]), np.delete(points, [5, 6], 0))
    require(
        ChunkFault.GAP, "2 points seem to be missing between points 4 and 5", TIMES[:-2],
        np.delete(points, [5, 6], 0),
    )  # fmt: skip
    held = points.copy()
    held[11:14] = held[10]
    require(ChunkFault.REPEAT, "points 10 to 13 are the same", TIMES, held)
    swapped = points.copy()
    swapped[[20, 30]] = swapped[[30, 20]]
    require(ChunkFault.SWAP, "points 20 and 30", TIMES, swapped)
    joints = points.copy()
    joints[15:, [1, 3]] = joints[15:, [3, 1]]
    require(ChunkFault.SWAP, "joints 'b' and 'd' are exchanged from point 15 on", TIMES, joints)
    off = points.copy()
    off[20, 4] += 0.05
    require(ChunkFault.JUMP, "joint 'e' bends ... at point 19", TIMES, off)


def test_chunks_are_held_against_the_one_before() -> None:
    one = check()
    one.restart(HOME, 0.0)
    one(TIMES, line())
    require(ChunkFault.REPEAT, "bit for bit", TIMES + 0.1, line(), one)
    require(ChunkFault.SWAP, "0.1 s before the chunk before it", TIMES - 0.1, line(0.31), one)
    require(ChunkFault.GAP, "after the end of the last one", TIMES + 2.0, line(0.2), one)
    exchanged = line()[:, [0, 3, 2, 1, 4, 5, 6]]
    for _ in range(4):  # however often it is said
        require(ChunkFault.SWAP, "joints 'b' and 'd' are exchanged against", TIMES + 0.1, exchanged, one)
    late = np.tile(exchanged[-1], (50, 1)) + 1e-6 * line()
    for k in (2, 3):
        require(ChunkFault.GAP, "the 3rd that goes on from there is followed", TIMES + k, late, one)
    require(ChunkFault.SWAP, "joints 'b' and 'd' are exchanged against", TIMES + 4.0, late, one)
    one(TIMES + 0.1, line() + 0.3)  # a change of mind


def test_a_jump_is_believed_when_a_third_chunk_agrees() -> None:
    one = check()
    one(TIMES, line())
    for k in (1, 2):
        require(ChunkFault.JUMP, " is wanted 0.7 ... rad", TIMES + 0.1 * k, line(0.29) + 0.8, one)
    one(TIMES + 0.3, line(0.28) + 0.8)
    one(TIMES + 0.4, line(0.27) + 0.8)  # and so is what goes on from there
    assert one.faults[ChunkFault.JUMP] == 2


def test_after_a_pause_the_third_chunk_is_followed() -> None:
    stream = [Policy(HOME, 3).chunk(t) for t in (0.0, 0.5, 1.0)]
    late = [Policy(HOME, 3).chunk(t) for t in (4.0, 4.5, 5.0, 5.5)]
    assert found([*stream, *late]) == [None, None, None, "gap", "gap", None, None]


def test_what_stands_may_stay_the_same() -> None:
    still = np.tile(HOME, (50, 1))
    one = check()
    one(TIMES, still)
    one(TIMES + 0.1, still)
    padded = np.concatenate([line()[:1]] * 5 + [line()[:40]] + [line()[39:40]] * 5)
    assert longest_repeat(padded)[1] == 1
    steps = np.repeat(line()[::2], 2, axis=0)
    assert longest_repeat(steps) == (2, 2)
    assert ChunkBounds.of_actions([steps], 0.02).repeats == 2


def test_bounds_come_from_actions_or_from_limits() -> None:
    points = np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.0], [0.2, 0.0]])
    of_actions = ChunkBounds.of_actions([points], 0.02, margin=3.0)
    np.testing.assert_allclose(of_actions.bend, [0.3, 1e-4], rtol=1e-12)  # a joint that never moved has some
    panda = Robot.load(share.find("config", "panda.yaml"))
    of_robot = ChunkBounds.of_robot(panda, 0.02, noise=0.0)
    np.testing.assert_allclose(of_robot.bend, 2.0 * 0.02 * panda.limits.velocity, rtol=1e-12)
    refused(lambda: ChunkBounds.of_actions([points[:2]], 0.02), "3 points or more")
    unlimited = replace(panda.limits, velocity=np.full(7, np.inf), joint_names=panda.joint_names)
    call = partial(ChunkBounds.of_robot, Robot(panda.model, unlimited, panda.drive_train), 0.02)
    refused(call, "'panda_joint1' ... neither")


def test_bounds_that_cannot_be() -> None:
    assert_refused(
        ({"bend": np.zeros(7)}, "bend must hold a positive number"),
        ({"spacing": 0.0}, "spacing must be positive"),
        ({"seam": np.inf}, "seam must be positive and finite"),
        ({"repeats": 0}, "repeats must be 1 or more"),
        by=lambda changed: ChunkBounds(**{"spacing": 0.02, "bend": np.ones(7)} | changed),
    )


def test_bounds_fit_the_joints() -> None:
    refused(lambda: ChunkCheck(("a", "b"), ChunkBounds(0.02, np.ones(7))), "do not fit the 2 joints")
