"""The operations of a robot: one table of what is computed, from what, by which law, for which robots.

`Robot.compile`, `compile_batch`, the calls of `Robot`, `hodyn export` with its help, and
sweeps of the tests read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from hodyn_ros.errors import InputError

if TYPE_CHECKING:  # names of operations are known before NumPy is loaded, as for `hodyn --help`
    from collections.abc import Callable, Sequence

    from hodyn_ros.lie.representations import Representation

Kind = Literal["tree", "loops"]
_Law = Literal["tree", "loops", "kernel", "loops_call", "loops_plan", "published"]
_BOTH: frozenset[Kind] = frozenset(("tree", "loops"))
_LOOPS: frozenset[Kind] = frozenset(("loops",))
_TREE: frozenset[Kind] = frozenset(("tree",))
_NOWHERE: frozenset[Kind] = frozenset()


@dataclass(frozen=True)
class Operation:
    """One operation, up to derivative `order` of its result; n coordinates, m velocities.

    `result`: the shape of what the call returns, and `says` what that is. `takes`: the motion of the
    coordinates, of which q has order + 1 + `rates` rows, with twists of a base in the representation `base`;
    or a state (2, n) with efforts (order + 1, n), poses of frames with their twists, or the motion of the
    drives; `weighted`: after all else a multiplier of the results of another operation; it is then of the
    sum of products. `besides`: what it takes besides. `q_left_out`: compiled, it takes no q where no joint is
    a coordinate. `frames`: how many bodies and frames it is of, with a representation.

    `tree` and `loops` name the laws, as "module:function" below `hodyn_ros`:
    `tree(model, order, [frame or frames, representation])` returns what is traced, and
    `loops(closure, chosen, order, [frame or frames, representation])` the code of robots with loops.
    `both`: the `Law` of `engine.matrix_kernels` from which the two follow, a `JacobianLaw` of what is of one
    frame; `loops` takes it, and the shape of one order, besides. `kernel(model, order, setting)` makes the
    code of a tree, of what applied wrenches and bases of any kind act on; its law takes the same. Where code
    of robots with loops is more than its law, the method `loops_call(order, [frames, representation])` of
    `LoopedDynamics` makes the call, or the function itself, and `loops_plan(robot, request, name)` that in C.
    `published(bodies, order, [frame, representation])` computes what is of a tree too large to compile.

    `compiled`, `batched`, `exported`: the robots of which `Robot.compile`, `Robot.compile_batch` and `hodyn
    export` offer it. `accuracy`: whether `Robot.accuracy` speaks of it. `in_c`: the name of the result in C,
    and `about` what headers say of it; where a base floats, `base_in_c` is that of the part of the base that
    stands before, and `about_base` is added.
    """

    name: str
    result: str
    rates: int = 0
    tree: str = ""
    loops: str = ""
    both: str = ""
    says: str = ""
    takes: Literal["motion", "state", "poses", "drives"] = "motion"
    frames: Literal["none", "one", "several"] = "none"
    base: Literal["spatial", "body_fixed"] = "body_fixed"
    in_c: str = ""
    about: str = ""
    base_in_c: str = ""
    about_base: str = ""
    besides: str = ""
    weighted: bool = False
    kernel: str = ""
    loops_call: str = ""
    loops_plan: str = ""
    published: str = ""
    compiled: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    batched: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    exported: frozenset[Kind] = field(default=_BOTH, kw_only=True)
    accuracy: bool = field(default=False, kw_only=True)
    q_left_out: bool = field(default=False, kw_only=True)

    def law(self, of: _Law) -> Callable[..., Any]:
        """Return what one of the laws names."""
        law = _named(getattr(self, of))
        return partial(law, law=_named(self.both), shape=self.shape) if of == "loops" and self.both else law

    def of_frames(
        self, asked: Sequence[str | int] | None, bodies: Sequence[str], representation: Representation
    ) -> tuple[Any, ...]:
        """Return the frames it is of by name, and the representation of their twists; nothing of no frames.

        By default all `bodies`, or the last one; of poses the only last body, which the robot knows. Raises
        InputError for another number than one where it is of one.
        """
        if self.frames == "none":
            return ()
        if self.takes == "poses":
            return tuple(asked or ()), representation
        if self.frames == "several":
            return tuple(asked or bodies), representation
        names = tuple(asked or bodies[-1:])
        if len(names) != 1:
            raise InputError(f"{self.name} is of one frame; found {list(names)}")
        return names[0], representation

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


@cache
def _named(function: str) -> Any:
    module, _, name = function.partition(":")
    return attrgetter(name)(import_module(f"hodyn_ros.{module}"))


def _offered(robots: frozenset[Kind]) -> dict[str, Any]:
    """Return that an operation is compiled, batched and exported of some robots alone."""
    return dict.fromkeys(("compiled", "batched", "exported"), robots)


def _of_motion(name: str, result: str, rates: int, says: str, *, law: str = "", **fields: Any) -> Operation:
    """Return an operation that follows from the motion alone, by one law or by those of `fields`."""
    laws = {}
    if law:
        code = "FrameJacobianCode" if fields.get("frames") == "one" else "SumsCode"
        laws = {"both": f"{_LAWS}:{law}", "tree": f"{_LAWS}:{law}.of_tree", "loops": f"{_OF_LOOPS}:{code}"}
    return Operation(name, result, rates, says=says, **{**laws, **fields})


def _second(name: str, result: str, rates: int = 0, **fields: Any) -> Operation:
    """Return an operation that is compiled for trees alone, and exported of them unless `fields` say more."""
    return Operation(name, result, rates, **{**_offered(_TREE), "tree": f"{_SECOND}:{name}", **fields})


_KINEMATICS, _LAWS = "engine.recursions.kinematics", "engine.matrix_kernels"
_SECOND = "engine.second_partials"
_PUBLISHED, _PARAMETERS = "formulations.dynamic_matrices", "formulations.parameters"
_OF_LOOPS, _PLANS = "engine.loops.loop_products", "export.loops"
_LOOPED = "dynamics.loops.looped:LoopedDynamics"
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
        Operation(
            "inverse_dynamics",
            "(order + 1, n)",
            2,
            tree="engine.kernels:inverse_dynamics_trace",
            says="torques of joints or drives, after the wrench on a base",
            in_c="tau",
            about="joint torques (forces) on the link side and their derivatives up to order {order}.",
            base_in_c="base_wrench",
            about_base="wrench (mx my mz fx fy fz) that has to act on the base, in world axes about the "
            "world origin [N.m, N], and its derivatives up to order {order}.",
            base="spatial",
            kernel="engine.kernels:inverse_dynamics",
            loops_call=f"{_LOOPED}.effort_call",
            loops_plan=f"{_PLANS}.operations:inverse_dynamics",
            accuracy=True,
            q_left_out=True,
        ),
        Operation(
            "drive_state",
            "(2 order + 4, n)",
            2,
            says="efforts, then the motion of the driven joints up to derivative order + 2",
            base="spatial",
            loops_call=f"{_LOOPED}.effort_call",
            q_left_out=True,
            compiled=_LOOPS,
            batched=_NOWHERE,
            exported=_NOWHERE,
        ),
        Operation(
            "forward_dynamics",
            "(order + 1, n)",
            tree="engine.kernels:hybrid_dynamics_trace",
            says="accelerations, after those of a base",
            takes="state",
            in_c="acceleration",
            about="of the joints, with derivatives up to order {order}.",
            base_in_c="base_acceleration",
            about_base="derivatives 1 to {order_1} of the twist.",
            base="spatial",
            kernel="engine.kernels:hybrid_dynamics",
            loops_call=f"{_LOOPED}.forward_call",
            loops_plan=f"{_PLANS}.operations:forward_dynamics",
            accuracy=True,
        ),
        Operation(
            "hybrid_dynamics",
            "(order + 1, n)",
            says="torques of prescribed joints, accelerations of the others",
            takes="state",
            besides="the joints that are prescribed",
            **_offered(_NOWHERE),
            accuracy=True,
        ),
        Operation(
            "forward_kinematics",
            "(frames, 16 + 6 order)",
            tree=f"{_KINEMATICS}:frame_motion",
            loops=f"{_OF_LOOPS}:FrameMotionCode",
            says="of each frame the pose by rows, then its twist and the derivatives of that",
            frames="several",
            base="spatial",
            accuracy=True,
        ),
        Operation(
            "inverse_kinematics",
            "(order + 1, n)",
            says="motion of the coordinates that moves the frames as given",
            takes="poses",
            frames="several",
            base="spatial",
            loops_call=f"{_LOOPED}.compile_inverse_kinematics",
            batched=_NOWHERE,
            exported=_NOWHERE,
            accuracy=True,
        ),
        _of_motion(
            "jacobian",
            "(order + 1, 6, m)",
            0,
            "what takes velocities to the twist of the frame",
            law="JACOBIAN",
            tree=f"{_KINEMATICS}:frame_jacobian",
            published="dynamics.matrices:jacobian",
            frames="one",
            base="spatial",
            in_c="jacobian",
            about="of {frame}, for each order up to {order} a matrix (6, {m}) by rows, which takes "
            "velocities to the twist {twist}.",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "com",
            "(order + 1, 3)",
            0,
            "centre of mass in the world",
            tree=f"{_KINEMATICS}:com",
            loops=f"{_OF_LOOPS}:ComCode",
            published=f"{_PUBLISHED}:com_positions",
            base="spatial",
            in_c="com",
            about="centre of mass in the world [m], with derivatives up to order {order}.",
        ),
        _of_motion(
            "mass_matrix",
            "(order + 1, m, m)",
            0,
            "mass matrix",
            law="MASS_MATRIX",
            published=f"{_PUBLISHED}:mass_matrices",
            in_c="mass",
            about=f"mass matrix {_BY_ORDER}",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "coriolis_matrix",
            "(order + 1, m, m)",
            1,
            "Coriolis matrix C with M' - 2 C skew",
            law="CORIOLIS_MATRIX",
            published=f"{_PUBLISHED}:coriolis_matrices",
            in_c="coriolis",
            about=f"coriolis matrix {_BY_ORDER}",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "gravity_torque",
            "(order + 1, m)",
            0,
            "what holds the robot against gravity",
            law="GRAVITY",
            published=f"{_PUBLISHED}:gravity_forces",
            in_c="gravity",
            about="gravity torque ({m}), one order up to {order} after the other.",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "regressor",
            "(order + 1, efforts, 10 bodies)",
            2,
            "what takes dynamic parameters to torques",
            law="REGRESSOR",
            published=f"{_PARAMETERS}:regressors",
            in_c="regressor",
            about="for each order up to {order} a matrix ({efforts}, {parameters}) by rows, which takes the "
            "dynamic parameters of all bodies to the torques.",
        ),
        Operation(
            "inverse_dynamics_derivatives",
            "(order + 1, order + 3, m, m)",
            2,
            tree=f"{_LAWS}:inverse_dynamics_derivatives",
            says="[r, k]: derivatives of torque derivative r by derivative k of q",
            in_c="derivatives",
            about="matrix ({efforts}, {m}) by rows of effort derivative r (0 to {order}) by derivative k of "
            "{coordinates} (0 to {order_2}), from [(r * {order_3} + k) * {efforts_m}] on.",
            about_base="Six rows of the body-fixed wrench on the base stand first, and six columns: k = 0 is "
            "a small body-fixed displacement of the base, k > 0 derivative k - 1 of its body-fixed twist.",
            loops_call=f"{_LOOPED}.compile_inverse_partials",
            loops_plan=f"{_PLANS}.partials:partial_derivatives",
        ),
        Operation(
            "forward_dynamics_derivatives",
            "(order + 1, order + 3, m, m)",
            tree="engine.partial_kernels:hybrid_dynamics_derivatives",
            says="[r, k]: derivatives of acceleration derivative r by positions (k = 0), velocities (1), and "
            "derivative k - 2 of the torques",
            takes="state",
            in_c="derivatives",
            about="matrix ({m}, {efforts}) by rows of acceleration derivative r (0 to {order}) by "
            "{coordinates} (k = 0), velocities (k = 1) and derivative k - 2 of tau, from "
            "[(r * {order_3} + k) * {efforts_m}] on.",
            about_base="Six rows of derivatives of the body-fixed twist of the base stand first, and six "
            "columns: a small body-fixed displacement, the body-fixed twist, and the body-fixed wrench on "
            "the base.",
            base="spatial",
            loops_call=f"{_LOOPED}.compile_forward_partials",
            loops_plan=f"{_PLANS}.partials:partial_derivatives",
        ),
        _second(
            "inverse_dynamics_hessian",
            "(order + 3, order + 3, m, m)",
            2,
            says="[k, l]: second derivatives of the sum of multiplier times torques by derivatives k and l "
            "of q",
            weighted=True,
            in_c="hessian",
            about="matrix ({m}, {m}) by rows of second derivatives of the sum of multiplier times efforts by "
            "derivatives k and l of {coordinates} (0 to {order_2}), from "
            "[(k * {order_3} + l) * {square}] on.",
            about_base=f"{_BASE_MOVES} Its body-fixed wrench comes before the torques.",
            loops_plan=f"{_PLANS}.partials:inverse_hessian",
            exported=_BOTH,
        ),
        _second(
            "inverse_dynamics_second_derivatives",
            "(order + 1, order + 3, order + 3, m, m, m)",
            2,
            says="[r, k, l, i]: second derivatives of derivative r of torque i by derivatives k and l of q",
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
            says="[k, l]: second derivatives of the sum of multiplier times accelerations by positions (k = "
            "0), velocities (1), and derivative k - 2 of the torques, likewise l",
            weighted=True,
            takes="state",
            base="spatial",
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
            says="[r, k, l, i]: second derivatives of derivative r of acceleration i, k and l likewise",
            takes="state",
            base="spatial",
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
            says="derivatives of poses and twists by derivative k of q",
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
            says="[k, l]: second derivatives of the sum of multiplier times poses and twists by derivatives "
            "k and l of q",
            weighted=True,
            frames="several",
            in_c="hessian",
            about="matrix ({m}, {m}) by rows of second derivatives of the sum of multiplier times the "
            "poses by rows and twists of all frames, twists {twist}, by derivatives k and l of q"
            " (0 to {order}), from [(k * {order_1} + l) * {square}] on.",
            about_base=_BASE_MOVES,
        ),
        Operation(
            "joint_motion",
            "(order + 1, joints)",
            says="motion of all joints of the tree",
            base="spatial",
            loops_call=f"{_LOOPED}.joint_call",
            loops_plan=f"{_PLANS}.operations:joint_motion",
            **_offered(_LOOPS),
            accuracy=True,
            q_left_out=True,
        ),
        Operation(
            "motion_from_drives",
            "(1, numbers)",
            says="pose of a platform by rows and its spatial twists, then the motion of the joints that are "
            "coordinates, one order after the other",
            takes="drives",
            base="spatial",
            loops_call=f"{_LOOPED}.compile_move_drives",
            loops_plan=f"{_PLANS}.from_drives:motion_from_drives",
            **_offered(_LOOPS),
            accuracy=True,
        ),
        _of_motion(
            "dynamic_matrices",
            "mass, Coriolis, gravity",
            1,
            "all three in one go",
            tree=f"{_LAWS}:DYNAMIC_MATRICES.of_tree",
            loops=f"{_OF_LOOPS}:dynamic_matrices",
            published="dynamics.matrices:rows",
            **_offered(_NOWHERE),
        ),
        _of_motion(
            "drive_jacobian",
            "(order + 1, driven, m)",
            0,
            "what the driven joints move by the coordinates",
            loops=f"{_OF_LOOPS}:DriveJacobianCode",
            in_c="drive_jacobian",
            about="for each order up to {order} a matrix by rows, which takes velocities to those of the "
            "driven joints.",
            **_offered(_LOOPS),
        ),
        _of_motion(
            "com_jacobian",
            "(order + 1, 3, m)",
            0,
            "what takes velocities to that of the centre of mass",
            law="COM_JACOBIAN",
            published=f"{_PUBLISHED}:com_jacobians",
            in_c="com_jacobian",
            about="for each order up to {order} a matrix (3, {m}) by rows, which takes velocities to that of "
            "the centre of mass in the world.",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "centroidal_momentum",
            "(order + 1, 6)",
            1,
            "momentum about the centre of mass, angular first",
            law="MOMENTUM",
            published=f"{_PUBLISHED}:centroidal_momenta",
            in_c="momentum",
            about="angular, then linear momentum about the centre of mass in world axes [kg m^2/s, kg m/s], "
            "with derivatives up to order {order}.",
        ),
        _of_motion(
            "centroidal_momentum_matrix",
            "(order + 1, 6, m)",
            0,
            "what takes velocities to the centroidal momentum",
            law="MOMENTUM_MATRIX",
            published=f"{_PUBLISHED}:centroidal_matrices",
            in_c="momentum_matrix",
            about="for each order up to {order} a matrix (6, {m}) by rows, which takes velocities to the "
            "momentum about the centre of mass.",
            about_base=_BASE_FIRST,
        ),
        _of_motion(
            "parameter_derivatives",
            "mass, Coriolis, gravity by parameter",
            1,
            "derivatives of the matrices by every dynamic parameter",
            tree=f"{_LAWS}:BY_PARAMETER.of_tree",
            loops=f"{_OF_LOOPS}:by_parameter",
            published="dynamics.matrices:parameter_rows",
            **_offered(_NOWHERE),
        ),
        _of_motion(
            "slotine_li_regressor",
            "(order + 1, m, 10 bodies)",
            1,
            "Y with M w' + C w + g = Y[0] times the dynamic parameters, w the reference",
            law="SLOTINE_LI",
            besides="the reference (order + 2, m)",
            **_offered(_NOWHERE),
        ),
    )
}

COMPILED = tuple(name for name, one in OPERATIONS.items() if one.compiled)
EXPORTED = tuple(name for name, one in OPERATIONS.items() if one.exported)
EXPORTED_WITH_LOOPS = tuple(name for name in EXPORTED if OPERATIONS[name].exported == _LOOPS)
RATES = {name: one.rates for name, one in OPERATIONS.items()}
EXPORTED_OF_TREES = tuple(name for name in EXPORTED if name not in EXPORTED_WITH_LOOPS)
WITH_ACCURACY = tuple(name for name, one in OPERATIONS.items() if one.accuracy)

# of robots with loops straight-line functions of their motion and nothing else, returned as they are
PRODUCTS = tuple(
    name
    for name, one in OPERATIONS.items()
    if one.loops and not one.besides and one.result.startswith("(order + 1, ")
)
