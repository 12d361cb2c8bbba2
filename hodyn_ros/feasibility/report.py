"""The findings of a check as a table."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.table import Table

from hodyn_ros.feasibility.check import Finding, Report


def findings_table(report: Report) -> Table:
    """Return a table of all limits, each where it is used most; it fits 80 columns."""
    table = Table(caption="each limit where it is used most; a margin below zero is a violation", box=SIMPLE)
    table.add_column("limit, joint", no_wrap=True)
    for head in ("time [s]", "value", "limit", "margin", "used"):
        table.add_column(head, justify="right", no_wrap=True)
    quantities = list(dict.fromkeys(finding.column.quantity for finding in report.findings))
    for quantity in quantities:
        found = [finding for finding in report.findings if finding.column.quantity == quantity]
        units = " or ".join(dict.fromkeys(finding.column.unit for finding in found))
        table.add_section()
        table.add_row(f"{quantity} [{units}]".replace("[", r"\["), style="bold")
        for finding in found:
            table.add_row(
                finding.column.joint,
                f"{finding.time:.4f}",
                f"{finding.value:.4g}",
                f"{nearer_limit(finding):.4g}",
                f"{finding.margin:.3g}",
                f"{100.0 * finding.usage:.1f} %",
                style="red" if finding.violated else None,
            )
    return table


def verdict(report: Report) -> str:
    """Return the outcome of a check in one line."""
    worst = report.violations
    tightest = report.tightest
    what = f"{tightest.column.quantity} of {tightest.column.joint} at {tightest.time:.4f} s"
    if not worst:
        return f"all {len(report.findings)} limits hold; the tightest, {100.0 * tightest.usage:.1f} %: {what}"
    return (
        f"{len(worst)} of {len(report.findings)} limits are exceeded; the worst, "
        f"{100.0 * tightest.usage:.1f} %: {what}"
    )


def nearer_limit(finding: Finding) -> float:
    """Return the bound that the margin is measured to."""
    column = finding.column
    nearer_upper = column.upper - finding.value <= finding.value - column.lower
    return column.upper if nearer_upper else column.lower
