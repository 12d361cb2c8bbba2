"""Which place of the model's arrays each joint name of a message belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import Repr

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.errors import ModelError
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason

# A robot of a hundred joints, or a name of a thousand letters, must not fill the screen.
_SHOWN = 12
_short = Repr()
_short.maxstring = 80


class JointOrder:
    """The joints of the model in its order; finds how the names of a message, in any order, map onto them.

    >>> joints = JointOrder(["a", "b", "c"])
    >>> joints.places(["c", "a", "b"])
    array([1, 2, 0])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self._known = frozenset(self.names)
        if len(self._known) != len(self.names):
            raise ModelError(f"the joint names of the model must differ, found {list(self.names)}")
        # A stream repeats its names; the last answer saves looking them up a thousand times a second.
        self._last: list[str] = list(self.names)
        self._last_places: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def places(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        """Return `p` (n,) with `values[..., p]` in the order of the model; None where it is that already.

        Raises Refused when a joint is unknown, missing or named twice.
        """
        if names == self._last:
            return self._last_places
        names = list(names)
        if not names:
            raise MessageRejected(
                Reason.NO_NAMES, f"joint_names is empty; the model expects {self.listing()}"
            )
        if not self._known.issuperset(names):
            unknown = next(name for name in names if name not in self._known)
            raise MessageRejected(
                Reason.UNKNOWN_JOINT,
                f"joint {_short.repr(unknown)} is unknown; the model expects {self.listing()}",
            )
        if (twice := repeated(names)) is not None:
            raise MessageRejected(
                Reason.REPEATED_JOINT, f"joint {twice!r} is named twice in the message; name it once"
            )
        places = {name: place for place, name in enumerate(names)}
        if len(names) != len(self.names):
            missing = next(name for name in self.names if name not in places)
            raise MessageRejected(
                Reason.MISSING_JOINT,
                f"joint {missing!r} is missing from the message; the model expects {self.listing()}",
            )
        order = np.array([places[name] for name in self.names], dtype=np.intp)
        self._last = names
        self._last_places = None if tuple(names) == self.names else order
        return self._last_places

    def listing(self) -> str:
        """Return the names for a log line, cut where there are very many."""
        shown = ", ".join(repr(name) for name in self.names[:_SHOWN])
        rest = f", ... {len(self.names)} in all" if len(self.names) > _SHOWN else ""
        return f"[{shown}{rest}]"


def repeated(names: Sequence[str]) -> str | None:
    """Return the first name that comes a second time, None where all differ."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
