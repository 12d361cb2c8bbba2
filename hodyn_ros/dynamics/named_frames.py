"""Bodies and the frames that they carry, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hodyn_ros.errors import UnknownNameError
from hodyn_ros.lie.representations import check_representation
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel


def find_frame(model: TreeModel, frames: Mapping[str, Frame], name: str | int) -> Frame:
    """Return the frame of a body, given by name or index, or a frame that a body or the world carries.

    Raises InputError that lists what there is.
    """
    if isinstance(name, str) and name in frames:
        return frames[name]
    if isinstance(name, str) and name not in model.body_names:
        raise UnknownNameError("body or frame", name, list(dict.fromkeys([*model.body_names, *frames])))
    return Frame(model.body_index(name), np.eye(4))


def placed(
    model: TreeModel, frames: Mapping[str, Frame], of: tuple[Any, ...], shift: int = 0
) -> tuple[Any, ...]:
    """Return what the law of an operation is of: a frame, or several, and a representation.

    `of`: nothing, or a name or a tuple of names, and a representation; bodies come `shift` later. Raises
    InputError for names and representations that there are not.
    """
    if not of:
        return ()
    names, representation = of
    check_representation(representation)

    def place(name: str | int) -> Frame:
        body, pose = find_frame(model, frames, name)
        return Frame(body + shift if body >= 0 else body, pose)

    return [place(name) for name in names] if isinstance(names, tuple) else place(names), representation


def supporting_bodies(model: TreeModel, body: int) -> list[int]:
    """Return the bodies from the root of the tree to `body`, which comes last; none for the world, -1."""
    path: list[int] = []
    while body >= 0:
        path.append(body)
        body = model.parents[body]
    return path[::-1]
