"""The documents: every Python block runs, in the order of the page, and every link leads somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("config/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return line numbers and texts of the Python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in BLOCK.finditer(text)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's blocks share their names; those with >>> must print what is written below."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, text in blocks(page):
        if ">>> " not in text:
            # empty lines in front, so that a traceback shows the line of the page
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(text, names, name_of(page), str(page), line - 1)
        report: list[str] = []
        result = doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
        assert result.attempted
        assert not result.failed, "".join(report)
        names.update(test.globs)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    local = [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing, f"{name_of(page)} links to {missing}"


def test_pages_are_found() -> None:
    assert ROOT / "docs" / "dynamics.md" in PAGES
    assert len(blocks(ROOT / "docs" / "dynamics.md")) >= 10
