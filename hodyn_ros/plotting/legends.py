"""Legends below the axes of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

_HEIGHT = 0.4  # [inch]


def legend_below(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """Put a legend below the axes, in room made by hand: Matplotlib 3.6 knows no legends outside of them."""
    room = _HEIGHT / figure.get_figheight()
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0.0, room, 1.0, 1.0 - room)))
    figure.legend(handles, names, loc="lower center", ncols=min(max(len(names), 1), 7), frameon=False)
