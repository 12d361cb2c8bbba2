"""The description of a robot as text that is complete in itself, as a bag keeps it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hodyn_ros.dynamics.read_robot import read_yaml_robot
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ModelError
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.urdf import MOST_BYTES
from hodyn_ros.model.readers.yaml_text import read_yaml


@dataclass(frozen=True)
class RobotFiles:
    """A YAML file with the URDFs that it names, or a URDF by itself, by `kind`.

    `name` is that of the file, without folders; `urdfs` are texts by the name that the YAML gives them.
    `floating_base` counts for a URDF by itself only. Raises ModelError for a name that is none of a file in
    one folder: such texts come with bags of strangers, and are written to files to be read.
    """

    name: str
    text: str
    urdfs: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["yaml", "urdf"] = "yaml"
    floating_base: bool = False

    def __post_init__(self) -> None:
        for name in (self.name, *self.urdfs):
            if not isinstance(name, str) or name == ".." or Path(name).name != name or "\0" in name:
                raise ModelError(f"{name!r} is no name of a file with a robot; leave out folders")

    @classmethod
    def from_file(cls, path: str | Path) -> RobotFiles:
        """Read a YAML file and the URDFs that it names; ModelError where one cannot be read."""
        source = Path(path)
        data = read_yaml(source).data
        text = _read(source)
        urdfs: dict[str, str] = {}
        for number, reference in enumerate(_references(data)):
            name = f"{number}-{Path(reference).name}"
            urdfs[name] = _read(source.parent / reference)
            text = text.replace(reference, name)
        return cls(source.name, text, urdfs)

    def robot(self) -> Robot:
        """Build the robot; ModelError names file and place."""
        if self.kind == "urdf":
            if not self.text.lstrip("\ufeff \t\r\n").startswith("<"):  # or it would be taken for a path
                raise ModelError(f"{self.name}: the text of a URDF starts with '<', found {self.text[:40]!r}")
            return Robot.from_urdf(self.text, self.floating_base)
        with tempfile.TemporaryDirectory(prefix="hodyn_ros-") as folder:
            path = Path(folder, self.name)
            for name, text in {self.name: self.text, **self.urdfs}.items():
                Path(folder, name).write_bytes(text.encode("utf-8", "surrogateescape"))
            return Robot.of(read_yaml_robot(path))  # by no other reader, whatever the name

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "name": self.name,
            "text": self.text,
            "urdfs": dict(self.urdfs),
            "kind": self.kind,
            "floating_base": self.floating_base,
        }


def _references(data: Any) -> list[str]:
    """Return the paths of the URDFs that a robot's YAML data names, each once."""
    if not isinstance(data, dict):
        return []
    limbs = data.get("limb_types")
    sections = [data, *(limbs if isinstance(limbs, list) else [])]
    found = [section.get("urdf") for section in sections if isinstance(section, dict)]
    return list(dict.fromkeys(reference for reference in found if isinstance(reference, str)))


def _read(path: Path) -> str:
    # whatever the encoding of a URDF: these bytes come back
    return read_file(path, MOST_BYTES).decode("utf-8", "surrogateescape")
