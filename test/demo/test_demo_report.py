"""What the demo says of its runs: figures of a machine that was too slow are void."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import hodyn_ros.demo.run as demo
from hodyn_ros.demo.run import HeldUpError, Run, summary_table, verdict, what_was_too_slow

RMS = {"none": 0.0241, "rigid": 1.09e-3, "offset": 4e-5, "elastic": 1.3e-5}
MODES = list(RMS)
SLOW = {"messages_received": 6900}
HELD_UP = object()


def runs(**changes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return figures of runs on a machine that keeps up, but for changes in some."""
    return {
        mode: {
            "rms_error_rad": rms,
            "max_error_rad": 3.3 * rms,
            "messages_due": 7001,
            "messages_sent": 7001,
            "messages_received": 7001,
            "latency_us": {"p50": 700.0, "p99": 1500.0},
            "message_rate_hz": 500.0,
            **changes.get(mode, {}),
        }
        for mode, rms in RMS.items()
    }


def test_figures_of_a_machine_that_keeps_up_hold() -> None:
    assert what_was_too_slow(runs()) == []
    assert verdict(runs()) == (
        "Elastic feedforward tracks 84 times better than rigid feedforward, and 3.1 times better than rigid "
        "feedforward with motors that are offset (RMS)."
    )
    assert "and no better than rigid feedforward with" in verdict(runs(offset={"rms_error_rad": 1.1e-5}))


@pytest.mark.parametrize(
    ("mode", "change", "reason"),
    [
        (
            "none",
            {"max_error_rad": 0.759},
            "feedforward none: the robot diverged, its largest error is 759",
        ),
        ("none", {"max_error_rad": float("nan")}, "feedforward none: the robot diverged"),
        (
            "rigid",
            {"messages_sent": 6968, "messages_received": 6968},
            "feedforward rigid: 33 of 7001 messages are missing",
        ),
        ("offset", {"messages_received": 6900}, "feedforward offset: 101 of 7001 messages are missing"),
        (
            "elastic",
            {"rms_error_rad": 5e-4},
            "elastic feedforward tracks 2.2 times better than rigid, not",
        ),
    ],
)
def test_what_was_too_slow_is_said(mode: str, change: dict[str, Any], reason: str) -> None:
    (line,) = what_was_too_slow(runs(**{mode: change}))
    assert line.startswith(reason)


def test_messages_that_nobody_sent_are_missing_in_the_table() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary_table(runs(none={"messages_sent": 6968, "messages_received": 6960})))
    (row,) = (line for line in console.export_text().splitlines() if line.startswith("none"))
    assert row.split()[4:6] == ["7001", "41"]


@pytest.mark.parametrize(
    ("asked", "slow", "followed"),
    [
        (None, {}, [(500.0, MODES)]),
        (None, {(500.0, "rigid"): SLOW}, [(500.0, ["none", "rigid"]), (250.0, MODES)]),
        (None, {(500.0, "elastic"): {"rms_error_rad": 5e-4}}, [(500.0, MODES), (250.0, MODES)]),
        (None, {(500.0, "none"): HELD_UP, (250.0, "none"): SLOW, (125.0, "rigid"): SLOW}, [
            (500.0, ["none"]), (250.0, ["none"]), (125.0, MODES)]),
        (500.0, {(500.0, "none"): SLOW}, [(500.0, MODES)]),
    ],
)  # fmt: skip
def test_where_no_rate_is_asked_for_a_lower_one_is_taken_until_the_machine_keeps_up(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    asked: float | None,
    slow: dict[tuple[float, str], Any],
    followed: list[tuple[float, list[str]]],
) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed; the demo comes with the ROS build (make)")
    seen: dict[float, list[str]] = {}

    def record(mode: str, duration: float, rate: float, *_: object) -> Run:
        seen.setdefault(rate, []).append(mode)
        change = slow.get((rate, mode), {})
        if change is HELD_UP:
            raise HeldUpError("controller_node: it has stopped")
        return Run(None, runs(**{mode: change})[mode], True)  # type: ignore[arg-type]

    def report(runs: dict[str, Run], duration: float, rate: float, *_: object) -> dict[str, Any]:
        return {"rate": rate, "modes": list(runs)}

    monkeypatch.setattr(demo, "record", record)
    monkeypatch.setattr(demo, "report", report)
    console = Console(width=80, record=True, file=io.StringIO())
    shown = demo.run_demo(1.0, tmp_path, asked, console)
    assert list(seen.items()) == followed
    assert (shown["rate"], shown["modes"]) == followed[-1]
    assert console.export_text().count("does not keep up") == len(followed) - 1
