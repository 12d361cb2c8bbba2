"""A recording as smooth motion, beside the efforts and deflections that were measured."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.identification.least_squares.holds import Hold
from hodyn_ros.identification.least_squares.reversals import unexplained
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.smoothing import (
    HARMONICS,
    SAMPLES_PER_KNOT,
    LowPass,
    Smooth,
    moving_frequency,
    smooth,
)
from hodyn_ros.identification.springs.curve import Curve
from hodyn_ros.identification.springs.deflection import DELAY, parts, without_outliers
from hodyn_ros.identification.torque_model import Motion, TorqueModel, turnover

MOST_ROWS = 20_000  # samples of a channel that are used; of longer recordings every second, third, ...
_OF_RATES = 4.0  # of the motion's highest frequency: up to where rates are those of the motion
_POSES = 20  # at which inertias are looked at
_QUIET = 1.0 / 3.0  # of the noise of efforts, that noise of encoders gives of torque at most


class Data:
    """A recording as smooth motion, and samples at the stamps of its efforts and link encoders.

    Efforts and deflections are compared below `bandwidths`, but what the model says of them follows from the
    motion as fast as the encoders tell it, and passes the same filter: friction at a reversal is over in
    milliseconds, and a motion that was smoothed before lingers there (errors in variables).
    """

    def __init__(self, recording: JointRecording, bandwidth: float | None = None) -> None:
        self.recording = recording
        self.motors = None if recording.motors is None else smooth(recording.motors, bandwidth)
        self.links = None if recording.links is None else smooth(recording.links, bandwidth)
        self.elastic: list[int] = np.flatnonzero(recording.both_sides).tolist()
        bands = [s.bandwidth for s in (self.motors, self.links) if s is not None]
        self.bandwidths = tuple(bands)
        channels = recording.motors, recording.links
        smoothed = [_as_fast_as_it_tells(channel) for channel in channels]
        fast = smoothed if self.elastic else [_octave_faster(*each) for each in zip(channels, smoothed)]
        self._fast_motors, self._fast_links = map(_faster, fast, (self.motors, self.links))
        self.of_deflections = min(bands) if self._fast_motors is None else self._fast_motors.bandwidth
        self.fastest = min(s.bandwidth for s in (self._fast_motors, self._fast_links) if s is not None)
        begin, end = recording.interval
        margin = min(2.0 / min(bands), 0.1 * (end - begin))  # derivatives are poor at the ends
        self.interval = begin + margin, end - margin
        self.effort_times, self.efforts = self._rows(recording.efforts)
        self.link_times = np.empty(0)
        self.deflections = np.empty((0, len(recording.joint_names)))
        if len(self.elastic) and recording.links is not None and self._fast_motors is not None:
            self.link_times, links = self._rows(recording.links)
            self.deflections = self._fast_motors.sample(self.link_times, 0)[0] - links
        self.held: Hold | None = None
        self.moving_frequency = max(
            moving_frequency(signal, channel.times)
            for channel, signal in ((recording.motors, self.motors), (recording.links, self.links))
            if channel is not None and signal is not None
        )
        vibration = max((each.bandwidth for each in smoothed if each is not None), default=0.0)
        self.vibrates = vibration > 2.0 * HARMONICS * self.moving_frequency
        # Of the delay of efforts, where joints vibrate and the unknowns are near to what is sought: far from
        # it rates of a part of the model tell little of the whole, and the delay runs away.
        self.instrument_is_slow = False
        self.slow_effort = self._low_pass(self.effort_times)
        slowest = min(_OF_RATES * self.moving_frequency, *bands)
        self.of_motion = self._low_pass(self.effort_times, slowest)
        self.slow_efforts: dict[int, LowPass] = {}  # by joint, see `compare`
        self.slow_deflections: dict[int, LowPass] = {}
        self.reversals_left_out = np.zeros(len(recording.joint_names))  # share of the samples of each effort
        self.ripples = np.zeros(len(recording.joint_names))  # in a turn of each link; 0 where there are none
        self.curves: dict[int, Curve] = {}  # by joint, of springs that are no lines
        self._calm = without_outliers(recording.efforts, min(bands)) if self.elastic else recording.efforts

    def compare(self, model: TorqueModel) -> None:
        """Choose the frequencies up to which efforts and deflections are compared with the model.

        Efforts up to where noise of the encoders, twice differentiated, gives as much torque as noise of the
        efforts has, or a third of it where no gear has two encoders; springs up to where the load swings.
        Beyond, noise of the model would be taken for motion, and inertias, damping and stiffness come out too
        small: of inertias by the sum over all amplitudes of noise^2 beside that of motion^2, so by the fifth
        power of the frequency. An elastic joint with one encoder is compared below the bandwidth of the
        motion alone: above it motor and link may move apart.
        """
        self.instrument_is_slow = False
        some = self.effort_times[:: max(1, len(self.effort_times) // _POSES)]
        poses = self.motion(some, np.zeros(model.n)).q
        matrices = np.asarray(model.robot.mass_matrix(poses[:, None]))[:, 0]
        links = np.diagonal(matrices, axis1=1, axis2=2).max(axis=0)
        whole = links + model.prior[model.place(0)]
        encoder, period = self._encoder_noise()
        rate = 1.0 / float(np.median(np.diff(self.recording.efforts.times)))
        for j in np.flatnonzero(self.recording.efforts.measured).tolist():
            own = white_part(self.recording.efforts.values[:, j])
            loud = own / (whole[j] * max(encoder[j], 1e-12)) * np.sqrt(1.0 / (rate * period))
            alike, quiet = (np.sqrt(share * loud) / (2.0 * np.pi) for share in (1.0, _QUIET))
            # near resonances of springs more is told of delays than noise of inertias spoils; and slow motion
            # has no noise of encoders beyond its bandwidth
            noisy = quiet < self.fastest and not self.elastic
            below = max(quiet if noisy else alike, min(self.bandwidths))
            rigid = np.isinf(model.specs[j].stiffness)
            band = below if rigid or j in self.elastic else min(self.bandwidths)
            self.slow_efforts[j] = self._low_pass(self.effort_times, band)
        for j in self.elastic:
            swings = np.sqrt(model.specs[j].stiffness / links[j]) / (2.0 * np.pi)
            self.slow_deflections[j] = self._low_pass(self.link_times, swings)

    def _encoder_noise(self) -> tuple[Array, float]:
        """Return what encoders scatter about the fast motion (n,), and their period [s]."""
        pairs = ((self.recording.motors, self._fast_motors), (self.recording.links, self._fast_links))
        present = [(channel, fast) for channel, fast in pairs if channel is not None and fast is not None]
        noise = [
            np.std(channel.values - fast.sample(channel.times, 0)[0], axis=0) for channel, fast in present
        ]
        return np.nanmax(noise, axis=0), max(float(np.median(np.diff(each.times))) for each, _ in present)

    def _shaking(self) -> Array:
        """Return the standard deviation of the fast velocity of motors, or links (n,), by noise of encoders.

        Of white noise with deviation s at times h apart, below B: s (2 B h)^(1/2) 2 pi B / 3^(1/2).
        """
        encoder, period = self._encoder_noise()
        band = self.fastest
        return encoder * np.sqrt(2.0 * band * period) * 2.0 * np.pi * band / np.sqrt(3.0)

    def leave_reversals_out(
        self, model: TorqueModel, now: Unknowns, near: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Leave samples of efforts out about reversals where friction is not the function of the velocity.

        Before the unknowns are `near` what is sought, only where it plainly sticks. Return of which motors or
        links (n,) friction sticks, and of which samples are left out.
        """
        at_motor, times = self.recording.at_motor, self.effort_times
        motion = self.fast_motion(self.acted(now.effort_delay), self.late(now))
        predicted = model.columns(motion, at_motor, now.friction_shape, now.parameters) @ now.parameters
        fast = self._low_pass(times, self.fastest)
        speeds, turned_by = model.rubbing(motion, at_motor)
        reach = round(0.5 * len(times) / (times[-1] - times[0]) / fast.bandwidth)
        independent = min(1.0, 2.0 * fast.bandwidth * (times[-1] - times[0]) / len(times))
        transitions, friction = model.friction_shape[0], np.abs(now.parameters[model.place(2)])
        shaken = friction * turnover(speeds, now.friction_shape) * self._shaking()
        sticking, hidden = np.zeros((2, model.n), dtype=bool)
        shares = self.reversals_left_out.copy()
        for j in np.flatnonzero(self.recording.efforts.measured).tolist():
            residual = fast(self.efforts[:, j] - predicted[:, j])
            out = ~self.slow_efforts[j].used
            for i in np.flatnonzero(turned_by[j]):
                of_one, sticks = unexplained(
                    speeds[:, i], residual, transitions[i], friction[i], shaken[:, i], reach, independent
                )
                if sticks or near:
                    sticking[i] |= sticks
                    hidden[i] |= of_one.any()
                    out |= of_one
            if out.mean() > shares[j]:
                shares[j] = out.mean()
                self.slow_efforts[j] = self._low_pass(times, self.slow_efforts[j].bandwidth, ~out)
        self.reversals_left_out = shares
        return sticking, hidden

    def _low_pass(
        self, times: Array, bandwidth: float | None = None, used: NDArray[np.bool_] | None = None
    ) -> LowPass:
        rate = (len(times) - 1) / (times[-1] - times[0])
        return LowPass(times, min(bandwidth or min(self.bandwidths), rate / (2.0 * SAMPLES_PER_KNOT)), used)

    def _rows(self, channel: Channel) -> tuple[Array, Array]:
        inside = (channel.times >= self.interval[0]) & (channel.times <= self.interval[1])
        step = max(1, -(-int(inside.sum()) // MOST_ROWS))
        return channel.times[inside][::step], channel.values[inside][::step]

    def motion(self, times: Array, delays: Array) -> Motion:
        """Return the motion at `times` by the clock of the motors; `delays` (n,) of the links' stamps."""
        return self._motion(self.links, self.motors, times, delays)

    def with_noise_again(self, random: np.random.Generator) -> Iterator[tuple[Data, Data]]:
        """Yield the recording with noise of its encoders once more, and with minus that, ever anew.

        In the fast motion, and in deflections, which are of the same counts. White, as large as encoders
        scatter about the fast motion, by its degrees of freedom.
        """
        encoders = []
        for name, channel in (("_fast_motors", self.recording.motors), ("_fast_links", self.recording.links)):
            fast: Smooth | None = getattr(self, name)
            if channel is not None and fast is not None:
                scatter = np.std(channel.values - fast.sample(channel.times, 0)[0], axis=0)[fast.measured]
                scatter /= np.sqrt(fast.free(len(channel.times)))
                encoders.append((name, channel, fast, scatter, LowPass(channel.times, fast.bandwidth)))
        while True:
            both = copy(self), copy(self)
            further = np.zeros(self.deflections.shape)  # of motor minus link
            for name, channel, fast, scatter, low_pass in encoders:
                noise = scatter * random.standard_normal((len(channel.times), len(scatter)))
                slow = low_pass.spline(noise)
                for other, sign in zip(both, (1.0, -1.0)):
                    spline = BSpline(fast.spline.t, fast.spline.c + sign * slow.c, fast.spline.k)
                    setattr(other, name, replace(fast, spline=spline))
                if self.elastic and name == "_fast_motors":
                    further[:, fast.measured] += slow(self.link_times)
                elif self.elastic:
                    further[:, fast.measured] -= self._rows(Channel(channel.times, noise))[1]
            for other, sign in zip(both, (1.0, -1.0)):
                other.deflections = self.deflections + sign * further
            yield both

    def acted(self, delay: float) -> Array:
        """Return when efforts acted (N,) by the clock of the motors: in the mean, `delay` [s] before."""
        since = 0.0 if self.held is None else self.held.since_middle(self.effort_times)
        return self.effort_times - since - delay

    def fast_motion(self, times: Array, delays: Array) -> Motion:
        """Return the motion with all that the encoders tell, vibration included."""
        return self._motion(self._fast_links, self._fast_motors, times, delays)

    def _motion(self, links: Smooth | None, motors: Smooth | None, times: Array, delays: Array) -> Motion:
        link = self._sampled(links, times, delays)
        motor = self._sampled(motors, times, None)
        q = np.where(np.isnan(link), motor, link)
        theta = np.where(np.isnan(motor), link, motor)
        return Motion(q[0], q[1], q[2], theta[1], theta[2], self.recording.warmth(times))

    def springs(self, model: TorqueModel, now: Unknowns, fast: bool = False) -> list[Array]:
        """Return columns (N, bodies + 9) of what bends the springs, of each joint with two encoders."""
        late = self.late(now)
        moving = self.fast_motion if fast else self.motion
        motion = moving(self.link_times, late)
        loads = model.regressor(motion)
        links = self._fast_links if fast else self.links
        halfway = self._sampled(links, self.link_times, 0.5 * late, 1)[1]  # their velocities at t - T / 2
        times = self.link_times + now.effort_delay
        recorded = self.recorded_positions()
        return [
            parts(
                loads[:, j],
                np.gradient(loads[:, j] @ now.parameters[: model.bodies], self.link_times),
                motion.motor_acceleration[:, j],
                np.interp(times, self._calm.times, self._calm.values[:, j]),
                halfway[:, j],
                recorded[:, j],
                self.ripples[j],
            )
            for j in self.elastic
        ]

    def recorded_positions(self) -> Array:
        """Return where the links were when their encoders were read (N, n), whatever the stamps say."""
        link, motor = (self._sampled(each, self.link_times, None, 0)[0] for each in (self.links, self.motors))
        return np.where(np.isnan(link), motor, link)

    def late(self, now: Unknowns) -> Array:
        """Return the delays of the links' stamps (n,)."""
        late = np.zeros(len(self.recording.joint_names))
        late[self.elastic] = now.springs[DELAY]
        return late

    def _sampled(self, signal: Smooth | None, times: Array, delays: Array | None, order: int = 2) -> Array:
        if signal is None:
            return np.full((order + 1, len(times), len(self.recording.joint_names)), np.nan)
        return signal.sample(times, order, delays)


def white_part(samples: Array) -> float:
    """Return the standard deviation of white noise in samples (N,), by their second differences."""
    differences = np.diff(samples, 2)
    return max(1.4826 * float(np.median(np.abs(differences))) / np.sqrt(6.0), 1e-12)


def _as_fast_as_it_tells(channel: Channel | None) -> Smooth | None:
    try:
        return None if channel is None else smooth(channel, beyond_motion=True)
    except InputError:  # gaps between stamps
        return None


def _octave_faster(channel: Channel | None, smoothed: Smooth | None) -> Smooth | None:
    """Return a motion of twice the bandwidth, where samples are dense enough.

    What is as loud as its noise is cut off by cross-validation, and with it corners where friction of a rigid
    gear has turned over: motors start to move against it within milliseconds. Efforts are compared where the
    noise that comes in is small. Springs are not: deflections are small beside the motion.
    """
    if channel is None or smoothed is None:
        return smoothed
    twice = 2.0 * smoothed.bandwidth
    return smooth(channel, twice) if 2.0 * twice * SAMPLES_PER_KNOT <= channel.rate else smoothed


def _faster(one: Smooth | None, other: Smooth | None) -> Smooth | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other.bandwidth > one.bandwidth else one
