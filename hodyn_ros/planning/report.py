"""The findings of a check as a table."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from hodyn_ros.planning.check import Finding, Report
from hodyn_ros.tables import number

_WIDEST = 10_000  # characters of a line


def findings_table(report: Report) -> Table:
    """Return a table of all limits, each where it is used most; with short names it fits 80 columns."""
    table = Table(caption="each limit where it is used most; a margin below zero is a violation", box=SIMPLE)
    table.add_column("limit, joint", overflow="fold")
    for head in (r"time \[s]", "value", "limit", "margin", "used"):
        table.add_column(head, justify="right", no_wrap=True)
    quantities = list(dict.fromkeys(finding.column.quantity for finding in report.findings))
    for quantity in quantities:
        findings = [finding for finding in report.findings if finding.column.quantity == quantity]
        units = " or ".join(dict.fromkeys(finding.column.unit for finding in findings))
        table.add_section()
        table.add_row(f"{quantity} [{units}]".replace("[", r"\["), style="bold")
        for finding in findings:
            table.add_row(
                finding.column.joint,
                f"{finding.time:.4f}",
                number(finding.value, 5),
                number(nearer_limit(finding), 5),
                number(finding.margin, 3),
                percent(finding.usage),
                style="red" if finding.violated else None,
            )
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table so that no number is cut; into a file also no name, however wide it becomes."""
    if not console.is_terminal:
        table.columns[0].no_wrap = True
        widest = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
        console.width = max(widest, console.width)
    console.print(table)


def percent(share: float) -> str:
    """Return a share in percent, with so many digits that what is beyond a limit does not look like 100.

    >>> percent(0.98765), percent(1.0), percent(1.0000321)
    ('98.8 %', '100.0 %', '100.003 %')
    """
    digits = 1
    while digits < 9 and share > 1.0 and float(f"{100.0 * share:.{digits}f}") == 100.0:
        digits += 1
    return f"{100.0 * share:.{digits}f} %"


def verdict(report: Report) -> str:
    """Return the outcome of a check in one line."""
    worst = report.violations
    tightest = report.tightest
    used = f"{percent(tightest.usage)}: {tightest.column.quantity} of {tightest.column.joint} at "
    used += f"{tightest.time:.4f} s"
    if not worst:
        return f"all {len(report.findings)} limits hold; the tightest, {used}"
    return f"{len(worst)} of {len(report.findings)} limits are exceeded; the worst, {used}"


def certainty(report: Report) -> str:
    """Return in one line how well the peaks are known."""
    return (
        f"{report.evaluations} instants; between them known to {100.0 * report.tolerance:g} % of each limit, "
        f"peaks to {100.0 * report.error:.0e} %, as estimated"
    )


def nearer_limit(finding: Finding) -> float:
    """Return the bound that the margin is measured to."""
    column = finding.column
    nearer_upper = column.upper - finding.value <= finding.value - column.lower
    return column.upper if nearer_upper else column.lower
