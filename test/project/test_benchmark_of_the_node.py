"""What the benchmark of the node makes of its measurements: ratios, losses, verdicts, pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("benchmarks", reason="the benchmarks are in the source tree only")

from benchmarks import report
from benchmarks.ros import latency, memory
from benchmarks.ros.traffic import Plan

MICROSECOND = 1000  # [ns]


def write_traffic(file: Path, ours: np.ndarray, bare: np.ndarray, repeated: int = 0) -> None:
    """Write what the traffic would, for latencies [µs] of each message; negative: no answer."""
    arrays = {}
    for name, delays in ((latency.OURS, ours), (latency.BARE, bare)):
        sent = 5_000_000_000 + 1_000_000 * np.arange(delays.size)
        arrays[f"{name} sent"] = sent
        arrays[f"{name} arrived"] = np.where(delays < 0, 0, sent + MICROSECOND * delays)
        arrays[f"{name} repeated"] = np.array(repeated)
    np.savez(file, **arrays)


def passages(file: Path, turns: int) -> dict[str, latency.Passage]:
    return {name: latency.read_passage(file, name, turns) for name in (latency.OURS, latency.BARE)}


def test_ratios_of_percentiles_and_no_loss(tmp_path: Path) -> None:
    bare = np.tile(np.arange(1, 1001), 4)
    write_traffic(tmp_path / "traffic.npz", 2 * bare, bare)
    found = passages(tmp_path / "traffic.npz", 4)
    median, last, lost, _ = latency.section(found, 1000.0).rows
    assert median.result is not None and last.result is not None and lost.result is not None
    assert median.ours == pytest.approx(1001e-6, rel=1e-12)
    assert (median.result.median, last.result.median) == pytest.approx((2.0, 2.0), rel=1e-12)
    assert (median.result.low, median.result.high) == pytest.approx((2.0, 2.0), rel=1e-12)
    assert (median.verdict, last.verdict) == ("MISSED", "MISSED")
    assert (lost.result.median, lost.verdict) == (0.0, "reached")


def test_a_lost_and_a_repeated_message_are_missed(tmp_path: Path) -> None:
    same = np.full(100, 200)
    for gone, repeated in ((1, 0), (0, 1)):
        ours = same.copy()
        ours[:gone] = -1
        write_traffic(tmp_path / "traffic.npz", ours, same, repeated)
        median, _, lost, _ = latency.section(passages(tmp_path / "traffic.npz", 2), 1000.0).rows
        assert median.verdict == "reached"  # an answer that never came has no latency
        assert lost.result is not None
        assert (lost.result.median, lost.verdict) == (1.0, "MISSED")


def test_memory_counts_the_most_that_it_ever_grew() -> None:
    resident = np.full(600, 150.0)
    resident[300] = 150.5
    (row,) = memory.section(resident).rows
    assert row.result is not None
    assert (row.result.median, row.verdict) == (0.5, "reached")
    resident[-1] = 151.25
    (row,) = memory.section(resident).rows
    assert row.verdict == "MISSED"


def test_each_turn_comes_as_often_and_the_order_changes() -> None:
    plan = Plan(Path("x"), 1000.0, 60, (latency.OURS, latency.BARE))
    order = plan.order()
    pairs = {tuple(order[i : i + 2]) for i in range(0, len(order), 2)}
    assert order.count(0) == order.count(1) == 61
    assert pairs == {(0, 1), (1, 0)}


def test_pages_are_filled_between_the_marks_of_the_command_alone(tmp_path: Path) -> None:
    mark = "<!-- figures: written by python -m {} --write-docs -->\n{}\n<!-- end of figures -->\n"
    text = f"a\n{mark.format('benchmarks', 'kept')}b\n{mark.format('benchmarks.ros', 'old')}c\n"
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    page.write_text(text)
    section = memory.section(np.full(100, 150.0))
    report.fill_page([section], {"processor": "P", "date": "D"}, tmp_path, "python -m benchmarks.ros")
    filled = page.read_text()
    assert "kept" in filled and "old" not in filled
    assert filled.index("memory of dynamics_node") > filled.index("b\n")
    assert filled.endswith("<!-- end of figures -->\nc\n")
