"""Where a motion through waypoints starts: in the state that the robot is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.trajectory.splines.densify import Waypoints

# Slower than this is at rest, and what is measured is noise [rad/s or m/s].
_REST = 0.02


class PresentState(NamedTuple):
    """Positions and velocities (n,) of the joints [rad or m, and per s]; NaN where they are not known."""

    positions: Array
    velocities: Array

    @classmethod
    def unknown(cls, n_joints: int) -> PresentState:
        """Return the state of joints that nothing is known of."""
        return cls(np.full(n_joints, np.nan), np.full(n_joints, np.nan))


class Away(NamedTuple):
    """A joint that is not where a motion starts, in words; or nothing is known of it."""

    is_known: bool
    words: str


def away_from_start(
    present: PresentState, start: Array, joint_names: Sequence[str], within: float
) -> Away | None:
    """Return which joint is farther than `within` [rad or m] from positions (n,), None where all are near."""
    unknown = np.isnan(present.positions)
    if unknown.any():
        name = joint_names[int(np.argmax(unknown))]
        return Away(False, f"joint_states have no joint {name!r} yet")
    distances = np.abs(present.positions - start)
    if (distances <= within).all():
        return None
    joint = int(np.argmax(distances))
    return Away(
        True,
        f"joint {joint_names[joint]!r} is at {present.positions[joint]:.6g}, {distances[joint]:.3g} rad (or "
        f"m) from it, and may be {within:g}",
    )


def start_from(
    waypoints: Waypoints, present: PresentState, joint_names: Sequence[str], tolerance: float
) -> Waypoints:
    """Return waypoints that start at time 0.

    A first point that comes later is led to from the present state, as a joint trajectory controller does;
    one at time 0 has to be within `tolerance` [rad or m] of it, where it is known; 0 turns that check off.
    Raises InputError naming the joint.
    """
    times, positions = waypoints.times, waypoints.positions
    if times[0] < 0.0:
        raise InputError(f"the first point comes at {times[0]:g} s; times count from the start, at 0")
    if times[0] > 0.0:
        unknown = np.isnan(present.positions)
        if unknown.any():
            raise InputError(
                f"the first point comes at {times[0]:g} s, and where joint "
                f"{joint_names[int(np.argmax(unknown))]!r} is before that is not known; publish its state on "
                "joint_states, or send a point at time 0"
            )
        return _led_to(waypoints, present)
    # unknown positions compare as false
    away = np.abs(positions[0] - present.positions)
    if tolerance > 0.0 and (away > tolerance).any():
        joint = int(np.nanargmax(away))
        raise InputError(
            f"joint {joint_names[joint]!r} is at {present.positions[joint]:.6g}, {away[joint]:.3g} rad (or "
            "m) from where the trajectory starts; plan from where the robot is, or give the first point a "
            "time in which to get there"
        )
    if len(times) < 2:
        raise InputError("the only point is at time 0; give it the time in which to get there")
    return waypoints


def _led_to(waypoints: Waypoints, present: PresentState) -> Waypoints:
    velocity = np.where(np.abs(present.velocities) > _REST, present.velocities, 0.0)
    velocities, accelerations = waypoints.velocities, waypoints.accelerations
    if velocities is None and velocity.any():
        moving = float(np.abs(velocity).max())
        raise InputError(
            f"the robot moves at {moving:.3g} rad/s (or m/s) while the trajectory has no velocities; send "
            "them, or wait until it rests"
        )
    return Waypoints(
        np.concatenate([[0.0], waypoints.times]),
        np.vstack([present.positions, waypoints.positions]),
        None if velocities is None else np.vstack([velocity, velocities]),
        None if accelerations is None else np.vstack([np.zeros(len(velocity)), accelerations]),
    )
