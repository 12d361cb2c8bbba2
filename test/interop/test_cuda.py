"""Kernels of CUDA: their numbers, on a processor in place of a device, and NVRTC compiles the text."""

import ctypes
import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_code import CXX, compiled_by
from oracles.random_trees import random_tree
from refusals import assert_refused
from sweeps import some

from hodyn_ros import Robot, share
from hodyn_ros.dynamics.operations import EXPORTED_OF_TREES, OPERATIONS
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.interop.cuda import cuda_source
from hodyn_ros.interop.robot_functions import law_of

HOST = """
#include <cmath>
using std::sin; using std::cos; using std::sqrt; using std::fabs; using std::floor;
#define __global__
#define __device__
#define __launch_bounds__(n)
struct Place { int x; };
static Place blockIdx, threadIdx, blockDim;
%s
extern "C" void next_thread(int block, int thread, int size)
{
  blockIdx.x = block; threadIdx.x = thread; blockDim.x = size;
}
"""


def small(floating: bool) -> Robot:
    return Robot.from_screws(**random_tree(3, 2, floating_base=floating).arguments())


def shapes_of(robot: Robot, what: str) -> list[tuple[int, int]]:
    """Return the shapes of the arguments of an operation of order 0."""
    _, arguments, _ = law_of(robot, OPERATIONS[what], 0, None, "spatial")
    return [shape for _, shape in arguments]


def on_host(text: str, folder: Path) -> Any:
    """Compile kernels for the processor, which takes the place of one thread after the other."""
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(HOST % text, encoding="ascii")
    flags = ("-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fPIC", "-shared")
    return ctypes.CDLL(str(compiled_by(CXX, flags, [source], library)))


@pytest.mark.skipif(CXX is None, reason="there is no C++ compiler (c++, g++, clang++) on the path")
@pytest.mark.parametrize("floating", some([False, True], False))
def test_every_operation_is_that_of_compiled_batches(floating: bool, tmp_path: Path) -> None:
    robot, count, rng = small(floating), 5, np.random.default_rng(0)
    library = on_host(cuda_source(robot, ExportRequest(0, "arm", what=EXPORTED_OF_TREES)), tmp_path)
    for what in EXPORTED_OF_TREES:
        alone = robot.compile(0, what)
        shapes = shapes_of(robot, what)
        arrays = [
            np.tile(np.eye(4), (count, 1, 1)) if shape == (4, 4) else rng.uniform(-1.0, 1.0, (count, *shape))
            for shape in shapes
        ]
        right = np.array([alone(*(array[i] for array in arrays)) for i in range(count)])
        found = np.full_like(right, np.nan)
        kernel = getattr(library, f"arm_{what}")
        for block in range(2):  # three threads each: the last has no sample
            for thread in range(3):
                library.next_thread(block, thread, 3)
                places = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, found)]
                kernel(*places, ctypes.c_longlong(count))
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-12 * np.abs(right).max(), err_msg=what)


def test_nvrtc_compiles_the_text_without_a_device() -> None:
    try:
        files = importlib.metadata.files("nvidia-cuda-nvrtc") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nvidia-cuda-nvrtc is not installed")
    path = next(file for file in files if "libnvrtc.so" in file.name)
    nvrtc, program = ctypes.CDLL(str(path.locate())), ctypes.c_void_p()
    robot = Robot.load(share.find("config", "panda.yaml"))
    text = cuda_source(robot, ExportRequest(2, what=["inverse_dynamics", "forward_dynamics"])).encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"panda.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_90")
    failed, size = nvrtc.nvrtcCompileProgram(program, 1, options), ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert failed == 0, log.value.decode()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    assert b".entry panda_forward_dynamics" in ptx.value


def test_what_is_not_offered_says_so() -> None:
    assert_refused(
        (lambda: cuda_source(small(False), ExportRequest(0, what=["drive_state"])),
         "there is no 'drive_state' as a kernel of CUDA; choose some of inverse_"),
        (lambda: cuda_source(Robot.load(share.find("config", "palletiser.yaml")), ExportRequest(0)),
         "kernels of CUDA are of robots without"),
    )  # fmt: skip
