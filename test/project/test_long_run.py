"""What the long run makes of what was heard: losses, delays and growth are those that were put in."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ros.long_run import picture, result
from benchmarks.ros.long_run.measure import SAMPLES
from benchmarks.ros.long_run.witness import REPORTS, TOPICS, file_of

BEGIN = 1_800_000_000.0  # [s]
SECONDS, RATE = 1200, 20
DELAY = 0.003  # [s]


def rows(sent: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    return np.stack([stamps, sent, np.arange(len(sent))], axis=1).astype(np.int64)


def write(
    folder: Path, *, dropped: int = 0, growth: float = 0.0, lost: int = 0, held_up: float = 0.0
) -> Path:
    """Write what a run leaves: answers `dropped`, `growth` [MiB/h] of a node, messages `lost` to another.

    All nodes are `held_up` [s] once, at half of the time.
    """
    times = BEGIN - 10.0 + np.arange(RATE * (SECONDS + 20)) / RATE
    times[len(times) // 2 :] += held_up
    stamps = np.round(1e9 * times).astype(np.int64)
    delay = round(1e9 * DELAY)
    for topic in TOPICS:
        late = {"desired_motion": 0, "motor_states": 0, "corrected_feedforward_torque": 2}.get(topic, 1)
        kept = np.ones(len(stamps), dtype=bool)
        if topic == "feedforward_torque":
            kept[5000 : 5000 + dropped] = False
        if topic == "corrected_feedforward_torque":
            kept[5000 : 5000 + dropped] = False
        rows(stamps[kept] + late * delay, stamps[kept]).tofile(file_of(folder, topic))
    times = BEGIN + 12.0 * np.arange(101)
    with (folder / SAMPLES).open("w") as file:
        for at in times:
            memory = {"steady": 100.0, "growing": 50.0 + growth * (at - BEGIN) / 3600.0}
            used = {"steady": 0.25 * (at - BEGIN), "growing": 0.5 * (at - BEGIN)}
            line = {"at": at, "load": 3.0, "stolen": 0.01 * (at - BEGIN), "memory": memory, "processor": used}
            print(json.dumps(line), file=file)
    with (folder / REPORTS).open("w") as file:
        for at, count in ((BEGIN - 1.0, 7), (times[-1] - 1.0, 7 + lost)):
            facts = {
                "message": "",
                "messages lost: desired_motion": str(count),
                "rejected": "0",
                "skipped": "2",
            }
            print(json.dumps({"at": at, "reports": {"dynamics_node": facts}}), file=file)
    return folder


def test_a_sound_run_breaks_no_bound(tmp_path: Path) -> None:
    run = result.read(write(tmp_path), "sound")
    assert run.broken() == []
    assert run.seconds == SECONDS
    for way in (*result.ANSWERS, result.COMMANDS[0]):
        assert np.allclose(run.delays[way], DELAY, rtol=0.0, atol=1e-9)
    assert run.growth == pytest.approx({"steady": 0.0, "growing": 0.0}, abs=1e-6)
    assert np.allclose(run.processor["growing"], 0.5)
    assert not any(run.counts[kind] for kind in result.BOUND)  # what was lost before it is not of this run


def test_what_is_lost_is_named(tmp_path: Path) -> None:
    run = result.read(write(tmp_path, dropped=3, lost=11), "lossy")
    assert run.unanswered == {
        "desired motion to feedforward": 3,
        "feedforward to corrected feedforward": 0,
    }
    assert run.counts["lost"] == {"dynamics_node, messages lost: desired_motion": 11}
    assert len(run.broken()) == 2


@pytest.mark.parametrize(
    "growth, held", [(0.9 * result.LARGEST_GROWTH, True), (1.1 * result.LARGEST_GROWTH, False)]
)
def test_growth_is_judged_by_the_hour(tmp_path: Path, growth: float, held: bool) -> None:
    run = result.read(write(tmp_path, growth=growth), "growing")
    assert run.growth["growing"] == pytest.approx(growth, rel=1e-6)
    assert (run.broken() == []) is held


def test_hold_ups_of_all_nodes_are_those_of_the_machine(tmp_path: Path) -> None:
    run = result.read(write(tmp_path, held_up=0.2), "held up")
    assert run.silent == pytest.approx([0.2 + 1.0 / RATE - 2.0 * DELAY], abs=1e-6)
    assert run.stolen == pytest.approx(0.01 * SECONDS)
    text = result.tables([run])
    assert "| all nodes silent for 0.05 s or longer | 1 times, 0.2 s |" in text
    assert "| kept by the host of the virtual machine (steal) | 12.0 s |" in text


def test_tables_and_picture_hold_every_process(tmp_path: Path) -> None:
    runs = [result.read(write(tmp_path, lost=2), name) for name in ("ordinary", "realtime")]
    text = result.tables(runs)
    assert "| lost, by all nodes | 2 | 2 |" in text
    assert "| `growing` | 0.50 | 50.0 | 50.0 | +0.0 |" in text
    picture.draw(runs, tmp_path / "long-run.png")
    assert (tmp_path / "long-run.png").stat().st_size > 10_000
