"""The serial chain from the base of a robot to one frame, and the motion of that frame order by order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hodyn_ros.dynamics.named_frames import find_frame, supporting_bodies
from hodyn_ros.errors import InputError
from hodyn_ros.formulations.spatial import SpatialMotion
from hodyn_ros.lie.leibniz import product_derivative
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import convert_screws
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.readers.assembly import Frame
from hodyn_ros.model.tree import TreeModel


@dataclass(frozen=True, eq=False)
class SerialChain:
    """The bodies that carry one frame of a robot, as a robot of their own."""

    model: TreeModel  # of the chain alone; a floating base stays body 0
    joints: list[int]  # of the chain, as indices of joints of the whole robot
    offset: Array  # (4, 4) the frame in the last body
    name: str  # of the frame


def chain_to(model: TreeModel, frames: Mapping[str, Frame], name: str | int | None) -> SerialChain:
    """Return the chain that carries a body or named frame; None is the last body of a robot with one leaf.

    Raises InputError for an unknown name, or a frame that no joint moves.
    """
    if name is None:
        leaves = [body for body, children in zip(model.body_names, model.children) if not children]
        if len(leaves) > 1:
            raise InputError(
                f"robot {model.name!r} ends in several bodies, {leaves}; say which to move as body=..."
            )
        name = leaves[0]
    frame = find_frame(model, frames, name)
    path = supporting_bodies(model, frame.body)
    joints = [model.joint_of(j) for j in path if j >= model.first_jointed_body]
    if not joints:
        raise InputError(f"no joint moves {name!r}; choose a body or frame that a joint carries")
    chain = replace(
        model,
        parents=tuple(range(-1, len(path) - 1)),
        screws=model.screws[path],
        placements=model.placements[path],
        masses=model.masses[path],
        coms=model.coms[path],
        inertias=model.inertias[path],
        joint_names=tuple(model.joint_names[i] for i in joints),
        body_names=tuple(model.body_names[j] for j in path),
    )
    return SerialChain(chain, joints, frame.pose, str(name))


class ChainMotion:
    """The frame at the end of a chain, in hybrid representation, as far as the joint motion is known.

    `pose` (4, 4); `rates[r]` (joints,) for r = 0..order-1; `jacobians[r]` (6, joints) for r = 0..order.
    Mueller (2020), Algorithm 2.
    """

    def __init__(self, chain: SerialChain, position: Array, base: BaseMotion | None) -> None:
        self._motion = SpatialMotion(chain.model, position[None], base)
        self._screws = self._motion.screws[chain.model.first_jointed_body :]
        self._base_twists = None if base is None else base.in_frame("world").twists
        self.pose: Array = self._motion.poses[-1] @ chain.offset
        self.rates: list[Array] = []
        self.jacobians: list[Array] = [self._jacobian(0)]

    def extend(self, rates: Array) -> None:
        """Go one order higher with the next derivative (joints,) of the joint motion."""
        self.rates.append(rates)
        self._motion.extend(rates)
        self.jacobians.append(self._jacobian(len(self.rates)))

    def bias(self) -> Array:
        """Return the next derivative (6,) of the twist if that of the joint velocities were zero.

        This is `(J q')^(r)` without its leading term, and the share of a floating base.
        """
        order = len(self.rates)
        known = product_derivative(self.jacobians, [*self.rates, np.zeros(len(self._screws))], order)
        if self._base_twists is None:
            return known
        return known + self._in_hybrid(list(self._base_twists[: order + 1]))[order]

    def _jacobian(self, order: int) -> Array:
        columns = [np.stack([screws[r] for screws in self._screws]) for r in range(order + 1)]
        return self._in_hybrid(columns)[order].T

    def _in_hybrid(self, spatial: list[Array]) -> Array:
        return convert_screws(spatial, self.pose, self._motion.twists[-1], "spatial", "hybrid")
