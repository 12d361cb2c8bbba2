"""Limbs of one build as part of programs: their codes, their constants, and where their states lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hodyn_ros.codegen.program import Code, Copy, Index, Run, View


@dataclass(frozen=True)
class LimbGroup:
    """Limbs of one build, whose states stand one after the other in a buffer.

    `constants` and `states` are buffers; a state has `size` numbers, and begins with the positions of its
    joints. `places` says where these are in the memory of a call, by limb and joint.
    """

    constants: View
    states: View
    size: int
    places: Sequence[Sequence[int]]

    def run(self, code: Code, *arguments: View) -> Run:
        """Run a code for all limbs side by side; its first argument are the constants."""
        return Run(code, [self.constants, *arguments, Index.of(len(self.places))])

    def recall(self, memory: View) -> list[Copy]:
        """Begin with the positions in the memory."""
        return [Copy(state, memory.at(place)) for place, state in self._pairs()]

    def remember(self, memory: View) -> list[Copy]:
        """Keep the positions."""
        return [Copy(memory.at(place), state) for place, state in self._pairs()]

    def _pairs(self) -> list[tuple[int, View]]:
        return [
            (place, self.states.at(limb * self.size + joint))
            for limb, places in enumerate(self.places)
            for joint, place in enumerate(places)
        ]
