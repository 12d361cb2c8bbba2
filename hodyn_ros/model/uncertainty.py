"""How far a robot may be from what its file says."""

from __future__ import annotations

import numpy as np

from hodyn_ros.model.keys import Entry, key


class RobotUncertainty(Entry, kw_only=False):
    """How far the robot may be from what this file says; the guard takes what is beyond for a fault."""

    payload: float = key(
        "mass that its end may carry besides, at the origin of the last body or of the platform [kg]",
        default=0.0,
        least=0,
    )
    friction: float = key("of drives, relative to what is stated", default=1.0, least=0)
    stiffness: float = key("of springs, relative to what is stated", default=0.5, least=0)
    base: float = key(
        "acceleration of a floating base beside that of standing level [m/s^2], and of its turning "
        "[rad/s^2]; where it is said, efforts are held against the motion of the joints",
        default=np.inf,
        least=0,
    )
    efforts: float = key("all else, as a share of the effort limit of each joint", default=0.15, least=0)
