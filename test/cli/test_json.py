"""`--json`: figures on the standard output, words beside it."""

import json
from typing import Any

import pytest
from command_line import run

CHECKED = ("check", "panda.yaml", "panda_validation.yaml", "--json")


def figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, *command: str
) -> dict[str, Any]:
    assert run(monkeypatch, *command) == code
    captured = capsys.readouterr()
    assert captured.err  # what people read
    found: dict[str, Any] = json.loads(captured.out)
    return found


def test_a_robot_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(monkeypatch, capsys, 0, "show", "panda.yaml", "--json")
    assert "panda" in found["summary"] and found["assumed"]
    rows = [row for table in found["tables"].values() for row in table if "panda_joint1" in row.values()]
    assert {"joint": "panda_joint1", "from": "world", "to": "panda_link1", "type": "revolute"} in rows
    assert any(isinstance(cell, float) for row in rows for cell in row.values())


def test_limits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(monkeypatch, capsys, 1, *CHECKED)
    worst = max(found["limits"], key=lambda limit: float(limit["usage"]))
    assert not found["holds"] and worst["violated"] and worst["usage"] > 1.0 and worst["margin"] < 0.0


def test_top_is_read_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rclpy", reason="no ROS 2 here")
    assert run(monkeypatch, "top", "--json") == 2
    assert "--json goes with --once" in capsys.readouterr().err
