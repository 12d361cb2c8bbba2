"""Calling compiled code from Python in a fraction of a microsecond: a built-in function made by LLVM.

A Python wrapper that checks shapes costs more than the dynamics it guards. Here the checks are compiled too:
the function that Python calls reads type, shape, layout and numbers of its arrays itself, runs the kernel,
and hands everything else (lists, wrong shapes, NaN) to an ordinary Python function, which converts or
explains.

It relies on the layout of CPython's and NumPy's objects, which both projects keep stable as their binary
interface. The layout is verified on live objects first; where it differs, callers get the ordinary function.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.llvm import compile_text
from hodyn_ros.codegen.object_cache import ObjectCache

_DATA, _DIMENSIONS_COUNT, _DIMENSIONS, _DESCRIPTOR, _FLAGS = 16, 24, 32, 56, 64  # offsets in an array object
_READABLE = 0x0001 | 0x0100  # C-contiguous, aligned
_WRITABLE = _READABLE | 0x0400
_PYARRAY_NEW = 93  # its place in NumPy's table of functions
_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002
_DOUBLE = 12

Shape = tuple[int, int]


class _MethodDefinition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    ]


def fast_call(
    address: int,
    arguments: Sequence[Shape],
    result: Shape,
    otherwise: Callable[..., Any],
    *,
    judged: bool = False,
) -> Callable[..., Any]:
    """Return a built-in function `f(*arrays, out=None)` around the kernel at `address`.

    Calls with C-contiguous float64 arrays of exactly the shapes `arguments`, all numbers finite and not so
    large that products of them could overflow, run the kernel `void kernel(const double*..., double* out)`
    into a new array of shape `result`, or into `out`; any other call is passed on to `otherwise` as it came.
    With `judged` the kernel returns an int64, and where that is not zero, the call is passed on as well.
    `otherwise` itself is returned where the interpreter does not fit.
    """
    if not _layout_is_known():
        return otherwise
    definition = _definition(len(arguments), _large(max(rows for rows, _ in arguments)), judged)
    call, passed_on = _vectorcall(otherwise)
    shapes = [size for shape in (result, *arguments) for size in shape]
    words = [
        id(np.ndarray),
        id(np.dtype(np.float64)),
        id(_OUT),
        id(passed_on),
        _numpy_function(_PYARRAY_NEW),
        address,
        call,
        *shapes,
    ]
    context = _Context(np.array(words, dtype=np.int64).tobytes())
    context.alive = passed_on
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.byref(definition), context, None)
    return function


def data_of(array: NDArray[Any]) -> int:
    """Return the address of the first number, as `array.ctypes.data` does, in a tenth of its time."""
    if not _layout_is_known():
        return int(array.ctypes.data)
    return ctypes.c_size_t.from_address(id(array) + _DATA).value


class _Context(bytes):
    """What the compiled wrapper reads, as `self` of the built-in function, and what that lives on."""

    alive: Callable[..., Any]


_OUT = sys.intern("out")


@cache
def _definition(n_arguments: int, large: int, judged: bool) -> _MethodDefinition:
    """Return the definition of a built-in function, which lives until the process ends.

    Its functions read it until they are gone, and neither the order in which the garbage collector takes a
    cycle apart nor the end of the interpreter may leave them without; there are few.
    """
    text = _wrapper_text(n_arguments, large, judged)
    code = compile_text(text, "hodyn_call", ObjectCache.default(), optimise=True)
    definition = _MethodDefinition(b"dynamics", code.address, _FASTCALL_WITH_KEYWORDS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((definition, code)))
    return definition


def _large(most_rows: int) -> int:
    """Return the binary exponent below which products of as many numbers as there are rows stay finite."""
    return min(60, 900 // most_rows)


def _vectorcall(function: Callable[..., Any]) -> tuple[int | None, Callable[..., Any]]:
    """Return the address of what calls Python objects from C, and `function` as an object that it takes."""
    api = ctypes.pythonapi
    if hasattr(api, "PyObject_Vectorcall"):
        return ctypes.cast(api.PyObject_Vectorcall, ctypes.c_void_p).value, function

    # CPython 3.10 has it only inline, in its headers; what it exports calls functions, but no methods
    def plain(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return ctypes.cast(api._PyFunction_Vectorcall, ctypes.c_void_p).value, plain


def _numpy_function(index: int) -> int:
    multiarray = sys.modules.get("numpy._core.multiarray") or sys.modules["numpy.core.multiarray"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return int(table[index] or 0)


@cache
def _layout_is_known() -> bool:
    """Compare what the offsets say about live objects with what Python says about them."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return False
    for array in (np.zeros((3, 5)), np.zeros((4, 6)).T, np.zeros(7, dtype=np.float32)):
        start = id(array)

        def word(offset: int, start: int = start) -> int:
            return ctypes.c_int64.from_address(start + offset).value

        flags = array.flags.num
        dimensions = (ctypes.c_int64 * array.ndim).from_address(word(_DIMENSIONS))
        as_expected = (
            word(8) == id(type(array))
            and word(_DATA) == array.ctypes.data
            and ctypes.c_int.from_address(start + _DIMENSIONS_COUNT).value == array.ndim
            and tuple(dimensions) == array.shape
            and word(_DESCRIPTOR) == id(array.dtype)
            and ctypes.c_int.from_address(start + _FLAGS).value == flags
        )
        if not as_expected:
            return False
    sample = _Context(b"hodyn_ros")
    content = (ctypes.c_char * len(sample)).from_address(id(sample) + _bytes_offset())
    return content.raw == sample


def _bytes_offset() -> int:
    return bytes.__basicsize__ - 1


def _wrapper_text(n_arguments: int, large: int, judged: bool) -> str:
    """Write the function that Python calls; `self` is a bytes object with the context."""
    data = ", ".join(f"ptr %array{a}_data" for a in range(n_arguments))
    run = [f"call void %kernel({data}, ptr %out_data)"]
    if judged:
        run = [
            f"%status = call i64 %kernel({data}, ptr %out_data)",
            "%good = icmp eq i64 %status, 0",
            "br i1 %good, label %finished, label %refused",
            "refused:",
            "call void @Py_DecRef(ptr %out)",
            "br label %otherwise_block",
            "finished:",
        ]
    lines = [
        "define ptr @hodyn_call(ptr %self, ptr %args, i64 %count, ptr %names) {",
        "entry:",
        f"%context = getelementptr i8, ptr %self, i64 {_bytes_offset()}",
    ]
    for i, name in enumerate(["type", "float64", "out_name", "otherwise", "new", "kernel", "call"]):
        lines.append(f"%{name}_at = getelementptr i64, ptr %context, i64 {i}")
        lines.append(f"%{name} = load ptr, ptr %{name}_at, align 8")
    lines.append("%result_shape = getelementptr i64, ptr %context, i64 7")
    lines.append(f"%enough = icmp eq i64 %count, {n_arguments}")
    lines.append("br i1 %enough, label %check0, label %otherwise_block")
    for a in range(n_arguments):
        following = f"check{a + 1}" if a + 1 < n_arguments else "result"
        lines.append(f"check{a}:")
        lines.append(f"%slot{a} = getelementptr ptr, ptr %args, i64 {a}")
        lines.append(f"%array{a} = load ptr, ptr %slot{a}, align 8")
        lines += _check_lines(f"array{a}", 9 + 2 * a, _READABLE, f"numbers{a}")
        lines += _moderate_lines(a, following, large)
    lines += [
        "result:",
        "%plain = icmp eq ptr %names, null",
        "br i1 %plain, label %allocate, label %named",
        "allocate:",
        f"%fresh = call ptr %new(ptr %type, i32 2, ptr %result_shape, i32 {_DOUBLE}, ptr null, ptr null, "
        "i32 0, i32 0, ptr null)",
        "%failed = icmp eq ptr %fresh, null",
        "br i1 %failed, label %nothing, label %run",
        "nothing:",
        "ret ptr null",
        "named:",  # a tuple: its size at 16, its items from 24
        "%size_at = getelementptr i8, ptr %names, i64 16",
        "%size = load i64, ptr %size_at, align 8",
        "%name_at = getelementptr i8, ptr %names, i64 24",
        "%one = icmp eq i64 %size, 1",
        "br i1 %one, label %name, label %otherwise_block",
        "name:",
        "%given_name = load ptr, ptr %name_at, align 8",
        "%is_out = icmp eq ptr %given_name, %out_name",
        "br i1 %is_out, label %given, label %otherwise_block",
        "given:",
        f"%given_slot = getelementptr ptr, ptr %args, i64 {n_arguments}",
        "%given_out = load ptr, ptr %given_slot, align 8",
        *_check_lines("given_out", 7, _WRITABLE, "keep"),
        "keep:",
        "call void @Py_IncRef(ptr %given_out)",
        "br label %run",
        "run:",
        "%out = phi ptr [%fresh, %allocate], [%given_out, %keep]",
        f"%out_data_at = getelementptr i8, ptr %out, i64 {_DATA}",
        "%out_data = load ptr, ptr %out_data_at, align 8",
        *run,
        "ret ptr %out",
        "otherwise_block:",
        "%answer = call ptr %call(ptr %otherwise, ptr %args, i64 %count, ptr %names)",
        "ret ptr %answer",
        "}",
        "declare void @Py_IncRef(ptr)",
        "declare void @Py_DecRef(ptr)",
    ]
    return "\n".join(lines) + "\n"


def _check_lines(array: str, shape_at: int, flags: int, following: str) -> list[str]:
    """Compare an object with a float64 matrix of the shape in the context, then go on or give up."""
    return [
        f"%{array}_type_at = getelementptr i8, ptr %{array}, i64 8",
        f"%{array}_type = load ptr, ptr %{array}_type_at, align 8",
        f"%{array}_is_array = icmp eq ptr %{array}_type, %type",
        f"br i1 %{array}_is_array, label %{array}_fields, label %otherwise_block",
        f"{array}_fields:",
        f"%{array}_descriptor_at = getelementptr i8, ptr %{array}, i64 {_DESCRIPTOR}",
        f"%{array}_descriptor = load ptr, ptr %{array}_descriptor_at, align 8",
        f"%{array}_is_float = icmp eq ptr %{array}_descriptor, %float64",
        f"%{array}_count_at = getelementptr i8, ptr %{array}, i64 {_DIMENSIONS_COUNT}",
        f"%{array}_count = load i32, ptr %{array}_count_at, align 4",
        f"%{array}_is_matrix = icmp eq i32 %{array}_count, 2",
        f"%{array}_flags_at = getelementptr i8, ptr %{array}, i64 {_FLAGS}",
        f"%{array}_flags = load i32, ptr %{array}_flags_at, align 4",
        f"%{array}_wanted = and i32 %{array}_flags, {flags}",
        f"%{array}_fits = icmp eq i32 %{array}_wanted, {flags}",
        f"%{array}_a = and i1 %{array}_is_float, %{array}_is_matrix",
        f"%{array}_b = and i1 %{array}_a, %{array}_fits",
        f"br i1 %{array}_b, label %{array}_shape, label %otherwise_block",
        f"{array}_shape:",
        f"%{array}_shape_at = getelementptr i8, ptr %{array}, i64 {_DIMENSIONS}",
        f"%{array}_shape_of = load ptr, ptr %{array}_shape_at, align 8",
        f"%{array}_found = load <2 x i64>, ptr %{array}_shape_of, align 8",
        f"%{array}_expected_at = getelementptr i64, ptr %context, i64 {shape_at}",
        f"%{array}_expected = load <2 x i64>, ptr %{array}_expected_at, align 8",
        f"%{array}_same = icmp eq <2 x i64> %{array}_found, %{array}_expected",
        f"%{array}_same0 = extractelement <2 x i1> %{array}_same, i32 0",
        f"%{array}_same1 = extractelement <2 x i1> %{array}_same, i32 1",
        f"%{array}_same2 = and i1 %{array}_same0, %{array}_same1",
        f"br i1 %{array}_same2, label %{following}, label %otherwise_block",
    ]


def _moderate_lines(a: int, following: str, large: int) -> list[str]:
    """Look for a number of 2^large or more, infinite, or NaN, by its exponent."""
    exponent = 0x7FF0000000000000
    return [
        f"numbers{a}:",
        f"%array{a}_data_at = getelementptr i8, ptr %array{a}, i64 {_DATA}",
        f"%array{a}_data = load ptr, ptr %array{a}_data_at, align 8",
        f"%rows{a} = extractelement <2 x i64> %array{a}_expected, i32 0",
        f"%columns{a} = extractelement <2 x i64> %array{a}_expected, i32 1",
        f"%length{a} = mul i64 %rows{a}, %columns{a}",
        f"%empty{a} = icmp eq i64 %length{a}, 0",
        f"br i1 %empty{a}, label %{following}, label %scan{a}",
        f"scan{a}:",
        f"%i{a} = phi i64 [0, %numbers{a}], [%next{a}, %scan{a}]",
        f"%bad{a} = phi i64 [0, %numbers{a}], [%worse{a}, %scan{a}]",
        f"%number_at{a} = getelementptr i64, ptr %array{a}_data, i64 %i{a}",
        f"%number{a} = load i64, ptr %number_at{a}, align 8",
        f"%bits{a} = and i64 %number{a}, {exponent}",
        f"%special{a} = icmp sge i64 %bits{a}, {(1023 + large) << 52}",
        f"%wide{a} = zext i1 %special{a} to i64",
        f"%worse{a} = or i64 %bad{a}, %wide{a}",
        f"%next{a} = add nuw i64 %i{a}, 1",
        f"%more{a} = icmp ult i64 %next{a}, %length{a}",
        f"br i1 %more{a}, label %scan{a}, label %scanned{a}",
        f"scanned{a}:",
        f"%clean{a} = icmp eq i64 %worse{a}, 0",
        f"br i1 %clean{a}, label %{following}, label %otherwise_block",
    ]
