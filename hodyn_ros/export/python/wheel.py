"""The wheel of a robot: compiled functions with names, shapes and words, as a package of their own."""

from __future__ import annotations

import base64
import hashlib
import keyword
import math
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_function import ALL_FINITE, CFunction, sizes
from hodyn_ros.export.c_source import CSource
from hodyn_ros.export.shared import build
from hodyn_ros.outputs import complete

_RUNTIME = Path(__file__).with_name("exported_robot.py")
_WIDTH = 100
_ARRAYS = (
    "Axis 0 of an array is the derivative order, in units per s^k, and the last axis the joint. Arguments "
    "may have further axes in front, all the same ones: calls that are made one after the other."
)


def write_wheel(robot: Robot, code: CSource, order: int, out: Path) -> Path:
    """Compile exported code and write `<name>-<version>-py3-none-<platform>.whl`; return its path.

    `import <name>` then has a class `Robot` with the functions of `code` as methods. Raises InputError where
    no C compiler is found, or with what it says, and for a name that Python or NumPy has already.
    """
    if keyword.iskeyword(code.name) or code.name.lower() in (*sys.stdlib_module_names, "numpy"):
        raise InputError(
            f"a package cannot be called {code.name!r}, as Python or NumPy is; choose another --name"
        )
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    released = version("hodyn_ros")
    with tempfile.TemporaryDirectory() as folder:
        calls = calls_source(code.name, code.functions)
        sources = {
            f"{code.name}.h": code.header,
            f"{code.name}.c": code.source,
            f"{code.name}_calls.c": calls,
        }
        library = build(sources, Path(folder), code.name, asked_by="--lang python").read_bytes()
    info = f"{code.name}-{released}.dist-info"
    files = {
        f"{code.name}/__init__.py": _module(robot, code, order).encode(),
        f"{code.name}/_exported_robot.py": _RUNTIME.read_bytes(),
        f"{code.name}/lib{code.name}.so": library,
        f"{code.name}/py.typed": b"",
        f"{info}/METADATA": _metadata(robot, code, released).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: hodyn_ros {released}\n"
        f"Root-Is-Purelib: false\nTag: py3-none-{tag}\n".encode(),
    }
    path = out / f"{code.name}-{released}-py3-none-{tag}.whl"
    with complete(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, f"{info}/RECORD": _record(files, info)}.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return path


def _record(files: Mapping[str, bytes], info: str) -> bytes:
    """List the files of a wheel with their digests."""
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    return "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _metadata(robot: Robot, code: CSource, released: str) -> str:
    return "\n".join(
        [
            "Metadata-Version: 2.1",
            f"Name: {code.name}",
            f"Version: {released}",
            f"Summary: Dynamics of robot {robot.name}, compiled",
            "Requires-Python: >=3.10",
            "Requires-Dist: numpy>=1.26",
            "Description-Content-Type: text/plain",
            "",
            *_about(code),
            "",
        ]
    )


def _about(code: CSource) -> list[str]:
    """Return what the header says of the robot, and how arrays are here."""
    comment = code.header.split("*/")[0].split("\n")[1:-1]
    lines = [line.removeprefix(" *").removeprefix(" ") for line in comment]
    of_c = next(i for i, line in enumerate(lines) if line.startswith("Derivative k of joint j"))
    return [*lines[:of_c], *wrap(_ARRAYS, _WIDTH)]


def _module(robot: Robot, code: CSource, order: int) -> str:
    about = "\n".join(_about(code)).replace("\\", "\\\\").replace('"""', "'''")
    dimensions = {function.name: _dimensions(robot, function, order) for function in code.functions}
    signatures = [
        f"        {function.name!r}: Signature({dict(function.inputs)!r}, {dimensions[function.name]!r}),"
        for function in code.functions
    ]
    methods = [line for function in code.functions for line in _method(function, dimensions[function.name])]
    several = [function for function in code.functions if len(function.results) > 1]
    return "\n".join(
        [
            f'"""{about}\n"""',
            "",
            "from pathlib import Path",
            *(["from typing import NamedTuple"] if several else []),
            "",
            "from numpy.typing import ArrayLike",
            "",
            "from ._exported_robot import Array, ExportedRobot, NoResultError, Signature",
            "",
            '__all__ = ["NoResultError", "Robot"]',
            "",
            *[line for function in several for line in _results(function, dimensions[function.name])],
            "",
            "class Robot(ExportedRobot):",
            *_docstring([f"Robot {robot.name!r}; each of these has a memory of its own, for one thread."], 4),
            "",
            f"    name = {robot.name!r}",
            f"    order = {order}",
            f"    joint_names = {robot.joint_names!r}",
            f"    driven_joints = {robot.driven_joints!r}",
            f"    _file = Path(__file__).with_name({f'lib{code.name}.so'!r})",
            f"    _prefix = {code.name!r}",
            "    _signatures = {",
            *signatures,
            "    }",
            *methods,
            "",
        ]
    )


def _results(function: CFunction, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Write the class of the results of a function that has several."""
    return [
        "",
        f"class {_class_name(function)}(NamedTuple):",
        *_docstring([f"Results of {function.name}."], 4),
        "",
        *[f"    {name}: Array  # {shape}" for name, shape in shapes.items()],
        "",
    ]


def _class_name(function: CFunction) -> str:
    return "".join(word.title() for word in function.name.split("_"))


def _method(function: CFunction, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    arguments = "".join(f", {name}: ArrayLike" for name in function.inputs)
    taken = ", ".join(f"{name} {shape}" for name, shape in function.inputs.items())
    several = len(shapes) > 1
    call = f"self._call({', '.join([repr(function.name), *function.inputs])})"
    (first, *_) = shapes
    return [
        "",
        f"    def {function.name}(self{arguments}) -> {_class_name(function) if several else 'Array'}:",
        *_docstring(
            [
                f"Return {', '.join(f'{name} {shape}' for name, shape in shapes.items())}.",
                "",
                *function.about,
                "",
                f"Shapes of arguments: {taken}.",
            ],
            8,
        ),
        f"        return {_class_name(function)}(*{call})" if several else f"        return {call}[0]",
    ]


def _docstring(lines: Sequence[str], margin: int) -> list[str]:
    """Write a docstring; empty lines part paragraphs."""
    first, *rest = [part for line in lines for part in (wrap(line, _WIDTH - margin) or [""])]
    quoted = [f'"""{first}', *rest, '"""'] if rest else [f'"""{first}"""']
    return [(" " * margin + line.replace("\\", "\\\\")).rstrip() for line in quoted]


def _dimensions(robot: Robot, function: CFunction, order: int) -> dict[str, tuple[int, ...]]:
    """Return shapes of results as calls of a robot have them, else as C has them."""
    structure, operation = robot.structure, OPERATIONS.get(function.name)
    symbols = {
        **{"order + 1": order + 1, "order + 3": order + 3, "2 order + 4": 2 * order + 4},
        **{"m": structure.n_coordinates, "efforts": structure.n_efforts, "n": robot.n_coordinates},
        **{"driven": len(robot.driven_joints), "10 bodies": 10 * robot.tree.n_bodies},
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (rows, columns) in function.results.items():
        shapes[name] = (rows, columns)
        if name in ("frame_poses", "platform_pose"):
            shapes[name] = (rows, 4, 4)
        elif name == "frame_twists":
            shapes[name] = (rows, columns // 6, 6)
        elif operation is not None and name == operation.in_c:
            parts = operation.result.strip("()").split(", ")
            sizes = tuple(symbols.get(part) or (int(part) if part.isdigit() else 0) for part in parts)
            if math.prod(sizes) == rows * columns:
                shapes[name] = sizes
    return shapes


def calls_source(prefix: str, functions: Sequence[CFunction]) -> str:
    """Write `<prefix>_<name>_calls` of every function, `<prefix>_memory_size` and `<prefix>_memory_home`.

    The first makes `count` calls, and returns how many had a result before one had none.
    """
    has_memory = any(function.memory for function in functions)
    size = f"sizeof({prefix}_memory)" if has_memory else "1"
    lines = [
        f"/* Calls of {prefix}.h for Python, written by `hodyn export --lang python`. */",
        f'#include "{prefix}.h"',
        "",
        "#include <stddef.h>",
        "",
        *ALL_FINITE["all_finite"],
        "",
        *[f"size_t {prefix}_memory_size(void)", "{", f"  return {size};", "}", ""],
        *[f"void {prefix}_memory_home(void *memory)", "{", "  (void)memory;"],
        *([f"  {prefix}_home(({prefix}_memory *)memory);"] if has_memory else []),
        *["}", ""],
    ]
    for function in functions:
        lines += [*_calls(prefix, function), ""]
    return "\n".join(lines)


def _calls(prefix: str, function: CFunction) -> list[str]:
    inputs, results = _of_one_call("inputs", function.inputs), _of_one_call("results", function.results)
    passed = {name: array for name, (array, _) in {**inputs, **results}.items()}
    call, macro = function.call(passed, f"({prefix}_memory *)memory"), prefix.upper()
    # functions that return a code look at the numbers themselves
    steps = [*_stop_unless_finite(inputs), f"    {call};"]
    if function.fails:
        steps = [
            *[
                f"    const int code = {call};",
                f"    if (code == {macro}_FAILED) {{",
                "      return k;",
                "    }",
            ],
            f"    *near_singular |= code == {macro}_NEAR_SINGULAR;",
        ]
    return [
        f"long {function.full_name}_calls(long count, void *memory, int *near_singular,",
        "    const double *const *inputs, double *const *results)",
        *["{", "  long k;", "  (void)memory;", "  (void)near_singular;"],
        "  for (k = 0; k < count; ++k) {",
        *[*steps, *_stop_unless_finite(results)],
        *["  }", "  return count;", "}"],
    ]


def _of_one_call(arrays: str, shapes: Mapping[str, Shape]) -> dict[str, tuple[str, int]]:
    """Return where the numbers of call `k` stand, and how many; arrays without numbers are not passed."""
    counts = sizes(shapes)
    return {
        name: (f"{arrays}[{i}] + k * {counts[name]}", counts[name])
        for i, name in enumerate(shapes)
        if name in counts
    }


def _stop_unless_finite(arrays: Mapping[str, tuple[str, int]]) -> list[str]:
    tests = [f"all_finite({array}, {size})" for array, size in arrays.values()]
    return [f"    if (!({' && '.join(tests)})) {{", "      return k;", "    }"] if tests else []
