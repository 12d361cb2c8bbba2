"""What a run leaves behind: figures as JSON, tables as Markdown, a picture, and the pages of the docs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import picture
from benchmarks.table import Section, markdown_table

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


def write_docs(sections: Sequence[Section], machine: dict[str, str], docs: Path) -> None:
    """Put the tables between the marks in docs/benchmarks.md, and the picture beside it."""
    page = docs / "benchmarks.md"
    before, mark, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (mark and end):
        raise ValueError(f"{page} must hold the marks '{_BEGIN}' and '{_END}'")
    page.write_text(f"{before}{_BEGIN}\n\n{_text(sections, machine)}\n{_END}{after}", encoding="utf-8")
    picture.draw(sections, docs / "pictures" / "time-by-order.png")


def _text(sections: Sequence[Section], machine: dict[str, str]) -> str:
    said = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"{said}\n\n{markdown_table(sections)}"
