"""What the benchmark of the node makes of its measurements: ratios, losses, verdicts, pages."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; the nodes come with the ROS build (make)")
pytest.importorskip("benchmarks", reason="the benchmarks are in the source tree only")

from benchmarks import report
from benchmarks.ros import arms, latency, load, memory
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
        write_traffic(tmp_path / "traffic.npz", ours, 2 * same, repeated)
        median, _, lost, _ = latency.section(passages(tmp_path / "traffic.npz", 2), 1000.0).rows
        assert median.verdict == "aim reached"  # an answer that never came has no latency
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


def passage(latency_of_all: float, processor_time: float, gone: int = 0) -> latency.Passage:
    latencies = np.full((3, 100), latency_of_all)
    latencies[0, :gone] = np.nan
    return latency.Passage(latencies, 0, np.full(3, processor_time))


def test_processor_time_is_held_against_the_bare_node() -> None:
    found = {
        latency.OURS: passage(1e-4, 6e-5),
        latency.MESSAGES: passage(1e-4, 3e-5),
        latency.BARE: passage(1e-4, 12e-5),
    }
    bare, messages = latency.processor_section(found).rows
    assert messages.result is not None and bare.result is not None
    assert (bare.result.median, bare.verdict) == (pytest.approx(0.5), "reached")
    assert (messages.result.median, messages.verdict) == (pytest.approx(2.0), "")
    found[latency.OURS] = passage(1e-4, 8e-5)
    assert latency.processor_section(found).rows[0].verdict == "MISSED"


def test_several_robots_lose_nothing_and_are_asked_as_often(tmp_path: Path) -> None:
    sent = 5_000_000_000 + 1_000_000 * np.arange(300)
    for late, gone, verdicts in ((1, 0, ("reached", "reached")), (2, 1, ("MISSED", "MISSED"))):
        np.savez(tmp_path / "traffic.npz", **{"arm0 sent": late * sent})
        found = {f"arm{k}": passage(1e-4, 5e-4, gone if k == 5 else 0) for k in range(arms.ARMS)}
        lost, pace, median, _, busy = arms.section(found, 1000.0, tmp_path / "traffic.npz").rows
        assert (lost.verdict, pace.verdict) == verdicts
        assert median.result is not None and busy.result is not None
        assert (median.result.median, busy.result.median) == (pytest.approx(100.0), pytest.approx(50.0))


def test_what_load_does_is_shown_and_not_judged() -> None:
    rows = load.section({load.ORDINARY: passage(4e-4, 1e-4, 7), load.REALTIME: passage(1e-4, 1e-4)}, 1e3).rows
    assert [row.result.median for row in rows if row.result] == pytest.approx([0.25] * 4 + [7.0, 0.0])
    assert {row.verdict for row in rows} == {""}


def test_nodes_joined_by_a_plus_have_one_turn() -> None:
    assert set(Plan(Path("x"), 1000.0, 3, ("a+b", "c")).order()) == {0, 1}


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
