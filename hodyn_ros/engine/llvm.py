"""From a traced graph to machine code, by LLVM through llvmlite."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from hodyn_ros.engine.object_cache import ObjectCache
from hodyn_ros.engine.tracer import Graph, Traced

_OPERATIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


@dataclass(frozen=True)
class MachineCode:
    """A compiled function; it lives as long as this object."""

    address: int
    _engine: Any


def compile_graph(
    graph: Graph, outputs: Sequence[Any], n_arguments: int, cache: ObjectCache | None
) -> MachineCode:
    """Compile `void f(const double* argument_0, ..., double* out)` from what `outputs` need.

    The outputs are traced scalars or numbers; `cache` keeps the machine code for the next process.
    """
    return compile_text(intermediate_code(graph, outputs, n_arguments), "hodyn_kernel", cache)


def compile_text(ir: str, name: str, cache: ObjectCache | None, *, optimise: bool = False) -> MachineCode:
    """Compile function `name` of an LLVM module; `optimise` first, which straight-line code does not need."""
    machine = _target_machine()
    key = "\n".join(
        [ir, str(optimise), llvmlite.__version__, str(llvm.llvm_version_info), machine.triple, *_host()]
    )
    code = cache.get(key) if cache else None
    if code is None:
        code = _object_code(ir, machine, optimise)
        if cache:
            cache.put(key, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return MachineCode(engine.get_function_address(name), engine)


def _object_code(ir: str, machine: Any, optimise: bool) -> bytes:
    module = llvm.parse_assembly(ir)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if optimise:
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def intermediate_code(graph: Graph, outputs: Sequence[Any], n_arguments: int) -> str:
    """Write a graph as the text of an LLVM module, in the order in which it was traced."""
    arguments = ", ".join(f"ptr %a{i}" for i in range(n_arguments))
    body = "\n".join(_instructions(graph, outputs))
    return (
        "declare double @llvm.sin.f64(double)\n"
        "declare double @llvm.cos.f64(double)\n"
        f"define void @hodyn_kernel({arguments}, ptr %out) {{\n{body}\nret void\n}}\n"
    )


def _instructions(graph: Graph, outputs: Sequence[Any]) -> Iterator[str]:
    def value(number: Any) -> str:
        operation, a, _ = graph.nodes[number]
        return _literal(a) if operation == "constant" else f"%n{number}"

    for i in sorted(graph.needed(outputs)):
        operation, a, b = graph.nodes[i]
        if operation == "input":
            yield f"%p{i} = getelementptr double, ptr %a{a}, i64 {b}"
            yield f"%n{i} = load double, ptr %p{i}, align 8"
        elif operation in _OPERATIONS:
            # contract: a product and a sum may become one fused operation with a single rounding
            yield f"%n{i} = {_OPERATIONS[operation]} contract double {value(a)}, {value(b)}"
        elif operation != "constant":
            yield f"%n{i} = call double @llvm.{operation}.f64(double {value(a)})"
    for k, output in enumerate(outputs):
        if isinstance(output, Traced):
            result = value(output.number)
            if output.negative:
                yield f"%m{k} = fneg double {result}"
                result = f"%m{k}"
        else:
            result = _literal(output)
        yield f"%o{k} = getelementptr double, ptr %out, i64 {k}"
        yield f"store double {result}, ptr %o{k}, align 8"


def _literal(number: Any) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(number)))[0]:016X}"


@cache
def _host() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _target_machine() -> Any:
    """Return a new one each time: an execution engine takes its machine over."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=2, jit=True
    )
