"""How many threads BLAS takes."""

from __future__ import annotations

import os


def take_one_thread() -> None:
    """Let BLAS take one thread, before NumPy is imported, unless the environment says how many.

    Matrices here are small: further threads would wait for each other, on a busy machine for ten times as
    long as they compute.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
