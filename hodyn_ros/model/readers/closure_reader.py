"""Couplings, loops, coordinates and driven joints, as a robot's file gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.model.closure import Closure, place_loop
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.loops import WITH_AXES, WITH_AXIS, Constraints, Coordinate, Coupling, Loop
from hodyn_ros.model.readers.robot_entries import CouplingEntry, LoopEntry, PoseRowsEntry, TreeFile
from hodyn_ros.model.tree import TreeModel

KEYS = ("couplings", "loops", "coordinates", "driven", "home")


def read_closure(
    root: TreeFile,
    model: TreeModel,
    frames: Mapping[str, Frame],
    couplings: Sequence[Coupling],
    with_drives: Sequence[str],
) -> Closure | None:
    """Return what makes more of a tree; None where the file and its URDF say nothing of the kind.

    `couplings`: those of the file and its URDF, but for those that locked joints hold; `with_drives`: joints
    with a drive, which are driven where the file does not say which are. Raises ModelError naming the place
    in the file.
    """
    if not couplings and not any(key in root.keys_present for key in KEYS if key != "couplings"):
        return None
    loops = [read_loop(entry, model, frames, root.home is None) for entry in root.loops]
    driven = root.driven if root.driven is not None else list(with_drives) or None
    coordinates: list[Coordinate] | None = None
    if root.coordinates is not None:
        coordinates = read_coordinates(root.coordinates)
    try:
        return Closure.build(model, Constraints(loops, couplings, coordinates, driven, root.home), frames)
    except ModelError as error:
        raise place_error(root, error) from error


def place_error(root: TreeFile, error: ModelError) -> ModelError:
    """Return an error of a closure with the key of the file that it is about."""
    said = str(error)
    key = next((key for key in KEYS if key in root.keys_present and key[:4] in said.split(":")[0]), None)
    return root.error(said.removeprefix(f"{key}: "), key)


def read_coordinates(entries: Sequence[Any]) -> list[Coordinate]:
    """Return joints by name, and rows of the pose of a body as a tuple of both."""
    return [(x.body, x.rows) if isinstance(x, PoseRowsEntry) else x for x in entries]


def read_coupling(entry: CouplingEntry) -> Coupling:
    """Return the coupling that an entry describes."""
    curve: dict[str, Any] = {}
    if entry.table is not None:
        table = entry.table
        curve = {"table": (table.of, table.joint), "degree": table.degree, "periodic": table.periodic}
    try:
        return Coupling(entry.joint, entry.of, entry.ratio, entry.offset, entry.polynomial, **curve)
    except ModelError as error:
        key = next((key for key in ("table", "polynomial") if key in entry.keys_present), "of")
        raise entry.error(str(error), key) from error


def read_loop(entry: LoopEntry, model: TreeModel, frames: Mapping[str, Frame], closed: bool) -> Loop:
    """Return a loop between two frames, whose origins are its points and whose z axes its axes by default.

    `closed`: whether it is closed at the zero configuration.
    """
    places = []
    for key, name in (("a", entry.a), ("b", entry.b)):
        if name not in frames:
            raise entry.error(f"there is no body or frame {name!r}; known: {list(frames)}", key)
        body, pose = frames[name]
        places.append(pose if body < 0 else model.placements[body] @ pose)
    a, b = places
    kind = entry.kind
    axis, axis_b = _axis(entry, "axis", a), _axis(entry, "axis_b", b)
    some: dict[str, Any] = {"axis": axis, "axis_b": axis_b} if kind in WITH_AXIS else {}
    some |= {"point_b": b[:3, 3], "name": entry.name, "rows": entry.rows, "length": entry.length}
    if kind == "rows":
        some["axes"] = a[:3, :3]
    if not closed and kind in WITH_AXES:
        some |= {"axes": a[:3, :3], "axes_b": b[:3, :3]}
    try:
        loop = Loop(entry.a, entry.b, kind, a[:3, 3], **some)
        place_loop(model, frames, loop, closed)
        return loop
    except ModelError as error:
        raise entry.error(str(error)) from error


def _axis(entry: LoopEntry, key: str, place: Array) -> Array:
    axis = np.array(getattr(entry, key))
    if not axis.any():
        raise entry.error("an axis of zeros has no direction", key)
    turned: Array = place[:3, :3] @ axis
    return turned / np.linalg.norm(turned)
