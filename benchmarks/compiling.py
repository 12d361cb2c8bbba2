"""How long it takes to compile a robot, the first time and with the machine code on disk."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks import robots
from benchmarks.stage import Stage
from benchmarks.stopwatch import Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros.engine import kernels
from hodyn_ros.engine.kernel_spec import KernelSpec


def measure(stage: Stage) -> Section:
    """Time compilation."""
    title = "compiling"
    panda, aerial = robots.panda().model, robots.aerial_manipulator().model
    works: list[tuple[str, Callable[[], object]]] = [
        ("7-joint arm, r = 2", lambda: kernels.inverse_dynamics(panda, 2)),
        ("7-joint arm, r = 5", lambda: kernels.inverse_dynamics(panda, 5)),
        (
            "aerial manipulator, forward dynamics, r = 5",
            lambda: kernels.hybrid_dynamics(aerial, 5, KernelSpec(base="spatial")),
        ),
    ]
    rows = []
    for i, (work, build) in enumerate(works):
        stage.say(f"{title}: {work}", i / len(works))
        with _empty_cache():
            first, again = _seconds(build), _seconds(build)
        rows += [
            Row(f"{work}, the first time", "", Figure.exact(first), must=Bound(1.0), unit="s"),
            Row(f"{work}, from disk", "", Figure.exact(again), unit="s"),
        ]
    return Section(title, rows)


@contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ.get("HODYN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HODYN_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["HODYN_CACHE_DIR"]
            else:
                os.environ["HODYN_CACHE_DIR"] = before


def _seconds(build: Callable[[], object]) -> float:
    start = time.process_time()
    build()
    return time.process_time() - start
