"""What came out of an identification: figures with standard deviations, fits, and the robot itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.base_parameters import BaseParameters
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.springs.curve import Curve


@dataclass(frozen=True)
class Figure:
    """One figure of the robot: nan where it is not there; `reason` says why it was not identified."""

    name: str
    unit: str
    value: float
    deviation: float  # standard deviation of the value
    prior: float
    identified: bool
    reason: str = ""
    by_ratio: bool = False  # a stiffness that is known beside its load alone, and goes with that into files

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that holds the true value in 95 of 100 cases."""
        return self.value - 1.96 * self.deviation, self.value + 1.96 * self.deviation


@dataclass(frozen=True, eq=False)
class Fit:
    """Measured against predicted, of one joint: an effort [N·m or N], or motor minus link [rad or m]."""

    joint: str
    times: Array
    measured: Array
    predicted: Array
    prior: Array  # what the robot file says, nan where it says nothing

    @property
    def rms(self) -> float:
        """Root of the mean square residual, without its mean where the quantity has a free offset."""
        return float(np.sqrt(np.mean((self.measured - self.predicted) ** 2)))

    @property
    def rms_before(self) -> float:
        """The same with the figures of the robot file."""
        return float(np.sqrt(np.mean((self.measured - self.prior) ** 2)))

    @property
    def share(self) -> float:
        """The residual as a share of what was measured, both about their means."""
        return float(np.std(self.measured - self.predicted) / max(float(np.std(self.measured)), 1e-300))


@dataclass(frozen=True, eq=False)
class Identified:
    """A robot as a recording shows it."""

    robot: Robot
    source: str
    parameters: Array  # (P,) that a robot can have
    estimate: Array  # (P,) before they were made so
    covariance: Array  # (P, P) of the estimate
    prior: Array  # (P,) of the file
    names: tuple[str, ...]
    base: BaseParameters
    figures: tuple[Figure, ...]
    effort_delay: Figure
    condition: float  # of the weighted regressor of the base parameters
    bandwidths: tuple[float, ...]  # [Hz]
    efforts: tuple[Fit, ...]  # of the first recording
    deflections: tuple[Fit, ...]
    further: tuple[tuple[str, tuple[tuple[Fit, ...], tuple[Fit, ...]]], ...]  # of the other recordings
    unknowns: Unknowns  # that deflections follow from
    elastic: tuple[int, ...]  # (e,) joints with two encoders
    ripples: Array  # (n,) in a turn of each link, zero where there are none
    curves: Mapping[int, Curve]  # of springs that are no lines, by joint
    notes: tuple[str, ...]
    by_load: bool = False  # whether friction by load was sought
    temperatures: Array | None = None  # (n,) [°C] about which friction by temperature was sought

    @property
    def deviations(self) -> Array:
        """Standard deviations of the parameters one by one (P,); zero where they were held."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def figure(self, name: str) -> Figure:
        """Return a figure by its name."""
        return next(each for each in (*self.figures, self.effort_delay) if each.name == name)

    def as_data(self) -> dict[str, Any]:
        """Return all figures as plain data, for JSON; what is not finite is None."""

        def plain(value: Any) -> Any:
            return None if isinstance(value, float) and not np.isfinite(value) else value

        figures = []
        for each in (*self.figures, self.effort_delay):
            row = {key: plain(value) for key, value in asdict(each).items()}
            figures.append(row | {"interval": [plain(end) for end in each.interval]})
        return {
            "source": self.source,
            "robot": self.robot.name,
            "bandwidth_Hz": list(self.bandwidths),
            "condition": plain(self.condition),
            "figures": figures,
            "efforts": [_fit_data(fit) for fit in self.efforts],
            "deflections": [_fit_data(fit) for fit in self.deflections],
            "notes": list(self.notes),
        }


def units(robot: Robot) -> dict[str, tuple[str, str]]:
    """Return by joint the units of its effort and its position."""
    slides = robot.tree.slides
    return {name: ("N", "m") if slides(name) else ("N·m", "rad") for name in robot.joint_names}


def heads_of_fits(robot: Robot) -> tuple[str, str, str, str, str, str]:
    """Return the heads of a table of what is not explained."""
    efforts, positions = (tuple(dict.fromkeys(each)) for each in zip(*units(robot).values()))
    return (
        "joint",
        f"effort,\nRMS [{' or '.join(efforts)}]",
        "with the\nfile's figures",
        "share of what\nmoves [%]",
        f"its rate,\nRMS [{' or '.join(f'{each}/s' for each in efforts)}]",
        f"motor minus link,\nRMS [{' or '.join('µ' + each for each in positions)}]",
    )


def without_mean(fit: Fit) -> Fit:
    """Return a fit beside whose measured values those of model and file have the same mean."""

    def about(modelled: Array) -> Array:
        return np.asarray(modelled + (fit.measured - modelled).mean())

    return Fit(fit.joint, fit.times, fit.measured, about(fit.predicted), about(fit.prior))


def _fit_data(fit: Fit) -> dict[str, Any]:
    before = fit.rms_before
    return {
        "joint": fit.joint,
        "rms": fit.rms,
        "rms_of_the_file": before if np.isfinite(before) else None,
        "share": fit.share,
    }
