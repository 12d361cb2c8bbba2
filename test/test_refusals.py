"""Refusals are counted and logged once per kind and period; stamps have to advance."""

from __future__ import annotations

import pytest

from hodyn_ros.nodes.refusals import Reason, Refusals, Refused
from hodyn_ros.nodes.timeline import Timeline


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_reason_is_logged_once_per_period_and_always_counted() -> None:
    lines: list[str] = []
    clock = Clock()
    refusals = Refusals(lines.append, "desired_motion", period=1.0, clock=clock)
    for _ in range(10):
        refusals.add(Refused(Reason.NOT_FINITE, "positions holds nan"))
    refusals.add(Refused(Reason.WRONG_LENGTH, "positions holds 6 values"))
    assert lines == [
        "desired_motion refused: positions holds nan",
        "desired_motion refused: positions holds 6 values",
    ]
    clock.now += 1.0
    refusals.add(Refused(Reason.NOT_FINITE, "positions holds inf"))
    assert lines[2:] == ["desired_motion refused: positions holds inf (9 more of this kind before it)"]
    assert refusals.counts[Reason.NOT_FINITE] == 11
    assert refusals.total == 12
    assert refusals.as_values()["refused: not finite"] == 11
    assert refusals.as_values()["refused: missing joint"] == 0


def test_the_count_of_unlogged_lines_starts_again() -> None:
    lines: list[str] = []
    clock = Clock()
    refusals = Refusals(lines.append, "topic", clock=clock)
    for _ in range(3):
        refusals.add(Refused(Reason.NOT_FINITE, "bad"))
        refusals.add(Refused(Reason.NOT_FINITE, "bad"))
        clock.now += 2.0
    assert lines[1:] == ["topic refused: bad (1 more of this kind before it)"] * 2


@pytest.mark.parametrize("stamp", [5_000_000_000, 4_999_999_999, 0, -1])
def test_a_stamp_not_after_the_last_one_is_refused(stamp: int) -> None:
    timeline = Timeline(clock=Clock())
    timeline.check(5_000_000_000)
    timeline.accept(5_000_000_000)
    with pytest.raises(Refused, match="the last accepted one; stamps must increase") as refused:
        timeline.check(stamp)
    assert refused.value.reason is Reason.TIME_BACKWARDS
    timeline.check(5_000_000_001)


def test_only_accepted_stamps_count() -> None:
    timeline = Timeline(clock=Clock())
    timeline.accept(1)
    timeline.check(1000)
    timeline.check(2)


def test_a_new_clock_is_followed_after_silence_only() -> None:
    clock = Clock()
    timeline = Timeline(forget_after=5.0, clock=clock)
    timeline.accept(1000)
    clock.now += 5.0
    with pytest.raises(Refused):
        timeline.check(10)
    clock.now += 0.1
    timeline.check(10)
    timeline.accept(10)
    with pytest.raises(Refused):
        timeline.check(9)


def test_forget_takes_any_stamp() -> None:
    timeline = Timeline(clock=Clock())
    timeline.accept(1000)
    timeline.forget()
    timeline.check(1)
