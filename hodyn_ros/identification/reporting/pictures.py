"""Pictures of an identification: measured against predicted, residuals, their spectra, and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hodyn_ros.array import Array
from hodyn_ros.identification.result import Fit, Identified
from hodyn_ros.pictures import plain, save_picture

_BLUE, _RED, _GREY = "#0072B2", "#D55E00", "#888888"


def draw_fits(fits: Sequence[Fit], units: Mapping[str, str], factor: float, title: str, path: Path) -> Path:
    """Draw each joint: measured, predicted and residual over time, and the spectrum of the residual.

    `units` are those of the joints, in which values are drawn after multiplication with `factor`.
    """
    height = 1.4 + 2.0 * len(fits)  # margins are set by hand: a layout that seeks them takes a second a joint
    figure = Figure(figsize=(12.0, height))
    figure.suptitle(title, y=1.0 - 0.25 / height)
    axes = figure.subplots(len(fits), 2, squeeze=False, width_ratios=(3, 1))
    figure.subplots_adjust(0.07, 0.6 / height, 0.985, 1.0 - 0.8 / height, wspace=0.22, hspace=0.4)
    for (left, right), fit in zip(axes, fits):
        times, unit = fit.times - fit.times[0], units[fit.joint]
        residual = factor * (fit.measured - fit.predicted)
        left.plot(times, factor * fit.measured, color=_GREY, linewidth=1.0, label="measured")
        left.plot(times, factor * fit.predicted, color=_BLUE, linewidth=1.4, label="predicted")
        left.plot(times, residual, color=_RED, linewidth=0.8, label="residual")
        left.set_title(f"{fit.joint}: residual {factor * fit.rms:.3g} {unit} RMS", loc="left", fontsize=10)
        left.set_ylabel(f"[{unit}]")
        frequencies, density = spectrum(fit.times, residual)
        right.loglog(frequencies[1:], density[1:], color=_RED, linewidth=0.9)
        right.set_ylabel(f"[{unit}/√Hz]")
        right.minorticks_off()
        for ax in (left, right):
            plain(ax)
    axes[0, 0].legend(frameon=False, fontsize=8, ncols=3, loc="upper right")
    axes[0, 1].set_title("spectrum of the residual", loc="left", fontsize=10)
    axes[-1, 0].set_xlabel("time [s]")
    axes[-1, 1].set_xlabel("frequency [Hz]")
    return save_picture(figure, path)


def spectrum(times: Array, values: Array) -> tuple[Array, Array]:
    """Return frequencies [Hz] and the amplitude density of values at about even times."""
    rate = (len(times) - 1) / (times[-1] - times[0])
    window = np.hanning(len(values))
    density = np.abs(np.fft.rfft(window * (values - values.mean()))) / np.sqrt(0.5 * rate * (window**2).sum())
    return np.fft.rfftfreq(len(values), 1.0 / rate), density


def draw_figures(result: Identified, path: Path) -> Path:
    """Draw every figure with its 95 % interval, as a share of the file's or of itself."""
    shown = [f for f in result.figures if np.isfinite(f.value) and f.deviation > 0.0]
    height = 1.4 + 0.2 * len(shown)
    figure = Figure(figsize=(11.0, height))
    ax = figure.add_subplot()
    figure.subplots_adjust(0.32, 0.7 / height, 0.98, 1.0 - 0.5 / height)
    for place, each in enumerate(shown):
        known = np.isfinite(each.prior) and each.prior != 0.0
        scale = abs(each.prior) if known else max(abs(each.value), 1e-300)
        colour = _BLUE if each.identified else _GREY
        low, high = each.interval
        ax.plot([low / scale, high / scale], [place, place], color=colour, linewidth=1.4)
        ax.plot(each.value / scale, place, "o", color=colour, markersize=4)
        if known:
            ax.plot(each.prior / scale, place, "|", color=_RED, markersize=10)
    ax.set_yticks(range(len(shown)), [_short(f.name) for f in shown], fontsize=7)
    ax.set_xlim(-3.0, 3.0)
    ax.invert_yaxis()
    plain(ax, "x")
    ax.set_xlabel(
        "value with its 95 % interval, as a share of the file's (red) or of itself; grey: not identified"
    )
    ax.set_title(f"{result.robot.name}, identified from {result.source}", loc="left")
    return save_picture(figure, path)


def _short(name: str) -> str:
    return name if len(name) <= 46 else f"{name[:45]}…"
