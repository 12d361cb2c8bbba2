"""Real-time settings of a node's process: priority, memory, processors, garbage; Linux, if it allows them."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rclpy.node import Node

from hodyn_ros.errors import InputError
from hodyn_ros.ros.parameters.parameters import ParameterSpec, choice, declare, parameters, value
from hodyn_ros.scheduling import priority_of

_AUTOMATIC, _FROZEN = "automatic", "frozen"
_LOCK_PRESENT, _LOCK_FUTURE = 1, 2  # MCL_CURRENT, MCL_FUTURE of mlockall
_UNCOLLECTED = 5000  # objects made and not yet looked at, before one collects between two samples

REALTIME_SETTINGS = parameters(
    "realtime.",
    priority=ParameterSpec(
        0,
        "Priority of all threads under SCHED_FIFO, 1 of those that compute beside samples; 0: ordinary "
        "scheduling.",
        within=(0, 99),
    ),
    lock_memory=ParameterSpec(
        False, "Keep all memory of the process in RAM, so that no sample waits for a disk."
    ),
    cpu_affinity=ParameterSpec([], "Processors that the process may run on, by number; not given: all."),
    garbage_collection=ParameterSpec(
        _AUTOMATIC,
        "automatic: Python collects garbage at any time; frozen: only right after a sample, and only "
        "objects made since the start.",
    ),
)


def apply_realtime_settings(node: Node) -> Callable[[], None]:
    """Declare the settings on a node and put them into effect; return what is to be called between samples.

    Raises InputError with the reason where the system does not allow one.
    """
    declare(node, REALTIME_SETTINGS)
    if value(node, "realtime.cpu_affinity"):
        _use_processors(value(node, "realtime.cpu_affinity"))
    if value(node, "realtime.lock_memory"):
        _lock_memory()
    if priority := value(node, "realtime.priority"):
        _raise_priority(priority)
    if choice(node, "realtime.garbage_collection", (_AUTOMATIC, _FROZEN)) == _AUTOMATIC:
        return lambda: None
    gc.disable()
    return _collect_some


def _collect_some() -> None:
    if gc.get_count()[0] > _UNCOLLECTED:
        gc.collect()


def _threads() -> list[int]:
    """Return all threads of this process: those of the middleware deliver the samples."""
    return [int(entry.name) for entry in Path("/proc/self/task").iterdir()]


def _use_processors(numbers: list[float]) -> None:
    there = os.sched_getaffinity(0)
    if not there.issuperset(numbers):
        raise InputError(
            f"realtime.cpu_affinity is {[float(number) for number in numbers]}; this process may use the "
            f"processors {sorted(there)}"
        )
    for thread in _threads():
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(thread, {int(number) for number in numbers})


def _lock_memory() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_LOCK_PRESENT | _LOCK_FUTURE) != 0:
        raise InputError(
            f"realtime.lock_memory is not allowed here ({os.strerror(ctypes.get_errno())}); raise the limit "
            "`memlock` of the user in /etc/security/limits.d, or leave it out"
        )


def _raise_priority(priority: int) -> None:
    try:
        for thread in _threads():
            with suppress(ProcessLookupError):
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(priority_of(thread, priority)))
    except PermissionError as error:
        raise InputError(
            f"realtime.priority {priority} is not allowed here ({error.strerror}); raise the limit `rtprio` "
            "of the user in /etc/security/limits.d, or leave it 0"
        ) from error
