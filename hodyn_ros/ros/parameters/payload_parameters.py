"""The parameters that change what a robot bears: gravity, and a payload beside what its file describes."""

from __future__ import annotations

from hodyn_ros.ros.parameters.parameters import ParameterSpec

LOAD_SETTINGS = (
    ParameterSpec(
        "gravity",
        [],
        "Gravity in the world frame, pointing down [m/s^2], three values; empty: that of the robot's file. "
        "Three zeros for drives that compensate gravity themselves.",
    ),
    ParameterSpec(
        "payload_mass",
        0.0,
        "Mass that the robot carries, beside what its file describes [kg].",
        low=0.0,
        high=10000.0,
    ),
    ParameterSpec(
        "payload_centre",
        [],
        "Centre of mass of the payload in the frame of payload_body [m], three values; empty: its origin.",
    ),
    ParameterSpec(
        "payload_inertia",
        [],
        "Inertia of the payload about its centre, in axes of payload_body [kg m^2]: xx, xy, xz, yy, yz, zz; "
        "empty: that of a point.",
    ),
    ParameterSpec(
        "payload_body",
        "",
        "Body, or frame fixed to one, that carries the payload; empty: the last body, or the platform.",
    ),
)
