"""Threads beside those that serve samples: with real-time scheduling they come after all of these."""

from __future__ import annotations

import os
import sys
import threading
from weakref import WeakSet

_LAST = 1  # of the priorities of SCHED_FIFO
_giving_way: WeakSet[threading.Thread] = WeakSet()


def give_way() -> None:
    """Have the calling thread come after all real-time threads of the machine, now and if it is raised later.

    For threads that compute or write for long: with the priority of their process they would keep a
    processor from nodes that have a sample to answer. They come before all ordinary processes still, as they
    hold the interpreter in between: a sample that waits for it would wait for those as well.
    """
    _giving_way.add(threading.current_thread())
    if sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_FIFO:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LAST))


def priority_of(thread: int, priority: int) -> int:
    """Return the priority of a thread of this process, by its number, where others get `priority`."""
    return _LAST if thread in {each.native_id for each in _giving_way} else priority
