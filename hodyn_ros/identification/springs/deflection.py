"""What motor minus link of a joint with two encoders follows from.

    motor - link = load / K + T q' + o - d load' + s (effort - load - J theta'') + e1 cos q + e2 sin q
                   + r1 cos(n q) + r2 sin(n q)

The spring carries the load of the links, and that part of the friction which acts behind it: what the motor
gives beyond load and rotor is friction, and s K is the share of it that bends the spring. Without that, a
robot that stands where friction holds it seems to be bent by nothing. Damping D of the spring is in d = D /
K^2; without it the delay T would be what it leaves, some microseconds off. An encoder off its axis adds
e once in a turn of the link, and gear or encoder a ripple r, n times. `spring_terms` says where s, e
and r are sought.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import median_filter

from hodyn_ros.array import Array
from hodyn_ros.identification.recording import Channel
from hodyn_ros.identification.smoothing import smooth
from hodyn_ros.identification.torque_model import TorqueModel

# unknowns of each joint: compliance [rad/(N·m)], delay of the link's stamps behind the motor's [s], motor
# minus link without load [rad], lag d behind the load's rate [rad s/(N·m)], compliance to friction s
# [rad/(N·m)], eccentricity [rad], ripple [rad], these two as cosine and sine
COMPLIANCE, DELAY, OFFSET, LAG, FRICTION, ECCENTRICITY, _, RIPPLE, _ = range(9)
KINDS = 9
_OUTLIERS = 5  # samples of a median, before efforts are smoothed


def coefficients(model: TorqueModel, parameters: Array, spring: Array, joint: int) -> Array:
    """Return what columns as of `parts` are multiplied by; `spring` (9,) are the unknowns of the joint."""
    compliance, delay, offset, lag, friction, *waves = spring
    inertia = parameters[model.place(0)][joint]
    bodies = (compliance - friction) * parameters[: model.bodies]
    return np.concatenate([bodies, [-friction * inertia, friction, delay, offset, -lag, *waves]])


def jacobian(model: TorqueModel, columns: Array, parameters: Array, springs: Array, i: int) -> Array:
    """Return derivatives of rows (N, columns) by all unknowns (N, P + 9 e), without s, e and r."""
    bodies, e = model.bodies, springs.shape[1]
    result = np.zeros((len(columns), len(parameters) + springs.size))
    of_springs = result[:, len(parameters) :].reshape(len(columns), KINDS, e)
    result[:, :bodies] = springs[COMPLIANCE, i] * columns[:, :bodies]
    of_springs[:, COMPLIANCE, i] = columns[:, :bodies] @ parameters[:bodies]
    of_springs[:, DELAY, i], of_springs[:, OFFSET, i] = columns[:, bodies + 2], columns[:, bodies + 3]
    of_springs[:, LAG, i] = -columns[:, bodies + 4]
    return result


def parts(
    loads: Array,
    rate: Array,
    acceleration: Array,
    effort: Array,
    velocity: Array,
    position: Array,
    turns: float,
) -> Array:
    """Return columns (N, bodies + 9) of one joint, the load's `rate` (N,) among them.

    `turns` n, of a ripple, is zero where there is none.
    """
    wave = turns * position
    once = [np.cos(position), np.sin(position)]
    ripple = [np.cos(wave), np.sin(wave)] if turns else [np.zeros_like(wave)] * 2
    one = np.ones_like(velocity)
    return np.column_stack([loads, acceleration, effort, velocity, one, rate, *once, *ripple])


def without_outliers(efforts: Channel, bandwidth: float) -> Channel:
    """Return efforts up to a bandwidth [Hz], at their stamps."""
    values = np.where(efforts.measured, efforts.values, 0.0)
    calm = median_filter(values, size=(_OUTLIERS, 1), mode="nearest")
    everywhere = Channel(efforts.times, calm)
    return Channel(efforts.times, smooth(everywhere, bandwidth).sample(efforts.times, 0)[0])
