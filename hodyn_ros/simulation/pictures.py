"""The pictures of this package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.pictures import joint_style, legend_below, plain, save_picture
from hodyn_ros.simulation.recording import Recording, seconds, tracking

# A palette that can be told apart also by those who see colours differently (Okabe and Ito).
MODE_STYLES = {
    "none": ("feedback only", "#888888"),
    "rigid": ("rigid feedforward", "#E69F00"),
    "offset": ("rigid, motors offset by τ/K", "#CC79A7"),
    "elastic": ("elastic feedforward", "#0072B2"),
}
_WINDOW = 0.1  # [s] over which errors are taken together
_HEADROOM = 1.6  # between a curve and its label, as a factor
_LETTERS = 2.5  # height of a label, as a factor


def check_file_type(path: Path) -> None:
    """Raise InputError unless the suffix is that of a picture: what is drawn last is rejected at first."""
    types = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in types:
        raise InputError(f"'{path}' does not end like a picture; choose one of .{', .'.join(types)}")


def plot_demo(recordings: Mapping[str, Recording], begin: float, end: float, path: Path) -> None:
    """Draw the feedforward of the last run and the errors of all, from `begin` to `end` [s] of the motion."""
    recording = list(recordings.values())[-1]
    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True).ravel()
    elapsed = seconds(recording.feedforward_stamps - recording.start)
    chosen = (begin <= elapsed) & (elapsed <= end)
    titles = ("torque [N·m]", "torque rate [N·m/s]", "torque acceleration [N·m/s²]")
    for order, (ax, title) in enumerate(zip(axes, titles)):
        _draw_joints(ax, elapsed[chosen] - begin, recording.efforts[chosen, order], recording.joint_names)
        ax.set_title(title, loc="left", fontsize=11)
    _draw_errors(axes[3], recordings, begin, end)
    axes[3].set_title("tracking error, RMS over the joints [rad]", loc="left", fontsize=11)
    for ax in axes:
        plain(ax)
        ax.set_xlim(0.0, end - begin)
    for ax in axes[2:]:
        ax.set_xlabel("time [s]")
    handles, names = axes[0].get_legend_handles_labels()
    legend_below(figure, handles, names)
    figure.suptitle("Feedforward torque of a Panda with elastic joints, and how well the arm follows with it")
    save_picture(figure, path)


def _draw_joints(ax: Axes, times: Array, values: Array, names: NDArray[np.str_]) -> None:
    for joint, name in enumerate(names):
        colour, dashes = joint_style(joint)
        ax.plot(times, values[:, joint], dashes, color=colour, linewidth=1.4, label=name)


def _draw_errors(ax: Axes, recordings: Mapping[str, Recording], begin: float, end: float) -> None:
    ax.set_yscale("log")
    top = 0.0
    heights: list[float] = []
    lowest = np.inf
    for mode, recording in recordings.items():
        errors = tracking(recording, begin, end)
        times, rms = windowed_rms(errors.times - begin, errors.errors)
        label, colour = MODE_STYLES[mode]
        ax.plot(times, rms, color=colour, linewidth=1.8)
        # where it is as high as the curve gets under the words, so that they never meet
        height = float(rms[: 2 * len(rms) // 3 + 1].max()) * _HEADROOM
        if any(1.0 / _LETTERS < height / other < _LETTERS for other in heights):
            height = float(rms.min()) / _LETTERS  # below two curves that are alike
        heights.append(height)
        ax.text(
            0.02 * (end - begin), height, f"{label}, {errors.rms:.1e} rad", color=colour, fontweight="bold"
        )
        top = max(top, height)
        # most of it: a late message makes a peak, far above the rest
        lowest = min(lowest, height, float(np.quantile(rms[rms > 0.0], 0.1)))
    ax.set_ylim(bottom=lowest / _HEADROOM, top=2.5 * top)


def windowed_rms(times: Array, errors: Array) -> tuple[Array, Array]:
    """Return the middles of windows of time, and the RMS in them over instants and joints."""
    window = (times / _WINDOW).astype(int)
    counts = np.bincount(window)
    filled = np.flatnonzero(counts)
    squares = np.bincount(window, weights=np.mean(errors**2, axis=1))[filled] / counts[filled]
    return np.asarray((filled + 0.5) * _WINDOW), np.asarray(np.sqrt(squares))
