"""The operations of a robot: one table of what is computed, from what, for which robots.

`Robot.compile` and `compile_batch`, the compiled matrices of robots with loops, `hodyn export` with its help,
and sweeps of the tests read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["tree", "loops"]
_BOTH: frozenset[Kind] = frozenset(("tree", "loops"))
_LOOPS: frozenset[Kind] = frozenset(("loops",))
_NOWHERE: frozenset[Kind] = frozenset()


@dataclass(frozen=True)
class Operation:
    """One operation, up to derivative `order` of its result; n coordinates, m velocities.

    `q` has order + 1 + `rates` rows. `of_frames`: takes names of bodies and frames. `compiled`, `batched`,
    `exported`: the robots of which `Robot.compile`, `Robot.compile_batch` and `hodyn export` offer it.
    `product`: of robots with loops a straight-line function of their motion.
    """

    name: str
    result: str  # shape of what the call returns
    rates: int = 0
    of_state: bool = False  # takes a state (2, n) and efforts (order + 1, n) instead of a motion
    of_frames: bool = False
    compiled: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    batched: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    exported: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    product: bool = field(default=False, kw_only=True)


def _called(name: str, result: str, rates: int = 0, *, product: bool = False) -> Operation:
    """Return an operation that a robot has as a call alone."""
    return Operation(
        name, result, rates, compiled=_NOWHERE, batched=_NOWHERE, exported=_NOWHERE, product=product
    )


OPERATIONS: dict[str, Operation] = {
    one.name: one
    for one in (
        Operation("inverse_dynamics", "(order + 1, n)", 2),
        Operation("drive_state", "(2 order + 4, n)", 2, compiled=_LOOPS, batched=_NOWHERE, exported=_NOWHERE),
        Operation("forward_dynamics", "(order + 1, n)", of_state=True),
        Operation("forward_kinematics", "(frames, 16 + 6 order)", of_frames=True),
        Operation(
            "inverse_kinematics", "(order + 1, n)", of_frames=True, batched=_NOWHERE, exported=_NOWHERE
        ),
        Operation("jacobian", "(order + 1, 6, m)", of_frames=True, product=True),
        Operation("com", "(order + 1, 3)", product=True),
        Operation("mass_matrix", "(order + 1, m, m)", product=True),
        Operation("coriolis_matrix", "(order + 1, m, m)", 1, product=True),
        Operation("gravity_torque", "(order + 1, m)", product=True),
        Operation("regressor", "(order + 1, m, 10 bodies)", 2, product=True),
        Operation("inverse_dynamics_derivatives", "(order + 1, order + 3, m, m)", 2),
        Operation("forward_dynamics_derivatives", "(order + 1, order + 3, m, m)", of_state=True),
        Operation("joint_motion", "(order + 1, joints)", compiled=_LOOPS, batched=_LOOPS, exported=_LOOPS),
        Operation("motion_from_drives", "(1, numbers)", compiled=_LOOPS, batched=_LOOPS, exported=_LOOPS),
        _called("dynamic_matrices", "mass, Coriolis, gravity", 1),
        _called("drive_jacobian", "(order + 1, driven, m)", product=True),
        _called("com_jacobian", "(order + 1, 3, m)", product=True),
        _called("centroidal_momentum", "(order + 1, 6)", 1, product=True),
        _called("centroidal_momentum_matrix", "(order + 1, 6, m)", product=True),
        _called("parameter_derivatives", "mass, Coriolis, gravity by parameter", 1),
        _called("slotine_li_regressor", "(order + 1, m, 10 bodies)", 1),
    )
}

COMPILED = tuple(name for name, one in OPERATIONS.items() if one.compiled)
PRODUCTS = tuple(name for name, one in OPERATIONS.items() if one.product)
EXPORTED = tuple(name for name, one in OPERATIONS.items() if one.exported)
EXPORTED_WITH_LOOPS = tuple(name for name in EXPORTED if OPERATIONS[name].exported == _LOOPS)
RATES = {name: one.rates for name, one in OPERATIONS.items()}
EXPORTED_OF_TREES = tuple(name for name in EXPORTED if name not in EXPORTED_WITH_LOOPS)
