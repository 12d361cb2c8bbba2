"""Inverse and forward dynamics of a URDF by libraries from PyPI, each called as its authors recommend."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stopwatch import Array

GRAVITY = 9.80665  # [m/s^2] which dynibo takes, and cannot be told


@dataclass(frozen=True, eq=False)
class Library:
    """A library with what its calls need: `inverse` and `forward` are expressions over `names`."""

    name: str
    inverse: str
    forward: str
    names: dict[str, Any]
    read: Callable[[Any], Array] = np.asarray  # what a call returns, as an array (n,)

    def run(self, call: str) -> Array:
        """Return what an expression gives, (1, n)."""
        return np.array(self.read(eval(call, dict(self.names))))[None]  # noqa: S307  # a call of this file


def load(name: str, urdf: Path, q: Array, torques: Array) -> Library | None:
    """Return a library on a motion q (3, n) and torques (n,); None where it is not installed."""
    try:
        return _LOADERS[name](urdf, q, torques)
    except ImportError:
        return None


def _pinocchio(urdf: Path, q: Array, torques: Array) -> Library:
    pin = import_module("pinocchio")
    model = pin.buildModelFromUrdf(str(urdf))
    model.gravity.linear = np.array([0.0, 0.0, -GRAVITY])
    names = {"pin": pin, "m": model, "d": model.createData(), **_arguments(q, torques)}
    return Library(f"Pinocchio {version('pin')}", "pin.rnea(m, d, q, v, a)", "pin.aba(m, d, q, v, t)", names)


def _mujoco(urdf: Path, q: Array, torques: Array) -> Library:
    """Return MuJoCo's inverse and forward dynamics, constraints left out."""
    mujoco = import_module("mujoco")
    model = mujoco.MjModel.from_xml_path(str(urdf))
    model.opt.gravity[2] = -GRAVITY
    for name in ("CONTACT", "LIMIT", "FRICTIONLOSS", "ACTUATION"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")
    data = mujoco.MjData(model)

    def inverse(q: Array, v: Array, a: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        result: Array = data.qfrc_inverse
        return result

    def forward(q: Array, v: Array, t: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, t
        mujoco.mj_forward(model, data)
        result: Array = data.qacc
        return result

    names = {"inverse": inverse, "forward": forward, **_arguments(q, torques)}
    return Library(f"MuJoCo {version('mujoco')}", "inverse(q, v, a)", "forward(q, v, t)", names)


def _dynibo(urdf: Path, q: Array, torques: Array) -> Library:
    robot = import_module("dynibo").Robot.from_urdf(str(urdf))
    names = {"r": robot, "out": np.empty(q.shape[1]), **_arguments(q, torques)}
    return Library(
        f"dynibo {version('dynibo')}",
        "r.inverse_dynamics(q, v, a, out=out)",
        "r.forward_dynamics(q, v, t, out=out)",
        names,
        lambda _: np.array(names["out"]),
    )


def _frax(urdf: Path, q: Array, torques: Array) -> Library:
    """Return frax on JAX, with the settings of its README; links without inertia get next to none.

    Inverse dynamics alone: its forward dynamics knows 9.81 m/s^2 only.
    """
    jax, name, rnea = _rnea_of_frax(urdf)
    names = {
        "inverse": jax.jit(rnea),
        **{name: jax.numpy.array(value) for name, value in _arguments(q, torques).items()},
    }
    return Library(name, "inverse(q, v, a).block_until_ready()", "", names)


def frax_batch(urdf: Path, motions: Array) -> tuple[str, Callable[[], Array]] | None:
    """Return frax's name, and inverse dynamics of motions (N, 3, n) by it; None where it is not installed."""
    try:
        jax, name, rnea = _rnea_of_frax(urdf)
    except ImportError:
        return None
    call = jax.jit(jax.vmap(rnea))
    arguments = [jax.numpy.array(motions[:, k]) for k in range(3)]
    return name, lambda: call(*arguments).block_until_ready()


def bard_batch(urdf: Path, motions: Array) -> tuple[str, Callable[[], Array]] | None:
    """Return likewise those of bard (Wang et al. 2026, arXiv:2605.31481), in one thread and float64.

    Its sources are looked for as the module `bard`: what PyPI has under this name is another package.
    """
    try:
        torch, bard = import_module("torch"), import_module("bard")
    except ImportError:
        return None
    if not hasattr(bard, "build_model_from_urdf"):
        return None
    torch.set_num_threads(1)
    model = bard.build_model_from_urdf(str(urdf), floating_base=False)
    model.to(dtype=torch.float64, device="cpu")
    data = bard.create_data(model, max_batch_size=len(motions))
    q, v, a = (torch.tensor(motions[:, k].copy()) for k in range(3))
    down = torch.tensor([0.0, 0.0, -GRAVITY], dtype=torch.float64)

    def call() -> Array:
        with torch.no_grad():
            bard.update_kinematics(model, data, q, v)
            torques: Array = bard.rnea(model, data, a, gravity=down).numpy()
        return torques

    return f"bard on PyTorch {version('torch')}", call


BATCHES = {"frax": frax_batch, "bard": bard_batch}


def _rnea_of_frax(urdf: Path) -> tuple[Any, str, Callable[..., Any]]:
    """Return JAX, frax's name with its version, and torques from q, q' and q''."""
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    jax, frax = import_module("jax"), import_module("frax")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # in this thread, whose clock is read
    little = '<inertia ixx="1e-15" ixy="0" ixz="0" iyy="1e-15" iyz="0" izz="1e-15"/>'
    inertial = f'<inertial><origin xyz="0 0 0"/><mass value="1e-15"/>{little}</inertial>'
    text = re.sub(
        r'<link name="([^"]*)"\s*/>', rf'<link name="\1">{inertial}</link>', urdf.read_text("utf-8")
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "robot.urdf")
        path.write_text(text, encoding="utf-8")
        robot = frax.Robot(str(path))
    up = jax.numpy.array([0.0, 0.0, GRAVITY, 0.0, 0.0, 0.0])
    name = f"frax {version('frax')} on JAX {version('jax')}"
    return jax, name, lambda q, v, a: robot.rnea(q, v, a, up, None)


def _arguments(q: Array, torques: Array) -> dict[str, Array]:
    return {"q": q[0].copy(), "v": q[1].copy(), "a": q[2].copy(), "t": torques.copy()}


_LOADERS: dict[str, Callable[[Path, Array, Array], Library]] = {
    "pinocchio": _pinocchio,
    "mujoco": _mujoco,
    "dynibo": _dynibo,
    "frax": _frax,
}
NAMES = tuple(_LOADERS)
