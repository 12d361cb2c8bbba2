"""Shapes of bodies as triangles, by trimesh."""

from __future__ import annotations

import numpy as np
import trimesh

from hodyn_ros.errors import InputError
from hodyn_ros.view.visuals import Visual


def triangles(visual: Visual) -> trimesh.Trimesh:
    """Return the mesh of a shape in the frame of its body [m], coloured where file or URDF say how.

    Raises InputError naming a file that cannot be read.
    """
    mesh = _shape(visual)
    if visual.shape == "mesh":
        mesh.apply_scale(visual.size)
    mesh.apply_transform(visual.pose)
    if (
        visual.has_colour
        or visual.shape != "mesh"
        or visual.path is None
        or visual.path.suffix.lower() == ".stl"
    ):
        colour = np.round(255.0 * np.array([*visual.colour, 1.0])).astype(np.uint8)
        mesh.visual = trimesh.visual.ColorVisuals(mesh, face_colors=np.tile(colour, (len(mesh.faces), 1)))
    return mesh


def _shape(visual: Visual) -> trimesh.Trimesh:
    first, second, _ = visual.size.tolist()
    if visual.shape == "box":
        return trimesh.creation.box(visual.size)
    if visual.shape == "cylinder":
        return trimesh.creation.cylinder(first, second)
    if visual.shape == "capsule":
        return trimesh.creation.capsule(second, first)
    if visual.shape == "sphere":
        return trimesh.creation.icosphere(radius=first)
    if visual.shape == "ellipsoid":
        return trimesh.creation.icosphere().apply_scale(visual.size)
    if visual.mesh is not None:
        return trimesh.Trimesh(*visual.mesh, process=False)
    try:
        loaded = trimesh.load(visual.path, force="mesh")
    except Exception as error:  # each format fails in its own way
        raise InputError(f"'{visual.path}' cannot be read: {error or type(error).__name__}") from error
    if not isinstance(loaded, trimesh.Trimesh) or not len(loaded.faces):
        raise InputError(f"'{visual.path}' has no triangles")
    return loaded
