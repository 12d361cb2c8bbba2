"""Reading the parts of a parallel robot from arrays and mappings, with errors that name the part."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Array


def model_array(name: str, values: ArrayLike, shape: tuple[int, ...] | None) -> Array:
    """Return finite float64 numbers, read-only, of a shape (any where None); ModelError names them."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be numbers: {error}") from None
    if shape is not None and array.shape != shape:
        raise ModelError(f"{name} must have shape {shape}, found {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{name} holds numbers that are not finite")
    array.setflags(write=False)
    return array


def known_fields(what: str, kind: type, given: Any) -> dict[str, Any]:
    """Return a mapping whose keys are fields of the dataclass `kind`; ModelError names the odd one."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{what} must be a {kind.__name__} or a mapping, found {type(given).__name__}")
    known = {field.name: field for field in fields(kind)}
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
            raise ModelError(f"{what} has no {key!r}; {hint}")
    for key, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and key not in given:
            raise ModelError(f"{what} misses {key!r}")
    return dict(given)
