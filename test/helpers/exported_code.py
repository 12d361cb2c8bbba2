"""Exported C code, compiled by the system's compiler and called through ctypes.

What a compiler has made of the same text with the same flags is kept for the next run of the tests.
"""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hodyn_ros.array import Array
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.export import CSource

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion")
RELATIVE = 1e-12

CC = next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)
CXX = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
CXX_WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wshadow",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Werror",
)
needs_c = pytest.mark.skipif(CC is None, reason="there is no C compiler (cc, gcc or clang) on the path")
needs_cxx = pytest.mark.skipif(
    None in (CC, CXX), reason="there is no C and C++ compiler (c++, g++, clang++) on the path"
)


def write(code: CSource, folder: Path) -> Path:
    """Write both files; return the path of the source."""
    (folder / f"{code.name}.h").write_text(code.header)
    path = folder / f"{code.name}.c"
    path.write_text(code.source)
    return path


@cache
def _version(compiler: str) -> str:
    return _output_of(compiler, "--version")


def _output_of(*command: str | Path) -> str:
    return subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, text=True).stdout


def compiled_by(
    compiler: str | None, flags: Sequence[str], sources: Sequence[Path], output: Path, *libraries: str
) -> Path:
    """Compile sources, or take what the same compiler has made of them, preprocessed, in an earlier run."""
    assert compiler is not None
    texts = [_output_of(compiler, *flags, "-E", "-P", source) for source in sources]
    key, kept = "\n".join([_version(compiler), *flags, *libraries, *texts]), ObjectCache.default()
    made = kept.get(key) if kept else None
    if made is None:
        _output_of(compiler, *flags, *sources, "-o", output, *libraries)
        if kept:
            kept.put(key, output.read_bytes())
    else:
        output.write_bytes(made)
        output.chmod(0o700)
    return output


def compiled(code: CSource, folder: Path, *flags: str) -> ctypes.CDLL:
    """Compile strictly, as a library, in the least time."""
    library = folder / f"{code.name}.so"
    strict = ("-std=c99", *WARNINGS, "-Wmissing-prototypes", "-O0", "-fPIC", "-shared", *flags)
    compiled_by(CC, strict, [write(code, folder)], library, "-lm")
    loaded = ctypes.CDLL(str(library))
    if hasattr(loaded, f"{code.name}_self_test"):
        getattr(loaded, f"{code.name}_self_test").restype = ctypes.c_double
    return loaded


def call(function: Callable[..., Any], *arrays: Array) -> Any:
    """Call a function of C-contiguous arrays."""
    assert all(array.flags.c_contiguous and array.dtype == np.float64 for array in arrays)
    return function(*[array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in arrays])


def declared(header: str, function: str) -> list[tuple[str, int, bool]]:
    """Return of the arrays of a function names, sizes, and whether they are given."""
    prototype = re.search(rf"\b{function}\(([^)]*)\);", header)
    assert prototype is not None
    arrays = re.findall(r"(const )?double (\w+)\[(\d+)\]", prototype[1])
    return [(name, int(size), bool(const)) for const, name, size in arrays]


def assert_rows_close(found: Array, expected: Array, relative: float = RELATIVE) -> None:
    """Compare order by order, against the largest number of the order."""
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert np.isfinite(found).all()
    assert (np.abs(found - expected) <= relative * scale).all(), np.abs(found - expected) / scale
