"""What the runs of the demo have shown, as figures, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hodyn_ros.lie.jets import Array
from hodyn_ros.simulation.recording import Recording, latencies, tracking
from hodyn_ros.tables import FittingTable, number, table

Runs = Mapping[str, Mapping[str, Any]]


def summarise(recording: Recording, begin: float, end: float) -> dict[str, Any]:
    """Return the figures of one run: tracking from `begin` to `end` [s] of the motion, messages all along."""
    errors = tracking(recording, begin, end)
    span = (
        1e-9 * float(np.ptp(recording.feedforward_stamps))
        if len(recording.feedforward_stamps) > 1
        else np.nan
    )
    received = len(recording.feedforward_stamps)
    return {
        "rms_error_rad": errors.rms,
        "max_error_rad": errors.maximum,
        "messages_sent": recording.samples_sent,
        "messages_received": received,
        "latency_us": _percentiles(latencies(recording)),
        "computation_us": _percentiles(recording.computation_times),
        "message_rate_hz": (received - 1) / span,
        "states_received": len(errors.times),
        "state_rate_hz": (len(errors.times) - 1) / (errors.times[-1] - errors.times[0]),
    }


def _percentiles(seconds: Array) -> dict[str, float]:
    p50, p99 = np.percentile(seconds, [50.0, 99.0]) * 1e6
    return {"p50": float(p50), "p99": float(p99)}


def summary_table(runs: Runs) -> FittingTable:
    """Return the table that is shown at the end; it fits 80 columns."""
    heads = ("feedforward", "RMS error\n[mrad]", "largest\n[mrad]", "rate\n[Hz]", "sent", "lost")
    rows = [
        (
            mode,
            number(1e3 * run["rms_error_rad"], 3),
            number(1e3 * run["max_error_rad"], 3),
            f"{run['message_rate_hz']:.1f}",
            str(run["messages_sent"]),
            str(run["messages_sent"] - run["messages_received"]),
            f"{run['latency_us']['p50']:.0f}",
            f"{run['latency_us']['p99']:.0f}",
        )
        for mode, run in runs.items()
    ]
    return table((*heads, "p50\n[µs]", "p99\n[µs]"), rows)


CAPTION = "Messages from desired motion to feedforward torque; p50 and p99 of their latency."


def verdict(runs: Runs) -> str:
    """Return the sentence that the demo is about."""
    ratio = runs["rigid"]["rms_error_rad"] / runs["elastic"]["rms_error_rad"]
    sentence = f"Elastic feedforward tracks {ratio:.0f} times better than rigid feedforward (RMS)."
    if ratio < 10.0:
        sentence += (
            " That is less than the ten times there should be: was this machine busy with something else?"
        )
    return sentence
