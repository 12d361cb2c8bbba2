"""The errors of hodyn_ros: one root, two kinds."""

from __future__ import annotations


class HodynError(ValueError):
    """Root of all errors that hodyn_ros raises on purpose."""


class ModelError(HodynError):
    """The description of a robot is wrong: a URDF, a YAML file, or the arrays it was built from."""


class InputError(HodynError):
    """The numbers, shapes or names given to a call are wrong."""
