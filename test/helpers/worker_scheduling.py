"""Which worker of pytest-xdist takes which tests.

Tests that start processes wait for these most of the time. The last half of the workers fills what they leave
of the processors with tests that compute, at the lowest priority, so that they hold no process up, not even
in real time.
"""

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

import pytest_timeout
from xdist.scheduler.loadgroup import LoadGroupScheduling

from hodyn_ros.scheduling import lower_priority

EARLY = os.environ.get("HODYN_ALONE") == "early"


def computes(worker: str, count: int) -> bool:
    """Whether a worker is one of the last half, by its name; of three or more."""
    return count > 2 and int(worker.removeprefix("gw")) >= count - count // 2


def step_back() -> None:
    """Take the lowest priority."""
    os.setsid()
    lower_priority(19)


def limit_processor_time(item: Any, settings: Any) -> bool:
    """Let a test fail after so many seconds of processor time; without any, after twelve times as many.

    At the lowest priority, others say how long a test takes: beside two that compute it may get a sixtieth of
    a processor. In place of the timer of pytest-timeout, whose hook this is and which takes it away again.
    """

    def fail(*_: object) -> None:
        pytest_timeout.timeout_sigalrm(item, settings)

    timers = [(signal.SIGPROF, signal.ITIMER_PROF, 1.0), (signal.SIGALRM, signal.ITIMER_REAL, 12.0)]

    def cancel() -> None:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, signal.SIG_DFL)

    item.cancel_timeout = cancel
    for number, timer, factor in timers:
        signal.signal(number, fail)
        signal.setitimer(timer, factor * settings.timeout)
    return True


class ComputingBeside(LoadGroupScheduling):
    """Gives the last half of the workers tests that compute, the others those with nodes or processes first.

    `place(test)` of a test, by its id, is 0 with nodes or processes, 1 if it runs alone, 2 if it computes.
    With `HODYN_ALONE=early` those that run alone are the second that a worker takes, while there is still
    something to compute beside them, instead of after those with processes.

    The longest groups come first, so that no worker is left with one at the end: `seconds` says what each
    took in earlier runs. A group that has not run yet counts a second for each of its tests.
    """

    def __init__(
        self, config: Any, log: Any, place: Callable[[str], int], seconds: Mapping[str, float]
    ) -> None:
        super().__init__(config, log)
        self._place = place
        self._before = seconds
        self._now: dict[str, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """What each group took; of this run, or half of what it took before where only a part of it ran."""
        new = {scope: max(taken, self._before.get(scope, 0.0) / 2) for scope, taken in self._now.items()}
        return {**self._before, **new}

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0.0) -> None:
        """Count what a test has taken; called by pytest-xdist at its end."""
        scope = self._split_scope(self.registered_collections[node][item_index])
        self._now[scope] = self._now.get(scope, 0.0) + duration
        super().mark_test_complete(node, item_index, duration)

    def _assign_work_unit(self, node: Any) -> None:
        only_computes = computes(node.gateway.id, self.numnodes)
        places = {scope: self._place(next(iter(tests))) for scope, tests in self.workqueue.items()}
        second = EARLY and len(self.assigned_work.get(node, ())) > 0
        suited = [scope for scope in places if places[scope] == 2 or not only_computes]
        if not suited:
            node.shutdown()  # when it has done what it has; others do the rest
            return

        def rank(scope: str) -> tuple[int, float]:
            place = places[scope] - 2 * (second and places[scope] == 1)
            return place, -self._before.get(scope, float(len(self.workqueue[scope])))

        first = min(suited, key=rank)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
