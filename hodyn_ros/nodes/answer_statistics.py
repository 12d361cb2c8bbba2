"""What dynamics_node has done so far, for its diagnostics."""

from __future__ import annotations

import time
from typing import Any

from hodyn_ros.feedforward.feedforward import Status
from hodyn_ros.ros.diagnostics import Durations, Stream


class AnswerStatistics:
    """Counts answers, limit violations and latencies."""

    def __init__(self) -> None:
        self.answers = Stream()
        self._latencies = Durations()
        self._limits = dict.fromkeys((bit for bit in Status if bit), 0)

    def add(self, status: int, computation_time: float, received_at: int) -> None:
        """Count an answer that has just been published.

        `computation_time` [s]; `received_at` [ns] by the system's clock: when its desired motion came, 0
        where the middleware does not say.
        """
        self.answers.tick(computation_time)
        if received_at:
            self._latencies.add(1e-9 * (time.time_ns() - received_at))
        if status:
            for bit in self._limits:
                if status & bit:
                    self._limits[bit] += 1

    @property
    def violations(self) -> int:
        """Number of limits that answers were beyond."""
        return sum(self._limits.values())

    def as_values(self) -> dict[str, Any]:
        """Return keys and values of a diagnostic status; rates count from the last call."""
        computation, latency = (
            self.answers.percentiles(50.0, 99.0),
            self._latencies.percentiles(50.0, 99.0, 100.0),
        )
        return {
            "answered": self.answers.count,
            "rate [1/s]": self.answers.rate(),
            "age of the last answer [s]": self.answers.age(),
            "latency p50 [us]": latency[0] * 1e6,
            "latency p99 [us]": latency[1] * 1e6,
            "latency max [us]": latency[2] * 1e6,
            "computation time p50 [us]": computation[0] * 1e6,
            "computation time p99 [us]": computation[1] * 1e6,
            **{str(bit.name).lower().replace("_", " "): count for bit, count in self._limits.items()},
        }
