"""What pictures share: colours of joints, plain axes, a legend below them, and how they are saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from hodyn_ros.outputs import complete

# A palette that can be told apart also by those who see colours differently (Tol).
JOINT_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#777777")

_LEGEND_HEIGHT = 0.4  # [inch]
_DPI = 110


def plain(ax: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw a faint grid, and no frame at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, axis=grid)


def joint_style(joint: int) -> tuple[str, str]:
    """Return colour and dashes of a joint; where there are more joints than colours, these are dashed."""
    return JOINT_COLOURS[joint % len(JOINT_COLOURS)], "--" if joint >= len(JOINT_COLOURS) else "-"


def legend_below(figure: Figure, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """Put a legend below the axes, in space made by hand: Matplotlib 3.6 has no legends outside of them."""
    space = _LEGEND_HEIGHT / figure.get_figheight()
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0.0, space, 1.0, 1.0 - space)))
    figure.legend(handles, names, loc="lower center", ncols=min(max(len(names), 1), 7), frameon=False)


def save_picture(figure: Figure, path: Path, dpi: float = _DPI) -> Path:
    """Save a figure, and return its path; the folder is made, and no half picture is left."""
    with complete(path) as part:
        figure.savefig(part, dpi=dpi)
    return path
