"""From the file of a robot to the files that are written of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from hodyn_ros import share
from hodyn_ros.dynamics.read_robot import format_of
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.export.c_source import CSource, c_source
from hodyn_ros.export.mjcf import Mjcf, mjcf
from hodyn_ros.export.shared import build, shared_sources
from hodyn_ros.lie.representations import Representation
from hodyn_ros.outputs import checked_file_name, file_name_from


def export_c(
    robot: str | Path,
    order: int,
    out: Path,
    name: str | None = None,
    floating_base: bool = False,
    what: str | Sequence[str] = "inverse_dynamics",
    frames: Sequence[str | int] | None = None,
    representation: Representation = "spatial",
    period: float | None = None,
    wrenches: Sequence[str] = (),
) -> tuple[CSource, list[Path]]:
    """Write `<name>.h` and `<name>.c` into the folder `out`; return their texts and paths.

    `robot`: a YAML file, one that is shipped with the package ("panda.yaml"), an MJCF file, or a URDF file,
    in which case `floating_base` lets its root float; the others as of `c_source`. The files carry the
    SHA-256 of the robot's. Raises
    InputError, ModelError or OSError saying what is wrong.
    """
    path, built = _read(robot, floating_base)
    origin = f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    code = c_source(built, order, name, origin, what, frames, representation, period, wrenches)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{code.name}.h", out / f"{code.name}.c"]
    for file, text in zip(paths, (code.header, code.source)):
        file.write_text(text, encoding="ascii", newline="\n")
    return code, paths


def export_shared(
    robot: str | Path, order: int, out: Path, name: str | None = None, floating_base: bool = False
) -> Path:
    """Write a robot's C code into the folder `out` and compile it to `lib<name>.so`; return its path.

    It is what `hodyn_ros/FeedforwardController` loads. Arguments as of `export_c`. Raises InputError,
    ModelError or OSError saying what is wrong.
    """
    path, built = _read(robot, floating_base)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    sources = shared_sources(built, order, name, f"{path.name}, SHA-256 {digest}", digest)
    return build(sources, out, next(iter(sources)).removesuffix(".h"))


def export_mjcf(
    robot: str | Path, out: Path, name: str | None = None, floating_base: bool = False
) -> tuple[Mjcf, Path]:
    """Write `<name>.xml` into the folder `out`, by default after the robot; return its text and path.

    A name of a robot that leads to another folder is made one that does not. `robot` and `floating_base` as
    of `export_c`. Raises InputError, also for such a `name`, ModelError or OSError saying what is wrong.
    """
    chosen = None if name is None else checked_file_name(name)
    _, built = _read(robot, floating_base)
    written = mjcf(built)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{chosen or file_name_from(built.name)}.xml"
    path.write_text(written.text, encoding="utf-8")
    return written, path


def _read(robot: str | Path, floating_base: bool) -> tuple[Path, Robot]:
    path = share.find("config", robot)
    form = format_of(path)
    if floating_base and form != "urdf":
        said = "MJCF says itself whether a base floats: by a free joint in"
        if form == "yaml":
            said = "a robot's YAML file says itself whether its base floats: set it in"
        raise InputError(f"{said} '{path.name}'")
    return path, Robot.from_urdf(path, floating_base) if form == "urdf" else Robot.from_config(path)
