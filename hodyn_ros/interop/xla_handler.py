"""Handlers of XLA's foreign function interface, written in LLVM: no compiler is needed where they are used.

`XLA_FFI_Error *handler(XLA_FFI_CallFrame *)`, version 0.3 of the interface: xla/ffi/api/c_api.h, which says
that its layout is kept. Places are those of a 64-bit machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.codegen.llvm import MachineCode, compile_text

_VERSION = (0, 3)
# bytes from the start of a struct
_EXTENSION, _ARGUMENTS, _RESULTS = 8, 72, 112  # of a call frame
_KIND, _METADATA = 8, 24  # of an extension
_SIZE_OF_VERSION, _START, _MAJOR, _MINOR, _TRAITS = 8, 16, 24, 28, 32  # of metadata
_DATA, _RANK, _DIMENSIONS = 24, 32, 40  # of a buffer
_OF_METADATA, _VERSION_BYTES = 1, 24


def handler(sizes: Sequence[int], alone: int, single: int | None = None) -> MachineCode:
    """Compile a handler of arrays, `sizes` numbers of each sample of every argument and last of the result.

    Axes in front are those of a batch. `alone`: the address of `int64_t f(argument, ..., result, count)`;
    `single`: that of `void f(argument, ..., result)` for one sample. Numbers that are not finite are results
    like others.
    """
    n = len(sizes) - 1
    lines = [
        "define ptr @hodyn_handler(ptr %frame) {",
        *_loaded("extension", "ptr", "%frame", _EXTENSION),
        "%plain = icmp eq ptr %extension, null",
        "br i1 %plain, label %run, label %asked",
        "asked:",
        *_loaded("kind", "i32", "%extension", _KIND),
        f"%of_metadata = icmp eq i32 %kind, {_OF_METADATA}",
        "br i1 %of_metadata, label %describe, label %run",
        "describe:",
        *_loaded("metadata", "ptr", "%extension", _METADATA),
        *_stored("i64", str(_VERSION_BYTES), "size_of_version", "%metadata", _SIZE_OF_VERSION),
        *_stored("ptr", "null", "start", "%metadata", _START),
        *_stored("i32", str(_VERSION[0]), "major", "%metadata", _MAJOR),
        *_stored("i32", str(_VERSION[1]), "minor", "%metadata", _MINOR),
        *_stored("i32", "0", "traits", "%metadata", _TRAITS),
        "ret ptr null",
        "run:",
        *_loaded("arguments", "ptr", "%frame", _ARGUMENTS),
        *_loaded("results", "ptr", "%frame", _RESULTS),
    ]
    for i in range(n):
        lines += _loaded(f"buffer{i}", "ptr", "%arguments", 8 * i)
        lines += _loaded(f"data{i}", "ptr", f"%buffer{i}", _DATA)
    lines += [
        *_loaded(f"buffer{n}", "ptr", "%results", 0),
        *_loaded(f"data{n}", "ptr", f"%buffer{n}", _DATA),
        *_loaded("rank", "i64", f"%buffer{n}", _RANK),
        *_loaded("dimensions", "ptr", f"%buffer{n}", _DIMENSIONS),
        "br label %more",
        "more:",
        "%axis = phi i64 [0, %run], [%next, %times]",
        "%total = phi i64 [1, %run], [%product, %times]",
        "%inside = icmp slt i64 %axis, %rank",
        "br i1 %inside, label %times, label %counted",
        "times:",
        "%place = getelementptr i64, ptr %dimensions, i64 %axis",
        "%length = load i64, ptr %place, align 8",
        "%product = mul i64 %total, %length",
        "%next = add i64 %axis, 1",
        "br label %more",
        "counted:",
        f"%count = udiv i64 %total, {sizes[-1]}",
    ]
    passed = ", ".join(f"ptr %data{i}" for i in range(n + 1))
    if single is not None:
        lines += [
            "%one = icmp eq i64 %count, 1",
            "br i1 %one, label %alone, label %several",
            "alone:",
            f"call void inttoptr (i64 {single} to ptr)({passed})",
            "ret ptr null",
            "several:",
        ]
    lines += [
        f"%spoiled = call i64 inttoptr (i64 {alone} to ptr)({passed}, i64 %count)",
        "ret ptr null",
        "}",
    ]
    return compile_text("\n".join(lines) + "\n", "hodyn_handler", None)


def _loaded(name: str, kind: str, struct: str, offset: int) -> list[str]:
    return [
        f"%{name}_at = getelementptr i8, ptr {struct}, i64 {offset}",
        f"%{name} = load {kind}, ptr %{name}_at, align {4 if kind == 'i32' else 8}",
    ]


def _stored(kind: str, value: str, name: str, struct: str, offset: int) -> list[str]:
    return [
        f"%{name}_to = getelementptr i8, ptr {struct}, i64 {offset}",
        f"store {kind} {value}, ptr %{name}_to, align {4 if kind == 'i32' else 8}",
    ]
