"""What the sensors of a robot record of a simulated run: noise, stamps that jitter, delayed channels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.extras import needed
from hodyn_ros.outputs import complete, require_new, require_writable
from hodyn_ros.simulation.closed_loop import LoopRecord

_START = 1_700_000_000 * 10**9  # [ns] at which bags begin
_JOINT_STATE = "sensor_msgs/msg/JointState"


@dataclass(frozen=True)
class Instruments:
    """Encoders of links and motors, and efforts of the motors, as a driver publishes them.

    Stamps are those of the motors' encoders; links were read `link_delay`, efforts `effort_delay` [s] before.
    """

    rate: float = 250.0  # [Hz]
    jitter: float = 2e-4  # [s] by which stamps are off an even grid at most
    encoder_noise: float = 5e-6  # [rad], standard deviation
    effort_noise: float = 0.1  # [N·m], standard deviation
    link_delay: float = 2e-3  # [s]
    effort_delay: float = 1e-3  # [s]
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("jitter", "encoder_noise", "effort_noise", "link_delay", "effort_delay"):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise InputError(f"{name} is {getattr(self, name):g}; make it finite and not negative")
        if not 0.0 < self.rate < np.inf or self.jitter > 0.4 / self.rate:
            raise InputError(
                f"samples at {self.rate:g} Hz cannot jitter by {self.jitter:g} s; make the rate positive and "
                "the jitter less than 0.4 of its period"
            )

    def measure(self, record: LoopRecord, begin: float = 0.0) -> SensorLog:
        """Return what is recorded of a run from `begin` [s] on."""
        random = np.random.default_rng(self.seed)
        late = max(self.link_delay, self.effort_delay) + self.jitter
        first, last = max(begin, record.times[0] + late), record.times[-1] - self.jitter
        times = first + np.arange(int((last - first) * self.rate)) / self.rate
        times = times + random.uniform(-self.jitter, self.jitter, len(times))
        period = record.times[1] - record.times[0]

        def noisy(values: Array, size: float) -> Array:
            return np.asarray(values + size * random.standard_normal(values.shape))

        middle = record.times + 0.5 * period  # efforts are held from sample to sample
        held = [np.interp(times - self.effort_delay, middle, column) for column in record.efforts.T]
        return SensorLog(
            times,
            noisy(CubicSpline(record.times, record.positions)(times - self.link_delay), self.encoder_noise),
            noisy(CubicSpline(record.times, record.motor_positions)(times), self.encoder_noise),
            noisy(np.stack(held, axis=1), self.effort_noise),
        )


@dataclass(frozen=True, eq=False)
class SensorLog:
    """Stamps (N,) [s], positions of links and motors [rad or m] and efforts [N·m or N], (N, n) each."""

    times: Array
    links: Array
    motors: Array
    efforts: Array

    @staticmethod
    def require_writable(path: Path) -> None:
        """Raise InputError where `save` could not write, before there is anything to be written."""
        if path.suffix.lower() != ".csv":
            needed("rosbags")
            require_new(path)
        else:
            require_writable(path)

    def save(self, path: Path, joint_names: tuple[str, ...]) -> Path:
        """Write a CSV where the name ends so, else a bag with joint_states and motor_states."""
        if path.suffix.lower() == ".csv":
            parts = (("position", self.links), ("motor_position", self.motors), ("effort", self.efforts))
            heads = ["time", *(f"{name}.{kind}" for kind, _ in parts for name in joint_names)]
            rows = np.column_stack([self.times, *(values for _, values in parts)])
            with complete(path) as part:
                np.savetxt(part, rows, delimiter=",", header=",".join(heads), comments="", fmt="%.12g")
        else:
            self._save_bag(path, joint_names)
        return path

    def _save_bag(self, path: Path, joint_names: tuple[str, ...]) -> None:
        from hodyn_ros.bags.files.types import ros_types
        from hodyn_ros.bags.messages import Topic
        from hodyn_ros.bags.writer import BagWriter

        store = ros_types()
        of = store.types
        topics = (("joint_states", self.links, None), ("motor_states", self.motors, self.efforts))
        nothing = np.zeros(0)
        with BagWriter(path, "mcap") as bag:
            for name, _, _ in topics:
                bag.add(Topic(f"/{name}", _JOINT_STATE))
            for i, time in enumerate(self.times):
                stamp = _START + round(1e9 * float(time))
                second, nanosecond = divmod(stamp, 10**9)
                header = of["std_msgs/msg/Header"](
                    stamp=of["builtin_interfaces/msg/Time"](sec=second, nanosec=nanosecond), frame_id=""
                )
                for name, positions, efforts in topics:
                    state = of[_JOINT_STATE](
                        header=header,
                        name=list(joint_names),
                        position=positions[i],
                        velocity=nothing,
                        effort=nothing if efforts is None else efforts[i],
                    )
                    bag.write(f"/{name}", stamp, bytes(store.serialize_cdr(state, _JOINT_STATE)))
