"""Pinocchio's second partial derivatives of inverse dynamics, in C++: its wheel has headers, not the call."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmarks.agreement import check
from benchmarks.compiled_loop import compiled_call
from benchmarks.peers import pinocchio_tree
from benchmarks.peers.c_code import FLAGS, compiler
from benchmarks.stopwatch import Array, Contender
from hodyn_ros.model.tree import TreeModel

_SOURCE = Path(__file__).with_suffix(".cpp")
# Pinocchio has more types of joints than Boost's containers of types have places by themselves
_TYPES = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)


def contender(name: str, model: TreeModel, q: Array, right: Array) -> Contender | None:
    """Return its call in a compiled loop, or None where there is no C++ compiler.

    `right` (3, 3, n, n, n) are the second partial derivatives at the motion `q` (3, n) of an arm with joints
    about z: of torque i by coordinate k of derivative a and coordinate l of derivative b, at [a, b, i, k, l].
    """
    command = compiler()
    if command is None:
        return None
    library = _library(command)
    _build(library, model)
    results = np.empty((1, 1))
    call = compiled_call(
        name,
        [ctypes.cast(library.second_partials, ctypes.c_void_p).value or 0],
        [q[None].copy()],
        results,
        keep=library,
    )
    call.runs[0](1)
    n = len(model.masses)
    parts = np.empty((4, n, n, n))
    library.found(ctypes.c_void_p(parts.ctypes.data))
    by_rows = parts.transpose(0, 3, 2, 1)  # Eigen's tensors have the first index next to each other
    expected = np.stack([right[0, 0], right[1, 1], right[0, 1], right[2, 0]])
    check("Pinocchio's second derivatives", by_rows.reshape(4, -1), expected.reshape(4, -1))
    return call


def _build(library: ctypes.CDLL, model: TreeModel) -> None:
    twin = pinocchio_tree.build(model)
    figures = np.concatenate(
        [
            [*place.rotation.ravel(), *place.translation, body.mass, *body.lever, *body.inertia.ravel()]
            for place, body in zip(list(twin.jointPlacements)[1:], list(twin.inertias)[1:])
        ]
    )
    gravity = np.array(model.gravity, dtype=float)
    library.build(
        len(model.masses), ctypes.c_void_p(figures.ctypes.data), ctypes.c_void_p(gravity.ctypes.data)
    )


def _library(command: str) -> ctypes.CDLL:
    """Compile the source with the headers of Pinocchio's wheel, and load it."""
    include = (
        next(parent for parent in Path(pin.__file__).parents if parent.name == "cmeel.prefix") / "include"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "second_order.so")
        headers = [f"-I{include}", f"-I{include / 'eigen3'}"]
        build = [
            command,
            "-x",
            "c++",
            "-std=c++17",
            *FLAGS,
            *_TYPES,
            *headers,
            str(_SOURCE),
            "-o",
            str(path),
            "-lstdc++",
        ]
        subprocess.run(build, check=True)
        return ctypes.CDLL(str(path))
