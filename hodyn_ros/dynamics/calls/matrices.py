"""The calls of `Robot` that return matrices: of the equations of motion, Jacobians, regressors, partials."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics import matrices, regressors
from hodyn_ros.dynamics.calls.description import RobotProperties
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.dynamics.matrices import DynamicMatrices
from hodyn_ros.dynamics.motion_stack import MotionStack, applied, joint_stack, motion_stack
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, RATES
from hodyn_ros.engine.kernels import KernelSpec
from hodyn_ros.errors import InputError
from hodyn_ros.formulations import parameters
from hodyn_ros.lie.motion import AppliedWrench, BaseMotion, BaseRepresentation
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.joint_tree import JointTree
from hodyn_ros.model.tree import TreeModel


def _through_noted_kernel(call: Callable[..., Array]) -> Callable[..., Array]:
    """Let a call go straight to its kernel where that has served the same shape before.

    `call(self, q, base)` notes the kernel by `_note`.
    """
    checked, name = finite_result(call), call.__name__

    @wraps(call)
    def noted(self: MatrixCalls, q: ArrayLike, base: BaseMotion | None = None) -> Array:
        result = self._by_noted(q, base, name)
        if result is not None:
            return result
        if self._looped is not None:
            return self._of_loops(self._looped, name, q, base)
        return checked(self, q, base)

    return noted


class MatrixCalls(RobotProperties):
    """Matrices of a robot by order."""

    @cached_property
    def _matrix_kernels(self) -> Kept[Any, Kernel | None]:
        return Kept()

    @cached_property
    def _noted(
        self,
    ) -> Kept[tuple[Any, ...], tuple[Callable[..., Array], tuple[int, ...], BaseRepresentation]]:
        """Functions, shapes of their results and frames of base twists, by shape of the motion and call."""
        return Kept()

    def _note(self, kernel: Kernel, stack: MotionStack, shape: tuple[int, ...], *call: Any) -> None:
        """Let the next call with one sample of these shapes go straight to its kernel."""
        if not stack.batch:
            orders = stack.base and stack.base.orders
            noted = kernel.function, (stack.order + 1, *shape), stack.frame
            self._noted[(stack.q.shape, orders, *call)] = noted

    def _of_loops(
        self, looped: LoopedDynamics, name: str, q: Any, base: BaseMotion | None, *of: Any
    ) -> Array:
        """Compute what an operation of a robot with loops returns, and let the next call go to its code."""
        result = looped.computed(name, q, base, *of)
        if np.ndim(q) != 3 and not (base and base.batch):
            orders, rows = base and base.orders, len(result) + RATES[name]
            code = looped.compile_product(name, len(result) - 1, *of)
            key = (rows, len(looped.closure.joints)), orders, name, *of
            self._noted[key] = code, result.shape, "spatial"
        return result

    def _by_noted(self, q: Any, base: BaseMotion | None, *call: Any, more: Sequence[Array] = ()) -> Any:
        """Return what a kernel noted for a call computes of one sample; None where there is none."""
        if q is None and type(base) is BaseMotion:  # of a robot that a platform moves
            q = np.empty((base.orders + 1, 0))
        if type(q) is not np.ndarray or not (base is None or type(base) is BaseMotion):
            return None
        result = self._noted.get((q.shape, base and base.orders, *call))
        if result is None or (base is not None and base.batch):
            return None
        function, shape, frame = result
        motion = () if base is None else (base.pose, base.twists_in(frame, len(q) - 1))
        return function(q, *motion, *more).reshape(shape)

    @cached_property
    def _joint_tree(self) -> JointTree:
        return JointTree.of(self.tree)

    @_through_noted_kernel
    def mass_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the mass matrix and its time derivatives, `q` (order + 1, n) -> (order + 1, m, m).

        Kumar & Mueller (2021), eqs. 39 and 54; compiled.
        """
        return self._computed("mass_matrix", q, base)

    @_through_noted_kernel
    def coriolis_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the Coriolis matrix and its time derivatives, `q` (order + 2, n) -> (order + 1, m, m).

        `M' - 2 C` is skew. Kumar & Mueller (2021), eqs. 39 and 55, Garofalo et al. (2013), eq. 6b; compiled.
        """
        return self._computed("coriolis_matrix", q, base)

    @_through_noted_kernel
    def gravity_torque(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute what holds the robot against gravity, by order: `q` (order + 1, n) -> (order + 1, m).

        Kumar & Mueller (2021), eqs. 43 and 58; compiled.
        """
        return self._computed("gravity_torque", q, base)

    def dynamic_matrices(self, q: ArrayLike | None, base: BaseMotion | None = None) -> DynamicMatrices:
        """Compute `mass`, `coriolis` and `gravity` in one go, from `q` (order + 2, n)."""
        if self._looped is not None:
            return self._looped.dynamic_matrices(q, base)
        return matrices.in_parts(self._rows_of_all(q, base))

    @_through_noted_kernel
    def _rows_of_all(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        return self._computed("dynamic_matrices", q, base, call="_rows_of_all")

    def compile_matrices(self, order: int) -> None:
        """Compile `dynamic_matrices` of one order for this robot, however long that takes.

        Without this, robots and orders too large for a compilation of a few seconds are computed in NumPy, a
        humanoid of 25 joints from order 7 on. The next process finds the machine code on disk.
        """
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 0:
            raise InputError(f"the order must be 0 or a positive integer, found {order!r}")
        if self._looped is not None:
            self._looped.compile_matrices(int(order))
            self._noted.clear()
            return
        law = OPERATIONS["dynamic_matrices"].tree_law(self.model, int(order))
        self._matrix_kernels["dynamic_matrices", int(order)] = Kernel(*law)

    @finite_result
    def coefficient_matrices(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute P with `Q^(r) - g^(r) = sum_k P[r, k] q^(k)`, `q` (order + 2, n).

        Shape (order + 1, order + 3, m, m); entries [r, 0] and those with k > r + 2 are zero. Kumar & Mueller
        (2021), eq. 49.
        """
        return matrices.coefficient_matrices(self.dynamic_matrices(q, base))

    def jacobian(
        self,
        q: ArrayLike | None,
        base: BaseMotion | None = None,
        *,
        body: str | int,
        representation: Representation = "spatial",
    ) -> Array:
        """Compute the Jacobian of a body or named frame, `q` (order + 1, n) -> (order + 1, 6, m).

        It takes velocities to the twist `(omega; v)`: "spatial" (world axes, at the world origin),
        "body_fixed" (body axes, body origin) or "hybrid" (world axes, body origin).
        Garofalo et al. (2013), eqs. 27-29; compiled.
        """
        result = self._by_noted(q, base, "jacobian", body, representation)
        if result is not None:
            return result
        return self._of_frame("jacobian", q, base, body, representation)

    def _of_frame(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        body: str | int,
        representation: Representation,
    ) -> Array:
        """Compute what an operation of one frame returns."""
        if self._looped is not None:
            return self._of_loops(self._looped, name, q, base, body, representation)
        return self._computed_finite(name, q, base, (body, representation))

    @_through_noted_kernel
    def com(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the centre of mass in the world [m] by order, `q` (order + 1, n) -> (order + 1, 3).

        Compiled.
        """
        return self._computed("com", q, base)

    @_through_noted_kernel
    def com_jacobian(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the Jacobian of the centre of mass by order, `q` (order + 1, n) -> (order + 1, 3, m).

        Garofalo et al. (2013), eq. 7; compiled.
        """
        return self._computed("com_jacobian", q, base)

    @_through_noted_kernel
    def centroidal_momentum(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the momentum about the centre of mass by order, `q` (order + 2, n) -> (order + 1, 6).

        World axes; angular [kg m^2/s], then linear [kg m/s]. Compiled.
        """
        return self._computed("centroidal_momentum", q, base)

    @_through_noted_kernel
    def centroidal_momentum_matrix(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        """Compute the matrix of the centroidal momentum by order, `q` (order + 1, n) -> (order + 1, 6, m).

        Compiled.
        """
        return self._computed("centroidal_momentum_matrix", q, base)

    def dynamic_parameters(self) -> Array:
        """Return the parameters (10 bodies,): of every body m, m r, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz.

        In body axes, inertias about the origin of the body frame. Garofalo et al. (2013), eq. 9.
        """
        return parameters.dynamic_parameters(self._joint_tree)

    @_through_noted_kernel
    def regressor(self, q: ArrayLike, base: BaseMotion | None = None) -> Array:
        """Compute Y with `Q^(r) = Y[r] @ dynamic_parameters()`, `q` (order + 3, n).

        Shape (order + 1, m, 10 bodies). Garofalo et al. (2013), eq. 16; compiled.
        """
        return self._computed("regressor", q, base)

    def slotine_li_regressor(
        self,
        q: ArrayLike | None,
        qr: ArrayLike | None,
        base: BaseMotion | None = None,
        base_reference: ArrayLike | None = None,
    ) -> Array:
        """Compute Y with `M q_r'' + C q_r' + g = Y[0] @ dynamic_parameters()` and its time derivatives.

        `q` (order + 2, n); `qr` (order + 3, n) the reference, whose positions do not matter, and
        `base_reference` (order + 2, 6) the body-fixed reference twists of a floating base or platform. Shape
        (order + 1, m, 10 bodies); with loops, m coordinates. Garofalo et al. (2013), eq. 16; compiled.
        """
        rates = _reference_rates(q, qr, base, base_reference)
        if rates is not None:
            result = self._by_noted(q, base, "slotine_li_regressor", more=[rates])
            if result is not None:
                return result
        if self._looped is not None:
            return self._looped.slotine_li_regressor(q, base, qr, base_reference)
        return self._slotine_li_regressor(q, qr, base, base_reference)

    @finite_result
    def _slotine_li_regressor(
        self,
        q: ArrayLike | None,
        qr: ArrayLike | None,
        base: BaseMotion | None,
        base_reference: ArrayLike | None,
    ) -> Array:
        stack = motion_stack(self.model, q, base, 1)
        reference = joint_stack(self.model, qr, 2, "the reference")
        rates = regressors.reference_velocities(self.model, stack, reference, base_reference)
        kernel = self._traced_kernel("slotine_li_regressor", stack.order)
        if kernel is None:
            law, bodies = parameters.slotine_li_regressors, stack.bodies(self._joint_tree)
            return matrices.by_order(law, bodies, stack.order, rates)
        self._note(kernel, stack, (self._m, 10 * self.model.n_bodies), "slotine_li_regressor")
        arguments = [*stack.arguments(), np.ascontiguousarray(np.stack(rates, axis=-2))]
        call = kernel.batch if stack.batch else kernel.function
        return call(*map(np.ascontiguousarray, arguments)).reshape(*stack.batch, stack.order + 1, self._m, -1)

    def parameter_derivatives(self, q: ArrayLike | None, base: BaseMotion | None = None) -> DynamicMatrices:
        """Compute the derivatives of M, C and g by every dynamic parameter, `q` (order + 2, n).

        Shapes (order + 1, 10 bodies, m, m) and (order + 1, 10 bodies, m). Garofalo et al. (2013), eq. 13.
        """
        if self._looped is not None:
            return self._looped.parameter_derivatives(q, base)
        return regressors.by_parameter(self._parameter_rows(q, base))

    @_through_noted_kernel
    def _parameter_rows(self, q: ArrayLike | None, base: BaseMotion | None = None) -> Array:
        return self._computed("parameter_derivatives", q, base, call="_parameter_rows")

    @property
    def _m(self) -> int:
        return self.model.n_joints + (6 if self.model.floating_base else 0)

    def _computed(
        self,
        name: str,
        q: ArrayLike | None,
        base: BaseMotion | None,
        of: tuple[Any, ...] = (),
        call: str = "",
    ) -> Array:
        """Compute what an operation of a tree returns, and let the next call go straight to its kernel.

        By its published formula what takes too long to compile. `of`: a frame by name and a representation,
        of an operation that is of a frame. `call`: the method that `_through_noted_kernel` knows, by default
        that of the same name.
        """
        operation, tree = OPERATIONS[name], self.model
        stack = motion_stack(tree, q, base, operation.rates, operation.base)
        kernel = self._traced_kernel(name, stack.order, *of)
        if kernel is None and not operation.published:
            raise too_large(tree, name, stack.order)
        if kernel is None:
            law, bodies = operation.published_law, stack.bodies(self._joint_tree)
            return matrices.by_order(law, bodies, stack.order, *placed(tree, self.frames, of))
        rows, columns = kernel.result
        shape = (columns,) if len(operation.shape) == 1 else (rows // (stack.order + 1), columns)
        self._note(kernel, stack, shape, call or name, *of)
        return called(kernel, stack).reshape(*stack.batch, stack.order + 1, *shape)

    _computed_finite = finite_result(_computed)

    def _traced_kernel(self, name: str, order: int, *of: Any) -> Kernel | None:
        """Return the kernel of an operation by its law; None where it takes too long to compile.

        `of`: names of frames and a representation, of what is of frames; else what the law takes.
        """
        operation, tree = OPERATIONS[name], self.tree

        def make() -> Kernel | None:
            further = of if operation.frames == "none" else placed(tree, self.frames, of)
            return Kernel.unless_long(*operation.tree_law(tree, order, *further))

        return self._matrix_kernels.made((name, order, *of), make)

    def _partial_kernel(self, order: int, setting: KernelSpec) -> Kernel | None:
        plain = setting == KernelSpec.of(self.model)
        return self._traced_kernel("forward_dynamics_derivatives", order, *(() if plain else (setting,)))

    def _matrix_kernel(
        self, make: Callable[..., Kernel | None], order: int, *arrays: Hashable
    ) -> Kernel | None:
        key = (make, order, *arrays)
        return self._matrix_kernels.made(key, lambda: make(self.model, order, *arrays))


def _reference_rates(q: Any, qr: Any, base: BaseMotion | None, base_reference: Any) -> Array | None:
    """Return velocities of a reference as kernels take them; None where that takes a closer look."""
    plain = type(q) is type(qr) is np.ndarray and len(qr) == len(q) + 1 and np.isfinite(qr[0]).all()
    if not plain or (base is None) != (base_reference is None):
        return None
    if base is None:
        rates: Array = qr[1:]
        return rates
    if type(base_reference) is not np.ndarray or base_reference.shape != (len(q), 6):
        return None
    return np.concatenate([base_reference, qr[1:]], axis=1)


def too_large(tree: TreeModel, what: str, order: int) -> InputError:
    """Say that code would take too long to compile."""
    return InputError(
        f"robot {tree.name!r} is too large to compile {what} of order {order} in seconds; the call "
        f"robot.{what}(...) computes it"
    )


def called(kernel: Kernel, stack: MotionStack, loads: Sequence[AppliedWrench] = ()) -> Array:
    """Call a kernel with one sample or a batch."""
    arguments = [*stack.arguments(), *applied(loads, stack.order, stack.batch)]
    return kernel.batch(*arguments) if stack.batch else kernel.function(*arguments)
