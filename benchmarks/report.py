"""What a run leaves behind: figures as JSON, tables as Markdown, a picture, and the pages of the docs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import picture
from benchmarks.table import Section, markdown_table, promised_table

_COMMAND = "python -m benchmarks"
END = "<!-- end of figures -->"


def write(sections: Sequence[Section], machine: dict[str, str], folder: Path) -> None:
    """Write results.json, tables.md and time-by-order.png."""
    write_tables(sections, machine, folder)
    picture.draw(sections, folder / "time-by-order.png")


def write_tables(sections: Sequence[Section], machine: dict[str, str], folder: Path) -> None:
    """Write results.json and tables.md."""
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


def write_docs(sections: Sequence[Section], machine: dict[str, str], home: Path) -> None:
    """Put the table between the marks in docs/benchmarks.md, and the picture into docs/."""
    fill_page(sections, machine, home, _COMMAND)
    picture.draw(sections, home / "docs" / "pictures" / "time-by-order.png")


def fill_page(sections: Sequence[Section], machine: dict[str, str], home: Path, command: str) -> None:
    """Replace what is between the marks of a command in docs/benchmarks.md; without marks, change nothing."""
    begin = f"<!-- figures: written by {command} --write-docs -->"
    fill_between(home / "docs" / "benchmarks.md", begin, END, promised_table(sections, machine))


def fill_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what is between two marks of a page; without them, change nothing."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if mark and last:
        page.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")


def _text(sections: Sequence[Section], machine: dict[str, str]) -> str:
    said = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    return f"{said}\n\n{markdown_table(sections)}"
