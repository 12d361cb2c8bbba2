"""Newton's method as part of programs: where it ends, how often it goes on, and what counts afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.program import Compare, Number, Repeat, Statement, View, When
from hodyn_ros.engine.series.validity import ARRIVED

ITERATIONS = 8  # from a warm start two or three do
ITERATIONS_FROM_DRIVES = 10  # of limbs and their platform together: three or four
ITERATIONS_FROM_SEED = 40  # of inverse kinematics, from anywhere
CLOSE = 1e-17  # squared error [rad, and of the unit of length] before what is then the last step of those


def newton(
    step: Sequence[Statement], error: Number, most: int = ITERATIONS, arrived: float = ARRIVED
) -> Repeat:
    """Repeat a step, which leaves about the square of the one after it as the error, until that is small."""
    return Repeat(step, Compare(error, ">", arrived), most)


def where_right(wrong: View, remember: Sequence[Statement]) -> When:
    """Keep positions, from which the next call starts, if the result counts: what is wrong is below one."""
    return When(Compare(wrong, "<", 1.0), remember)
