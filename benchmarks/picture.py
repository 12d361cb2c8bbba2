"""Time against order of all contenders, as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib

from benchmarks.table import Section

_STYLES = {
    "hodyn_ros, compiled": ("C0", "-", "o"),
    "hodyn_ros, from Python": ("C0", "--", "o"),
    "CasADi textbook C code, compiled": ("C1", ":", "s"),
    "CasADi regrouped C code, compiled": ("C1", "-", "s"),
    "CasADi's evaluator, from Python": ("C1", "--", "s"),
    "aerial manipulator, inverse dynamics": ("C0", "-", "o"),
    "aerial manipulator, forward dynamics": ("C2", "-", "^"),
    "tree of 101 bodies": ("C4", "-", "v"),
}


_LARGE = (
    "aerial manipulator, inverse dynamics",
    "aerial manipulator, forward dynamics",
    "tree of 101 bodies",
)
REFERENCE = "pinocchio.rnea from Python (7-joint arm, torque alone)"


def draw(sections: Iterable[Section], path: Path) -> None:
    """Write the picture to a file."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    curves = {name: curve for section in sections for name, curve in section.curves.items()}
    figure, (arm, large) = plt.subplots(1, 2, figsize=(11, 5.6), width_ratios=(3, 2), layout="constrained")
    for name, curve in curves.items():
        if name != REFERENCE:
            colour, line, marker = _STYLES[name]
            axes = large if name in _LARGE else arm
            axes.plot(
                list(curve), [1e6 * s for s in curve.values()], line, color=colour, marker=marker, label=name
            )
    for axes, title in ((arm, "7-joint arm"), (large, "other robots")):
        if REFERENCE in curves:
            axes.axhline(1e6 * curves[REFERENCE][0], color="C3", linewidth=1.0, label=REFERENCE)
        axes.set_title(f"{title}")
        axes.set_xlabel("r, the order: torques and their first r derivatives")
        axes.set_ylabel("time of one call [µs]")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_major_locator(MultipleLocator(1))
        axes.grid(True, which="both", alpha=0.25)
    entries = {line.get_label(): line for axes in (arm, large) for line in axes.lines}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
