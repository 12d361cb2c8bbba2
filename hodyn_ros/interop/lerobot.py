"""A processor step of LeRobot: chunks of a policy in, what drives with gains and torque are sent out.

Importing this module registers `hodyn_ros_chunk_executor`. It needs the extra `lerobot`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.control.motor_pd import MotorGains
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.extras import needed
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.planning.streams.stream_config import Mode, PointsError, StreamConfig
from hodyn_ros.streaming import ChunkBounds, ChunkError, ChunkExecutor, ExecutorConfig

_types = needed("lerobot.configs.types")
_pipeline = needed("lerobot.processor")
_Key = _pipeline.TransitionKey
_log = logging.getLogger(__name__)

BEGIN = "chunk_begin"  # of the complementary data: the time [s] that the first point of a chunk is for
_COMMANDS = ("pos", "vel", "kp", "kd", "torque")


@_pipeline.ProcessorStepRegistry.register("hodyn_ros_chunk_executor")
@dataclass
class ChunkExecutorStep(_pipeline.ProcessorStep):  # type: ignore[misc, name-defined]
    """Follows chunks with `ChunkExecutor`; called at the rate of the drives, 500 Hz for example.

    The action of a transition is a chunk (points, motors) or (1, points, motors), one point (motors,), a
    RobotAction with `<motor>.pos`, or None where there is no new one since the last call. Its observation
    holds `<motor>.pos`, and `<motor>.vel` where drives report it. The action becomes a RobotAction with
    `<motor>.pos`, `.vel`, `.kp`, `.kd` and `.torque` for now; an empty one says that drives are to be sent
    nothing. What is wrong with a chunk is logged, counted in `executor.check.faults`, and not followed.

    The first point of a chunk is for the time of the call, or for `chunk_begin` [s] of the complementary
    data, by `clock`: that of its observation, where the policy took a while.

    Attributes:
        robot: Its file (YAML, URDF or MJCF).
        spacing: Time between two points of a chunk [s].
        kp, kd: Gains of the drives [N·m/rad, N·m·s/rad], one for each motor.
        motor_names: As in actions and observations; by default the driven joints of the robot.
        degrees: Whether positions and velocities of actions and observations are in degrees.
        bend: Of `ChunkBounds` [rad]; by default what the limits of the robot leave. `bend_of` a data set.
        mode: How chunks are followed, as the parameter `mode` of `stream_node`.
        lead: Time [s] from a command to the middle of its effect; half of the period between two.
        clock: What says the time [s].
    """

    robot: str
    spacing: float
    kp: list[float]
    kd: list[float]
    motor_names: list[str] | None = None
    degrees: bool = True
    bend: list[float] | None = None
    seam: float = 0.05
    jump: float = 0.5
    repeats: int = 1
    mode: str = "track"
    lead: float = 0.001
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._model = Robot.load(self.robot)
        self._motors = list(self.motor_names or self._model.driven_joints)
        if len(self._motors) != len(self._model.driven_joints):
            raise InputError(
                f"there are {len(self._motors)} motor_names for the {len(self._model.driven_joints)} driven "
                f"joints of robot {self._model.name!r}; name one motor for each"
            )
        self._unit = np.pi / 180.0 if self.degrees else 1.0
        self.reset()

    def reset(self) -> None:
        """Forget what came; the arm is held where it stands first."""
        limits = ChunkBounds.of_robot(self._model, self.spacing)
        bend = limits.bend if self.bend is None else np.array(self.bend, dtype=np.float64)
        self.executor = ChunkExecutor(
            self._model,
            MotorGains(np.array(self.kp), np.array(self.kd)),
            ChunkBounds(self.spacing, bend, self.seam, self.jump, self.repeats),
            ExecutorConfig(StreamConfig(Mode(self.mode)), GuardConfig(measured=True, lead=self.lead)),
        )

    def get_config(self) -> dict[str, Any]:
        """Return what the step is made from, but for its clock."""
        return {name: value for name, value in asdict(self).items() if name != "clock"}

    def __call__(self, transition: Any) -> Any:
        """Return the transition with the action that the drives are to be sent now."""
        result = transition.copy()
        now = self.clock()
        observation = transition.get(_Key.OBSERVATION)
        if observation is not None:
            self.executor.measure(now, self._values(observation, "pos"), self._velocities(observation))
        action = transition.get(_Key.ACTION)
        if action is not None:
            data = transition.get(_Key.COMPLEMENTARY_DATA) or {}
            self._take(action, float(data.get(BEGIN, now)), now)
        command = self.executor.command(now)
        sent: dict[str, float] = {}
        if command is not None:
            units = (1.0 / self._unit, 1.0 / self._unit, 1.0, 1.0, 1.0)
            for what, values, unit in zip(_COMMANDS, command, units):
                sent |= {f"{name}.{what}": unit * float(v) for name, v in zip(self._motors, values)}
        result[_Key.ACTION] = sent
        return result

    def transform_features(self, features: Any) -> Any:
        """Return the features with what drives are sent for each motor in place of the action."""
        feature = _types.PolicyFeature(type=_types.FeatureType.ACTION, shape=(1,))
        sent = {f"{name}.{what}": feature for name in self._motors for what in _COMMANDS}
        return {**features, _types.PipelineFeatureType.ACTION: sent}

    def _take(self, action: Any, begin: float, now: float) -> None:
        points = (
            self._values(action, "pos")[None] if isinstance(action, dict) else self._unit * _points(action)
        )
        try:
            self.executor.take(begin + self.spacing * np.arange(len(points)), points, now)
        except (ChunkError, PointsError) as error:
            _log.warning("a chunk is not followed, the one before it is: %s", error)

    def _values(self, of: dict[str, Any], what: str) -> Array:
        try:
            return self._unit * np.array([float(of[f"{name}.{what}"]) for name in self._motors])
        except KeyError as error:
            raise InputError(f"{error} is missing; it holds {sorted(of)}") from None

    def _velocities(self, observation: dict[str, Any]) -> Array | None:
        return self._values(observation, "vel") if f"{self._motors[0]}.vel" in observation else None


def bend_of(episodes: Any, degrees: bool = True) -> list[float]:
    """Return `bend` of a step [rad] from recorded actions: an array or tensor (points, motors) an episode."""
    unit = np.pi / 180.0 if degrees else 1.0
    recorded = [unit * np.asarray(each, dtype=np.float64) for each in episodes]
    return [float(each) for each in ChunkBounds.of_actions(recorded, 1.0).bend]


def _points(action: Any) -> Array:
    """Return a tensor of one point, of a chunk, or of a batch of one chunk, as (points, motors)."""
    points = np.asarray(action.detach().cpu() if hasattr(action, "detach") else action, dtype=np.float64)
    if points.ndim == 3 and len(points) == 1:
        points = points[0]
    return points[None] if points.ndim == 1 else points
