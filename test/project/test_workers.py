"""The run of the tests itself: workers take whole files, half of them those that compute."""

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

pytest.importorskip("xdist", reason="pytest-xdist is not installed; tests run in one process")

import worker_scheduling
from places import ROOT
from worker_scheduling import ComputingBeside

HELPERS = Path(worker_scheduling.__file__).parent
PLACES = {"node": 0, "mathematics": 2, "drone": 2, "real time": 1}  # by group
SIZES = {"drone": 5}  # of groups that are not of three tests


class Worker:
    """What the scheduler sees of a worker; it takes tests, and has done them at once."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.shutting_down = False
        self.taken: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.taken += tests

    def shutdown(self) -> None:
        self.shutting_down = True


def run(count: int, before: Mapping[str, float] = MappingProxyType({})) -> dict[str, list[str]]:
    """Return by worker the groups that it has run."""
    tests = [f"test_{group}.py::test_{k}@{group}" for group in PLACES for k in range(SIZES.get(group, 3))]
    config = SimpleNamespace(
        getvalue=lambda name: [f"{count}*popen"], option=SimpleNamespace(loadscopereorder=False)
    )
    scheduler = ComputingBeside(config, None, lambda test: PLACES[test.partition("@")[2]], before)
    workers = [Worker(k) for k in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    done = [0] * count
    while scheduler.has_pending:
        for k, worker in enumerate(workers):
            if done[k] < len(worker.taken):
                scheduler.mark_test_complete(worker, worker.taken[done[k]], 0.5)
                done[k] += 1
    sizes = {group: SIZES.get(group, 3) for group in PLACES}
    assert scheduler.seconds == {name: max(0.5 * sizes[name], before.get(name, 0.0) / 2) for name in sizes}
    assert all(worker.shutting_down for worker in workers)
    assert sorted(test for worker in workers for test in worker.taken) == list(range(len(tests)))
    return {
        worker.gateway.id: list(dict.fromkeys(tests[test].partition("@")[2] for test in worker.taken))
        for worker in workers
    }


@pytest.mark.parametrize(
    ("early", "order"), [(False, ["node", "nodes", "alone"]), (True, ["node", "alone", "nodes"])]
)
def test_what_runs_alone_comes_last_or_second(
    monkeypatch: pytest.MonkeyPatch, early: bool, order: list[str]
) -> None:
    monkeypatch.setattr(worker_scheduling, "EARLY", early)
    monkeypatch.setitem(PLACES, "nodes", 0)
    found = run(1, {"node": 9.0})["gw0"]
    assert [name.replace("real time", "alone") for name in found][:3] == order


@pytest.mark.parametrize("count", [1, 2])
def test_one_worker_or_two_do_all_in_turn(count: int) -> None:
    found = run(count)
    assert found["gw0"][0] == "node"
    assert set().union(*found.values()) == set(PLACES)


TIMED = """
import time

def test_waits_for_the_processors():
    time.sleep(0.6)

def test_computes():
    while True:
        pass
"""


def test_who_computes_beside_others_is_timed_by_what_it_had_of_the_processors(tmp_path: Path) -> None:
    (tmp_path / "test_timed.py").write_text(TIMED)
    tests = str(ROOT / "test" / "conftest.py")
    hook = f"import runpy\npytest_timeout_set_timer = runpy.run_path({tests!r})['pytest_timeout_set_timer']\n"
    (tmp_path / "conftest.py").write_text(hook)
    asked = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=0.3", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "HODYN_TEST": "thorough"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    found = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert "1 failed, 1 passed" in found.stdout
    assert "test_computes - Failed: Timeout" in found.stdout


def test_programs_end_with_a_worker_that_is_killed() -> None:
    """Nodes of a run that was cut off would take processor time from the next one."""
    code = (
        "from warm_python import WarmProcess; import os, time\n"
        "print(WarmProcess(['-c', 'import time; time.sleep(600)'], os.environ, (0, 1, 2)).pid, flush=True)\n"
        "time.sleep(600)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        program = os.pidfd_open(int(worker.stdout.readline()))
        worker.kill()
    assert select.select([program], [], [], 30.0)[0]
    os.close(program)


def test_a_worker_that_has_started_programs_leaves_no_socket_open() -> None:
    """Python says so at its end: below all tests, as if one of them had failed."""
    code = "import os, warm_python; warm_python.run('-c', 'pass', environment=os.environ)"
    asked = [sys.executable, "-W", "always::ResourceWarning", "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert "unclosed" not in found.stderr
