"""The search for faults that a guard does not see, a small part of it; see fault_campaign.py."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
import pytest
from fault_campaign import KEPT, Case, Lie, Verdict, case_of, judged, sound_case, stopped
from sweeps import THOROUGH, some

CHUNK = 10  # cases a test
GROUPED_BY = "first"  # so that two processes share them
CHEAP = ("at full speed", "stopping", "joining", "at rest")  # moments that are soon reached


def cheap(case: Case) -> bool:
    """Whether no other robot has to be compiled for it, and it is soon reached."""
    costs = ("payload", "stiffness", "gravity turned", "blocked")
    return case.moment in CHEAP and not any(lie.kind in costs for lie in case.lies)


SEEDS = list(range(5000) if THOROUGH else islice((k for k in count() if cheap(case_of(k))), 6))
NARROW = [case for case in KEPT if "swapped" in str(case)]  # motors are let go just in time
LASTS = None if THOROUGH else 300  # [ms] of a case


def check(verdicts: list[Verdict]) -> None:
    beyond = sorted((each for each in verdicts if each.beyond), key=lambda each: -each.ratio)
    assert not beyond, "\n".join(map(str, beyond))


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, len(SEEDS), CHUNK))
def test_nothing_that_is_found_by_chance_reaches_the_motors(first: int) -> None:
    check([judged(case_of(seed), LASTS) for seed in SEEDS[first : first + CHUNK]])


@pytest.mark.thorough
@pytest.mark.parametrize("case", some(KEPT, *KEPT[:3], *NARROW), ids=str)
def test_the_worst_that_was_found_is_seen(case: Case) -> None:
    check([judged(case)])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", some(range(150), 0))
def test_what_is_no_fault_stops_nothing(seed: int) -> None:
    assert not stopped(sound_case(seed))


def test_a_case_follows_from_its_seed_and_can_be_written_down() -> None:
    names = {"Case": Case, "Lie": Lie, "nan": np.nan, "inf": np.inf}
    for seed in range(300):
        case = case_of(seed)
        assert repr(eval(repr(case), names)) == repr(case) == repr(case_of(seed))  # NaN is not itself
        assert str(case)
