"""A traced graph as the text of an LLVM module: one sample at a time, or a batch in lanes."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hodyn_ros.codegen.literals import literal, splat
from hodyn_ros.codegen.packing import PackedWriter, Packing
from hodyn_ros.codegen.sincos import sincos_function, single_sincos_function
from hodyn_ros.codegen.tracer import Graph, Traced
from hodyn_ros.codegen.writers import CHECK, LaneWriter, ScalarWriter

_SINGLE_CHECK = 2.0**97  # what is `CHECK` of doubles, of floats of four bytes: from 2^31 on

# Lines of straight-line code in one block: the time in which LLVM allocates the registers of a block grows
# with the square of its length. Vectors of limbs take an eighth less in half of that, and no longer in calls.
_BLOCK = 300

# Batches whose results hold more numbers than this, too many for caches, are written to memory past these.
_STREAMED = 2**20
_STAGED = 2**11  # numbers on the way, in the cache next to the processor
_STAGE = 2**15  # and at most, where samples are large
_WIDEST = 16  # lanes


def kernel_text(graph: Graph, outputs: Sequence[Any], n_arguments: int) -> str:
    """Write `void @hodyn_kernel(ptr argument_0, ..., ptr out)`: straight-line code in the order of the trace.

    Sines and cosines are gathered into vectors, several angles at a time.
    """
    stores = [(n_arguments, index, value) for index, value in enumerate(outputs)]
    text, widths = function_text("hodyn_kernel", graph, stores, n_arguments + 1)
    return text + "".join(sincos_function(lanes) for lanes in sorted(widths))


def function_text(
    name: str, graph: Graph, stores: Sequence[tuple[int, int, Any]], n_arguments: int
) -> tuple[str, set[int]]:
    """Write `void @name(ptr argument_0, ...)` that stores values, each given as (argument, index, value).

    All arguments are read before any is written. Returned with the widths of the sine and cosine functions
    that the module has to define.
    """
    writer = (PackedWriter if graph.parts else ScalarWriter)(graph, [value for _, _, value in stores])
    lines = writer.lines([number for number in writer.needed if graph.nodes[number][0] == "input"])
    waiting: dict[int, list[int]] = {}
    for k, (_, _, value) in enumerate(stores):
        waiting.setdefault(value.number if isinstance(value, Traced) else -1, []).append(k)
    values = list(writer.output_values())

    def stored(number: int) -> Iterator[str]:
        for k in waiting.pop(number):
            (argument, index, _), (made, value) = stores[k], values[k]
            yield from made
            yield f"%o{k} = getelementptr double, ptr %a{argument}, i64 {index}"
            yield f"store double {value}, ptr %o{k}, align 8"

    for number in writer.order:  # what is stored at once needs no register any more
        lines += writer.lines([number])
        if number in waiting:
            lines += stored(number)
    lines += [line for number in list(waiting) for line in stored(number)]
    arguments = ", ".join(f"ptr %a{i}" for i in range(n_arguments))
    body = "\n".join(_in_blocks(lines, _BLOCK // 2 if graph.parts else _BLOCK))
    # vectors that find no register are kept where none lies across two lines of the cache
    frame = "%frame = alloca <8 x double>, align 64\n" if graph.parts else ""
    text = f"define void @{name}({arguments}) {{\n{frame}{body}\nret void\n}}\n"
    return text + writer.declarations(), writer.widths


def _in_blocks(lines: Sequence[str], length: int = _BLOCK) -> Iterator[str]:
    """Cut straight-line code into blocks that follow each other."""
    for k, line in enumerate(lines):
        if k and k % length == 0:
            yield f"br label %part{k}"
            yield f"part{k}:"
        yield line


def batch_text(
    graph: Graph, outputs: Sequence[Any], sizes: Sequence[int], lanes: int, *, single: bool = False
) -> str:
    """Write `i64 @hodyn_batch(ptr argument_0, ..., ptr out, i64 count)`, with `lanes` samples at a time.

    Samples lie one after the other, `sizes[i]` numbers each of argument i. The spare lanes of the last block
    repeat the last sample. Returns whether any number may have been NaN, infinite or so large that results
    overflow. With `single` all numbers are floats of four bytes.
    """
    writer = LaneWriter(graph, outputs, lanes)
    arguments = ", ".join(f"ptr %a{i}" for i in range(len(sizes)))
    lines = [
        f"define i64 @hodyn_batch({arguments}, ptr %out, i64 %count) {{",
        "entry:",
        f"%checksum = alloca {writer.type}, align 64",
        f"store {writer.type} {splat(0.0, lanes)}, ptr %checksum, align 64",
        "%last = sub i64 %count, 1",
        "%any = icmp sgt i64 %count, 0",
        "br i1 %any, label %block, label %done",
        "block:",
        "%first = phi i64 [0, %entry], [%next, %advance]",
    ]
    for lane in range(lanes):
        lines.append(f"%wanted{lane} = add i64 %first, {lane}")
        lines.append(f"%sample{lane} = call i64 @llvm.smin.i64(i64 %wanted{lane}, i64 %last)")
    for argument, size in enumerate(sizes):
        lines += writer.prefetch(argument, size)
        lines += writer.load(argument, size)
    lines += _in_blocks(writer.results())
    lines += [
        "br label %advance",
        "advance:",
        f"%next = add i64 %first, {lanes}",
        "%more = icmp slt i64 %next, %count",
        "br i1 %more, label %block, label %done",
        "done:",
        f"%sum = load {writer.type}, ptr %checksum, align 64",
        f"%sum_zero = fmul {writer.type} %sum, {splat(0.0, lanes)}",
        f"%spoiled_lanes = fcmp uno {writer.type} %sum_zero, {splat(0.0, lanes)}",
        f"%spoiled = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> %spoiled_lanes)",
        "%answer = zext i1 %spoiled to i64",
        "ret i64 %answer",
        "}",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)",
    ]
    text = "\n".join(lines) + "\n" + writer.declarations()
    if single:
        return single_text(text) + "".join(single_sincos_function(width) for width in sorted(writer.widths))
    return text + "".join(sincos_function(width) for width in sorted(writer.widths))


def lane_function_text(
    graph: Graph,
    outputs: Sequence[Any],
    sizes: Sequence[int | None],
    lanes: int,
    stored: Sequence[Any],
    kept: Sequence[Any],
    moving: tuple[int, float] | None = None,
) -> str:
    """Write `void @hodyn_lanes(ptr argument_0, i64 step_0, ..., i64 first, i64 last, ptr out, ptr kept)`.

    It computes samples `first` and following, the spare lanes repeating the last one. `sizes[i]` numbers of
    each sample of argument i lie `step_i` numbers apart; an argument without a size holds numbers of these
    lanes alone, side by side, and one of size zero numbers that are the same for all lanes. Of `outputs`
    those in `stored` go to the samples in `out`, those in `kept` to vectors side by side; all round as if all
    outputs were computed. `moving`, an argument of numbers side by side and a limit: lanes in which its last
    number is not above the limit keep its numbers in place of the outputs.
    """
    writer = LaneWriter(graph, outputs, lanes)
    if graph.parts:
        writer.fused = Packing(graph, writer.needed).fused(graph, writer.fused)
    writer.outputs, writer.needed = stored, graph.needed([*stored, *kept])
    arguments = "".join(f"ptr %a{i}, i64 %s{i}, " for i in range(len(sizes)))
    lines = [f"define void @hodyn_lanes({arguments}i64 %first, i64 %last, ptr %out, ptr %kept) {{", "entry:"]
    for lane in range(lanes):
        lines.append(f"%wanted{lane} = add i64 %first, {lane}")
        lines.append(f"%sample{lane} = call i64 @llvm.smin.i64(i64 %wanted{lane}, i64 %last)")
    for argument, size in enumerate(sizes):
        if size is None:
            lines += writer.load_vectors(argument)
        elif not size:
            lines += writer.load_shared(argument)
        else:
            lines += writer.load(argument, size, f"%s{argument}", checked=False)
    body = writer.results()
    writer.outputs = kept
    lines += [
        *_in_blocks([*body, *writer.vectors(moving)]),
        "ret void",
        "}",
        "declare i64 @llvm.smin.i64(i64, i64)",
    ]
    text = "\n".join(lines) + "\n" + writer.declarations()
    return text + "".join(sincos_function(width) for width in sorted(writer.widths))


def single_text(text: str) -> str:
    """Turn code for doubles into code for floats of four bytes, its constants rounded."""

    def rounded(match: re.Match[str]) -> str:
        (value,) = struct.unpack("<d", int(match[1], 16).to_bytes(8, "little"))
        return literal(_SINGLE_CHECK if value == CHECK else float(np.float32(value)))

    changed = re.sub(r"0x([0-9A-F]{16})", rounded, text)
    return changed.replace("double", "float").replace("f64", "f32").replace("align 8", "align 4")


def shared_text(sizes: Sequence[int], part: int) -> str:
    """Write `i64 @hodyn_shared(ptr argument_0, ..., i64 count, i64 threads, i64 thread, ptr taken)`.

    Each of `threads` threads makes this call for its own region of the batch, takes `part` samples at a
    time, and then helps in the regions of the others. `taken` holds the samples taken in every region, 64
    bytes apart. Regions, because a processor fetches memory ahead: walking side by side, one would snatch
    the lines that the other is about to write. Stands beside `hodyn_batch` in its module; `sizes` are the
    numbers per sample of each argument, the result counted in. Large results are computed into a stage and
    written to memory past the caches. Returns as `batch_text` does, for what this thread computed.

    `i64 @hodyn_alone(ptr argument_0, ..., i64 count)` is the call of one thread alone.
    """
    arguments = ", ".join(f"ptr %a{i}" for i in range(len(sizes)))
    moved = ", ".join(f"ptr %p{i}" for i in range(len(sizes)))
    staged = max(_STAGED // sizes[-1] // _WIDEST * _WIDEST, _WIDEST)
    streamed = _STREAMED // sizes[-1] if staged * sizes[-1] <= _STAGE else 2**62
    lines = [
        f"define i64 @hodyn_shared({arguments}, i64 %count, i64 %threads, i64 %thread, ptr %taken) {{",
        "entry:",
        f"%stage = alloca [{min(staged * sizes[-1], _STAGE)} x double], align 64",
        f"%streams = icmp sgt i64 %count, {streamed}",
        "br label %region",
        "region:",
        "%helped = phi i64 [0, %entry], [%helping, %through]",
        "%so_far = phi i64 [0, %entry], [%before, %through]",
        "%turn = add i64 %thread, %helped",
        "%number = urem i64 %turn, %threads",
        "%following = add i64 %number, 1",
        "%weight = mul i64 %number, %count",
        "%start = udiv i64 %weight, %threads",
        "%end_weight = mul i64 %following, %count",
        "%end = udiv i64 %end_weight, %threads",
        "%place = mul i64 %number, 8",
        "%counter = getelementptr i64, ptr %taken, i64 %place",
        "br label %take",
        "take:",
        "%before = phi i64 [%so_far, %region], [%answer, %compute], [%answer_staged, %staged]",
        f"%offset = atomicrmw add ptr %counter, i64 {part} monotonic",
        "%first = add i64 %start, %offset",
        "%left = sub i64 %end, %first",
        "%any = icmp sgt i64 %left, 0",
        "br i1 %any, label %choose, label %through",
        "choose:",
        f"%samples = call i64 @llvm.smin.i64(i64 %left, i64 {part})",
        "br i1 %streams, label %staged, label %compute",
        "compute:",
        *_places(sizes, "p", "%first"),
        f"%spoiled = call i64 @hodyn_batch({moved}, i64 %samples)",
        "%answer = or i64 %before, %spoiled",
        "br label %take",
        "staged:",
        "%done_before = phi i64 [0, %choose], [%done_after, %staged]",
        "%before_staged = phi i64 [%before, %choose], [%answer_staged, %staged]",
        "%here = add i64 %first, %done_before",
        "%left_staged = sub i64 %samples, %done_before",
        f"%now = call i64 @llvm.smin.i64(i64 %left_staged, i64 {staged})",
        *_places(sizes, "s", "%here"),
        f"%spoiled_staged = call i64 @hodyn_batch({', '.join(f'ptr %s{i}' for i in range(len(sizes) - 1))}, "
        "ptr %stage, i64 %now)",
        "%answer_staged = or i64 %before_staged, %spoiled_staged",
        f"%numbers = mul i64 %now, {sizes[-1]}",
        f"call void @hodyn_stream(ptr %s{len(sizes) - 1}, ptr %stage, i64 %numbers)",
        "%done_after = add i64 %done_before, %now",
        "%more_staged = icmp slt i64 %done_after, %samples",
        "br i1 %more_staged, label %staged, label %take",
        "through:",
        "%helping = add i64 %helped, 1",
        "%more = icmp ult i64 %helping, %threads",
        "br i1 %more, label %region, label %done",
        "done:",
        "fence seq_cst",
        "ret i64 %before",
        "}",
        f"define i64 @hodyn_alone({arguments}, i64 %count) {{",
        "%taken = alloca i64, align 8",
        "store i64 0, ptr %taken, align 8",
        f"%answer = call i64 @hodyn_shared({arguments}, i64 %count, i64 1, i64 0, ptr %taken)",
        "ret i64 %answer",
        "}",
    ]
    return "\n".join(lines) + "\n" + _STREAM


def _places(sizes: Sequence[int], name: str, sample: str) -> list[str]:
    """Write where the numbers of a sample are in every array."""
    lines = []
    for i, size in enumerate(sizes):
        lines.append(f"%{name}o{i} = mul i64 {sample}, {size}")
        lines.append(f"%{name}{i} = getelementptr double, ptr %a{i}, i64 %{name}o{i}")
    return lines


# Past the caches, whole lines at a time: no line is read from memory before it is written.
_STREAM = """define internal void @hodyn_stream(ptr %to, ptr %from, i64 %count) {
entry:
br label %head
head:
%i = phi i64 [0, %entry], [%i_next, %one]
%to_i = getelementptr double, ptr %to, i64 %i
%from_i = getelementptr double, ptr %from, i64 %i
%address = ptrtoint ptr %to_i to i64
%within = and i64 %address, 63
%aligned = icmp eq i64 %within, 0
%left = sub i64 %count, %i
%room = icmp sge i64 %left, 8
%line = and i1 %aligned, %room
br i1 %line, label %lines, label %rest
rest:
%some = icmp sgt i64 %left, 0
br i1 %some, label %one, label %done
one:
%x = load double, ptr %from_i, align 8
store double %x, ptr %to_i, align 8
%i_next = add i64 %i, 1
br label %head
lines:
%k = phi i64 [%i, %head], [%k_next, %lines]
%to_k = getelementptr double, ptr %to, i64 %k
%from_k = getelementptr double, ptr %from, i64 %k
%v = load <8 x double>, ptr %from_k, align 8
store <8 x double> %v, ptr %to_k, align 64, !nontemporal !0
%k_next = add i64 %k, 8
%left_k = sub i64 %count, %k_next
%more = icmp sge i64 %left_k, 8
br i1 %more, label %lines, label %tail
tail:
%j = phi i64 [%k_next, %lines], [%j_next, %last]
%some_j = icmp slt i64 %j, %count
br i1 %some_j, label %last, label %done
last:
%to_j = getelementptr double, ptr %to, i64 %j
%from_j = getelementptr double, ptr %from, i64 %j
%y = load double, ptr %from_j, align 8
store double %y, ptr %to_j, align 8
%j_next = add i64 %j, 1
br label %tail
done:
ret void
}
!0 = !{i32 1}
"""
