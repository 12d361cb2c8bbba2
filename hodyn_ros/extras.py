"""The extras of the installation: what only some users need, and pip installs when it is asked to."""

from __future__ import annotations

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
}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return in one line what is missing and how to get it, or None for a module that is in no extra."""
    module = str(error.name).split(".")[0]
    if module not in _EXTRA_OF:
        return None
    return f"this needs {module}, which is missing: pip install {module}, or hodyn_ros[{_EXTRA_OF[module]}]"
