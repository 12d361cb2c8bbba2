"""From the file of a robot to the files that are written of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export.c_source import CSource, c_source
from hodyn_ros.export.c_text import checked_name, name_from
from hodyn_ros.export.linkage.arrays import LinkageArrays, linkage_arrays
from hodyn_ros.export.linkage.shared import linkage_sources
from hodyn_ros.export.mjcf import Mjcf, mjcf
from hodyn_ros.export.python.wheel import write_wheel
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.shared import build, shared_sources
from hodyn_ros.outputs import checked_file_name, file_name_from, write_text


def export_c(choice: RobotChoice, request: ExportRequest, out: Path) -> tuple[CSource, list[Path]]:
    """Write `<name>.h` and `<name>.c` of a robot into the folder `out`; return their texts and paths.

    The files carry the SHA-256 of the robot's. Raises InputError, ModelError or OSError saying what is wrong.
    """
    built, origin, _ = _read(choice)
    code = c_source(built, request, origin)
    paths = [out / f"{code.name}.h", out / f"{code.name}.c"]
    for file, text in zip(paths, (code.header, code.source)):
        write_text(file, text)
    return code, paths


def export_shared(choice: RobotChoice, order: int, out: Path, name: str | None = None) -> Path:
    """Write a robot's C code into the folder `out` and compile it to `lib<name>.so`; return its path.

    It is what `hodyn_ros/FeedforwardController` loads. Raises InputError, ModelError or OSError saying what
    is wrong.
    """
    built, origin, digest = _read(choice)
    sources = shared_sources(built, order, name, origin, digest)
    return build(sources, out, next(iter(sources)).removesuffix(".h"))


def export_linkage(
    choice: RobotChoice,
    out: Path,
    name: str | None = None,
    *,
    shared: bool = False,
    points: int = 33,
) -> tuple[LinkageArrays, list[Path]]:
    """Write `<name>_linkage.npz` into the folder `out`, with `points` of each joint; return arrays and paths.

    `shared`: write the C code as well, and compile it to `lib<name>_linkage.so` for
    `hodyn_ros/LinkageTransmission`. Others as of `export_c`. Raises InputError for robots that are no
    linkage, and what `export_shared` raises.
    """
    built, origin, digest = _read(choice)
    arrays = linkage_arrays(built, points)
    prefix = checked_name(name_from(built.name) if name is None else name)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{prefix}_linkage.npz"]
    arrays.save(paths[0])
    if shared:
        paths.append(build(linkage_sources(built, prefix, origin, digest), out, f"{prefix}_linkage"))
    return arrays, paths


def export_python(choice: RobotChoice, request: ExportRequest, out: Path) -> tuple[CSource, list[Path]]:
    """Write a wheel of compiled functions of a robot into the folder `out`; return their C code and the path.

    Who installs it needs NumPy alone: neither this package nor a compiler; where it is written, a C compiler
    has to be. Raises InputError, ModelError or OSError saying what is wrong.
    """
    built, origin, _ = _read(choice)
    code = c_source(built, request, origin)
    return code, [write_wheel(built, code, request.order, out)]


def export_mjcf(choice: RobotChoice, out: Path, name: str | None = None) -> tuple[Mjcf, Path]:
    """Write `<name>.xml` into the folder `out`, by default after the robot; return its text and path.

    A name of a robot that leads to another folder is made one that does not. Raises InputError, also for such
    a `name`, ModelError or OSError saying what is wrong.
    """
    chosen = None if name is None else checked_file_name(name)
    built = choice.robot()
    written = mjcf(built)
    path = out / f"{chosen or file_name_from(built.name)}.xml"
    write_text(path, written.text)
    return written, path


def _read(choice: RobotChoice) -> tuple[Robot, str, str]:
    """Return a robot, where it comes from in words, and the SHA-256 of its file."""
    path, built = choice.path, choice.robot()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    said = "".join(f", {ascii(setting)[1:-1]}" for setting in choice.settings)
    return built, f"{path.name}, SHA-256 {digest}{said.replace('*/', '* /')}", digest  # in a comment
