"""What a run leaves behind: figures as JSON, tables as Markdown, a picture, and the pages of the docs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import picture
from benchmarks.table import Section, markdown_summary, markdown_table

_BEGIN, _END = "<!-- figures: written by python -m benchmarks --write-docs -->", "<!-- end of figures -->"


def write(sections: Sequence[Section], machine: dict[str, str], folder: Path) -> None:
    """Write results.json, tables.md and time-by-order.png."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"section": section.title, **asdict(row), "verdict": row.verdict}
        for section in sections
        for row in section.rows
    ]
    curves = {name: curve for section in sections for name, curve in section.curves.items()}
    results = {"machine": machine, "rows": rows, "seconds by order": curves}
    (folder / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / "tables.md").write_text(_text(sections, machine), encoding="utf-8")
    picture.draw(sections, folder / "time-by-order.png")


def write_docs(sections: Sequence[Section], machine: dict[str, str], home: Path) -> None:
    """Put tables between the marks in docs/benchmarks.md and README.md, and the picture into docs/."""
    _fill(home / "docs" / "benchmarks.md", _text(sections, machine))
    _fill(home / "README.md", markdown_summary(sections, machine))
    picture.draw(sections, home / "docs" / "pictures" / "time-by-order.png")


def _fill(page: Path, text: str) -> None:
    """Replace what stands between the marks; a page without marks is left alone."""
    if not page.is_file():
        return
    before, mark, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if mark and end:
        page.write_text(f"{before}{_BEGIN}\n\n{text.strip()}\n\n{_END}{after}", encoding="utf-8")


def _text(sections: Sequence[Section], machine: dict[str, str]) -> str:
    said = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"{said}\n\n{markdown_table(sections)}"
