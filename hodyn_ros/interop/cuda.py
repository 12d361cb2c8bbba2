"""Batches on graphics processors: the traced functions as CUDA C++, one sample in every thread.

The text needs no header: NVRTC compiles it where it runs, nvcc ahead of that.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hodyn_ros.dynamics.operations import EXPORTED_OF_TREES, OPERATIONS
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_text import comment_block
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import Tables, TracedLines
from hodyn_ros.interop.robot_functions import law_of
from hodyn_ros.outputs import write_text

_THREADS = 128  # of a block at most, so that each may use many registers


def cuda_source(robot: Robot, request: ExportRequest) -> str:
    """Return the text of kernels `<name>_<what>(const double *argument, ..., double *result, count)`.

    `count` is a long long. Of robots without loops; arguments, results and operations are those of
    `Robot.compile_batch`: samples lie one after the other, each matrix by rows. A grid of blocks of 128
    threads at most takes `count` samples, one a thread. Raises InputError for what is not offered.
    """
    if robot.closure is not None:
        raise InputError(
            f"robot {robot.name!r} has couplings or loops; kernels of CUDA are of robots without"
        )
    request = request.of(robot)
    tables, functions = Tables(), []
    for each in request.what:
        if each not in EXPORTED_OF_TREES:
            raise InputError(
                f"there is no {each!r} as a kernel of CUDA; choose some of {', '.join(EXPORTED_OF_TREES)}"
            )
        functions.append(_kernel(robot, request, each, tables))
    helpers = [_on_device(line) for line in tables.lines()]
    title = [
        f"Batches of robot {robot.name!r} of order {request.order} as kernels of CUDA, written by "
        "`hodyn export --lang cuda`. Do not edit; export again.",
        "",
        f"One sample in every thread, blocks of {_THREADS} threads at most:",
        f"  kernel<<<(count + {_THREADS - 1}) / {_THREADS}, {_THREADS}>>>(arguments..., result, count)",
    ]
    return "\n".join([*comment_block(title), "", *helpers, *functions]) + "\n"


def export_cuda(choice: RobotChoice, request: ExportRequest, out: Path) -> Path:
    """Write `<name>.cu` with the kernels of `cuda_source`; return its path."""
    robot = choice.robot()
    request = request.of(robot)
    text = cuda_source(robot, request)
    path = out / f"{request.prefix}.cu"
    write_text(path, text)
    return path


def _kernel(robot: Robot, request: ExportRequest, what: str, tables: Tables) -> str:
    order, frames, representation = request.order, request.frames_of(what), request.representation
    trace, arguments, names = law_of(robot, OPERATIONS[what], order, frames, representation)
    shapes = {name: shape for name, (_, shape) in zip(names, arguments)}
    code = TracedLines(trace, shapes, f"{what} of robot {robot.name!r} at order {order}", tables)
    inputs = [f"const double *{name}" for name in names]
    about = [
        f"/* {', '.join(f'{name} {shape}' for name, shape in shapes.items())} -> result {code.shape} of "
        "every sample */"
    ]
    lines = [
        *about,
        f'extern "C" __global__ void __launch_bounds__({_THREADS})',
        f"{request.prefix}_{what}({', '.join([*inputs, 'double *result', 'long long count'])})",
        "{",
        "  const long long sample = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        "  if (sample >= count) {",
        "    return;",
        "  }",
        *[f"  {name} += sample * {a * b};" for name, (a, b) in shapes.items()],
        f"  result += sample * {len(code.outputs)};",
        *code.lines,
        *code.stores({"result": np.arange(len(code.outputs))}),
        "}",
        "",
    ]
    return "\n".join(lines)


def _on_device(line: str) -> str:
    """Return a line of a helper as one that runs on the device."""
    return line.replace("static ", "static __device__ ", 1) if line.startswith("static ") else line
