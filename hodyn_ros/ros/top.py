"""`hodyn top`: the diagnostics of all nodes of this package, live in the terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rich.console import Console, ConsoleRenderable, Group
from rich.live import Live
from rich.text import Text

from hodyn_ros.errors import InputError
from hodyn_ros.ros.diagnostics import PACKAGE_KEY, PERIOD
from hodyn_ros.ros.process import PrivateNode
from hodyn_ros.ros.top_table import Seen, status_table

_GATHER = 1.5 * PERIOD  # [s] after the first report in which others are discovered, and report
_REFRESH = 0.25  # [s]


class Listener(PrivateNode):
    """Keeps the last report of each node of this package; use it in a `with` block.

    `patterns` choose nodes by their full names or the last part of them, with `*` and `?`; none: all.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        super().__init__("hodyn_top")
        self.seen: dict[str, Seen] = {}
        self._patterns = [pattern.strip("/") for pattern in patterns]
        self._subscription = self._node.create_subscription(DiagnosticArray, "/diagnostics", self._take, 100)
        self._reporters: set[str] = set()  # of this package or not

    def _take(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            self._reporters.add(status.name)
            self._note(status)

    def _note(self, status: DiagnosticStatus) -> None:
        values = {item.key: item.value for item in status.values}
        if PACKAGE_KEY not in values or not self._chosen(status.name):
            return
        self.seen[status.name] = Seen(
            status.name, ord(status.level), status.message, status.hardware_id, values, time.monotonic()
        )

    def _chosen(self, name: str) -> bool:
        last = name.rpartition("/")[2]
        return not self._patterns or any(
            fnmatchcase(name, pattern) or fnmatchcase(last, pattern) for pattern in self._patterns
        )

    @property
    def complete(self) -> bool:
        """Whether as many have reported as publish diagnostics."""
        return len(self._reporters) >= self._node.count_publishers(self._subscription.topic_name)

    def listen(self, seconds: float) -> None:
        """Take what comes for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)


def run_top(patterns: Sequence[str], once: bool, timeout: float, console: Console) -> Sequence[Seen]:
    """Show the nodes that `patterns` choose until interrupted; `once`: print the table and return.

    Returns the last report of each node that was heard; `once` waits `timeout` [s] at most. Raises InputError
    where the live view has no terminal.
    """
    if not once and not console.is_terminal:
        raise InputError("the live view needs a terminal; for a file or a pipe take --once")
    with Listener(patterns) as listener:
        if once:
            _gather(listener, timeout)
            console.print(_picture(listener, patterns))
        else:
            with Live(console=console, auto_refresh=False, screen=True) as live, suppress(KeyboardInterrupt):
                while True:
                    live.update(_picture(listener, patterns), refresh=True)
                    listener.listen(_REFRESH)
        return list(listener.seen.values())


def _gather(listener: Listener, timeout: float) -> None:
    """Listen until all have reported that publish diagnostics, for `timeout` [s] at most."""
    end = time.monotonic() + timeout
    while not listener.seen and time.monotonic() < end:
        listener.listen(0.1)
    if listener.seen:
        listener.listen(_GATHER)  # some may not have been discovered yet
    while not listener.complete and time.monotonic() < end:
        listener.listen(0.1)


def _picture(listener: Listener, patterns: Sequence[str]) -> ConsoleRenderable:
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    if not listener.seen:
        of = f" of {', '.join(patterns)}" if patterns else ""
        return Text(f"waiting for nodes of hodyn_ros: no diagnostics{of} on /diagnostics in domain {domain}")
    count = len(listener.seen)
    title = Text(f"hodyn top: {count} node{'s' * (count > 1)}, domain {domain}", style="bold")
    return Group(title, status_table(listener.seen.values(), time.monotonic()))
