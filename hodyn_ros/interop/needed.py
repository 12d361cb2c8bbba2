"""Libraries that only some users have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hodyn_ros.errors import InputError


def needed(module: str, extra: str) -> Any:
    """Return a module; where it is missing, InputError says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise InputError(
            f"this needs {module}, which is missing: pip install {module}, or hodyn_ros[{extra}]"
        ) from None
