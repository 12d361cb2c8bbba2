"""What the runs of the demo have shown, as figures, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.simulation.recording import Recording, latencies, tracking
from hodyn_ros.tables import FittingTable, number, table

Runs = Mapping[str, Mapping[str, Any]]

_MISSING = 1e-3  # share of the messages without which a run is another one
_DIVERGED = 0.25  # [rad], three times what feedback alone leaves on a machine that keeps up
_GAIN = 10.0  # of elastic over rigid feedforward, at least; on a machine that keeps up it is 80


def summarise(recording: Recording, begin: float, end: float, rate: float) -> dict[str, Any]:
    """Return the figures of one run: tracking from `begin` to `end` [s] of the motion, messages all along.

    `rate` [Hz] of the samples, of which a machine that is too slow skips some.
    """
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
        "messages_due": round(1e-9 * (recording.end - recording.start) * rate) + 1,
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
    heads = ("feedforward", "RMS error\n[mrad]", "largest\n[mrad]", "rate\n[Hz]", "due", "missing")
    rows = [
        (
            mode,
            number(1e3 * run["rms_error_rad"], 3),
            number(1e3 * run["max_error_rad"], 3),
            f"{run['message_rate_hz']:.1f}",
            str(run["messages_due"]),
            str(_missing(run)),
            f"{run['latency_us']['p50']:.0f}",
            f"{run['latency_us']['p99']:.0f}",
        )
        for mode, run in runs.items()
    ]
    styles = ["red" if _slow(mode, run) else "" for mode, run in runs.items()]
    return table((*heads, "p50\n[µs]", "p99\n[µs]"), rows, styles=styles)


CAPTION = (
    "Messages from desired motion to feedforward torque: how many were due, and how many of them nobody "
    "sent, or got lost; p50 and p99 of their latency. offset: rigid feedforward, and motors that lead by "
    "torque over stiffness."
)


def what_was_too_slow(runs: Runs) -> list[str]:
    """Say why the figures are void, a line for each reason; none where they hold."""
    lines = [line for mode, run in runs.items() for line in _slow(mode, run)]
    gain = runs["rigid"]["rms_error_rad"] / runs["elastic"]["rms_error_rad"]
    if not lines and not gain >= _GAIN:
        lines.append(f"elastic feedforward tracks {gain:.1f} times better than rigid, not {_GAIN:g} or more")
    return lines


def _slow(mode: str, run: Mapping[str, Any]) -> list[str]:
    due, missing, largest = run["messages_due"], _missing(run), run["max_error_rad"]
    lines = []
    if missing > _MISSING * due:
        lines.append(f"feedforward {mode}: {missing} of {due} messages are missing")
    if not largest <= _DIVERGED:
        lines.append(f"feedforward {mode}: the robot diverged, its largest error is {1e3 * largest:.0f} mrad")
    return lines


def _missing(run: Mapping[str, Any]) -> int:
    return int(run["messages_due"]) - int(run["messages_received"])


def verdict(runs: Runs) -> str:
    """Return the sentence that the demo is about."""
    errors = {mode: run["rms_error_rad"] for mode, run in runs.items()}
    over_rigid, over_offset = (errors[mode] / errors["elastic"] for mode in ("rigid", "offset"))
    return (
        f"Elastic feedforward tracks {over_rigid:.0f} times better than rigid feedforward, and "
        f"{over_offset:.2g} times better than rigid feedforward with motors that are offset (RMS)."
    )
