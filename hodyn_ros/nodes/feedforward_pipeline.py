"""From a desired motion to its feedforward: all that dynamics_node computes, without a node around it.

The node answers what comes on a topic; `hodyn replay` answers what a bag holds, with the settings that the
node has published there, and gets the same numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import ConvergenceError, HodynError, InputError, OverflowingError, SingularError
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.feedforward import Feedforward
from hodyn_ros.feedforward.load_fade import LoadFade
from hodyn_ros.feedforward.model import WRENCH_FRAMES
from hodyn_ros.feedforward.payload import NO_LOAD, Payload
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.msg import DesiredMotion, FeedforwardTorque
from hodyn_ros.ros.conversions.layout import instant
from hodyn_ros.ros.conversions.messages import nanoseconds, warm_up_poses
from hodyn_ros.ros.conversions.serialised import AnswerWriter, MotionReader, Sample
from hodyn_ros.ros.streams.rejections import MessageRejected, Reason
from hodyn_ros.ros.streams.stamp_filter import StampFilter

_VERSION = 2  # of the JSON of `settings`


class SerialisedAnswer(NamedTuple):
    """A FeedforwardTorque as it travels, and what the statistics want to know of it."""

    data: bytes
    status: int
    computation_time: float  # [s]


class FeedforwardPipeline:
    """Computes the feedforward message for each desired motion of one robot.

    `robot` was built from `files`; `config` may change its gravity and payload; `load` is what the robot has
    taken besides; `stamps` rejects samples that come out of order. Building one compiles the dynamics and
    computes once, so that the first answer is as
    fast as all others. Raises HodynError where configuration and robot do not fit.
    """

    def __init__(
        self,
        files: RobotFiles,
        robot: Robot,
        config: FeedforwardConfig,
        stamps: StampFilter | None = None,
        loaded: Robot | None = None,
        load: Payload = NO_LOAD,
    ) -> None:
        self.files = files
        self.robot = robot
        self.config = config
        self.stamps = StampFilter() if stamps is None else stamps
        self.load = load
        self._fade: LoadFade | None = None
        self._fade_from = NO_LOAD
        warm = loaded is None
        if loaded is None:
            loaded = config.robot(robot)
            loaded = loaded.with_tree(load.on_tree(loaded)) if load.mass else loaded
        self._loaded = loaded  # with gravity, payload and load
        self.model = config.model(self._loaded)
        if warm:
            self.model.warm_up()
        if self.model.moves_base:
            warm_up_poses(self.model.order + 2)
        model = self.model
        self._reader = MotionReader(model)
        self._writer = AnswerWriter(
            model.joint_names, model.propellers, model.wrench_bodies, WRENCH_FRAMES[model.wrench_frame]
        )

    def changed(self, config: FeedforwardConfig) -> FeedforwardPipeline:
        """Return a pipeline with another configuration; call its `take_over` before it replaces this one.

        Raises InputError while a load is faded.
        """
        self._require_no_fade()
        loaded = self._loaded if config.same_dynamics(self.config) else None
        return FeedforwardPipeline(self.files, self.robot, config, self.stamps, loaded, self.load)

    def taking(self, load: Payload, duration: float) -> FeedforwardPipeline:
        """Return a pipeline that fades to another load over `duration` [s] of its answers' stamps.

        Call its `take_over` before it replaces this one. Raises InputError while a load is faded, and where
        the robot has no body that carries it.
        """
        self._require_no_fade()
        result = FeedforwardPipeline(self.files, self.robot, self.config, self.stamps, None, load)
        result._fade, result._fade_from = LoadFade(self.model, result.model, duration), self.load
        return result

    def _require_no_fade(self) -> None:
        if self._fade is not None and not self.stamps.idle:
            raise InputError(
                f"a load is being faded, since {self._fade.elapsed:.3g} s of {self._fade.duration:.3g} s; "
                "wait until it is carried, or until no samples come"
            )

    def take_over(self, other: FeedforwardPipeline) -> None:
        """Start from the positions of another pipeline of the same robot."""
        self._start_from(other.model.positions)

    def answer(self, msg: DesiredMotion, wrenches: Array | None = None) -> FeedforwardTorque:
        """Return the answer to a desired motion; MessageRejected has the reason why not, and changes nothing.

        `wrenches` (wrench bodies, order + 1, 6) with their derivatives, represented as chosen, zero by
        default.
        """
        started_at = time.perf_counter()
        sample = self._reader.from_message(msg)
        feedforward = self._computed(nanoseconds(msg.header.stamp), sample, wrenches)
        return self._writer.message(msg.header, feedforward, wrenches, time.perf_counter() - started_at)

    def answer_serialised(self, data: bytes, wrenches: Array | None = None) -> SerialisedAnswer:
        """Return the answer to a desired motion that is still as it travelled; else as `answer`."""
        started_at = time.perf_counter()
        stamp, sample = self._reader.read(data)
        feedforward = self._computed(instant(stamp), sample, wrenches)
        computation_time = time.perf_counter() - started_at
        frame = self._reader.header.frame_id
        answer = self._writer.write(stamp, frame, feedforward, wrenches, computation_time)
        return SerialisedAnswer(answer, feedforward.status, computation_time)

    def _computed(self, stamp: int, sample: Sample, wrenches: Array | None) -> Feedforward:
        self.stamps.check(stamp)
        try:
            if self._fade is None:
                feedforward = self.model.compute(*sample, wrenches)
            else:
                feedforward = self._fade.compute(stamp, *sample, wrenches)
        except OverflowingError:
            raise MessageRejected(Reason.RESULT_NOT_FINITE, "the values it holds are far too large") from None
        except (ConvergenceError, SingularError) as error:
            raise MessageRejected(Reason.UNREACHABLE, str(error)) from None
        except InputError as error:  # a platform that cannot move like that
            raise MessageRejected(Reason.BAD_BASE, str(error)) from None
        self.stamps.accept(stamp)
        if self._fade is not None and self._fade.over:
            self._fade = None
        return feedforward

    def settings(self) -> str:
        """Return as JSON all that the answers follow from; they hold after the last sample answered so far.

        Keys: `robot` (the fields of `RobotFiles`), `feedforward` (the fields of `FeedforwardConfig`),
        `load` (those of the `Payload` that was taken), `fade` to it (from another `load`) or null,
        `new_clock_after` [s], `after_stamp` [ns] or null, `positions` (where the next call of a robot
        with loops starts, [rad or m]) or null, and `version`.
        """
        return json.dumps(
            {
                "version": _VERSION,
                "robot": asdict(self.files),
                "feedforward": asdict(self.config),
                "load": asdict(self.load),
                "fade": self._fade and {"load": asdict(self._fade_from), **self._fade.to_json()},
                "new_clock_after": self.stamps.forget_after,
                "after_stamp": self.stamps.last,
                "positions": self.model.positions,
            }
        )

    @classmethod
    def from_settings(cls, text: str, clock: Callable[[], float] = time.monotonic) -> FeedforwardPipeline:
        """Build the pipeline that `settings` describes; InputError where the text is something else.

        It has seen no stamps; `clock` [s] tells when messages arrive, in a replay when they were recorded.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            version = data["version"]
            if version != _VERSION:
                raise InputError(f"the settings have version {version!r}; this hodyn_ros reads {_VERSION}")
            files = RobotFiles(**data["robot"])
            config = FeedforwardConfig(**data["feedforward"])
            stamps = StampFilter(float(data["new_clock_after"]), clock)
            load, fade = Payload(**data.get("load", {})), data.get("fade")
            first = load if fade is None else Payload(**fade["load"])
            result = cls(files, files.robot(), config, stamps, None, first)
            result._start_from(data["positions"])
            if fade is not None:
                fading = result.taking(load, fade["duration"])
                fading.take_over(result)
                assert fading._fade is not None
                fading._fade.start_at(fade["elapsed"], fade["stamp"])
                return fading
        except HodynError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"these are not the settings of a dynamics_node: {error!r}") from error
        return result

    def _start_from(self, positions: list[float] | None) -> None:
        if positions is not None:
            self.model.start_from(positions)
