"""External functions of CasADi as machine code: a shared object, made without a compiler or linker."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hodyn_ros.codegen.emit import batch_text, function_text
from hodyn_ros.codegen.llvm import relocatable
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.codegen.processor import lanes, target
from hodyn_ros.codegen.sincos import sincos_function
from hodyn_ros.errors import InputError
from hodyn_ros.interop.casadi_functions import Block, External
from hodyn_ros.interop.elf import shared_object

_PARTS = ("n_in", "n_out", "name_in", "name_out", "sparsity_in", "sparsity_out", "work", "incref", "decref")


def makes_libraries() -> bool:
    """Whether shared objects can be made for this machine."""
    return (platform.machine(), platform.system()) == ("x86_64", "Linux")


def library(functions: Sequence[External]) -> bytes:
    """Return a shared object with external functions; InputError where none can be made."""
    if not makes_libraries():
        raise InputError(
            f"shared objects are made for x86_64 and Linux, not {platform.machine()} and "
            f"{platform.system()}; compile the C code that `hodyn export --lang casadi` writes"
        )
    texts, widths = [], set[int]()
    for function in functions:
        text, used = _function_text(function)
        texts.append(text)
        widths |= used
    texts += [sincos_function(width) for width in sorted(widths)]
    names = [name for one in functions for name in (one.name, *(f"{one.name}_{part}" for part in _PARTS))]
    text, kept = _joined(texts), ObjectCache.default()
    key = "\n".join(["relocatable", text, *target()])
    code = kept.get(key) if kept else None
    if code is None:
        code = relocatable(text)
        if kept:
            kept.put(key, code)
    return shared_object(code, names)


def write_library(content: bytes) -> Path:
    """Write a shared object where it stays, named by its content, and return its path."""
    kept = ObjectCache.default()
    folder = _own_folder() if kept is None else kept.folder
    path = folder / f"{hashlib.sha256(content).hexdigest()}.so"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
    except OSError:
        return _written(_own_folder() / path.name, content)
    os.close(descriptor)
    # written anew, so that what is loaded is what was made now
    _written(Path(name), content).replace(path)
    return path


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="hodyn_ros_"))


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _joined(texts: Sequence[str]) -> str:
    """Join modules, in which the same function may be declared more than once."""
    lines = dict.fromkeys(line for text in texts for line in text.split("\n") if line.startswith("declare "))
    lines["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
    rest = [line for text in texts for line in text.split("\n") if not line.startswith("declare ")]
    return "\n".join([*rest, *lines]) + "\n"


def _function_text(function: External) -> tuple[str, set[int]]:
    """Write a function with what CasADi asks about it, and the widths of sine and cosine that it uses.

    `int f(const double **arg, double **res, int64_t *iw, double *w, int mem)`; arguments that are NULL are
    zero, and results that are go into `w`. Where only those in `function.alone` are asked for, code of their
    own computes them.
    """
    name, n_in, n_out = function.name, len(function.inputs), len(function.outputs)
    parts: dict[str, Sequence[int]] = {f"{name}_numbers": range(n_out)}
    if function.alone:
        parts[f"{name}_alone"] = function.alone
    texts, widths = [], set[int]()
    for part, outputs in parts.items():
        text, used = _numbers_text(function, part, outputs)
        texts.append(text.replace("@table", f"@{part}_table").replace("@search_", f"@{part}_search_"))
        widths |= used
    most = max([1, *(one.size for one in function.inputs)])
    # several samples come one after the other, all outputs of each together
    whole = sum(one.size for one in function.outputs) if function.samples > 1 else 0
    scratch = max([0, *(one.size for one in function.outputs)])
    lines = [
        f"@{name}_zeros = private unnamed_addr constant [{most} x double] zeroinitializer, align 64",
        f"define i32 @{name}(ptr %arg, ptr %res, ptr %iw, ptr %w, i32 %mem) {{",
        f"%rest = getelementptr double, ptr %w, i64 {whole}",
    ]
    for kind, count, missing in (("arg", n_in, f"@{name}_zeros"), ("res", n_out, "%rest")):
        for i in range(count):
            lines += [
                f"%{kind}{i}_place = getelementptr ptr, ptr %{kind}, i64 {i}",
                f"%{kind}{i}_pointer = load ptr, ptr %{kind}{i}_place, align 8",
                f"%{kind}{i}_absent = icmp eq ptr %{kind}{i}_pointer, null",
                f"%{kind}{i} = select i1 %{kind}{i}_absent, ptr {missing}, ptr %{kind}{i}_pointer",
            ]
    passed = ", ".join(
        [*(f"ptr %arg{i}" for i in range(n_in)), *(f"ptr %res{j}" for j in range(n_out)), "ptr %w"]
    )
    if function.alone:
        costly = [j for j in range(n_out) if j not in function.alone and function.outputs[j].size]
        answer = "true"
        for j in costly:
            lines.append(f"%without{j} = and i1 {answer}, %res{j}_absent")
            answer = f"%without{j}"
        lines += [
            f"br i1 {answer}, label %alone, label %all",
            "alone:",
            f"call void @{name}_alone({passed})",
            "ret i32 0",
            "all:",
        ]
    lines += [f"call void @{name}_numbers({passed})", "ret i32 0", "}"]
    return "".join(texts) + "\n".join([*lines, *_about(function, whole + scratch)]) + "\n", widths


def _numbers_text(function: External, name: str, outputs: Sequence[int]) -> tuple[str, set[int]]:
    """Write `void name(argument, ..., output, ..., w)`, which computes some outputs of all samples."""
    n_in, n_out = len(function.inputs), len(function.outputs)
    if function.samples == 1:
        stores = [(n_in + j, i, value) for j in outputs for i, value in enumerate(function.values[j])]
        text, widths = function_text(name, function.graph, stores, n_in + n_out + 1)
        return text.replace("define void", "define internal void", 1), widths
    values = [value for j in outputs for value in function.values[j]]
    used = {
        function.graph.nodes[number][1]
        for number in function.graph.needed(values)
        if function.graph.nodes[number][0] == "input"
    }
    sizes = [one.size // function.samples if i in used else 0 for i, one in enumerate(function.inputs)]
    text = batch_text(function.graph, values, sizes, lanes())
    text = text.replace("define i64 @hodyn_batch", f"define internal i64 @{name}_lanes", 1)
    widths = {lanes()} if f"@sincos{lanes()}" in text else set()
    for width in widths:
        text = text.replace(sincos_function(width), "")
    return text + "\n".join(_of_samples(function, name, outputs)) + "\n", widths


def _of_samples(function: External, name: str, outputs: Sequence[int]) -> list[str]:
    """Compute all samples, and part the numbers of each among the outputs."""
    n_in, n_out = len(function.inputs), len(function.outputs)
    counts = {j: len(function.values[j]) for j in outputs if function.values[j]}
    out = f"%a{n_in + next(iter(counts))}" if len(counts) == 1 else f"%a{n_in + n_out}"
    inputs = ", ".join(f"ptr %a{i}" for i in range(n_in))
    lines = [
        f"define internal void @{name}({', '.join(f'ptr %a{i}' for i in range(n_in + n_out + 1))}) {{",
        "entry:",
        f"%spoiled = call i64 @{name}_lanes({inputs}, ptr {out}, i64 {function.samples})",
    ]
    if len(counts) != 1:
        lines += ["br label %part", "part:", "%sample = phi i64 [0, %entry], [%next, %part]"]
        lines.append(f"%first = mul i64 %sample, {sum(counts.values())}")
        before = 0
        for j, count in counts.items():
            lines += [
                f"%own{j} = add i64 %first, {before}",
                f"%from{j} = getelementptr double, ptr {out}, i64 %own{j}",
                f"%behind{j} = mul i64 %sample, {count}",
                f"%to{j} = getelementptr double, ptr %a{n_in + j}, i64 %behind{j}",
                f"call void @llvm.memcpy.p0.p0.i64(ptr %to{j}, ptr %from{j}, i64 {8 * count}, i1 false)",
            ]
            before += count
        lines += [
            "%next = add i64 %sample, 1",
            f"%more = icmp slt i64 %next, {function.samples}",
            "br i1 %more, label %part, label %done",
            "done:",
        ]
    return [*lines, "ret void", "}"]


def _about(function: External, scratch: int) -> list[str]:
    """Write the functions that say what a function takes and gives, and how much memory it needs."""
    name, (n_in, n_out) = function.name, (len(function.inputs), len(function.outputs))
    lines = [
        f"define i64 @{name}_n_in() {{\nret i64 {n_in}\n}}",
        f"define i64 @{name}_n_out() {{\nret i64 {n_out}\n}}",
        f"define void @{name}_incref() {{\nret void\n}}",
        f"define void @{name}_decref() {{\nret void\n}}",
        f"define i32 @{name}_work(ptr %arg, ptr %res, ptr %iw, ptr %w) {{",
    ]
    for kind, size in (("arg", n_in), ("res", n_out), ("iw", 0), ("w", scratch)):
        lines += [
            f"%no_{kind} = icmp eq ptr %{kind}, null",
            f"br i1 %no_{kind}, label %after_{kind}, label %of_{kind}",
            f"of_{kind}:",
            f"store i64 {size}, ptr %{kind}, align 8",
            f"br label %after_{kind}",
            f"after_{kind}:",
        ]
    lines += ["ret i32 0", "}"]
    for end, blocks in (("in", function.inputs), ("out", function.outputs)):
        lines += _chosen(f"{name}_name_{end}", [_string(one) for one in blocks])
        lines += _chosen(f"{name}_sparsity_{end}", [_numbers(one) for one in blocks])
    return lines


def _chosen(name: str, constants: Sequence[tuple[str, str]]) -> list[str]:
    """Write `ptr name(i64 i)`, which returns constant i, given as types and values, or NULL."""
    lines = [
        f"@{name}_{i} = private unnamed_addr constant {kind} {value}, align 8"
        for i, (kind, value) in enumerate(constants)
    ]
    cases = "".join(f" i64 {i}, label %case{i}" for i in range(len(constants)))
    lines += [f"define ptr @{name}(i64 %i) {{", f"switch i64 %i, label %none [{cases} ]"]
    for i in range(len(constants)):
        lines += [f"case{i}:", f"ret ptr @{name}_{i}"]
    return [*lines, "none:", "ret ptr null", "}"]


def _string(block: Block) -> tuple[str, str]:
    return f"[{len(block.name) + 1} x i8]", f'c"{block.name}\\00"'


def _numbers(block: Block) -> tuple[str, str]:
    values = block.sparsity
    return f"[{len(values)} x i64]", f"[{', '.join(f'i64 {value}' for value in values)}]"
