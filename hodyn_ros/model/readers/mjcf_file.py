"""Files of MJCF, MuJoCo's format, compiled by MuJoCo itself: includes, defaults, frames, meshes, inertias.

What a text asks MuJoCo to make by a number is counted before MuJoCo makes it, which nothing can stop: a line
may ask for a height field of a terabyte, or for a billion bodies.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from hodyn_ros.errors import FigureWarning, InputError, ModelError
from hodyn_ros.model.readers.files import MEGABYTE, read_file

MOST_BYTES = 32 * MEGABYTE  # of a file
MOST_COPIES = 10_000  # elements; MuJoCo takes a time that grows with their square, some ten seconds of these
MOST_NUMBERS = 10_000_000  # of one element; 80 MB

# attributes whose product says how many elements come of one, or how many numbers it holds
_COPIES = {"composite": ("count",), "flexcomp": ("count",)}
_NUMBERS = {
    "hfield": ("nrow", "ncol"),
    "texture": ("width", "height"),
    "user": ("dim",),
}
_ENTRIES = ("nkey", "nuser")  # what attributes of <size> begin with that say how many there are of something
_NO_TAGS = {"<!--": "-->", "<![CDATA[": "]]>"}  # where tags are none, and what ends that
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
# that it ends at the first thing that is no attribute keeps its time in proportion to the text
_TAG = re.compile(r"""<(/?)([^\s=<>"'/]+)((?:\s*[^\s=<>"'/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>""")


def decoded(content: bytes) -> str:
    """Return the text of a file."""
    return content.decode("utf-8", "surrogateescape").lstrip("\ufeff")


def check_sizes(text: str, folder: Path) -> None:
    """Raise ModelError where an MJCF, or a file that it includes from a folder, asks for far too much."""
    _Count(folder).take(text, 1)


@dataclass
class _Count:
    folder: Path
    copies: int = 0
    seen: set[str] = field(default_factory=set)

    def take(self, text: str, times: int) -> None:
        """Count what a file makes that is read so many times."""
        nested = [times]
        for closes, tag, attributes, empty in _tags(text):
            if tag == "replicate" and closes:
                nested = nested[:-1] or [times]
                continue
            if closes:
                continue
            if tag == "replicate":
                nested += [nested[-1] * _number(attributes, "count")]
            self._made(tag, attributes, nested[-1])
            if tag == "replicate" and empty:
                nested.pop()
            if tag in ("include", "model") and "file" in attributes:
                self._included(attributes["file"], nested[-1])

    def _made(self, tag: str, attributes: Mapping[str, str], times: int) -> None:
        made = times * prod(_number(attributes, name) for name in _COPIES.get(tag, ()))
        if tag == "size":
            made = max((_number(attributes, name) for name in attributes if name[:5] in _ENTRIES), default=1)
        self.copies += made if made > 1 else 0
        if self.copies > MOST_COPIES:
            raise ModelError(
                f"with <{tag}> numbers in it ask for more than {MOST_COPIES} copies of elements, the most "
                "there may be"
            )
        numbers = times * prod(_number(attributes, name) for name in _NUMBERS.get(tag, ()))
        if numbers > MOST_NUMBERS:
            raise ModelError(
                f"<{tag}> asks for {numbers:.3g} numbers ({' times '.join(_NUMBERS[tag])}); the most there "
                f"may be are {MOST_NUMBERS:g}"
            )

    def _included(self, name: str, times: int) -> None:
        path = self.folder / name
        if name in self.seen or not path.is_file():  # MuJoCo takes each once, and says which is missing
            return
        self.seen.add(name)
        self.take(decoded(read_file(path, MOST_BYTES, "the MJCF")), times)


def _tags(text: str) -> Iterator[tuple[bool, str, dict[str, str], bool]]:
    """Yield whether a tag closes an element, its name, its attributes, and whether it has no content."""
    at = text.find("<")
    while at >= 0:
        end, match = at + 1, _TAG.match(text, at)
        if match is not None:
            closes, tag, rest, empty = match.groups()
            attributes = {name: one or other for name, one, other in _ATTRIBUTE.findall(rest)}
            yield bool(closes), tag, attributes, bool(empty)
            end = match.end()
        for start, stop in _NO_TAGS.items():
            if text.startswith(start, at):
                end = text.find(stop, at + len(start))
                if end < 0:
                    return
        at = text.find("<", end)


def _number(attributes: Mapping[str, str], name: str) -> int:
    """Return the product of the numbers of an attribute, at least 1; MuJoCo complains of what is none."""
    try:
        return prod(max(int(float(word)), 1) for word in attributes.get(name, "1").split())
    except (ValueError, OverflowError):
        return 1


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
