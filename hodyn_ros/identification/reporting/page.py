"""An identification as one HTML file: pictures, figures with intervals, and what is unknown."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from hodyn_ros.identification.reporting.run import Run
from hodyn_ros.identification.result import Figure, Identified, heads_of_fits
from hodyn_ros.tables import number

_STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 0.6rem 0 1.6rem }
th, td { padding: 0.15rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th { vertical-align: bottom }
td:first-child, th:first-child, td.text { text-align: left; white-space: normal }
tr.unknown td { color: #999 }
img { max-width: 100% }
"""


def page(result: Identified, runs: Sequence[Run], pictures: Sequence[tuple[str, Path]]) -> str:
    """Return the text of a page of what was found, which holds `pictures`: titles and PNG files."""
    title = escape(f"{result.robot.name}, identified from {result.source}")
    bands = ", ".join(f"{band:g}" for band in dict.fromkeys(result.bandwidths))
    parts = [
        f"<h1>{title}</h1>",
        f"<p>Motion up to {bands} Hz; condition number of the weighted regressor of the base parameters "
        f"{number(result.condition)}.</p>",
    ]
    if result.notes:
        lines = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
        parts.append(f"<h2>What to know</h2><ul>{lines}</ul>")
    for run in runs:
        heads = [" ".join(head.split()) for head in heads_of_fits(result.robot)]
        parts += [
            f"<h2>Not explained of {escape(run.title)}</h2>",
            _table(heads, [(row, "") for row in run.rows()]),
        ]
    parts += ["<h2>Figures</h2>", _figures([*result.figures, result.effort_delay])]
    for heading, path in pictures:
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        parts.append(
            f'<h2>{escape(heading)}</h2><img alt="{escape(heading)}" src="data:image/png;base64,{data}">'
        )
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _figures(figures: Sequence[Figure]) -> str:
    heads = ["figure", "value", "95 % interval", "file", "unit", ""]
    rows = []
    for each in figures:
        low, high = each.interval
        known = np.isfinite(each.value)
        interval = f"{number(low)} … {number(high)}" if np.isfinite(low) else ""
        file = "rigid" if np.isinf(each.prior) else number(each.prior)
        cells = [each.name, number(each.value) if known else "", interval, file, each.unit, each.reason]
        rows.append((cells, "" if each.identified else "unknown"))
    return _table(heads, rows)


def _table(heads: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"]
    for cells, kind in rows:
        last = len(heads) - 1
        inside = "".join(
            f"<td{' class=text' if i == last and not heads[i] else ''}>{escape(cell)}</td>"
            for i, cell in enumerate(cells)
        )
        lines.append(f"<tr class={kind}>{inside}</tr>" if kind else f"<tr>{inside}</tr>")
    return "\n".join([*lines, "</table>"])
