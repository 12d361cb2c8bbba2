"""Libraries that only some users have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hodyn_ros.errors import InputError
from hodyn_ros.extras import missing_extra


def needed(module: str) -> Any:
    """Return a module of an extra; where it is missing, InputError says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise InputError(missing) from None
