"""What every benchmark is told: how thorough to be, and whom to tell how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.stopwatch import Contender, Times, race


@dataclass(frozen=True, eq=False)
class Stage:
    """`say(what, part)` shows what is being done and the part done of it."""

    quick: bool
    say: Callable[[str, float], None]

    @property
    def rounds(self) -> int:
        """How many rounds a race has."""
        return 60 if self.quick else 400

    @property
    def orders(self) -> Sequence[int]:
        """Orders of derivatives that are timed."""
        return (0, 2, 4) if self.quick else range(6)

    def race(self, title: str, contenders: Sequence[Contender], rounds: int | None = None) -> Times:
        """Time contenders against each other, telling how far it is."""
        return race(contenders, rounds or self.rounds, lambda part: self.say(title, part))
