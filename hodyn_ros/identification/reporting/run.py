"""One recording, and how it is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hodyn_ros.identification.result import Fit
from hodyn_ros.identification.validation import rates
from hodyn_ros.tables import number


@dataclass(frozen=True, eq=False)
class Run:
    """Efforts and deflections of a recording, beside what identified figures say of them."""

    source: str
    efforts: tuple[Fit, ...]
    deflections: tuple[Fit, ...]
    rates: dict[str, tuple[float, float]]  # by joint, as of `validation.rates`
    used: bool  # to identify

    @classmethod
    def of(
        cls,
        source: str,
        fits: tuple[tuple[Fit, ...], tuple[Fit, ...]],
        bandwidth: float,
        used: bool = False,
    ) -> Run:
        """Return a run with the rates of its efforts up to a bandwidth [Hz]."""
        return cls(source, *fits, rates(fits[0], bandwidth), used)

    @property
    def title(self) -> str:
        """The recording, and whether it was used."""
        return self.source if self.used else f"{self.source}, which was not used"

    def rows(self) -> list[list[str]]:
        """Return what is not explained of each joint, under the heads of `heads_of_fits`."""
        bent = {fit.joint: number(1e6 * fit.rms) for fit in self.deflections}
        rows = []
        for fit in self.efforts:
            left, whole = self.rates[fit.joint]
            rate = number(left) if left < whole else "noise"
            sizes = map(number, (fit.rms, fit.rms_before, 100.0 * fit.share))
            rows.append([fit.joint, *sizes, rate, bent.get(fit.joint, "")])
        return rows

    def as_data(self) -> dict[str, Any]:
        """Return what is not explained, as plain data."""
        return {
            "source": self.source,
            "efforts": {fit.joint: fit.rms for fit in self.efforts},
            "effort_rates": {joint: left for joint, (left, _) in self.rates.items()},
            "deflections": {fit.joint: fit.rms for fit in self.deflections},
        }
