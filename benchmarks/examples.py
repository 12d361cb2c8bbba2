"""Programs of `examples/` as modules, whose studies benchmarks measure."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_FOLDER = str(Path(__file__).resolve().parent.parent / "examples")


def example(name: str) -> Any:
    """Return an example as a module; it imports those beside it."""
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
    return import_module(name)
