"""What commands print as tables, as plain data for JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hodyn_ros.bags.comparison.compare import Comparison
    from hodyn_ros.cli.robot_sheet import Sheet
    from hodyn_ros.identification.result import Identified
    from hodyn_ros.planning.check import Report
    from hodyn_ros.planning.time_optimal.planner import TimeOptimal
    from hodyn_ros.ros.top_table import Seen


def print_figures(figures: Any) -> None:
    """Print data as JSON on the standard output; what is infinite or unknown is null."""
    print(json.dumps(_finite(figures), indent=2, ensure_ascii=False))


def sheet_figures(sheet: Sheet) -> dict[str, Any]:
    """Return what `show` prints: each table as a list of rows by the heads of its columns."""
    tables = {}
    for block in sheet.blocks:
        heads = [" ".join(head.split()) for head in block.heads]
        tables[block.title] = [dict(zip(heads, map(_read, row))) for row in block.rows]
    return {"summary": sheet.summary, "tables": tables, "assumed": sheet.assumed, "notes": sheet.notes}


def check_figures(report: Report) -> dict[str, Any]:
    """Return what `check` prints."""
    limits = [
        {
            "quantity": finding.column.quantity,
            "joint": finding.column.joint,
            "unit": finding.column.unit,
            "time_s": finding.time,
            "value": finding.value,
            "lower": finding.column.lower,
            "upper": finding.column.upper,
            "margin": finding.margin,
            "usage": finding.usage,
            "violated": finding.violated,
        }
        for finding in report.findings
    ]
    return {"holds": not report.violations, "limits": limits}


def plan_figures(plan: TimeOptimal) -> dict[str, Any]:
    """Return what `plan` prints, of all limits that are used."""
    limits = [
        {
            "quantity": binding.column.quantity,
            "joint": binding.column.joint,
            "unit": binding.column.unit,
            "limit": binding.column.upper,
            "usage": binding.usage,
            "time_s": binding.time,
            "gain_s_per_share": binding.gain,
        }
        for binding in plan.bindings
    ]
    return {"duration_s": plan.duration, "even_duration_s": plan.even_duration, "limits": limits}


def identified_figures(result: Identified) -> dict[str, Any]:
    """Return what `identify` prints of figures."""
    figures = [
        {
            "figure": each.name,
            "value": each.value,
            "deviation": each.deviation,
            "file": each.prior,
            "unit": each.unit,
            "identified": each.identified,
        }
        for each in (*result.figures, result.effort_delay)
    ]
    return {"condition": result.condition, "figures": figures, "notes": list(result.notes)}


def comparison_figures(comparison: Comparison) -> dict[str, Any]:
    """Return what `compare` prints."""
    topics = {
        name: {
            "pairs": topic.pairs,
            "missing": len(topic.missing.times),
            "extra": len(topic.extra.times),
            "left_out": sorted(topic.added),
            "fields": {
                field: {
                    "count": one.count,
                    "absolute": one.absolute,
                    "relative": one.relative,
                    "time_s": one.time,
                    "element": one.element,
                    "first_s": one.first,
                }
                for field, one in topic.fields.items()
            },
        }
        for name, topic in comparison.topics.items()
    }
    return {
        "agree": comparison.agree,
        "topics": topics,
        "only_first": comparison.only_first,
        "only_second": comparison.only_second,
    }


def report_figures(reports: Sequence[Seen]) -> dict[str, Any]:
    """Return what `top --once` prints, by node."""
    return {
        seen.name: {
            "level": seen.level,
            "message": seen.message,
            "robot": seen.robot,
            "values": dict(seen.values),
        }
        for seen in reports
    }


def _read(cell: str) -> float | str | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return cell


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    if hasattr(data, "item"):  # of NumPy
        data = data.item()
    return None if isinstance(data, float) and not math.isfinite(data) else data


def fail(error: Exception, code: int) -> int:
    """Print what went wrong in one line, and return the exit code."""
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return code
