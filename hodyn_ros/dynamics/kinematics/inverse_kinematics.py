"""Inverse kinematics of any order, compiled where that pays: joint motion from the motion of bodies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import finite_result
from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.dynamics.kinematics.carriers import carriers_of, last_body
from hodyn_ros.dynamics.kinematics.inverse_problem import GoalCall, read_problem
from hodyn_ros.dynamics.kinematics.pose_solver import ROWS, Task
from hodyn_ros.dynamics.named_frames import find_frame
from hodyn_ros.engine.inverse_kinematics import GoalKernel, goal_kernel
from hodyn_ros.engine.recursions.frame_goals import Goals
from hodyn_ros.lie.motion import BaseMotion
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.frames import Frame
from hodyn_ros.model.tree import TreeModel


class _Choice(NamedTuple):
    """What a kernel is made for, besides the robot."""

    order: int
    names: tuple[str | int, ...]
    representation: Representation
    tasks: tuple[Task, ...]
    independent: tuple[int, ...] = ()
    weighted: bool = False


class InverseKinematics:
    """Inverse kinematics of one robot, compiled for what it has been asked for."""

    def __init__(self, model: TreeModel, frames: Mapping[str, Frame]) -> None:
        self._model, self._frames = model, frames
        self._kernels: Kept[_Choice, GoalKernel | None] = Kept()
        self._noted: Kept[Hashable, Callable[..., Array]] = Kept()  # by names and shapes of a plain call

    def __call__(self, call: GoalCall) -> Array:
        """Solve."""
        plain = call.plain(self._model.n_joints)
        key: Hashable = None
        arrays: list[Array] = []
        if plain is not None and call.weights is None:
            key, poses, twists, seed = plain
            if seed is not None:
                arrays = [seed, poses, twists]
                if call.base is not None:
                    arrays += [call.base.pose, call.base.twists_in("spatial", len(twists) * 4 // len(poses))]
                function = self._noted.get(key)
                if function is not None:
                    return function(*arrays)
        targets = call.targets(self._model)
        problem = read_problem(self._model, call, targets, self._frames)
        weighted = problem.weights is not None
        independent = tuple(sorted(problem.independent))
        choice = _Choice(
            problem.order, targets.names, targets.representation, targets.tasks, independent, weighted
        )
        kernel = self._made(choice)
        if kernel is None:
            return finite_result(problem.solve)()
        if arrays:
            self._noted[key] = kernel.function
        motion: Array = kernel.function(*(arrays or problem.arguments()))
        return motion

    def compiled(
        self, order: int, names: Sequence[str | int], representation: Representation
    ) -> GoalKernel | None:
        """Return the kernel that moves the poses of frames; None where it would take too long to compile."""
        chosen = tuple(names or [last_body(self._model)])
        carriers_of(self._model, self._frames, chosen)  # explains what cannot be moved
        tasks: tuple[Task, ...] = tuple("pose" for _ in chosen)
        return self._made(_Choice(order, chosen, representation, tasks))

    def _made(self, choice: _Choice) -> GoalKernel | None:
        def make() -> GoalKernel | None:
            places = tuple(find_frame(self._model, self._frames, name) for name in choice.names)
            rows = tuple(ROWS[task] for task in choice.tasks)
            goals = Goals(places, rows, choice.representation, choice.independent, choice.weighted)
            return goal_kernel(self._model, goals, choice.order, partial(self._readable, choice))

        return self._kernels.made(choice, make)

    def _readable(self, choice: _Choice, arrays: Mapping[str, Array]) -> Array:
        """Solve what a kernel was called with, in readable form, or explain what is wrong."""
        count, order, (start,) = len(choice.names), choice.order, arrays["the seed"]
        motions: dict[str | int, ArrayLike] = {}
        base = None
        if "the base pose" in arrays:
            base = BaseMotion(
                arrays["the base pose"], arrays["the base twists"] if order else np.zeros((1, 6))
            )
        if choice.independent:
            rates = arrays["the rates of independent joints"]
            motions = {j: np.append(start[j], rates[:, j]) for j in choice.independent}
        call = GoalCall(
            arrays["the poses"].reshape(count, 4, 4),
            arrays["the twists"].reshape(count, order, 6),
            base,
            choice.names,
            choice.representation,
            start,
            choice.tasks,
            arrays["the weights"][0] if choice.weighted else None,
            independent=motions,
        )
        return inverse_kinematics(self._model, call, self._frames)


@finite_result
def inverse_kinematics(model: TreeModel, call: GoalCall, frames: Mapping[str, Frame] | None = None) -> Array:
    """Find the joint motion (order + 1, n) that moves bodies as given, in readable form.

    Errors as of `Robot.inverse_kinematics`.
    """
    return read_problem(model, call, call.targets(model), frames).solve()
