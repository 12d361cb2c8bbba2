"""Boxes in the world that frames of a robot may not leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError

_AXES = "xyz"


@dataclass(frozen=True)
class Box:
    """Where the origin of a body or named frame may be [m]; infinite where nothing bounds it."""

    frame: str
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]

    def __post_init__(self) -> None:
        for axis, low, high in zip(_AXES, self.lower, self.upper, strict=True):
            if not low < high:
                raise InputError(f"the box of {self.frame!r} is empty along {axis}: {low:g} to {high:g} m")

    @classmethod
    def parse(cls, text: str) -> Box:
        """Return the box that a text such as `hand: x -0.5..0.8, z 0.1..` stands for; InputError otherwise.

        >>> Box.parse("hand: x -0.5..0.8, z 0.1..")
        Box(frame='hand', lower=(-0.5, -inf, 0.1), upper=(0.8, inf, inf))
        """
        frame, _, ranges = text.partition(":")
        lower, upper = [-np.inf] * 3, [np.inf] * 3
        try:
            for part in ranges.split(","):
                axis, bounds = part.split()
                low, high = bounds.split("..")
                place = _AXES.index(axis)
                # what bounds nothing, twice or by three dots was meant to be another box
                if not (low or high) or "..." in bounds or np.isfinite([lower[place], upper[place]]).any():
                    raise ValueError
                lower[place] = float(low) if low else -np.inf
                upper[place] = float(high) if high else np.inf
        except ValueError:
            raise InputError(
                f"{text!r} is no box; write one as 'hand: x -0.5..0.8, z 0.1..', in metres, each axis once"
            ) from None
        return cls(frame.strip(), (lower[0], lower[1], lower[2]), (upper[0], upper[1], upper[2]))


class BoxSet:
    """Boxes as quantities beside the limits of a robot: at most 1 where a frame is inside.

    A range of the width w is measured from its middle in units of w / 2, a single bound in metres.
    """

    def __init__(self, robot: Robot, boxes: tuple[Box, ...]) -> None:
        self.labels: list[str] = []
        self._rows: list[int] = []
        self._axes: list[int] = []
        centres, spans = [], []
        known = (*robot.tree.body_names, *robot.frames)
        for row, box in enumerate(boxes):
            if box.frame not in known:
                raise InputError(
                    f"robot {robot.name!r} has no body or frame {box.frame!r}; it has "
                    f"{', '.join(dict.fromkeys(known))}"
                )
            for axis, (low, high) in enumerate(zip(box.lower, box.upper)):
                if np.isinf(low) and np.isinf(high):
                    continue
                self._rows.append(row)
                self._axes.append(axis)
                self.labels.append(f"{_AXES[axis]} of {box.frame}")
                if np.isfinite(high - low):
                    centres.append(0.5 * (low + high))
                    spans.append(0.5 * (high - low))
                else:  # 1 where the bound is met, and 1 m further out 2
                    sign = 1.0 if np.isfinite(high) else -1.0
                    centres.append((high if np.isfinite(high) else low) - sign)
                    spans.append(sign)
        self._centres, self._spans = np.array(centres), np.array(spans)
        self.one_sided = np.array(
            [not np.isfinite(boxes[r].upper[a] - boxes[r].lower[a]) for r, a in zip(self._rows, self._axes)],
            dtype=bool,
        )
        frames = [box.frame for box in boxes]
        self._poses = robot.compile_batch(0, "forward_kinematics", frames) if frames else None

    def values(self, positions: Array) -> Array:
        """Return the quantities (N, columns) at positions of the joints (N, n)."""
        if self._poses is None:
            return np.empty((len(positions), 0))
        poses = self._poses(np.ascontiguousarray(positions[:, None]))
        places = poses.reshape(len(positions), -1, 16)[:, :, [3, 7, 11]]
        return np.asarray((places[:, self._rows, self._axes] - self._centres) / self._spans)
