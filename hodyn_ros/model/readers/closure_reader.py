"""Read couplings, loops, coordinates and driven joints of a robot's YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.closure import Closure, Coordinate, place_loop
from hodyn_ros.model.loops import Coupling, Loop
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.readers.document import Section
from hodyn_ros.model.tree import TreeModel

KEYS = ("couplings", "loops", "coordinates", "driven", "home")
_AXIS = (0.0, 0.0, 1.0)  # of a frame, where a loop names none


def read_closure(
    root: Section,
    model: TreeModel,
    frames: Mapping[str, Frame],
    mimics: Sequence[Coupling],
    with_drives: Sequence[str],
) -> Closure | None:
    """Read what makes more of a tree; None where the file and its URDF say nothing of the kind.

    `mimics`: couplings of the URDF; `with_drives`: joints with a drive, which are driven where the file does
    not say which are. Raises ModelError naming the place in the file.
    """
    if not mimics and not any(key in root for key in KEYS):
        return None
    couplings = [*mimics, *(_coupling(section) for section in root.sections("couplings"))]
    loops = [_loop(section, model, frames, "home" not in root) for section in root.sections("loops")]
    driven = root.get("driven", list(with_drives) or None)
    try:
        return Closure.build(
            model, loops, couplings, _coordinates(root), driven, frames, home=root.get("home")
        )
    except ModelError as error:
        said = str(error)
        key = next((key for key in KEYS if key in root and key[:4] in said.split(":")[0]), None)
        raise root.error(said.removeprefix(f"{key}: "), key) from error


def _coupling(section: Section) -> Coupling:
    figures: dict[str, Any] = {key: section.number(key) for key in ("ratio", "offset") if key in section}
    if "polynomial" in section:
        figures["polynomial"] = section["polynomial"]
    key = "table" if "table" in section else "polynomial" if "polynomial" in section else "of"
    if key == "table":
        table = section.section("table")
        figures["table"] = (table["of"], table["joint"])
        figures |= {"degree": table.get("degree", 5), "periodic": table.get("periodic", False)}
    try:
        return Coupling(section["joint"], section["of"], **figures)
    except ModelError as error:
        raise section.error(str(error), key) from error


def _loop(section: Section, model: TreeModel, frames: Mapping[str, Frame], closed: bool) -> Loop:
    """Read a loop between two frames, whose origins are its points and whose z axes its axes by default.

    `closed`: whether it is closed at the zero configuration.
    """
    places = []
    for key in ("a", "b"):
        name = section[key]
        if name not in frames:
            raise section.error(f"there is no body or frame {name!r}; known: {list(frames)}", key)
        body, pose = frames[name]
        places.append(pose if body < 0 else model.placements[body] @ pose)
    kind = section["kind"]
    a, b = places
    axis, axis_b = _axis(section, "axis", a), _axis(section, "axis_b", b)
    if kind in ("weld", "ball", "rod", "rows"):
        axis = axis_b = None
    names = section["a"], section["b"]
    some: dict[str, Any] = {"rows": section.get("rows", ())}
    if kind == "rows":
        some["axes"] = a[:3, :3]
    if not closed and kind in ("rows", "weld", "slider"):
        some |= {"axes": a[:3, :3], "axes_b": b[:3, :3]}
    try:
        loop = Loop(*names, kind, a[:3, 3], axis, b[:3, 3], axis_b, section.get("name", ""), **some)
        place_loop(model, frames, loop, closed)
        return loop
    except ModelError as error:
        raise section.error(str(error)) from error


def _axis(section: Section, key: str, place: Array) -> Array | None:
    axis = section.vector(key, default=_AXIS)
    if not axis.any():
        raise section.error("an axis of zeros has no direction", key)
    turned: Array = place[:3, :3] @ axis
    return turned / np.linalg.norm(turned)


def _coordinates(root: Section) -> list[Coordinate] | None:
    if "coordinates" not in root:
        return None
    return [x if isinstance(x, str) else (x["body"], tuple(x["rows"])) for x in root["coordinates"]]
