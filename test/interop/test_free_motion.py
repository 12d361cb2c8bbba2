"""The example of free motions, as users run it."""

import re
from pathlib import Path

import pytest
from run_examples import run_example
from sweeps import THOROUGH

pytest.importorskip("casadi", reason="casadi is not installed")
pytestmark = pytest.mark.skipif(not THOROUGH, reason="half a minute; make test-thorough runs it")


def test_a_free_motion_is_faster_and_keeps_all_limits(tmp_path: Path) -> None:
    done = run_example("free_motion", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    line, free = (
        float(re.search(rf"^{name}: ([\d.]+) s", done.stdout, re.MULTILINE)[1])  # type: ignore[index]
        for name in ("along the straight line", "free")
    )
    assert free < 0.97 * line
    shares = re.findall(r"^[a-z ]+ +([\d.]+) +([\d.]+)$", done.stdout, re.MULTILINE)
    assert len(shares) == 7
    assert all(0.0 < float(share) <= 100.0 for row in shares for share in row)
    assert (tmp_path / "free_motion.png").stat().st_size > 20_000
