"""The search for faults that a guard does not see, a small part of it; see fault_campaign.py."""

from __future__ import annotations

import pytest
from fault_campaign import KEPT, Case, case_of, judged
from sweeps import THOROUGH

SEEDS = range(5000 if THOROUGH else 60)
CHUNK = 20  # cases a test


@pytest.mark.thorough
@pytest.mark.parametrize("first", SEEDS[::CHUNK])
def test_nothing_that_is_found_by_chance_reaches_the_motors(first: int) -> None:
    cases = [judged(case_of(seed)) for seed in range(first, first + CHUNK)]
    beyond = [verdict for verdict in cases if verdict.beyond]
    assert not beyond, "\n".join(map(str, sorted(beyond, key=lambda verdict: -verdict.ratio)))


@pytest.mark.thorough
@pytest.mark.parametrize("case", KEPT, ids=str)
def test_the_worst_that_was_found_is_seen(case: Case) -> None:
    verdict = judged(case)
    assert not verdict.beyond, str(verdict)


def test_a_case_follows_from_its_seed_and_can_be_written_down() -> None:
    names = {"Case": Case, "Lie": type(case_of(0).lies[0]), "nan": float("nan"), "inf": float("inf")}
    for seed in range(300):
        case = case_of(seed)
        assert repr(eval(repr(case), names)) == repr(case) == repr(case_of(seed))  # NaN is not itself
        assert str(case)
