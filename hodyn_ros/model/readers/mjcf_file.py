"""Files of MJCF, MuJoCo's format, compiled by MuJoCo itself: includes, defaults, frames, meshes, inertias."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

from hodyn_ros.errors import FigureWarning, InputError, ModelError
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.mjcf_sizes import MOST_BYTES, check_sizes, decoded

SUFFIXES = (".xml", ".mjcf")
_BEFORE_ROOT = re.compile(r"\s*(?:<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>)", re.DOTALL)
_NAN = "'NaN'"  # in the warning of MuJoCo
_ROOT = re.compile(r"\s*<([\w.:-]+)")


def is_mjcf(path: Path) -> bool:
    """Say whether a file is MJCF, which may share its suffix with URDF: whether <mujoco> is outermost."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    return _outermost(decoded(read_file(path, MOST_BYTES, "the MJCF"))) == "mujoco"


def compile_mjcf(path_or_xml: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the `mujoco.MjModel` of an MJCF file, or of the text of one, and what to call it in errors.

    Raises ModelError in one line: MuJoCo is not installed, the file cannot be read or is not MJCF, or what
    MuJoCo says of it, such as the mesh file that is missing.
    """
    if not isinstance(path_or_xml, (str, os.PathLike)):
        raise InputError(f"MJCF comes as a path or as text, not as {type(path_or_xml).__name__}")
    text = path_or_xml.lstrip("\ufeff \t\r\n") if isinstance(path_or_xml, str) else ""
    is_text = text.startswith("<")
    source = "MJCF" if is_text else f"MJCF {os.fspath(path_or_xml)}"
    if not is_text:
        text = decoded(read_file(path_or_xml, MOST_BYTES, "the MJCF"))
    root = _outermost(text)
    if root != "mujoco":
        hint = "; URDF is read by Robot.from_urdf" if root == "robot" else ""
        raise ModelError(f"{source}: the outermost element of MJCF is <mujoco>, found <{root}>{hint}")
    mujoco = import_mujoco(source)
    try:
        check_sizes(text, Path() if is_text else Path(path_or_xml).parent)
    except ModelError as error:
        raise ModelError(f"{source}: {error}") from error
    said: list[str] = []
    before = mujoco.get_mju_user_warning()  # MuJoCo's own writes a log into the current folder
    mujoco.set_mju_user_warning(said.append)
    try:
        make = mujoco.MjModel
        model = make.from_xml_string(text) if is_text else make.from_xml_path(os.fspath(path_or_xml))
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        hint = ""
        if "opening file" in str(error):
            hint = " (files are looked for beside the MJCF, in its meshdir, texturedir or assetdir)"
        raise ModelError(f"{source}: MuJoCo cannot compile it: {_one_line(error)}{hint}") from error
    finally:
        mujoco.set_mju_user_warning(before)
    for line in said:
        if _NAN in line:  # it takes such a figure for one that is not given, and has its own
            raise ModelError(f"{source}: one of its numbers is NaN, and MuJoCo puts its own there; mend it")
        warnings.warn(f"{source}: MuJoCo warns: {_one_line(line)}", FigureWarning, stacklevel=4)
    return model, source


def import_mujoco(source: str) -> Any:
    """Return the package; ModelError says how to get it."""
    try:
        import mujoco
    except ImportError as error:
        raise ModelError(
            f"{source}: MJCF is read by MuJoCo, which is missing: pip install mujoco, or hodyn_ros[mjcf]"
        ) from error
    if not hasattr(mujoco.MjModel, "eq_objtype"):
        raise ModelError(
            f"{source}: mujoco {mujoco.__version__} is too old to read it: pip install -U mujoco"
        )
    return mujoco


def _one_line(said: object) -> str:
    return "; ".join(line.strip() for line in str(said).splitlines() if line.strip())


def _outermost(text: str) -> str:
    at = 0
    while match := _BEFORE_ROOT.match(text, at):
        at = match.end()
    match = _ROOT.match(text, at)
    return match[1] if match else "nothing"
