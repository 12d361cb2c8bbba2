"""Robots as functions of JAX, by handlers of XLA that our LLVM writes: on the CPU, in float32 and float64.

Handlers are those of XLA's foreign function interface, `XLA_FFI_Error *handler(XLA_FFI_CallFrame *)`, version
0.1, that of JAX 0.5: xla/ffi/api/c_api.h, which says that its layout is kept. Later ones (0.3 in JAX 0.10)
take handlers of earlier versions, but not the other way round. Places are those of a 64-bit machine. No
compiler is needed where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.codegen.llvm import MachineCode, compile_text
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.extras import needed
from hodyn_ros.interop.robot_functions import DerivativeKernels, function_of
from hodyn_ros.lie.representations import Representation

_numbers = count()
_alive: list[Any] = []  # XLA calls handlers as long as the process lives


def function(
    robot: Robot,
    what: str = "inverse_dynamics",
    order: int = 0,
    *,
    frames: Sequence[str | int] | None = None,
    representation: Representation = "spatial",
) -> Callable[..., Any]:
    """Return one operation of a robot without loops as a function of JAX arrays.

    `what`: "inverse_dynamics", "forward_dynamics", "forward_kinematics", "jacobian", "com", "mass_matrix",
    "coriolis_matrix" or "gravity_torque", with arguments and result of one order as of `Robot.compile`:
    inverse dynamics of order 0 takes q (3, n) and gives (1, n). Axes in front are those of a batch, and
    `jax.vmap` adds one; either way the kernels of batches compute it. `jit`, `grad`, `jvp`, `vjp`, `jacfwd`,
    `jacrev` and `hessian` work, with exact partial derivatives, up to the second; all numbers of the
    arguments count as independent. float64 needs `jax.config.update("jax_enable_x64", True)`.

    Numbers that are not finite are no errors. Raises InputError for what is not offered and, when derivatives
    are asked for that would take long to compile, then.
    """
    jax = needed("jax")
    kernels = DerivativeKernels(function_of(robot, what, order, frames, representation))
    traced = kernels.function
    shapes = [shape for _, shape in traced.arguments]
    size, n = traced.size, kernels.n_arguments
    value = _target(jax, lambda: kernels.value, shapes, traced.result[1])
    jacobian = _target(jax, lambda: kernels.jacobian, shapes, (size, n))
    second = _target(jax, lambda: kernels.second, shapes, (size * n, n))
    jnp = jax.numpy

    def in_rows(arrays: Sequence[Any]) -> Any:
        return jnp.concatenate([x.reshape(*x.shape[:-2], -1) for x in arrays], axis=-1)

    @jax.custom_jvp
    def first(*arrays: Any) -> Any:
        return jacobian(*arrays)

    @first.defjvp
    def _(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        whole = second(*primals)
        cube = whole.reshape(*whole.shape[:-2], size, n, n)
        return first(*primals), jnp.einsum("...rij,...j->...ri", cube, in_rows(tangents))

    @jax.custom_jvp
    def call(*arrays: Any) -> Any:
        return value(*arrays)

    @call.defjvp
    def _(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        change = jnp.einsum("...rj,...j->...r", first(*primals), in_rows(tangents))
        out = call(*primals)
        return out, change.reshape(out.shape)

    def checked(*arrays: Any) -> Any:
        operands = [jnp.asarray(array) for array in arrays]
        kind = jnp.result_type(*operands, jnp.float32)
        if len(operands) != len(shapes) or any(x.shape[-2:] != shape for x, shape in zip(operands, shapes)):
            expected = [f"{name} {shape}" for name, shape in traced.arguments]
            raise TypeError(f"{what} takes {', '.join(expected)}; found {[x.shape for x in operands]}")
        batch = jnp.broadcast_shapes(*(x.shape[:-2] for x in operands))
        return call(*(jnp.broadcast_to(x, (*batch, *x.shape[-2:])).astype(kind) for x in operands))

    return checked


def _target(
    jax: Any, kernel: Callable[[], Kernel], shapes: Sequence[tuple[int, int]], result: tuple[int, int]
) -> Callable[..., Any]:
    """Return a call of a kernel, whose handlers are registered when it is first traced."""
    names: dict[Any, str] = {}

    def call(*arrays: Any) -> Any:
        dtype = np.dtype(arrays[0].dtype)
        if dtype not in names:
            names[dtype] = _registered(jax, kernel(), shapes, result, dtype)
        out = jax.ShapeDtypeStruct((*arrays[0].shape[:-2], *result), dtype)
        return jax.ffi.ffi_call(names[dtype], out, vmap_method="broadcast_all")(*arrays)

    return call


def _registered(
    jax: Any, kernel: Kernel, shapes: Sequence[tuple[int, int]], result: tuple[int, int], dtype: Any
) -> str:
    code = kernel.batch_code if dtype == np.float64 else kernel.single_code
    sizes = [rows * columns for rows, columns in (*shapes, result)]
    single = kernel.address if dtype == np.float64 else None
    made = handler(sizes, code.beside("hodyn_alone"), single)
    name = f"hodyn_{next(_numbers)}_{dtype.name}"
    capsule = _capsule(made.address)
    jax.ffi.register_ffi_target(name, capsule, platform="cpu", api_version=1)
    _alive.extend([kernel, code, made, capsule])
    return name


def _capsule(address: int) -> Any:
    import ctypes

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


_VERSION = (0, 1)
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
