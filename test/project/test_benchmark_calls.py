"""What is timed beside Pinocchio can be called, and agrees with it."""

from dataclasses import dataclass
from types import ModuleType

import pytest

pytest.importorskip("pinocchio")

from benchmarks import calls, loops
from benchmarks.stage import Stage


@dataclass(frozen=True, eq=False)
class Briefly(Stage):
    """One round, of which the figures say nothing."""

    @property
    def rounds(self) -> int:
        """How many rounds a race has."""
        return 1


@pytest.mark.parametrize("subject", [calls, loops])
def test_a_benchmark_comes_to_its_end(subject: ModuleType) -> None:
    section = subject.measure(Briefly(True, lambda what, part: None))
    assert section.rows and all(row.result.median > 0.0 for row in section.rows)
