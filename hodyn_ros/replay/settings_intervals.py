"""From which recorded sample on which settings of dynamics_node hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import InputError

Integers = NDArray[np.int64]

_SLACK = 1_000_000_000  # [ns] by which the times of two topics may contradict the order of their messages


class SettingsInterval(NamedTuple):
    """Settings, and the samples that were answered under them."""

    begin: int  # number of the first sample
    settings: str
    goes_on: bool  # whether the node had answered samples before
    pushed: bool = False  # whether external wrenches counted


def read_settings_intervals(
    times: Integers, stamps: Integers, settings: Sequence[tuple[int, str]]
) -> list[SettingsInterval]:
    """Return the intervals of a recording, in their order.

    `times` and `stamps` (N,) [ns] of the samples, as they were recorded; `settings` with the times at which
    they were recorded. The time alone does not tell: while the node computes with new settings, samples wait
    for it. But the settings name the last stamp that was answered before them.
    """
    result: list[SettingsInterval] = []
    for time, text in settings:
        after, pushed = _parsed(text)
        begin = _begin(times, stamps, time, after)
        if begin is None:  # all before the recording, or a node that has started in the middle of it
            begin = int(np.count_nonzero(times <= time)) if result else 0
        result.append(
            SettingsInterval(max(begin, result[-1].begin if result else 0), text, after is not None, pushed)
        )
    return result


def _parsed(settings: str) -> tuple[int | None, bool]:
    """Return the last stamp [ns] answered before settings, and whether there are external wrenches."""
    try:
        data = json.loads(settings)
        after, model = data["after_stamp"], data.get("feedforward")
        pushed = isinstance(model, dict) and bool(model.get("wrench_bodies"))
        return None if after is None else int(np.int64(after)), pushed
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"the settings in the bag are not those of a dynamics_node: {error!r}") from error


def _begin(times: Integers, stamps: Integers, time: int, after: int | None) -> int | None:
    """Return the number of the sample that follows the stamp `after`; None where that is not recorded."""
    if after is None:
        return None
    last = np.flatnonzero((stamps == after) & (times <= time + _SLACK))
    if not len(last):  # lost on the way to the recorder, so the next one before it counts
        last = np.flatnonzero((stamps < after) & (times <= time))
    return int(last[-1]) + 1 if len(last) else None
