"""The extras of the installation: what only some users need, and pip installs when it is asked to."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hodyn_ros.errors import InputError

_EXTRA_OF = {
    "matplotlib": "plots",
    "rosbags": "bags",
    "mcap": "bags",
    "zstandard": "bags",
    "lz4": "bags",
    "clarabel": "identify",
    "viser": "view",
    "websockets": "view",
    "trimesh": "view",
    "pyarrow": "parquet",
    "casadi": "casadi",
    "jax": "jax",
    "torch": "torch",
    "lerobot": "lerobot",
    "daqp": "mpc",
    "mujoco": "mjcf",
}


class MissingExtra(ModuleNotFoundError, InputError):
    """A module of an extra is not installed; the message says how to get it."""


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return in one line what is missing and how to get it, or None for a module that is in no extra."""
    module = str(error.name).split(".")[0]
    if module not in _EXTRA_OF:
        return None
    return f"this needs {module}, which is missing: pip install {module}, or hodyn_ros[{_EXTRA_OF[module]}]"


def needed(module: str) -> Any:
    """Return a module of an extra; where it is missing, MissingExtra says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise MissingExtra(missing, name=error.name) from None
