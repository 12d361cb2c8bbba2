"""The shapes that bodies carry: the `<visual>` of a URDF with its meshes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.urdf import MOST_BYTES, parse_urdf

GREY = (0.72, 0.74, 0.78)


class Visual(NamedTuple):
    """A shape that a body carries."""

    body: int  # -1: it stands on the ground
    pose: Array  # (4, 4) in the frame of the body [m]
    shape: str  # box, cylinder, capsule, sphere, ellipsoid or mesh
    size: Array  # (3,) sides [m]; radius and length along z, without caps; radius; half axes; scale of a mesh
    path: Path | None  # of a mesh
    colour: tuple[float, float, float]  # red, green and blue, up to 1
    has_colour: bool  # whether the file gives the colour
    mesh: tuple[Array, Array] | None = None  # corners (N, 3) [m] and triangles (M, 3), where there is no file


def read_visuals(urdf: Path, robot: Robot) -> tuple[list[Visual], list[str]]:
    """Return the shapes that a URDF has of a robot, and what could not be shown."""
    root = parse_urdf(read_file(urdf, MOST_BYTES, "the URDF"))
    colours = {m.get("name"): m for m in root.iter("material") if m.find("color") is not None}
    visuals, missing = [], []
    for link in root.iter("link"):
        for element in link.iter("visual"):
            try:
                visuals.append(_visual(element, str(link.get("name")), robot, urdf, colours))
            except InputError as error:
                missing.append(str(error))
            except (TypeError, ValueError) as error:
                missing.append(f"<visual> of link {link.get('name')!r}: {error}")
    return visuals, missing


def _visual(
    element: Element, link: str, robot: Robot, urdf: Path, colours: dict[str | None, Element]
) -> Visual:
    frame = find_frame(robot.tree, robot.frames, link)
    origin = element.find("origin")
    pose = frame.pose
    if origin is not None:
        xyz, rpy = (_numbers(origin.get(key, "0 0 0"), 3) for key in ("xyz", "rpy"))
        pose = pose @ from_rpy(xyz, rpy)
    geometry = element.find("geometry")
    shape = None if geometry is None else next(iter(geometry), None)
    if shape is None:
        raise InputError(f"<visual> of link {link!r} has no geometry")
    colour, has_colour = _colour(element.find("material"), colours)
    file = None
    if shape.tag == "box":
        size = _numbers(shape.get("size", ""), 3)
    elif shape.tag == "cylinder":
        size = np.array([float(shape.get("radius", "")), float(shape.get("length", "")), 0.0])
    elif shape.tag == "sphere":
        size = np.array([float(shape.get("radius", "")), 0.0, 0.0])
    elif shape.tag == "mesh":
        size, file = _numbers(shape.get("scale", "1 1 1"), 3), find_mesh(shape.get("filename", ""), urdf)
    else:
        raise InputError(f"<visual> of link {link!r} has the geometry {shape.tag!r}, which is not drawn")
    return Visual(frame.body, pose, shape.tag, size, file, colour, has_colour)


def _colour(
    material: Element | None, named: dict[str | None, Element]
) -> tuple[tuple[float, float, float], bool]:
    for one in () if material is None else (material, named.get(material.get("name"))):
        colour = None if one is None else one.find("color")
        if colour is not None:
            r, g, b = np.clip(_numbers(colour.get("rgba", ""), 4)[:3], 0.0, 1.0).tolist()
            return (r, g, b), True
    return GREY, False


def _numbers(text: str, count: int) -> Array:
    numbers = np.array([float(word) for word in text.split()])
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise InputError(f"a <visual> has {text!r} where {count} finite numbers belong")
    return numbers


def find_mesh(name: str, urdf: Path) -> Path:
    """Return the file of a mesh that a URDF names, beside it or by its package; InputError where none is.

    Packages are looked for in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH, and above the URDF.
    """
    for path in _candidates(name, urdf.resolve()):
        if path.is_file():
            return path
    raise InputError(
        f"there is no mesh '{name}' of {urdf.name}; source the workspace that has it, or put it beside the "
        "URDF"
    )


def _candidates(name: str, urdf: Path) -> Iterator[Path]:
    kind, _, rest = name.rpartition("://")
    if kind not in ("package", "model"):
        yield urdf.parent / rest
        return
    package, _, inside = rest.partition("/")
    for variable, below in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", "")):
        for folder in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(folder, below, package, inside)
            if Path(folder).name == package:
                yield Path(folder, inside)
    for above in urdf.parents:
        yield above / package / inside
        if above.name == package:
            yield above / inside
