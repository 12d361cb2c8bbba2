"""What the pictures of the examples share: colours, grids of axes, one legend for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import ScalarFormatter
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Palettes that can be told apart also by those who see colours differently (Tol).
JOINT_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#777777")
AXIS_COLOURS = ("#CC3311", "#009988", "#0077BB")

_WIDTH = 11.0  # [inch]; 1210 pixels
_DPI = 110
_LEGEND_HEIGHT = 0.4  # [inch]


def grid(
    rows: int, columns: int, height: float, title: str, note: str = ""
) -> tuple[Figure, NDArray[np.object_]]:
    """Make a figure of rows times columns of axes, `height` [inch] high, with a line of explanation."""
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained")
    figure.suptitle(f"{title}\n{note}" if note else title, fontsize=12)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
        ax.tick_params(labelsize=9)
    return figure, axes


def curves(
    ax: Axes,
    times: Array,
    values: Array,
    names: Sequence[str],
    colours: Sequence[str],
) -> None:
    """Draw the columns of `values` (N, n) against `times` (N,) [s]."""
    for values_of_one, name, colour in zip(values.T, names, colours):
        ax.plot(times, values_of_one, color=colour, linewidth=1.5, label=name)
    ax.set_xlim(times[0], times[-1])
    powers_of_ten(ax)


class PlainNumbers(ScalarFormatter):
    """Powers of ten in the type of mathematics, numbers in that of text, which takes a tenth of the time."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the number as text."""
        return super().__call__(x, pos).removeprefix(r"$\mathdefault{").removesuffix("}$")


def powers_of_ten(ax: Axes) -> None:
    """Let the numbers of the vertical axis have a power of ten in common where they are large or small."""
    formatter = PlainNumbers(useMathText=True)
    formatter.set_powerlimits((-2, 4))
    ax.yaxis.set_major_formatter(formatter)


def per_second(power: int) -> str:
    """Write the unit of a derivative with respect to time, to be put behind that of the quantity."""
    return "" if power == 0 else "/s" if power == 1 else f"/s$^{power}$"


def save(figure: Figure, path: Path, keys: Iterable[Axes] = ()) -> Path:
    """Write the figure with one legend below it for all curves of the axes `keys`."""
    entries = {str(line.get_label()): line for ax in keys for line in ax.lines}
    entries = {name: line for name, line in entries.items() if not name.startswith("_")}
    if entries:
        # room for it is made by hand: Matplotlib 3.6 has no legends outside the axes
        room = _LEGEND_HEIGHT / figure.get_figheight()
        figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0.0, room, 1.0, 1.0 - room)))
        figure.legend(
            list(entries.values()), list(entries), loc="lower center", ncols=len(entries), frameon=False
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    if (layout := figure.get_layout_engine()) is not None:  # once, where to save draws and lays out again
        layout.execute(figure)
        figure.set_layout_engine(None)
    figure.savefig(path)
    return path
