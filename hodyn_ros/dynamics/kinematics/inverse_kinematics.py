"""Inverse kinematics of any order: joint motion from the motion of a body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_finite, finite_array, finite_result, real_array, rigid_pose
from hodyn_ros.dynamics.floating_base import fitting_base
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task, solve_pose
from hodyn_ros.dynamics.kinematics.rate_accuracy import check_accuracy
from hodyn_ros.dynamics.kinematics.rate_solver import solve_rates
from hodyn_ros.dynamics.kinematics.serial_chain import ChainMotion, SerialChain, chain_to
from hodyn_ros.errors import InputError
from hodyn_ros.lie.motion import BaseMotion, Frame, check_frame
from hodyn_ros.lie.representations import convert_screws, of_frame
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.readers.assembly import Frame as NamedFrame
from hodyn_ros.model.tree import TreeModel

Method = Literal["solve", "pseudo_inverse", "decomposition"]


@finite_result
def inverse_kinematics(
    model: TreeModel,
    pose: ArrayLike,
    twists: ArrayLike | None = None,
    frame: Frame = "world",
    body: str | int | None = None,
    *,
    seed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    method: Method | None = None,
    independent: Mapping[str | int, ArrayLike] | None = None,
    task: Task = "pose",
    base: BaseMotion | None = None,
    frames: Mapping[str, NamedFrame] | None = None,
) -> Array:
    """Find the joint motion (order + 1, n) that moves a body or named frame as given.

    `pose` (4, 4) in the world [m]; `twists` (order, 6): the twist `(omega; v)` of the body and its
    derivatives, `frame="world"` spatial (world axes, at the world origin), `"body"` body-fixed (body axes, at
    the body origin). `body` may be left out where a robot has a single last body. `task` "position" or
    "orientation" prescribes only that of the body. Joints that do not carry the body stay where `seed` is.

    Positions come from Newton's method, started at `seed` (n,) [rad or m], default zero. The derivatives then
    follow order by order (Mueller 2020, Algorithm 2). `method`:

    - "solve", the default where the joints are no more than the components prescribed: they are determined.
      Fewer joints than components serve motions that they are able to follow, as of a SCARA arm.
    - "pseudo_inverse", the default elsewhere: of all joint velocities the least in the norm `sum(w q'^2)`,
      with `weights` w (n,) > 0, default one; higher orders are the derivatives of these velocities. So the
      result over time is one smooth motion, which the least accelerations (or jerks) on their own are not.
    - "decomposition" (Mueller 2020, remark 2): `independent` joints, by name or index, follow a motion of
      their own, given as a position or as an array (order + 1,); the others are solved for.

    A floating base moves as `base` says, with at least `order` twists.

    Raises SingularError with the condition number where the Jacobian is singular and derivatives are asked
    for, or so close to it that in one of them more than a share of 1e-5 would be rounding, ConvergenceError
    with the distance left where the pose is out of reach, InputError for wrong shapes, names and numbers. All
    of them leave the robot as it was.
    """
    check_frame(frame)
    target = rigid_pose("the pose", pose)
    given = _twists(twists)
    order = len(given)
    base = fitting_base(model, base, order)
    if task not in get_args(Task):
        raise InputError(f"task must be one of {list(get_args(Task))}, found {task!r}")
    chain = chain_to(model, frames or {}, body)
    start = np.zeros(model.n_joints) if seed is None else finite_array("the seed", seed, (model.n_joints,))
    w = _weights(weights, model.n_joints)[chain.joints]
    prescribed = _independent(independent or {}, model, chain, order)
    movable = [k for k in range(len(chain.joints)) if k not in prescribed]
    _check_method(method, task, len(chain.joints), len(prescribed))

    motions = np.zeros((order + 1, len(chain.joints)))  # of independent joints; of the others the seed
    motions[0] = start[chain.joints]
    for k, values in prescribed.items():
        motions[:, k] = values
    motions[0] = solve_pose(chain, target, motions[0], base, movable=movable, weights=w, task=task)
    if order:
        wanted = convert_screws(given, target, given, of_frame(frame), "hybrid")
        motion = ChainMotion(chain, motions[0], base)
        motions[1:] = solve_rates(motion, wanted, ROWS[task], movable, w, motions[1:], chain.name)
        check_accuracy(chain, motions, base, wanted, ROWS[task], movable, w)
    q = np.zeros((order + 1, model.n_joints))
    q[0] = start
    q[:, chain.joints] = motions
    return q


def _twists(twists: ArrayLike | None) -> Array:
    if twists is None:
        return np.zeros((0, 6))
    array = real_array("the twists", twists, "(order, 6)")
    if array.ndim != 2 or array.shape[1] != 6:
        raise InputError(f"the twists must have shape (order, 6), found {array.shape}")
    check_finite("the twists", array)
    return array


def _weights(weights: ArrayLike | None, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    array = finite_array("the weights", weights, (n,))
    if not (array > 0.0).all():
        place = int(np.flatnonzero(array <= 0.0)[0])
        raise InputError(f"the weights must be above zero, found {array[place]} at index {place}")
    return array


def _independent(
    independent: Mapping[str | int, ArrayLike], model: TreeModel, chain: SerialChain, order: int
) -> dict[int, Array]:
    """Return the motions (order + 1,) of independent joints, by their place in the chain."""
    result: dict[int, Array] = {}
    for name, values in independent.items():
        joint = model.joint_index(name)
        label = model.joint_names[joint]
        if joint not in chain.joints:
            raise InputError(f"joint {label!r} does not carry {chain.name!r}, so it cannot be independent")
        held = np.ndim(values) == 0
        motion = finite_array(f"the motion of joint {label!r}", values, (1,) if held else (order + 1,))
        result[chain.joints.index(joint)] = np.append(motion, np.zeros(order)) if held else motion
    return result


def _check_method(method: str | None, task: Task, joints: int, independent: int) -> None:
    components = 6 if task == "pose" else 3
    spare = max(joints - components, 0)
    if method is not None and method not in get_args(Method):
        raise InputError(f"method must be one of {list(get_args(Method))}, found {method!r}")
    if method == "decomposition" or (method is None and independent):
        if independent != spare:
            raise InputError(
                f"{joints} joints and {components} components leave {spare} joints independent; "
                f"independent holds {independent}"
            )
    elif independent:
        raise InputError(f"independent joints go with method='decomposition', not with {method!r}")
    elif method == "solve" and spare:
        raise InputError(
            f"{joints} joints are not determined by {components} components; choose "
            "method='pseudo_inverse', or 'decomposition' with independent joints"
        )
