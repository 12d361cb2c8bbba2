"""The description of a robot as text that is complete in itself, as a bag keeps it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hodyn_ros.dynamics.read_robot import format_of, read_yaml_robot, require_silent_about_base
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ModelError
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.urdf import MOST_BYTES
from hodyn_ros.model.readers.yaml_text import read_yaml

# attributes and elements of MJCF that name files
_NEEDED = re.compile(r"<include\b[^>]*|\bfile(?:right|left|up|down|front|back)?\s*=[^>]*?(?=[\s/>])")


@dataclass(frozen=True)
class RobotFiles:
    """A YAML file with the URDFs or the MJCF that it names, or one of these by itself, by `kind`.

    `name` is that of the file, without folders; `urdfs` are texts by the name that the YAML gives them.
    `floating_base` counts for a URDF by itself only. An MJCF that needs other files is not complete in
    itself, and rejected. Raises ModelError for a name that is none of a file in
    one folder: such texts come with bags of strangers, and are written to files to be read.
    """

    name: str
    text: str
    urdfs: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["yaml", "urdf", "mjcf"] = "yaml"
    floating_base: bool = False

    def __post_init__(self) -> None:
        for name in (self.name, *self.urdfs):
            if not isinstance(name, str) or name == ".." or Path(name).name != name or "\0" in name:
                raise ModelError(f"{name!r} is no name of a file with a robot; leave out folders")

    @classmethod
    def from_file(cls, path: str | Path, floating_base: bool = False) -> RobotFiles:
        """Read a file and those that it names; ModelError where one cannot be read.

        Raises InputError for a floating base of a file that says itself whether it has one.
        """
        source = Path(path)
        kind = format_of(source)
        if floating_base:
            require_silent_about_base(source)
        if kind != "yaml":
            return cls(source.name, _complete(_read(source), source.name), {}, kind, floating_base)
        data = read_yaml(source).data
        text = _read(source)
        urdfs: dict[str, str] = {}
        for number, reference in enumerate(_references(data)):
            name = f"{number}-{Path(reference).name}"
            urdfs[name] = _complete(_read(source.parent / reference), reference)
            text = text.replace(reference, name)
        return cls(source.name, text, urdfs)

    def robot(self) -> Robot:
        """Build the robot; ModelError names file and place."""
        if self.kind == "urdf":
            if not self.text.lstrip("\ufeff \t\r\n").startswith("<"):  # or it would be taken for a path
                raise ModelError(f"{self.name}: the text of a URDF starts with '<', found {self.text[:40]!r}")
            return Robot.from_urdf(self.text, self.floating_base)
        for name, text in {self.name: self.text, **self.urdfs}.items():
            _complete(text, name)
        if self.kind == "mjcf":
            if not self.text.lstrip("\ufeff \t\r\n").startswith("<"):
                raise ModelError(f"{self.name}: the text of MJCF starts with '<', found {self.text[:40]!r}")
            return Robot.from_mjcf(self.text)
        with tempfile.TemporaryDirectory(prefix="hodyn_ros-") as folder:
            path = Path(folder, self.name)
            for name, text in {self.name: self.text, **self.urdfs}.items():
                Path(folder, name).write_bytes(text.encode("utf-8", "surrogateescape"))
            return Robot.of(read_yaml_robot(path))  # by no other reader, whatever the name


def _references(data: Any) -> list[str]:
    """Return the paths of the URDFs and the MJCF that a robot's YAML data names, each once."""
    if not isinstance(data, dict):
        return []
    limbs = data.get("limb_types")
    sections = [data, *(limbs if isinstance(limbs, list) else [])]
    references = [
        section.get(key) for section in sections if isinstance(section, dict) for key in ("urdf", "mjcf")
    ]
    return list(dict.fromkeys(reference for reference in references if isinstance(reference, str)))


def _complete(text: str, name: str) -> str:
    """Return a text; ModelError for an MJCF that needs other files, which it does not bring along."""
    if "<mujoco" in text and (needed := _NEEDED.search(text)):
        raise ModelError(
            f"{name} is MJCF that needs another file ({needed[0]}), and a node keeps its robot as text "
            "that is complete in itself; write one with hodyn export --lang mjcf, and give that"
        )
    return text


def _read(path: Path) -> str:
    # whatever the encoding of a URDF: these bytes come back
    return read_file(path, MOST_BYTES).decode("utf-8", "surrogateescape")
