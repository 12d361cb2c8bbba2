"""A robot with drives of any kind, simulated offline by SciPy's integrators for stiff equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_array
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.errors import ConvergenceError, InputError, SingularError
from hodyn_ros.lie.jets import Array
from hodyn_ros.simulation.plant import Plant

Method = Literal["Radau", "BDF", "LSODA", "DOP853", "RK45"]

# Takes the time [s] and the exact state; returns efforts (motors,).
Law = Callable[[float, Measurement], Array]


class StiffSimulation:
    """The state of a plant, advanced in time under efforts that are held, or given by a law.

    `state` (size,), for example from `plant.consistent_state`; `method`, `rtol` and `atol` as in
    `scipy.integrate.solve_ivp`: Radau, BDF and LSODA for springs that are stiff or heavily damped.
    `max_step` [s] keeps the integrator from leaping off from rest, where all rates are zero.
    """

    def __init__(
        self,
        plant: Plant,
        state: ArrayLike,
        *,
        method: Method = "LSODA",
        rtol: float = 1e-8,
        atol: float = 1e-10,
        max_step: float = 0.01,
    ) -> None:
        self.plant = plant
        self.time = 0.0
        self.state = finite_array("the state", state, (plant.size,))
        self._options = {"method": method, "rtol": rtol, "atol": atol, "max_step": max_step}

    @property
    def measurement(self) -> Measurement:
        """The exact state of links and motors."""
        return self.plant.unpack(self.state, self.time)

    @property
    def coordinates(self) -> Array:
        """The coordinates (k,) of the links: the joints of a tree."""
        return self.plant.coordinates(self.state)[0]

    def advance(self, duration: float, effort: ArrayLike) -> None:
        """Let `duration` [s] pass under efforts (motors,) held meanwhile."""
        held = finite_array("the efforts", effort, (len(self.measurement.motor_position),))
        self.follow(lambda time, measured: held, duration)

    def follow(self, law: Law, duration: float, times: ArrayLike | None = None) -> Array:
        """Let `duration` [s] pass under a law without delay or sampling.

        `times` (N,) [s] from now, increasing; returns the states (N, size) there. Raises InputError where the
        integrator does not arrive, or the robot comes to a pose that is singular or out of reach.
        """
        from scipy.integrate import solve_ivp

        if not 0.0 <= duration < np.inf:
            raise InputError(f"the duration must be finite and not negative, found {duration} s")
        if duration == 0.0:
            return np.empty((0, self.plant.size))
        start = self.time
        plant = self.plant

        def rates(elapsed: float, state: Array) -> Array:
            time = start + elapsed
            try:
                return plant.rates(state, law(time, plant.unpack(state, time)), time)
            except (ConvergenceError, SingularError) as error:
                raise InputError(f"the simulation ends at {time:g} s: {error}") from error

        wanted = np.append(np.empty(0) if times is None else np.asarray(times, dtype=np.float64), duration)
        found = solve_ivp(rates, (0.0, duration), self.state, t_eval=wanted, **self._options)
        if not found.success or not np.isfinite(found.y[:, -1]).all():
            raise InputError(f"the simulation ends at {start + found.t[-1]:g} s: {found.message}")
        self.state = np.ascontiguousarray(found.y[:, -1])
        self.time = start + duration
        return np.ascontiguousarray(found.y[:, :-1].T)
