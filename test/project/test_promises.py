"""The page of promises is what is on record, and the run that measures them fails where one is not held."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from places import ROOT
from typer.testing import CliRunner

from benchmarks import promises
from benchmarks.promises import PROMISES, Promise


def test_promises_name_what_there_is() -> None:
    for promise in PROMISES:
        assert bool(promise.command) != bool(promise.tests)
        for path in promise.tests.split():
            assert (ROOT / path).exists(), path
        page, _, heading = promise.page.partition("#")
        text = (ROOT / "docs" / page).read_text()
        headings = [
            line.strip("# ").lower().replace(" ", "-") for line in text.splitlines() if line[:1] == "#"
        ]
        assert not heading or heading in [name.replace("?", "").replace(",", "") for name in headings], (
            heading
        )


def test_the_page_is_what_is_on_record() -> None:
    assert promises.page_table(promises._read()) in promises._PAGE.read_text()


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> tuple[int, str]:
    monkeypatch.delenv("HODYN_TEST", raising=False)
    as_shown = "import os; assert 'HODYN_TEST' not in os.environ"  # sweeps are of tests alone
    found = (
        Promise("kept", "it ends well", "index.md", command=f'python -c "{as_shown}"'),
        Promise("broken", "it does not", "index.md", command="python -c 'raise SystemExit(3)'"),
    )
    page = folder / "promises.md"
    page.write_text(f"before\n{promises._BEGIN}\nold\n{promises._END}\nafter\n")
    monkeypatch.setattr(promises, "PROMISES", found)
    monkeypatch.setattr(promises, "_RECORD", folder / "promises.json")
    monkeypatch.setattr(promises, "_PAGE", page)
    app = promises.typer.Typer()
    app.command()(promises.main)
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, page.read_text()


def test_what_is_not_held_ends_with_1_and_stands_on_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, page = run(monkeypatch, tmp_path, "--write-docs")
    assert code == 1
    assert page.startswith("before\n") and page.endswith("after\n") and "old" not in page
    (kept,) = [line for line in page.splitlines() if "**kept**" in line]
    (broken,) = [line for line in page.splitlines() if "**broken**" in line]
    assert "| held 20" in kept and "on no other processor yet" in kept
    assert "| **not held** 20" in broken


def test_what_was_not_asked_for_stays_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, page = run(monkeypatch, tmp_path, "--write-docs", "--only", "kept")
    assert code == 0
    (broken,) = [line for line in page.splitlines() if "**broken**" in line]
    assert broken.endswith("| not measured yet |")


def test_runs_beside_each_other_keep_what_the_others_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(monkeypatch, tmp_path)
    names = [f"promise {number}" for number in range(20)]
    monkeypatch.setattr(promises, "PROMISES", [Promise(name, "it holds", "index.md") for name in names])
    results = [
        {"promise": name, "processor": "any", "date": "2026-11-27", "held": True, "seconds": 1}
        for name in names
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(promises._written_with, results))
    assert promises._read() == results


def test_tests_are_shared_among_as_many_processes_as_asked() -> None:
    promise = Promise("tested", "it is", "index.md", tests="test/a test/b")
    assert promise.arguments(1)[1:] == ["-m", "pytest", "-q", "-n", "0", "test/a", "test/b"]
    assert promise.arguments(3)[4:6] == ["-n", "3"] and promise.arguments(3)[-2:] == ["test/a", "test/b"]
