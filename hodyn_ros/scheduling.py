"""What runs beside those that serve samples comes after them: threads and processes."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
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


def lower_priority(nice: int, process: int = 0) -> None:
    """Have a process, by default this one, give way to all others; it leads a session of its own.

    Where Linux shares processors among sessions (autogroups, as on Debian and Ubuntu), niceness counts only
    within a session, and a session has one as well.
    """
    os.setpriority(os.PRIO_PROCESS, process, nice)
    with suppress(OSError):  # there are no autogroups
        Path(f"/proc/{process or 'self'}/autogroup").write_text(str(nice))


def priority_of(thread: int, priority: int) -> int:
    """Return the priority of a thread of this process, by its number, where others get `priority`."""
    return _LAST if thread in {each.native_id for each in _giving_way} else priority
