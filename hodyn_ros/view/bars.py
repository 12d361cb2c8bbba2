"""Torques of drives beside their limits, as bars of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.view.track import DriveLimit

_CALM, _HIGH, _BEYOND = "#4477AA", "#CCBB44", "#EE6677"
_NEAR = 0.8  # share of a limit from which it is shown as high


def shares(limits: Sequence[DriveLimit], torques: Array) -> Array:
    """Return which share of its limit each drive uses (m,), with the sign of its torque; nan without limits.

    >>> shares([DriveLimit("hip", "N·m", -80.0, 80.0), DriveLimit("fan", "N", 0.0, 5.0)], np.array([-20, 4]))
    array([-0.25,  0.8 ])
    """
    bounds = np.array([limit.upper if x >= 0.0 else -limit.lower for limit, x in zip(limits, torques)])
    known = np.isfinite(bounds) & (bounds > 0.0)
    found = np.asarray(torques, dtype=np.float64) / np.where(known, bounds, 1.0)
    return np.asarray(np.where(known, found, np.nan))


def bars(limits: Sequence[DriveLimit], torques: Array) -> str:
    """Return a table of HTML: for each drive a bar from zero to its torque, at whose ends are its limits."""
    rows = [_row(*each) for each in zip(limits, torques.tolist(), shares(limits, torques).tolist())]
    style = "display:grid;grid-template-columns:auto minmax(5em,1fr) auto;gap:0.25em 0.6em;align-items:center"
    return f'<div style="{style};font-size:0.75em;padding:0.5em 0.9em">{"".join(rows)}</div>'


def _row(limit: DriveLimit, torque: float, share: float) -> str:
    known = np.isfinite(share)
    size = min(abs(share), 1.0) * 50.0 if known else 0.0
    colour = _BEYOND if known and abs(share) > 1.0 else _HIGH if known and abs(share) > _NEAR else _CALM
    left = 50.0 - size if torque < 0.0 else 50.0
    most = limit.upper if torque >= 0.0 else limit.lower
    words = f"{torque:.1f} of {most:.0f} {limit.unit}" if known else f"{torque:.1f} {limit.unit}"
    place = f"position:absolute;left:{left:.1f}%;width:{size:.1f}%;height:100%"
    fill = f'<i style="{place};background:{colour}"></i>'
    zero = '<i style="position:absolute;left:50%;width:1px;height:100%;background:#777"></i>'
    bar = f'<div style="position:relative;height:0.9em;background:#7773;border-radius:2px">{fill}{zero}</div>'
    number = f'<span style="text-align:right;white-space:nowrap">{escape(words)}</span>'
    return f"<span>{escape(limit.name)}</span>{bar}{number}"
