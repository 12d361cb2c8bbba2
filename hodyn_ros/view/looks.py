"""How the bodies of a robot look, by the URDF or the MJCF that describes it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.dynamics.read_robot import format_of, kind_of
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import FigureWarning, InputError
from hodyn_ros.lie.se3 import pose
from hodyn_ros.model.readers.document import read_document
from hodyn_ros.model.readers.mjcf_file import compile_mjcf
from hodyn_ros.model.readers.robot_entries import MjcfFile, UrdfFile
from hodyn_ros.view.visuals import Visual, read_visuals


class Looks(NamedTuple):
    """The shapes of a robot, and what could not be shown."""

    visuals: tuple[Visual, ...]
    missing: tuple[str, ...]


def read_looks(path: Path, robot: Robot) -> Looks:
    """Return the shapes of the robot that a file describes: a URDF, an MJCF, or one that names one."""
    shown = _shown_by(path)
    if shown is None:
        return Looks((), ())
    if format_of(shown) == "mjcf":
        return Looks(tuple(read_geoms(shown, robot)), ())
    visuals, missing = read_visuals(shown, robot)
    return Looks(tuple(visuals), tuple(dict.fromkeys(missing)))


def _shown_by(path: Path) -> Path | None:
    """Return the URDF or MJCF that a file is, or that it names."""
    if format_of(path) != "yaml":
        return path
    document = read_document(path, kind_of)
    root, folder = document.root, document.path.parent
    if isinstance(root, UrdfFile):
        return folder / root.urdf
    return folder / root.mjcf if isinstance(root, MjcfFile) else None


# by number of the type: what sides, radii and lengths are twice of what MuJoCo gives
_SHAPES = {
    2: ("sphere", (1.0, 0.0, 0.0)),
    3: ("capsule", (1.0, 2.0, 0.0)),
    4: ("ellipsoid", (1.0, 1.0, 1.0)),
    5: ("cylinder", (1.0, 2.0, 0.0)),
    6: ("box", (2.0, 2.0, 2.0)),
    7: ("mesh", (0.0, 0.0, 0.0)),
}
_SHOWN = 3  # groups that MuJoCo's viewer shows at first; those behind them are for contacts


def read_geoms(path: Path, robot: Robot) -> Iterator[Visual]:
    """Return the geoms of an MJCF that MuJoCo's viewer shows at first; neither planes nor height fields."""
    from scipy.spatial.transform import Rotation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)  # they were said when the robot was read
        model, _ = compile_mjcf(path)
    for i in range(model.ngeom):
        shape, factors = _SHAPES.get(int(model.geom_type[i]), ("", (0.0, 0.0, 0.0)))
        material = int(model.geom_matid[i])
        rgba = model.geom_rgba[i] if material < 0 else model.mat_rgba[material]
        if not shape or model.geom_group[i] >= _SHOWN or not rgba[3]:
            continue
        number = int(model.geom_bodyid[i])
        body, place = -1, np.eye(4)
        if number:
            try:
                body, place = find_frame(robot.tree, robot.frames, model.body(number).name or f"body{number}")
            except InputError:  # of another robot in the same file
                continue
        turned = Rotation.from_quat(np.roll(model.geom_quat[i], -1)).as_matrix()
        r, g, b = np.clip(rgba[:3], 0.0, 1.0).tolist()
        yield Visual(
            body,
            place @ pose(turned, model.geom_pos[i]),
            shape,
            np.ones(3) if shape == "mesh" else model.geom_size[i] * factors,
            None,
            (r, g, b),
            True,
            _mesh(model, int(model.geom_dataid[i])) if shape == "mesh" else None,
        )


def _mesh(model: Any, number: int) -> tuple[Array, Array]:
    corner, face = int(model.mesh_vertadr[number]), int(model.mesh_faceadr[number])
    return (
        np.array(model.mesh_vert[corner : corner + model.mesh_vertnum[number]], dtype=np.float64),
        np.array(model.mesh_face[face : face + model.mesh_facenum[number]]),
    )
