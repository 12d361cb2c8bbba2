"""How well identified figures predict a recording that was not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.identify import fits
from hodyn_ros.identification.interruptions import without_interruptions
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.recording import Channel, JointRecording
from hodyn_ros.identification.result import Fit, Identified, without_mean
from hodyn_ros.identification.smoothing import smooth
from hodyn_ros.identification.springs.deflection import RIPPLE
from hodyn_ros.identification.torque_model import TorqueModel


def validate(
    result: Identified, prior: Robot, recording: JointRecording, bandwidth: float | None = None
) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
    """Return efforts and deflections of another recording beside what a result predicts of them.

    `prior` is the robot that identification started from. Delays and offsets are those that were identified.
    Encoders are set to zero anew each time that a robot is switched on: of deflections the mean is left out,
    and ripples have the phase of the recording. What is wrong with a part of it, such as a signal that hangs,
    is left out. Raises InputError where gaps leave several pieces: `validate_pieces` predicts each of them.
    """
    pieces, _ = without_interruptions(recording)
    if len(pieces) > 1:
        raise InputError(
            f"{recording.source} has gaps, and is {len(pieces)} recordings by them; use validate_pieces()"
        )
    return _predicted(result, prior, pieces[0], bandwidth)


def validate_pieces(
    result: Identified, prior: Robot, recording: JointRecording, bandwidth: float | None = None
) -> tuple[list[tuple[str, tuple[tuple[Fit, ...], tuple[Fit, ...]]]], list[str]]:
    """Return what `validate` does of each piece of a recording between gaps, and lines of what is left out.

    Each with its name, the longest piece first.
    """
    pieces, left_out = without_interruptions(recording)
    return [(each.source, _predicted(result, prior, each, bandwidth)) for each in pieces], left_out


def _predicted(
    result: Identified, prior: Robot, recording: JointRecording, bandwidth: float | None
) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
    """Return efforts and deflections of a recording without interruptions."""
    data = Data(recording.of_joints(prior.joint_names), bandwidth or min(result.bandwidths))
    kept = [i for i, j in enumerate(result.elastic) if j in data.elastic]
    data.elastic = [result.elastic[i] for i in kept]
    data.ripples, data.curves = result.ripples, dict(result.curves)
    unknowns = replace(
        result.unknowns, parameters=result.parameters, springs=result.unknowns.springs[:, kept]
    )
    if result.temperatures is not None and recording.temperatures is None:
        raise InputError(f"{recording.source} has no temperatures, and the friction identified is by them")
    model = TorqueModel(prior, recording.transmission, result.by_load, result.temperatures)
    if data.ripples.any():
        _turn_ripples(model, data, result.parameters, unknowns)
    efforts, deflections = fits(model, data, result.parameters, unknowns)
    return efforts, tuple(without_mean(fit) for fit in deflections)


def _turn_ripples(model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns) -> None:
    """Give ripples the phase that a recording shows, and leave them as large as they are."""
    ripples = unknowns.springs[RIPPLE:].copy()
    unknowns.springs[RIPPLE:] = 0.0
    _, without = fits(model, data, parameters, unknowns)
    for i, part in enumerate(data.springs(model, unknowns)):
        left = without[i].measured - without[i].predicted
        seen = part[:, -2:].T @ (left - left.mean())
        unknowns.springs[RIPPLE:, i] = (
            seen * np.linalg.norm(ripples[:, i]) / max(np.linalg.norm(seen), 1e-300)
        )


def rates(fits_of: Sequence[Fit], bandwidth: float) -> dict[str, tuple[float, float]]:
    """Return what is not explained of the rates of efforts, and the rates themselves, RMS [N·m/s or N/s].

    By joint. Rates are those of splines of degree 7 through measured and predicted efforts up to a bandwidth
    [Hz]. Where the first is not smaller than the second, the sensor does not tell a rate.
    """
    deviations = {}
    for fit in fits_of:
        both = Channel(fit.times, np.column_stack([fit.measured, fit.measured - fit.predicted]))
        inside = (fit.times - fit.times[0] > 1.0 / bandwidth) & (fit.times[-1] - fit.times > 1.0 / bandwidth)
        rate = smooth(both, bandwidth).sample(fit.times[inside], 1)[1]  # splines are poor at their ends
        whole, left = np.sqrt(np.mean(rate**2, axis=0))
        deviations[fit.joint] = float(left), float(whole)
    return deviations
