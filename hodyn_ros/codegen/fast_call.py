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
_LANES = 8  # numbers looked at together

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
    code = compile_text(text, "hodyn_call", ObjectCache.default())
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
    """Write the function that Python calls; `self` is a bytes object with the context.

    What is asked of every array stands in functions beside it, which take a fifth of the time to compile that
    they take inlined for each argument and optimised, and a nanosecond or two of a call.
    """
    data = ", ".join(f"ptr %data{a}" for a in range(n_arguments))
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
        lines += [
            f"check{a}:",
            f"%slot{a} = getelementptr ptr, ptr %args, i64 {a}",
            f"%array{a} = load ptr, ptr %slot{a}, align 8",
            f"%shape{a} = getelementptr i64, ptr %context, i64 {9 + 2 * a}",
            f"%data{a} = call ptr @numbers(ptr %array{a}, ptr %context, ptr %shape{a})",
            f"%fits{a} = icmp ne ptr %data{a}, null",
            f"br i1 %fits{a}, label %{following}, label %otherwise_block",
        ]
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
        f"%kept = call ptr @matrix(ptr %given_out, ptr %context, ptr %result_shape, i32 {_WRITABLE})",
        "%usable = icmp ne ptr %kept, null",
        "br i1 %usable, label %keep, label %otherwise_block",
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
    return "\n".join(lines) + "\n" + _matrix_text() + _numbers_text(large)


def _matrix_text() -> str:
    """Write what compares an object with a float64 matrix of a shape; it returns its numbers, or null."""
    lines = [
        "define internal ptr @matrix(ptr %array, ptr %context, ptr %expected_at, i32 %wanted_flags) {",
        "%type = load ptr, ptr %context, align 8",
        "%type_at = getelementptr i8, ptr %array, i64 8",
        "%type_of = load ptr, ptr %type_at, align 8",
        "%is_array = icmp eq ptr %type_of, %type",
        "br i1 %is_array, label %fields, label %otherwise",
        "fields:",
        "%float64_at = getelementptr i64, ptr %context, i64 1",
        "%float64 = load ptr, ptr %float64_at, align 8",
        f"%descriptor_at = getelementptr i8, ptr %array, i64 {_DESCRIPTOR}",
        "%descriptor = load ptr, ptr %descriptor_at, align 8",
        "%is_float = icmp eq ptr %descriptor, %float64",
        f"%count_at = getelementptr i8, ptr %array, i64 {_DIMENSIONS_COUNT}",
        "%count = load i32, ptr %count_at, align 4",
        "%is_matrix = icmp eq i32 %count, 2",
        f"%flags_at = getelementptr i8, ptr %array, i64 {_FLAGS}",
        "%flags = load i32, ptr %flags_at, align 4",
        "%wanted = and i32 %flags, %wanted_flags",
        "%laid_out = icmp eq i32 %wanted, %wanted_flags",
        "%a = and i1 %is_float, %is_matrix",
        "%b = and i1 %a, %laid_out",
        "br i1 %b, label %shape, label %otherwise",
        "shape:",
        f"%shape_at = getelementptr i8, ptr %array, i64 {_DIMENSIONS}",
        "%shape_of = load ptr, ptr %shape_at, align 8",
        "%found = load <2 x i64>, ptr %shape_of, align 8",
        "%expected = load <2 x i64>, ptr %expected_at, align 8",
        "%same = icmp eq <2 x i64> %found, %expected",
        "%same0 = extractelement <2 x i1> %same, i32 0",
        "%same1 = extractelement <2 x i1> %same, i32 1",
        "%same2 = and i1 %same0, %same1",
        "br i1 %same2, label %fits, label %otherwise",
        "fits:",
        f"%data_at = getelementptr i8, ptr %array, i64 {_DATA}",
        "%data = load ptr, ptr %data_at, align 8",
        "ret ptr %data",
        "otherwise:",
        "ret ptr null",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _numbers_text(large: int) -> str:
    """Write what returns the numbers of such a matrix, or null where one is not moderate.

    It looks for a number of 2^large or more, infinite, or NaN, by its exponent: several at a time, and those
    that are left one by one.
    """
    vector = f"<{_LANES} x i64>"

    def splat(value: int) -> str:
        return "<" + ", ".join([f"i64 {value}"] * _LANES) + ">"

    exponent, limit = 0x7FF0000000000000, (1023 + large) << 52
    lines = [
        "define internal ptr @numbers(ptr %array, ptr %context, ptr %expected_at) {",
        "entry:",
        f"%data = call ptr @matrix(ptr %array, ptr %context, ptr %expected_at, i32 {_READABLE})",
        "%fits = icmp ne ptr %data, null",
        "br i1 %fits, label %begin, label %otherwise",
        "begin:",
        "%columns_at = getelementptr i64, ptr %expected_at, i64 1",
        "%rows = load i64, ptr %expected_at, align 8",
        "%columns = load i64, ptr %columns_at, align 8",
        "%length = mul i64 %rows, %columns",
        f"%whole = and i64 %length, {-_LANES}",
        "br label %many",
        "many:",
        "%i = phi i64 [0, %begin], [%next, %scan]",
        f"%bad = phi {vector} [zeroinitializer, %begin], [%worse, %scan]",
        "%more = icmp ult i64 %i, %whole",
        "br i1 %more, label %scan, label %few",
        "scan:",
        "%numbers_at = getelementptr i64, ptr %data, i64 %i",
        f"%numbers = load {vector}, ptr %numbers_at, align 8",
        f"%bits = and {vector} %numbers, {splat(exponent)}",
        f"%special = icmp sge {vector} %bits, {splat(limit)}",
        f"%wide = sext <{_LANES} x i1> %special to {vector}",
        f"%worse = or {vector} %bad, %wide",
        f"%next = add i64 %i, {_LANES}",
        "br label %many",
        "few:",
        f"%found = call i64 @llvm.vector.reduce.or.v{_LANES}i64({vector} %bad)",
        "br label %rest",
        "rest:",
        "%j = phi i64 [%whole, %few], [%next_j, %one]",
        "%bad_j = phi i64 [%found, %few], [%worse_j, %one]",
        "%left = icmp ult i64 %j, %length",
        "br i1 %left, label %one, label %done",
        "one:",
        "%number_at = getelementptr i64, ptr %data, i64 %j",
        "%number = load i64, ptr %number_at, align 8",
        f"%bits_j = and i64 %number, {exponent}",
        f"%special_j = icmp sge i64 %bits_j, {limit}",
        "%wide_j = sext i1 %special_j to i64",
        "%worse_j = or i64 %bad_j, %wide_j",
        "%next_j = add i64 %j, 1",
        "br label %rest",
        "done:",
        "%clean = icmp eq i64 %bad_j, 0",
        "%result = select i1 %clean, ptr %data, ptr null",
        "ret ptr %result",
        "otherwise:",
        "ret ptr null",
        "}",
        f"declare i64 @llvm.vector.reduce.or.v{_LANES}i64({vector})",
    ]
    return "\n".join(lines) + "\n"
