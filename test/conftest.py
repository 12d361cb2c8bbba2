"""Keep a test run to itself, and its tests out of each other's way.

Every process that runs tests has a ROS domain that no other on this host uses. Compiled robots are shared
by all workers (`pytest -n 5`), and kept for the next run. Tests that are marked
`realtime` run while no other does but those that compute at the lowest priority.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: workers share the processors already

import fcntl
import gc
import hashlib
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import case_robots
import pytest
from hypothesis import settings
from sweeps import THOROUGH

from hodyn_ros import Robot
from hodyn_ros.codegen import llvm
from hodyn_ros.codegen.keys import key_of

# Domains above 101 would use ports that Linux hands out to other programs; 0 is everybody's default.
DOMAINS = range(1, 102)

# The same examples in every run, so that a failure is that of the last change; thorough runs search further.
settings.register_profile("tests", derandomize=not THOROUGH, deadline=None)
settings.load_profile("tests")

UDP_ON_THIS_HOST = Path(__file__).with_name("helpers") / "ros" / "udp_on_this_host.xml"
# Of processes, a compiler's among them.
STARTERS = ("subprocess", "exported_code", "run_examples", "warm_python")
STARTERS += ("ros_processes", "ros_launch", "ros_talk", "ros_peer", "ros_arm")

WORKER = "PYTEST_XDIST_WORKER" in os.environ  # one of several
COMPUTES = False  # beside others
if WORKER:
    from worker_scheduling import computes

    COMPUTES = computes(os.environ["PYTEST_XDIST_WORKER"], int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
ALONE = " alone"  # ends the name of a group of tests that are marked `realtime`


@contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    """Hold a file lock, of this process and of nobody else's; `how` as `fcntl.flock` takes it."""
    with path.open("w") as lock:
        fcntl.flock(lock, how)
        yield


@pytest.fixture(scope="session", autouse=True)
def ros_domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give this process, and those it starts, a ROS domain of their own and a place for logs.

    They talk through UDP: tests kill nodes, and a killed node leaves its shared memory behind, in which
    those that live, and those of the next test that come upon the same port, have crashed.
    """
    with pytest.MonkeyPatch.context() as environment:
        for domain in random.sample(DOMAINS, len(DOMAINS)):
            path = Path(tempfile.gettempdir(), f"hodyn_ros-{os.getuid()}-domain-{domain}.lock")
            try:
                with locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    environment.setenv("ROS_DOMAIN_ID", str(domain))
                    # LOCALHOST would share memory besides; the profile keeps to this host too
                    environment.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT")
                    environment.setenv("FASTDDS_DEFAULT_PROFILES_FILE", str(UDP_ON_THIS_HOST))
                    environment.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros-log")))
                    yield domain
                    return
            except BlockingIOError:
                continue
        pytest.exit(f"all ROS domains {DOMAINS.start} to {DOMAINS.stop - 1} are in use by other test runs", 1)


def pytest_configure() -> None:
    """Lower the priority of a worker that computes beside others."""
    if COMPUTES:
        from worker_scheduling import step_back

        step_back()


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Count the processor time of tests that compute beside others, who may keep them from the processors.

    That is what a thorough run in one process is for (docs/promises.md).
    """
    if not (COMPUTES or (THOROUGH and not WORKER and not starts_processes(item.path))):
        return None
    from worker_scheduling import limit_processor_time

    return limit_processor_time(item, settings)


@pytest.fixture(scope="session", autouse=True)
def compiled_code(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Share compiled robots with other workers, with the processes they start, and with the runs to come.

    Not with the user's cache, nor with runs in which LLVM was asked in another way.
    """
    asked = hashlib.sha256(Path(llvm.__file__).read_bytes()).hexdigest()[:12]
    folder = request.config.cache.mkdir(f"compiled-{asked}")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HODYN_CACHE_DIR", str(folder))
        # More than all runs need: where the oldest give way to the newest, the next run finds none of either.
        environment.setenv("HODYN_CACHE_ENTRIES", "50000")
        key_of(key_of)  # notes what modules hold, before a test replaces some of it
        yield folder


@pytest.fixture(scope="session")
def panda() -> Robot:
    """The Panda of the package, which all tests of a worker share with what is compiled for it."""
    return case_robots.panda()


@pytest.fixture
def hodyn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CompletedProcess[str]]:
    """Return what runs `hodyn` in this process; as a process it takes the time of its imports besides."""
    from command_line import run

    def ran(*arguments: object) -> CompletedProcess[str]:
        capsys.readouterr()
        code = run(monkeypatch, *arguments)
        return CompletedProcess(arguments, code, *capsys.readouterr())

    return ran


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test run beside one that is marked `realtime`, but those of workers that compute."""
    with ExitStack() as held:
        if WORKER and not COMPUTES:
            folder = item.config.cache.mkdir("workers")
            # who waits to be alone keeps the door, so that no other test begins meanwhile
            with locked(folder / "door", fcntl.LOCK_EX):
                held.enter_context(locked(folder / "room", fcntl.LOCK_EX if _alone(item) else fcntl.LOCK_SH))
        yield


@cache
def starts_processes(file: Path) -> bool:
    """Whether a file imports what starts processes, at its head or in a test."""
    text = file.read_text(encoding="utf-8")
    return any(f"{name} import" in text or f"import {name}" in text for name in STARTERS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not read files of which a run wants no test, such as `-m "not processes and not thorough"`."""
    if collection_path.suffix != ".py":
        return None
    unwanted = config.getoption("markexpr").split(" and ")
    text = "" if "not thorough" not in unwanted else collection_path.read_text(encoding="utf-8")
    of_no_use = "not processes" in unwanted and starts_processes(collection_path)
    return True if of_no_use or "\npytestmark = pytest.mark.thorough\n" in text else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Let half of the workers compute at the lowest priority beside those that start processes."""
    if config.getoption("dist") != "loadgroup":
        return None
    from worker_scheduling import ComputingBeside

    def place(test: str) -> int:
        if test.endswith(ALONE):
            return 1
        file = config.rootpath / test.partition("::")[0]
        return 0 if starts_processes(file) or "rclpy" in file.read_text(encoding="utf-8") else 2

    scheduler = ComputingBeside(config, log, place, config.cache.get("workers/seconds", {}))
    config.add_cleanup(lambda: config.cache.set("workers/seconds", scheduler.seconds))
    return scheduler


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for garbage neither while tests are read, a fifth of that time, nor later in what has been read.

    That is half a million objects, of which so few are garbage that a search for them is not worth it.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that start processes; leave those to the end that run alone.

    A worker takes whole files, so that they share robots and nodes, but for the tests in real time, and for
    files whose `GROUPED_BY` names a parameter: of these it takes all tests with one value of that.
    pytest-xdist reads the groups in a hook of the same name, so this one has to come first.
    """
    for item in items:
        if starts_processes(item.path):
            item.add_marker("processes")
        alone = ALONE if _alone(item) else ""
        by = getattr(getattr(item, "module", None), "GROUPED_BY", None)
        values = item.callspec.params if hasattr(item, "callspec") else {}
        part = f" {values[by]}" if by in values else ""
        item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}{part}{alone}"))
    items.sort(key=_alone)


def _alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("realtime") is not None
