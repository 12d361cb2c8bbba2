"""What inverse kinematics of any order is asked for, checked, and its solution in readable form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, n_axes, real_array
from hodyn_ros.dynamics.kinematics.carriers import CarriedMotion, Carriers, carriers_of, last_body
from hodyn_ros.dynamics.kinematics.pose_solver import Frames, Task, components, solve_poses
from hodyn_ros.dynamics.kinematics.rate_solver import check_accuracy, solve_rates
from hodyn_ros.dynamics.motion_stack import fitting_base
from hodyn_ros.errors import InputError, ShapeError
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation, check_representation, convert_screws
from hodyn_ros.lie.rigid import rigid_pose
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel

Method = Literal["solve", "pseudo_inverse", "decomposition"]
Bodies = str | int | Sequence[str | int] | None
Tasks = Task | Sequence[Task]

_NO_TWISTS = np.zeros((0, 6))


class Targets(NamedTuple):
    """Where frames are to be, and how they move."""

    names: tuple[str | int, ...]  # of the frames
    poses: Array  # (F, 4, 4)
    twists: Array  # (F, order, 6)
    representation: Representation
    tasks: tuple[Task, ...]

    @property
    def order(self) -> int:
        """The highest derivative asked for."""
        return self.twists.shape[1]

    def followed(self, start: Frames, rates: Array, movable: list[int], weights: Array) -> Frames:
        """Return the motion of frames near `start` that reaches them; errors as of `read_problem`.

        `rates` (order, coordinates): of those that are not `movable`; `weights` (coordinates,).
        """
        motion = solve_poses(start, self.poses, movable=movable, weights=weights, tasks=self.tasks)
        if self.order:
            rows = components(self.tasks)
            wanted = np.concatenate(
                [
                    convert_screws(twists, pose, twists, self.representation, "hybrid")
                    for pose, twists in zip(self.poses, self.twists)
                ],
                axis=-1,
            )
            result = solve_rates(motion, wanted, rows, movable, weights, rates)
            whole = np.concatenate([np.zeros((1, result.shape[1])), result])
            check_accuracy(motion, whole, wanted, rows, movable, weights)
        return motion


class GoalCall(NamedTuple):
    """The arguments of `Robot.inverse_kinematics` as they come; `read_problem` checks them."""

    pose: ArrayLike
    twists: ArrayLike | None = None
    base: BaseMotion | None = None
    body: Bodies = None
    representation: Representation = "spatial"
    seed: ArrayLike | None = None
    task: Tasks = "pose"
    weights: ArrayLike | None = None
    method: Method | None = None
    independent: Mapping[str | int, ArrayLike] | None = None

    @property
    def usual(self) -> bool:
        """Whether nothing is said of what targets leave open, as in most calls."""
        return self.weights is None and self.method is None and self.independent is None

    def targets(self, model: TreeModel) -> Targets:
        """Check where frames are to be, and how they move.

        `pose` (4, 4) in the world [m]; `twists` (order, 6): the twist `(omega; v)` of the body and its
        derivatives, in `representation` "spatial" (world axes, at the world origin), "body_fixed" (body axes,
        at the body origin) or "hybrid" (world axes, at the body origin). `body` may be left out where a robot
        has a single last body. The rest as of `Robot.inverse_kinematics`.
        """
        check_representation(self.representation)
        names, several = _names(model, self.body)
        poses = _poses(self.pose, len(names), several)
        rates, tasks = _twists(self.twists, len(names), several), _tasks(self.task, len(names))
        return Targets(names, poses, rates, self.representation, tasks)

    def plain(self, n: int) -> tuple[Hashable, Array, Array, Array | None] | None:
        """Return names and shapes of an ordinary call, of n coordinates, and its arrays; None of any other.

        Arrays as kernels take them: poses (4 F, 4), twists (F order, 6), seed (1, n). A kernel that has
        served a call serves all with the same names and shapes.
        """
        pose, inputs, base, body, representation, seed, task, weights, method, independent = self
        twists = _NO_TWISTS if inputs is None else inputs
        if type(pose) is not np.ndarray or type(twists) is not np.ndarray:
            return None
        if not (seed is None or (type(seed) is np.ndarray and seed.shape == (n,))):
            return None
        if not (weights is None or (type(weights) is np.ndarray and weights.shape == (n,))):
            return None
        if method is not None or independent is not None:
            return None
        if pose.shape[-2:] != (4, 4) or twists.ndim < 2 or twists.shape[-1] != 6:
            return None
        if not (base is None or (type(base) is BaseMotion and not base.batch)):
            return None
        key = (
            (pose.shape, twists.shape, base and base.orders, weights is None),
            representation,
            tuple(body) if type(body) is list else body,
            tuple(task) if type(task) is list else task,
        )
        try:
            hash(key)
        except TypeError:
            return None
        rows = twists.reshape(twists.size // 6, 6)
        return key, pose.reshape(-1, 4), rows, None if seed is None else seed[None]


@dataclass(frozen=True, eq=False)
class Problem:
    """What inverse kinematics is asked for, checked."""

    model: TreeModel
    carriers: Carriers
    targets: Targets
    seed: Array  # (n,)
    weights: Array | None  # (n,)
    independent: dict[int, Array]  # motions (order + 1,), by joint of the whole robot
    base: BaseMotion | None

    @property
    def order(self) -> int:
        """The highest derivative asked for."""
        return self.targets.order

    def solve(self) -> Array:
        """Return the joint motion (order + 1, n), in readable form."""
        carriers, joints = self.carriers, self.carriers.joints
        movable = [k for k, joint in enumerate(joints) if joint not in self.independent]
        w = np.ones(len(joints)) if self.weights is None else self.weights[joints]
        motions = np.zeros((self.order + 1, len(joints)))  # of independent joints; of the others the seed
        motions[0] = self.seed[joints]
        for joint, values in self.independent.items():
            motions[:, joints.index(joint)] = values
        start = CarriedMotion(carriers, motions[0].copy(), self.base)
        motion = self.targets.followed(start, motions[1:], movable, w)
        q = np.zeros((self.order + 1, self.model.n_joints))
        q[0] = self.seed
        q[:, joints] = [motion.position, *motion.rates]
        return q

    def arguments(self) -> list[Array]:
        """Return what the kernel takes."""
        seed, order = self.seed[None].copy(), self.order
        rates = np.zeros((order, self.model.n_joints))
        for joint, values in self.independent.items():
            seed[0, joint], rates[:, joint] = values[0], values[1:]
        arrays = [seed, self.targets.poses.reshape(-1, 4), self.targets.twists.reshape(-1, 6)]
        if self.base is not None:
            arrays += [self.base.pose, self.base.in_representation("spatial").twists[:order]]
        arrays += [] if self.weights is None else [self.weights[None]]
        arrays += [rates] if self.independent else []
        return [np.ascontiguousarray(array) for array in arrays]


def read_problem(
    model: TreeModel, call: GoalCall, targets: Targets, frames: Mapping[str, Frame] | None = None
) -> Problem:
    """Check what inverse kinematics is asked for; `targets` are those of the call.

    Joints that carry none of the frames stay where `seed` is. Positions come from Newton's method, started at
    `seed` (n,) [rad or m], default zero. The derivatives then follow order by order (Mueller 2020, Algorithm
    2). The call has a `method`:

    - "solve", the default where the joints are no more than the components prescribed: they are determined.
      Fewer joints than components serve motions that they are able to follow, as of a SCARA arm.
    - "pseudo_inverse", the default elsewhere: of all joint velocities the least in the norm `sum(w q'^2)`,
      with `weights` w (n,) > 0, default one; higher orders are the derivatives of these velocities. So the
      result over time is one smooth motion, which the least accelerations (or jerks) on their own are not.
    - "decomposition" (Mueller 2020, remark 2): `independent` joints, by name or index, follow a motion of
      their own, given as a position or as an array (order + 1,); the others are solved for.

    A floating base moves as `base` says, with at least `order` twists.

    Errors as of `Robot.inverse_kinematics`; all of them leave the robot as it was.
    """
    base, n = fitting_base(model, call.base, targets.order), model.n_joints
    carriers = carriers_of(model, frames or {}, targets.names)
    start = np.zeros(n) if call.seed is None else finite_array("the seed", call.seed, (n,))
    w = None if call.weights is None else read_weights(call.weights, n)
    prescribed = _independent(call.independent or {}, model, carriers, targets.order)
    check_method(call.method, targets, len(carriers.joints), len(prescribed))
    return Problem(model, carriers, targets, start, w, prescribed, base)


def _names(model: TreeModel, body: Bodies) -> tuple[tuple[str | int, ...], bool]:
    """Return the names, and whether they were given as a list."""
    if body is None:
        return (last_body(model),), False
    if isinstance(body, (str, int, np.integer)):
        return (body if isinstance(body, str) else int(body),), False
    if not isinstance(body, Sequence) or not body:
        raise InputError(f"body must be the name or index of a body or frame, or a list, found {body!r}")
    return tuple(body), True


def _tasks(task: Tasks, count: int) -> tuple[Task, ...]:
    tasks = (task,) * count if isinstance(task, str) else tuple(task) if isinstance(task, Sequence) else ()
    for one in tasks or (task,):
        if one not in get_args(Task):
            raise InputError(f"task must be one of {list(get_args(Task))}, found {one!r}")
    if len(tasks) != count:
        raise InputError(f"{count} frames need as many tasks, or one for all; found {len(tasks)}")
    return tuple(one for name in tasks for one in get_args(Task) if one == name)


def _poses(pose: ArrayLike, count: int, several: bool) -> Array:
    if not several:
        return rigid_pose("the pose", pose)[None]
    poses = finite_array("the poses", pose, (count, 4, 4))
    return np.stack([rigid_pose(f"pose {i}", one) for i, one in enumerate(poses)])


def _twists(twists: ArrayLike | None, count: int, several: bool) -> Array:
    if twists is None:
        return np.zeros((count, 0, 6))
    shape = f"({count}, order, 6)" if several else "(order, 6)"
    array = real_array("the twists", twists, shape)
    stack = array if several else array[None]
    if array.ndim != 2 + several or array.shape[-1] != 6 or len(stack) != count:
        raise ShapeError("the twists", shape, array.shape)
    check_finite("the twists", array)
    return stack


def read_weights(weights: ArrayLike, n: int) -> Array:
    """Return weights (n,); InputError where they are not above zero."""
    array = finite_array("the weights", weights, (n,))
    if not (array > 0.0).all():
        place = int(np.flatnonzero(array <= 0.0)[0])
        raise InputError(f"the weights must be above zero, found {array[place]} at index {place}")
    return array


def _independent(
    independent: Mapping[str | int, ArrayLike], model: TreeModel, carriers: Carriers, order: int
) -> dict[int, Array]:
    """Return the motions (order + 1,) of independent joints, by joint."""
    result: dict[int, Array] = {}
    for name, values in independent.items():
        joint = model.joint_index(name)
        label = model.joint_names[joint]
        if joint not in carriers.joints:
            raise InputError(f"joint {label!r} does not carry {carriers.name!r}, so it cannot be independent")
        result[joint] = read_motion(label, values, order)
    return result


def read_motion(label: str, values: ArrayLike, order: int) -> Array:
    """Return the motion (order + 1,) of an independent joint, given as a position or with derivatives."""
    held = n_axes(values) == 0
    motion = finite_array(f"the motion of joint {label!r}", values, (1,) if held else (order + 1,))
    return np.append(motion, np.zeros(order)) if held else motion


def check_method(method: str | None, targets: Targets, joints: int, independent: int) -> None:
    """Refuse a method that does not fit the numbers of joints and of independent ones."""
    prescribed = len(components(targets.tasks))
    spare = max(joints - prescribed, 0)
    if method is not None and method not in get_args(Method):
        raise InputError(f"method must be one of {list(get_args(Method))}, found {method!r}")
    if method == "decomposition" or (method is None and independent):
        if independent != spare:
            raise InputError(
                f"{joints} joints and {prescribed} components leave {spare} joints independent; "
                f"independent holds {independent}"
            )
    elif independent:
        raise InputError(f"independent joints go with method='decomposition', not with {method!r}")
    elif method == "solve" and spare:
        raise InputError(
            f"{joints} joints are not determined by {prescribed} components; choose "
            "method='pseudo_inverse', or 'decomposition' with independent joints"
        )
