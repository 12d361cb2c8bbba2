"""CasADi functions as C code, compiled as its users would: gcc -O3 -march=native."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")

# The same signature as ours, in the same translation unit, so that the compiler can see through it.
_PLAIN = """
void plain(const double* in, double* out) {{
  const double* arguments[{arguments}] = {{in}};
  double* results[{results}] = {{out}};
  double work[{work}];
  {name}(arguments, results, 0, work, 0);
}}
"""


@dataclass(frozen=True, eq=False)
class Library:
    """Copies of a compiled CasADi function `void f(const double* in, double* out)`."""

    addresses: list[int]
    _libraries: list[Any]


def compiler() -> str | None:
    """Return the C compiler: gcc if there is one, else what $CC or cc name, else None."""
    return next(
        (found for name in ("gcc", os.environ.get("CC"), "cc") if name and (found := shutil.which(name))),
        None,
    )


def compile_function(function: Any, copies: int) -> Library:
    """Write a CasADi function of one argument and one result as C code, compile and load it several times."""
    command = compiler()
    if command is None:
        raise RuntimeError("no C compiler found; install gcc")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "function.c"), Path(folder, "function.so")
        code = _generated(function, folder)
        code += _PLAIN.format(
            name=function.name(),
            arguments=function.sz_arg(),
            results=function.sz_res(),
            work=max(function.sz_w(), 1),
        )
        source.write_text(code, encoding="utf-8")
        subprocess.run([command, *FLAGS, str(source), "-o", str(library), "-lm"], check=True)
        loaded = []
        for i in range(copies):
            copy = shutil.copy(library, Path(folder, f"copy{i}.so"))
            loaded.append(ctypes.CDLL(str(copy)))
    return Library([ctypes.cast(copy.plain, ctypes.c_void_p).value or 0 for copy in loaded], loaded)


def _generated(function: Any, folder: str) -> str:
    import casadi

    generator = casadi.CodeGenerator("function.c")
    generator.add(function)
    return str(generator.dump())
