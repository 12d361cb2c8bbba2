"""Which worker of pytest-xdist takes which tests.

Tests that start processes wait for these most of the time. The last worker fills what they leave of the
processors with tests that compute, at a low priority, so that it holds none of these processes up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from xdist.scheduler.loadgroup import LoadGroupScheduling

_NICE = 10


def step_back() -> None:
    """Lower the priority of this process, if it is the last of several workers."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if count > 1 and os.environ.get("PYTEST_XDIST_WORKER") == _last(count):
        os.nice(_NICE)


class ComputingBeside(LoadGroupScheduling):
    """Gives the last of several workers tests that compute, the others those with nodes or processes first.

    `place(test)` of a test, by its id, is 0 with nodes or processes, 1 if it computes, 2 if it runs alone.
    """

    def __init__(self, config: Any, log: Any, place: Callable[[str], int]) -> None:
        super().__init__(config, log)
        self._place = place

    def _assign_work_unit(self, node: Any) -> None:
        computes = self.numnodes > 1 and node.gateway.id == _last(self.numnodes)
        places = {scope: self._place(next(iter(tests))) for scope, tests in self.workqueue.items()}
        suited = [scope for scope in places if places[scope] == 1 or not computes]
        if not suited:
            node.shutdown()  # when it has done what it has; others do the rest
            return
        self.workqueue.move_to_end(min(suited, key=places.__getitem__), last=False)
        super()._assign_work_unit(node)


def _last(count: int) -> str:
    return f"gw{count - 1}"
