"""The motion of a base that a call asks for, or must not get."""

from __future__ import annotations

from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.model.tree import TreeModel


def fitting_base(
    model: TreeModel, base: BaseMotion | None, n_twists: int, batch: tuple[int, ...] = ()
) -> BaseMotion | None:
    """Return the motion of a floating base after checking that it holds `n_twists` twists or more.

    Of a call with a `batch`, it may be one motion for all samples, or one for each.

    Raises InputError for the motion of a fixed base, or a floating one without its motion.
    """
    if base is not None and not isinstance(base, BaseMotion):
        raise InputError(f"base must be a BaseMotion, found {type(base).__name__}")
    if not model.floating_base:
        if base is not None:
            raise InputError(f"robot {model.name!r} has a fixed base; a base motion does not apply")
        return None
    if base is None:
        raise InputError(f"robot {model.name!r} has a floating base; give its motion as base=BaseMotion(...)")
    if base.batch not in ((), batch):
        of = f"those of {batch[0]}" if batch else "that of one sample"
        raise InputError(f"base holds motions of {base.batch[0]} samples; this needs {of}")
    if base.orders < n_twists:
        raise InputError(
            f"this needs {n_twists} base twists (the twist and its derivatives), found {base.orders}"
        )
    return base
