"""The operations of a robot: one table of what is computed, from what, by which law, for which robots.

`Robot.compile`, `compile_batch`, the calls of `Robot`, `hodyn export` with its help, and
sweeps of the tests read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # names of operations are known before NumPy is loaded, as for `hodyn --help`
    from collections.abc import Callable

    from hodyn_ros.codegen.kernel import Traceable
    from hodyn_ros.engine.loops.loop_matrices import ProductCode

Kind = Literal["tree", "loops"]
_BOTH: frozenset[Kind] = frozenset(("tree", "loops"))
_LOOPS: frozenset[Kind] = frozenset(("loops",))
_TREE: frozenset[Kind] = frozenset(("tree",))
_NOWHERE: frozenset[Kind] = frozenset()


@dataclass(frozen=True)
class Operation:
    """One operation, up to derivative `order` of its result; n coordinates, m velocities.

    `result`: the shape of what the call returns. `q` has order + 1 + `rates` rows, and twists of a base come
    in the representation `base`. `frames`: how many bodies and frames it is of, with a representation.

    `tree` and `loops` name the laws, as "module:function" of `hodyn_ros.engine`:
    `tree(model, order, [frame or frames, representation])` returns what is traced, and
    `loops(closure, chosen, order, [frame or frames, representation])` the code of robots with loops. Both are
    of what follows from the motion alone; dynamics of other kinds have calls of their own in
    `hodyn_ros.dynamics.calls.compiling` and plans of their own in `hodyn_ros.export`.

    `weighted`: it takes a multiplier of the results of another operation after all else, and is of the sum of
    both.

    `compiled`, `batched`, `exported`: the robots of which `Robot.compile`, `Robot.compile_batch` and `hodyn
    export` offer it. `in_c`: the name of the result in C, and `about` what headers say of it; `about_base` is
    added where a base floats.
    """

    name: str
    result: str
    rates: int = 0
    tree: str = ""
    loops: str = ""
    weighted: bool = False
    of_state: bool = False  # takes a state (2, n) and efforts (order + 1, n) instead of a motion
    frames: Literal["none", "one", "several"] = "none"
    base: Literal["spatial", "body_fixed"] = "body_fixed"
    in_c: str = ""
    about: str = ""
    about_base: str = ""
    besides: str = ""  # what it takes besides the motion
    compiled: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    batched: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    exported: frozenset[Kind] = field(default=_BOTH, kw_only=True)

    @cached_property
    def tree_law(self) -> Callable[..., Traceable]:
        """What is traced for a tree."""
        law: Callable[..., Traceable] = _engine(self.tree)
        return law

    @cached_property
    def loops_law(self) -> Callable[..., ProductCode]:
        """The code of a robot with loops."""
        law: Callable[..., ProductCode] = _engine(self.loops)
        return law

    @cached_property
    def shape(self) -> tuple[str, ...]:
        """The shape of one order of the result, in symbols."""
        return tuple(self.result.strip("()").split(", ")[1:])

    @property
    def by_parameter(self) -> bool:
        """Whether the columns are of the dynamic parameters."""
        return self.shape[-1:] == ("10 bodies",)

    def sizes(self, **symbols: int) -> tuple[int, ...]:
        """Return the shape of the result, from the values of the symbols in it."""
        shape = self.result.strip("()").split(", ")
        return tuple(symbols[one] if one in symbols else int(one) for one in shape)


def _engine(law: str) -> Any:
    module, _, name = law.partition(":")
    return getattr(import_module(f"hodyn_ros.engine.{module}"), name)


def _called(
    name: str, result: str, rates: int = 0, tree: str = "", loops: str = "", besides: str = ""
) -> Operation:
    """Return an operation that a robot has as a call alone."""
    return Operation(
        name,
        result,
        rates,
        tree,
        loops,
        besides=besides,
        compiled=_NOWHERE,
        batched=_NOWHERE,
        exported=_NOWHERE,
    )


def _second(name: str, result: str, rates: int = 0, tree: str = "", **others: Any) -> Operation:
    """Return an operation of trees alone."""
    return Operation(name, result, rates, tree, **others, compiled=_TREE, batched=_TREE, exported=_TREE)


_KINEMATICS, _MATRICES, _OF_LOOPS = "recursions.kinematics", "matrix_kernels", "loops.loop_products"
_SECOND = "second_partials"
_BASE_MOVES = (
    "Six columns of the base stand first: k = 0 is a small body-fixed displacement xi, which takes its"
    " pose to pose exp(xi), k > 0 derivative k - 1 of its body-fixed twist."
)
_SIX_FIRST = (
    "Six rows and columns of the base stand first: a small body-fixed displacement xi, which takes its"
    " pose to pose exp(xi), its body-fixed twist, and the body-fixed wrench on it."
)
_BASE_FIRST = "Velocities are the body-fixed twist of the base, then those of the joints."
_BY_ORDER = "({m}, {m}) by rows, one order up to {order} after the other."

OPERATIONS: dict[str, Operation] = {
    one.name: one
    for one in (
        Operation("inverse_dynamics", "(order + 1, n)", 2),
        Operation("drive_state", "(2 order + 4, n)", 2, compiled=_LOOPS, batched=_NOWHERE, exported=_NOWHERE),
        Operation("forward_dynamics", "(order + 1, n)", of_state=True),
        Operation(
            "forward_kinematics",
            "(frames, 16 + 6 order)",
            tree=f"{_KINEMATICS}:frame_motion",
            loops=f"{_OF_LOOPS}:FrameMotionCode",
            frames="several",
            base="spatial",
        ),
        Operation(
            "inverse_kinematics", "(order + 1, n)", frames="several", batched=_NOWHERE, exported=_NOWHERE
        ),
        Operation(
            "jacobian",
            "(order + 1, 6, m)",
            tree=f"{_KINEMATICS}:frame_jacobian",
            loops=f"{_OF_LOOPS}:FrameJacobianCode",
            frames="one",
            base="spatial",
            in_c="jacobian",
            about="of {frame}, for each order up to {order} a matrix (6, {m}) by rows, which takes "
            "velocities to the twist {twist}.",
            about_base=_BASE_FIRST,
        ),
        Operation(
            "com",
            "(order + 1, 3)",
            tree=f"{_KINEMATICS}:com",
            loops=f"{_OF_LOOPS}:ComCode",
            base="spatial",
            in_c="com",
            about="centre of mass in the world [m], with derivatives up to order {order}.",
        ),
        Operation(
            "mass_matrix",
            "(order + 1, m, m)",
            tree=f"{_MATRICES}:mass_matrix",
            loops=f"{_OF_LOOPS}:mass_matrix",
            in_c="mass",
            about=f"mass matrix {_BY_ORDER}",
            about_base=_BASE_FIRST,
        ),
        Operation(
            "coriolis_matrix",
            "(order + 1, m, m)",
            1,
            tree=f"{_MATRICES}:coriolis_matrix",
            loops=f"{_OF_LOOPS}:coriolis_matrix",
            in_c="coriolis",
            about=f"coriolis matrix {_BY_ORDER}",
            about_base=_BASE_FIRST,
        ),
        Operation(
            "gravity_torque",
            "(order + 1, m)",
            tree=f"{_MATRICES}:gravity_torque",
            loops=f"{_OF_LOOPS}:gravity_torque",
            in_c="gravity",
            about="gravity torque ({m}), one order up to {order} after the other.",
            about_base=_BASE_FIRST,
        ),
        Operation(
            "regressor",
            "(order + 1, efforts, 10 bodies)",
            2,
            tree=f"{_MATRICES}:regressors",
            loops=f"{_OF_LOOPS}:RegressorCode",
            in_c="regressor",
            about="for each order up to {order} a matrix ({efforts}, {parameters}) by rows, which takes the "
            "dynamic parameters of all bodies to the torques.",
        ),
        Operation(
            "inverse_dynamics_derivatives",
            "(order + 1, order + 3, m, m)",
            2,
            tree=f"{_MATRICES}:inverse_dynamics_derivatives",
            in_c="derivatives",
            about="matrix ({m}, {m}) by rows of torque derivative r (0 to {order}) by derivative k of q "
            "(0 to {order_2}), from [(r * {order_3} + k) * {square}] on.",
            about_base="Six rows of the body-fixed wrench on the base stand first, and six columns: k = 0 is "
            "a small body-fixed displacement of the base, k > 0 derivative k - 1 of its body-fixed twist.",
        ),
        Operation(
            "forward_dynamics_derivatives",
            "(order + 1, order + 3, m, m)",
            tree="partial_kernels:hybrid_dynamics_derivatives",
            of_state=True,
            in_c="derivatives",
            about="matrix ({m}, {m}) by rows of acceleration derivative r (0 to {order}) by positions "
            "(k = 0), velocities (k = 1) and derivative k - 2 of tau, from [(r * {order_3} + k) "
            "* {square}] on.",
            about_base="Six rows of derivatives of the body-fixed twist of the base stand first, and "
            "six columns: a small body-fixed displacement, the body-fixed twist, and the "
            "body-fixed wrench on the base.",
        ),
        _second(
            "inverse_dynamics_hessian",
            "(order + 3, order + 3, m, m)",
            2,
            tree=f"{_SECOND}:inverse_dynamics_hessian",
            weighted=True,
            in_c="hessian",
            about="matrix ({m}, {m}) by rows of second derivatives of the sum of multiplier times torques by "
            "derivatives k and l of q (0 to {order_2}), from [(k * {order_3} + l) * {square}] on.",
            about_base=f"{_BASE_MOVES} Its body-fixed wrench comes before the torques.",
        ),
        _second(
            "inverse_dynamics_second_derivatives",
            "(order + 1, order + 3, order + 3, m, m, m)",
            2,
            tree=f"{_SECOND}:inverse_dynamics_second_derivatives",
            in_c="second_derivatives",
            about="matrix ({m}, {m}) by rows of second derivatives of derivative r (0 to {order}) of "
            "torque i by derivatives k and l of q (0 to {order_2}), from [(((r * {order_3} + k) "
            "* {order_3} + l) * {m} + i) * {square}] on.",
            about_base=f"{_BASE_MOVES} Its body-fixed wrench comes before the torques.",
        ),
        _second(
            "forward_dynamics_hessian",
            "(order + 3, order + 3, m, m)",
            tree=f"{_SECOND}:hybrid_dynamics_hessian",
            weighted=True,
            of_state=True,
            in_c="hessian",
            about="matrix ({m}, {m}) by rows of second derivatives of the sum of multiplier times "
            "accelerations by positions (k = 0), velocities (k = 1) and derivative k - 2 of tau,"
            " likewise l, from [(k * {order_3} + l) * {square}] on.",
            about_base=_SIX_FIRST,
        ),
        _second(
            "forward_dynamics_second_derivatives",
            "(order + 1, order + 3, order + 3, m, m, m)",
            tree=f"{_SECOND}:hybrid_dynamics_second_derivatives",
            of_state=True,
            in_c="second_derivatives",
            about="matrix ({m}, {m}) by rows of second derivatives of derivative r (0 to {order}) of "
            "acceleration i by positions (k = 0), velocities (k = 1) and derivative k - 2 of "
            "tau, likewise l, from [(((r * {order_3} + k) * {order_3} + l) * {m} + i) * "
            "{square}] on.",
            about_base=_SIX_FIRST,
        ),
        _second(
            "forward_kinematics_derivatives",
            "(frames, 16 + 6 order, order + 1, m)",
            tree=f"{_SECOND}:frame_motion_derivatives",
            frames="several",
            in_c="derivatives",
            about="of each frame one after the other, of each number of its pose by rows, its twist {twist}, "
            "and the derivatives of that one after the other, by derivative k of q (0 to {order}) a "
            "row ({m}).",
            about_base=_BASE_MOVES,
        ),
        _second(
            "forward_kinematics_hessian",
            "(order + 1, order + 1, m, m)",
            tree=f"{_SECOND}:frame_motion_hessian",
            weighted=True,
            frames="several",
            in_c="hessian",
            about="matrix ({m}, {m}) by rows of second derivatives of the sum of multiplier times the "
            "poses by rows and twists of all frames, twists {twist}, by derivatives k and l of q"
            " (0 to {order}), from [(k * {order_1} + l) * {square}] on.",
            about_base=_BASE_MOVES,
        ),
        Operation("joint_motion", "(order + 1, joints)", compiled=_LOOPS, batched=_LOOPS, exported=_LOOPS),
        Operation("motion_from_drives", "(1, numbers)", compiled=_LOOPS, batched=_LOOPS, exported=_LOOPS),
        _called("dynamic_matrices", "mass, Coriolis, gravity", 1, f"{_MATRICES}:dynamic_matrices"),
        _called("drive_jacobian", "(order + 1, driven, m)", loops=f"{_OF_LOOPS}:DriveJacobianCode"),
        _called(
            "com_jacobian", "(order + 1, 3, m)", 0, f"{_MATRICES}:com_jacobian", f"{_OF_LOOPS}:com_jacobian"
        ),
        _called(
            "centroidal_momentum",
            "(order + 1, 6)",
            1,
            f"{_MATRICES}:centroidal_momentum",
            f"{_OF_LOOPS}:CentroidalMomentumCode",
        ),
        _called(
            "centroidal_momentum_matrix",
            "(order + 1, 6, m)",
            0,
            f"{_MATRICES}:centroidal_momentum_matrix",
            f"{_OF_LOOPS}:centroidal_momentum_matrix",
        ),
        _called(
            "parameter_derivatives",
            "mass, Coriolis, gravity by parameter",
            1,
            f"{_MATRICES}:by_parameter",
            f"{_OF_LOOPS}:ParameterCode",
        ),
        _called(
            "slotine_li_regressor",
            "(order + 1, m, 10 bodies)",
            1,
            f"{_MATRICES}:slotine_li_regressors",
            f"{_OF_LOOPS}:SlotineLiCode",
            "the reference (order + 2, m)",
        ),
    )
}

COMPILED = tuple(name for name, one in OPERATIONS.items() if one.compiled)
EXPORTED = tuple(name for name, one in OPERATIONS.items() if one.exported)
EXPORTED_WITH_LOOPS = tuple(name for name in EXPORTED if OPERATIONS[name].exported == _LOOPS)
RATES = {name: one.rates for name, one in OPERATIONS.items()}
EXPORTED_OF_TREES = tuple(name for name in EXPORTED if name not in EXPORTED_WITH_LOOPS)

# of robots with loops straight-line functions of their motion and nothing else, returned as they are
PRODUCTS = tuple(
    name
    for name, one in OPERATIONS.items()
    if one.loops and not one.besides and one.result.startswith("(order + 1, ")
)
