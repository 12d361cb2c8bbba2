"""Rejections are counted and logged once per kind and period; stamps have to advance."""

import random

import pytest

from hodyn_ros.ros.streams.rejections import MessageRejected, Reason, Rejections
from hodyn_ros.ros.streams.stamp_filter import StampFilter


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_reason_is_logged_once_per_period_and_always_counted() -> None:
    lines: list[str] = []
    clock = Clock()
    rejections = Rejections(lines.append, "desired_motion", period=1.0, clock=clock)
    for _ in range(10):
        rejections.add(MessageRejected(Reason.NOT_FINITE, "positions holds nan"))
    rejections.add(MessageRejected(Reason.WRONG_LENGTH, "positions holds 6 values"))
    assert lines == [
        "desired_motion rejected: positions holds nan",
        "desired_motion rejected: positions holds 6 values",
    ]
    clock.now += 1.0
    rejections.add(MessageRejected(Reason.NOT_FINITE, "positions holds inf"))
    assert lines[2:] == ["desired_motion rejected: positions holds inf (9 more of this kind before it)"]
    assert rejections.counts[Reason.NOT_FINITE] == 11
    assert rejections.total == 12
    assert rejections.as_values()["rejected: not finite"] == 11
    assert rejections.as_values()["rejected: missing joint"] == 0
    rejections.add(MessageRejected(Reason.NOT_FINITE, "positions holds inf"))
    clock.now += 2.0  # the count of lines that were not logged has begun again
    rejections.add(MessageRejected(Reason.NOT_FINITE, "positions holds inf"))
    assert lines[3:] == ["desired_motion rejected: positions holds inf (1 more of this kind before it)"]


def taken(timeline: StampFilter, stamps: list[int]) -> list[int]:
    """Return the stamps that are accepted, of those that come one after the other."""
    accepted = []
    for stamp in stamps:
        try:
            timeline.check(stamp)
        except MessageRejected as rejected:
            assert rejected.reason is Reason.TIME_BACKWARDS
            continue
        timeline.accept(stamp)
        accepted.append(stamp)
    return accepted


MILLISECOND, SECOND = 10**6, 10**9
STRIDES = [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]


@pytest.mark.parametrize(
    ("come", "wrong"),
    [
        *(([SECOND - 2, SECOND, stamp, SECOND + 1], 2) for stamp in (SECOND, SECOND - 1, 0, -1)),
        # nothing returns before the first stamp of a stream of long strides
        ([*STRIDES, SECOND // 2, 5 * SECOND], 4),
        # a first stamp far ahead is forgotten, and a clock that has jumped ahead followed
        ([10**18, 5, 6, 4], 3),
        ([1, 2, SECOND, SECOND + 1, 3, SECOND + 2], 4),
    ],
)
def test_a_stamp_not_after_the_last_one_is_refused(come: list[int], wrong: int) -> None:
    assert taken(StampFilter(clock=Clock()), come) == come[:wrong] + come[wrong + 1 :]


def test_only_accepted_stamps_count_and_none_that_is_forgotten() -> None:
    timeline = StampFilter(clock=Clock())
    timeline.accept(1)
    timeline.check(1000)
    timeline.check(2)
    timeline.accept(1000)
    timeline.forget()
    timeline.check(1)


def test_a_new_clock_is_followed_after_silence_only() -> None:
    clock = Clock()
    timeline = StampFilter(forget_after=5.0, clock=clock)
    timeline.accept(1000)
    timeline.accept(1001)
    clock.now += 5.0
    with pytest.raises(MessageRejected):
        timeline.check(10)
    clock.now += 0.1
    timeline.check(10)
    timeline.accept(10)
    with pytest.raises(MessageRejected):
        timeline.check(9)


@pytest.mark.parametrize("interval", [MILLISECOND, 20 * SECOND], ids=["fast", "slow"])
def test_single_stamps_far_ahead_do_not_silence_a_stream(interval: int) -> None:
    rng = random.Random(7)
    clock = Clock()
    timeline = StampFilter(clock=clock)
    now = 10**18
    for _ in range(2):
        timeline.check(now)
        timeline.accept(now)
        now += interval
        clock.now += 1e-9 * interval
    for _ in range(300):
        poison = [rng.randrange(-(2**31) * SECOND, 2**31 * SECOND) for _ in range(rng.randrange(4))]
        taken(timeline, poison)
        timeline.check(now)
        timeline.accept(now)
        with pytest.raises(MessageRejected):
            timeline.check(now - MILLISECOND // 2)
        now += interval
        clock.now += 1e-9 * interval
