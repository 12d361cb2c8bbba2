"""What may change about a feedforward law while it is at work, and the law that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.lie.motion import FRAMES, Frame
from hodyn_ros.model.limits import JointLimits


@dataclass(frozen=True)
class FeedforwardConfig:
    """The settings of a law, which dynamics_node has as parameters of the same names.

    `order` of the efforts; `clamp` holds them within the limits; `gravity` (3,) [m/s^2] in the world frame,
    pointing down; `payload_*` as in `Payload`; limits (joints of the efforts,) [N.m or N, /s; rad/s or m/s].
    Empty: those of the robot. `wrench_bodies` names bodies that the environment pushes, `wrench_frame` the
    frame of these wrenches as in `AppliedWrench`. Raises InputError naming the setting.
    """

    order: int = 2
    clamp: bool = False
    gravity: tuple[float, ...] = ()
    payload_mass: float = 0.0
    payload_centre: tuple[float, ...] = ()
    payload_inertia: tuple[float, ...] = ()
    payload_body: str = ""
    effort_limits: tuple[float, ...] = ()
    effort_rate_limits: tuple[float, ...] = ()
    velocity_limits: tuple[float, ...] = ()
    wrench_bodies: tuple[str, ...] = ()
    wrench_frame: Frame = "body"

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
        if self.wrench_frame not in FRAMES:
            raise InputError(
                f"parameter 'wrench_frame' is {self.wrench_frame!r}; choose one of {', '.join(FRAMES)}"
            )
        self.payload  # noqa: B018  to refuse what no body has

    @property
    def payload(self) -> Payload:
        """What the robot carries."""
        return Payload(self.payload_mass, self.payload_centre, self.payload_inertia, self.payload_body)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FeedforwardConfig:
        """Return the settings that `to_json` gave."""
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)

    def same_dynamics(self, other: FeedforwardConfig) -> bool:
        """Say whether the dynamics compiled under other settings serve these as well."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("order", "gravity", "payload", "wrench_bodies", "wrench_frame")
        )

    def robot(self, robot: Robot) -> Robot:
        """Return a robot with this gravity and payload; a tree itself where it stays as it is.

        A robot with loops remembers where it has been, so each law has one of its own.
        """
        tree = self.payload.on_tree(robot)
        return robot.with_tree(tree.with_gravity(self.gravity) if self.gravity else tree)

    def law(self, robot: Robot) -> FeedforwardModel:
        """Return the law of a robot that `robot` has returned."""
        limits = self._limits(robot.limits, robot.driven_joints)
        return FeedforwardModel(robot, self.order, self.clamp, limits, self.wrench_bodies, self.wrench_frame)

    def _limits(self, limits: JointLimits, joint_names: Sequence[str]) -> JointLimits:
        """Return the limits of the robot, with those that are given here instead."""
        chosen: dict[str, Any] = {}
        for name in ("effort", "effort_rate", "velocity"):
            given = getattr(self, f"{name}_limits")
            if given and len(given) != len(joint_names):
                raise InputError(
                    f"parameter '{name}_limits' holds {len(given)} values for {len(joint_names)} joints; "
                    f"give one for each of {list(joint_names)}, or none"
                )
            chosen[name] = given or getattr(limits, name)
        return replace(limits, **chosen, joint_names=joint_names)
