"""How well identified figures predict a recording that was not used."""

from __future__ import annotations

import numpy as np

from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.estimate import Data, Unknowns
from hodyn_ros.identification.identify import fits
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.identification.result import Fit, Identified
from hodyn_ros.identification.torque_model import TorqueModel


def validate(
    found: Identified, prior: Robot, recording: JointRecording, bandwidth: float | None = None
) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
    """Return efforts and deflections of another recording beside what `found` predicts of them.

    `prior` is the robot that `found` started from. Delays and offsets are those that were identified. Of
    deflections the mean is left out: encoders are set to zero anew each time that a robot is switched on.
    """
    data = Data(recording.of_joints(prior.joint_names), bandwidth or min(found.bandwidths))
    kept = [i for i, j in enumerate(found.elastic) if j in data.elastic]
    data.elastic = [found.elastic[i] for i in kept]
    data.ripples = found.ripples
    unknowns = Unknowns(found.parameters, found.unknowns.springs[:, kept], found.effort_delay.value)
    efforts, deflections = fits(TorqueModel(prior), data, found.parameters, unknowns)
    return efforts, tuple(_without_mean(fit) for fit in deflections)


def _without_mean(fit: Fit) -> Fit:
    def about_zero(told: np.ndarray) -> np.ndarray:
        return np.asarray(told + (fit.measured - told).mean())

    return Fit(fit.joint, fit.times, fit.measured, about_zero(fit.predicted), about_zero(fit.prior))
