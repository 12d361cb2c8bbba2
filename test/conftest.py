"""Keep a test run to itself: a ROS domain on this host that no other run uses, a folder for compiled code."""

from __future__ import annotations

import fcntl
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Domains above 101 would use ports that Linux hands out to other programs; 0 is everybody's default.
DOMAINS = range(1, 102)


@pytest.fixture(scope="session", autouse=True)
def ros_domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give this process, and those it starts, a ROS domain of their own and a place for logs."""
    with pytest.MonkeyPatch.context() as environment:
        for domain in random.sample(DOMAINS, len(DOMAINS)):
            path = Path(tempfile.gettempdir(), f"hodyn_ros-{os.getuid()}-domain-{domain}.lock")
            with path.open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                environment.setenv("ROS_DOMAIN_ID", str(domain))
                environment.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
                environment.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros-log")))
                yield domain
                return
        pytest.exit(f"all ROS domains {DOMAINS.start} to {DOMAINS.stop - 1} are in use by other test runs", 1)


@pytest.fixture(scope="session", autouse=True)
def compiled_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Share compiled robots within this run and with the processes it starts, not with the user's cache."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HODYN_CACHE_DIR", str(folder))
        yield folder
