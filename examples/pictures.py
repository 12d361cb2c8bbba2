"""What the pictures of the examples share: colours, grids of axes, one legend for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hodyn_ros.pictures import legend_below, plain, save_picture

Array = NDArray[np.float64]

AXIS_COLOURS = ("#CC3311", "#009988", "#0077BB")

_WIDTH = 11.0  # [inch]; 1210 pixels


def grid(
    rows: int, columns: int, height: float, title: str, note: str = ""
) -> tuple[Figure, NDArray[np.object_]]:
    """Make a figure of rows times columns of axes, `height` [inch] high, with a line of explanation."""
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    figure.suptitle(f"{title}\n{note}" if note else title, fontsize=12)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        plain(ax)
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
    ax.ticklabel_format(axis="y", scilimits=(-2, 4), useMathText=True)


def per_second(power: int) -> str:
    """Write the unit of a derivative with respect to time, to be put behind that of the quantity."""
    return "" if power == 0 else "/s" if power == 1 else f"/s$^{power}$"


def save(figure: Figure, path: Path, keys: Iterable[Axes] = ()) -> Path:
    """Write the figure with one legend below it for all curves of the axes `keys`."""
    entries = {str(line.get_label()): line for ax in keys for line in ax.lines}
    entries = {name: line for name, line in entries.items() if not name.startswith("_")}
    if entries:
        legend_below(figure, list(entries.values()), list(entries))
    figure.draw_without_rendering()  # the layout depends on ticks that are known only then
    return save_picture(figure, path)
