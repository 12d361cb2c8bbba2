"""Two hosts on one machine: network namespaces of Linux, joined by a cable that can be pulled out."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from types import TracebackType

SETTLING = 3.0  # [s]: participants of DDS that start within the first second of a link do not find each other


class NotAllowed(RuntimeError):
    """This machine or this user may not make network namespaces; the text says why."""


class TwoHosts:
    """Two network namespaces and the link between them; use it in a `with` block.

    Raises NotAllowed where this cannot be had.
    """

    def __init__(self) -> None:
        tag = f"h{os.getpid() % 1_000_000}"  # names of links have at most 15 letters
        self.names = (f"{tag}a", f"{tag}b")
        self.addresses = ("10.213.7.1", "10.213.7.2")

    def __enter__(self) -> TwoHosts:
        if shutil.which("ip") is None:
            raise NotAllowed("there is no command 'ip' (iproute2)")
        try:
            for name in self.names:
                _ip("netns", "add", name)
            here, there = self.names
            _ip("link", "add", here, "netns", here, "type", "veth", "peer", "name", there, "netns", there)
            for name, address in zip(self.names, self.addresses):
                _ip("-n", name, "address", "add", f"{address}/24", "dev", name)
                _ip("-n", name, "link", "set", "lo", "up")
                _ip("-n", name, "link", "set", name, "up")
        except NotAllowed:
            self._remove()
            raise
        time.sleep(SETTLING)
        return self

    def prefix(self, host: int) -> tuple[str, ...]:
        """Return what to put before a command for it to run on host 0 or 1."""
        return ("ip", "netns", "exec", self.names[host])

    def pull_cable(self) -> None:
        """Cut the link; whoever sends has a dead interface."""
        _ip("-n", self.names[0], "link", "set", self.names[0], "down")

    def plug_cable(self) -> None:
        """Join the hosts again."""
        _ip("-n", self.names[0], "link", "set", self.names[0], "up")

    def _remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise NotAllowed(f"'ip {' '.join(arguments)}' failed: {result.stderr.strip()}")
