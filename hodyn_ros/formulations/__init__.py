"""The published recursions in readable NumPy, one file per paper; they define what is right."""

from __future__ import annotations

from collections.abc import Callable

from hodyn_ros.array import Array
from hodyn_ros.formulations import body_fixed, closed_form, hybrid, spatial

InverseDynamics = Callable[..., tuple[Array, Array]]

INVERSE_DYNAMICS: dict[str, InverseDynamics] = {
    "body_fixed": body_fixed.inverse_dynamics,
    "closed_form": closed_form.inverse_dynamics,
    "hybrid": hybrid.inverse_dynamics,
    "spatial": spatial.inverse_dynamics,
}
