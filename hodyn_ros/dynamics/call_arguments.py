"""What calls of dynamics are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from numpy.typing import ArrayLike

from hodyn_ros.dynamics.loops.coordinate_motion import samples
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion


class MotionArguments(NamedTuple):
    """What calls along a motion are given: `Robot.inverse_dynamics` says what each of it is."""

    q: ArrayLike | None
    base: BaseMotion | None = None
    wrenches: Sequence[AppliedWrench] = ()
    preload: ArrayLike | None = None
    formulation: str | None = None


class HybridArguments(NamedTuple):
    """What forward and hybrid dynamics are given: `Robot.hybrid_dynamics` says what each of it is."""

    state: ArrayLike | None
    inputs: ArrayLike
    base: BaseMotion | None = None
    base_wrench: ArrayLike | None = None
    wrenches: Sequence[AppliedWrench] = ()
    prescribed: Sequence[str | int] = ()
    prescribe_base: bool = False

    def one_by_one(self) -> list[HybridArguments]:
        """Return those of each sample of a batch; none of a single call."""
        each = samples(self.state, self.inputs, self.base, self.base_wrench)
        return [HybridArguments(*one, *self[len(one) :]) for one in each]


def check_prescribed(prescribed: object) -> None:
    """Reject what is no list of joints."""
    if isinstance(prescribed, str) or not isinstance(prescribed, Iterable):
        raise InputError(f"prescribed must be a list of names or indices of joints, found {prescribed!r}")
