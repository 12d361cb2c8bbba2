"""Rejections are counted and logged once per kind and period; stamps have to advance."""

import random

import pytest
from refusals import like, refused

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


def test_the_count_of_unlogged_lines_starts_again() -> None:
    lines: list[str] = []
    clock = Clock()
    rejections = Rejections(lines.append, "topic", clock=clock)
    for _ in range(3):
        rejections.add(MessageRejected(Reason.NOT_FINITE, "bad"))
        rejections.add(MessageRejected(Reason.NOT_FINITE, "bad"))
        clock.now += 2.0
    assert lines[1:] == ["topic rejected: bad (1 more of this kind before it)"] * 2


@pytest.mark.parametrize("stamp", [5_000_000_000, 4_999_999_999, 0, -1])
def test_a_stamp_not_after_the_last_one_is_refused(stamp: int) -> None:
    timeline = StampFilter(clock=Clock())
    for before in (4_999_999_998, 5_000_000_000):
        timeline.check(before)
        timeline.accept(before)
    refused(lambda: timeline.check(stamp), like(MessageRejected, reason=Reason.TIME_BACKWARDS))
    timeline.check(5_000_000_001)


def test_only_accepted_stamps_count() -> None:
    timeline = StampFilter(clock=Clock())
    timeline.accept(1)
    timeline.check(1000)
    timeline.check(2)


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


def test_forget_takes_any_stamp() -> None:
    timeline = StampFilter(clock=Clock())
    timeline.accept(1000)
    timeline.forget()
    timeline.check(1)


def taken(timeline: StampFilter, stamps: list[int]) -> list[int]:
    """Return the stamps that are accepted, of those that come one after the other."""
    accepted = []
    for stamp in stamps:
        try:
            timeline.check(stamp)
        except MessageRejected:
            continue
        timeline.accept(stamp)
        accepted.append(stamp)
    return accepted


def test_nothing_returns_before_the_first_stamp_of_a_stream_of_long_strides() -> None:
    strides = [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]
    assert taken(StampFilter(clock=Clock()), [*strides, SECOND // 2, 5 * SECOND]) == [*strides, 5 * SECOND]


MILLISECOND, SECOND = 10**6, 10**9


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


def test_a_first_stamp_far_ahead_is_forgotten() -> None:
    assert taken(StampFilter(clock=Clock()), [10**18, 5, 6, 4]) == [10**18, 5, 6]


def test_a_clock_that_has_jumped_ahead_is_followed() -> None:
    jumped = [1, 2, SECOND, SECOND + 1, 3, SECOND + 2]
    assert taken(StampFilter(clock=Clock()), jumped) == [1, 2, SECOND, SECOND + 1, SECOND + 2]
