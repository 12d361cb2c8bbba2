"""What may change about a feedforward model while a node runs, and the model that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.model import WRENCH_FRAMES, FeedforwardModel, WrenchFrame
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.model.keys import key
from hodyn_ros.model.limits import JointLimits


@dataclass(frozen=True)
class FeedforwardConfig:
    """The configuration of a feedforward model; dynamics_node has parameters of these names.

    Raises InputError naming the parameter.
    """

    order: int = key("Highest time derivative of the efforts that is computed.", default=2, within=(0, 6))
    clamp: bool = key("Hold efforts within the limits, with derivatives of zero while held.", default=False)
    gravity: tuple[float, ...] = key(
        "Gravity in the world frame, pointing down [m/s^2], three values; empty: that of the robot's file. "
        "Three zeros for drives that compensate gravity themselves.",
        default=(),
    )
    payload_mass: float = key(
        "Mass that the robot carries, beside what its file describes [kg].",
        default=0.0,
        within=(0.0, 10000.0),
    )
    payload_centre: tuple[float, ...] = key(
        "Centre of mass of the payload in the frame of payload_body [m], three values; empty: its origin.",
        default=(),
    )
    payload_inertia: tuple[float, ...] = key(
        "Inertia of the payload about its centre, in axes of payload_body [kg m^2]: xx, xy, xz, yy, yz, zz; "
        "empty: that of a point.",
        default=(),
    )
    payload_body: str = key(
        "Body, or frame fixed to one, that carries the payload; empty: the last body, or the platform.",
        default="",
    )
    effort_limits: tuple[float, ...] = key(
        "Limits of the efforts [N.m or N], one per joint, .inf for none; empty: those of the robot's file.",
        default=(),
    )
    effort_rate_limits: tuple[float, ...] = key(
        "Limits of the rates of the efforts [N.m/s or N/s], one per joint; empty: those of the robot's file.",
        default=(),
    )
    velocity_limits: tuple[float, ...] = key(
        "Limits of the joint velocities [rad/s or m/s], one per joint; empty: those of the robot's file.",
        default=(),
    )
    wrench_bodies: tuple[str, ...] = key(
        "Bodies with a measured external wrench, each on the topic external_wrench/<body>.", default=()
    )
    wrench_frame: WrenchFrame = key(
        "Frame that measured wrenches are given and filtered in: body (axes and origin of the body, or of a "
        "frame fixed to it) or world (axes and origin of the world).",
        default="body",
    )

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name)
            if field.default == ():
                object.__setattr__(self, field.name, tuple(values))
        if len(self.gravity) not in (0, 3) or not np.isfinite(np.vdot(self.gravity, self.gravity)):
            raise InputError(
                f"parameter 'gravity' is {list(self.gravity)}; give three finite values, or none"
            )
        if len(set(self.wrench_bodies)) < len(self.wrench_bodies):
            raise InputError(f"parameter 'wrench_bodies' is {list(self.wrench_bodies)}; name every body once")
        if self.wrench_frame not in WRENCH_FRAMES:
            raise InputError(
                f"parameter 'wrench_frame' is {self.wrench_frame!r}; choose one of {', '.join(WRENCH_FRAMES)}"
            )
        self.payload  # noqa: B018  to reject what no body has

    @property
    def payload(self) -> Payload:
        """What the robot carries."""
        return Payload(self.payload_mass, self.payload_centre, self.payload_inertia, self.payload_body)

    def same_dynamics(self, other: FeedforwardConfig) -> bool:
        """Return whether the dynamics compiled for another configuration serve this one as well."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("order", "gravity", "payload", "wrench_bodies", "wrench_frame")
        )

    def robot(self, robot: Robot) -> Robot:
        """Return a robot with this gravity and payload; a tree itself where it stays as it is.

        A robot with loops keeps its last positions, so each model has one of its own.
        """
        tree = self.payload.on_tree(robot)
        return robot.with_tree(tree.with_gravity(self.gravity) if self.gravity else tree)

    def model(self, robot: Robot) -> FeedforwardModel:
        """Return the model for a robot that `robot` has returned."""
        limits = self._limits(robot.limits, robot.driven_joints)
        return FeedforwardModel(robot, self.order, self.clamp, limits, self.wrench_bodies, self.wrench_frame)

    def _limits(self, limits: JointLimits, joint_names: Sequence[str]) -> JointLimits:
        """Return the limits of the robot, with those that are given here instead."""
        chosen: dict[str, Any] = {}
        for name in ("effort", "effort_rate", "velocity"):
            values = getattr(self, f"{name}_limits")
            if values and len(values) != len(joint_names):
                raise InputError(
                    f"parameter '{name}_limits' holds {len(values)} values for {len(joint_names)} joints; "
                    f"give one for each of {list(joint_names)}, or none"
                )
            chosen[name] = values or getattr(limits, name)
        return replace(limits, **chosen, joint_names=joint_names)
