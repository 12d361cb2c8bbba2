"""The compiled kernels of a parallel robot: limbs of one build side by side in the lanes of one code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hodyn_ros.codegen.codes import side_by_side, straight_line
from hodyn_ros.codegen.kernel import Call, Stack
from hodyn_ros.codegen.program import Code, Copy, Index, Program, Run, Statement, Sum, View, arrays
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.engine.limbs.limb_code import limb_motion, limb_result_size, newton_step
from hodyn_ros.engine.limbs.limb_constants import LimbConstants, limb_constants
from hodyn_ros.engine.limbs.platform_code import basis_of, center, drive_series, platform_motion
from hodyn_ros.engine.newton import newton, where_right
from hodyn_ros.engine.series.validity import CLOSED, SINGULAR_LENGTH, overflow, unless_small
from hodyn_ros.engine.series.vectors import taylor, to_derivatives
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.parallel.model import ParallelModel

# what makes a result unusable, one and more together count as 1
RIGID = 1e-9  # deviation of a pose from a rigid one, and of twists from those that are allowed
JUMP = 0.5  # [rad] by which all joints together may turn between two calls, or they may change the branch


@dataclass(frozen=True)
class LimbKernelSpec:
    """What a kernel is made for, besides robot and order.

    `loads`: whether wrenches on the platform are given, in its frame and in the world; `preload`: whether one
    is.
    """

    loads: bool = False
    preload: bool = False


@dataclass(frozen=True)
class LimbGroup:
    """Limbs of one build, whose states stand one after the other in a buffer.

    `constants` and `states` are buffers; a state has `size` numbers, and begins with the positions of its
    joints. `places` says where these are in the memory of a call, by limb and joint.
    """

    constants: View
    states: View
    size: int
    places: Sequence[Sequence[int]]

    def run(self, code: Code, *arguments: View) -> Run:
        """Run a code for all limbs side by side; its first argument are the constants."""
        return Run(code, [self.constants, *arguments, Index.of(len(self.places))])

    def recall(self, memory: View) -> list[Copy]:
        """Begin with the positions in the memory."""
        return [Copy(state, memory.at(place)) for place, state in self._pairs()]

    def remember(self, memory: View) -> list[Copy]:
        """Keep the positions."""
        return [Copy(memory.at(place), state) for place, state in self._pairs()]

    def _pairs(self) -> list[tuple[int, View]]:
        return [
            (place, self.states.at(limb * self.size + joint))
            for limb, places in enumerate(self.places)
            for joint, place in enumerate(places)
        ]


class LimbCall(Call):
    """Compiled code of one robot, with the limbs of one build side by side in lanes.

    `limbs`: the constants of each; `groups`: the limbs of each build.
    """

    def __init__(self, model: ParallelModel, order: int) -> None:
        self.model, self.order = model, order
        self.basis = basis_of(model)
        self.limbs = [limb_constants(limb, model.platform, center(model)) for limb in model.limbs]
        self.groups = _groups(self.limbs, model.size)
        self.widest = max(len(group) for group in self.groups)

    def places(self, limb: int) -> list[int]:
        """Return where the joints of a limb, from the ground on, stand in the memory of a kernel."""
        part = self.model.slices[limb]
        return list(reversed(range(part.start, part.stop)))

    def moved_joints(self, limb: int, positions: Sequence[Any], memory: Sequence[Any]) -> Any:
        """Return the squared angles by which the joints of a limb have turned since the last call."""
        result: Any = 0.0
        for body, now, place in zip(self.limbs[limb].chain, positions, self.places(limb)):
            if body.rotation_gain:
                result = result + (now - memory[place]) * (now - memory[place])
        return result

    @property
    def slides(self) -> list[bool]:
        """Which drives are slides; others turn."""
        return [not limb.chain[drive].rotation_gain for limb in self.limbs for drive in limb.driven]

    @property
    def reach(self) -> float:
        """What motions of the drives are measured in: a length [m] where any of them slides, else 1."""
        return self.model.length if any(self.slides) else 1.0

    def _check(self, out: Array) -> None:
        """Leave it to `defect_at` to say what is wrong."""

    def in_lanes(self, rows: slice, sure: float = 1.0) -> None:
        """Return None: lanes hold limbs of one sample."""

    def group(self, number: int, states: str, size: int) -> LimbGroup:
        """Return a group of limbs with its states in a buffer, of a size each."""
        places = [self.places(limb) for limb in self.groups[number]]
        return LimbGroup(View(f"constants{number}"), View(states), size, places)

    def _program(
        self, arguments: Sequence[View], local: Mapping[str, int], body: Sequence[Statement]
    ) -> Program:
        """Return a program that calls the codes of the robot."""
        numbers = [np.array([self.limbs[limb].numbers for limb in group]) for group in self.groups]
        constants = {f"constants{g}": values for g, values in enumerate(numbers)}
        return Program("hodyn_kernel", arguments, local, body, constants)

    def _finish(self, arguments: Sequence[View], local: Mapping[str, int], body: Sequence[Statement]) -> None:
        """Compile the program that calls the codes of the robot."""
        self.compiled = compile_program(self._program(arguments, local, body))
        self._bind(self.compiled.address)


class ParallelKernel(LimbCall):
    """Kinematics and inverse dynamics of one robot at one order, in one call.

    `function(pose (4, 4), twists (order + 2, 6), [wrenches (order + 1, 6) in the platform frame and in the
    world frame,] [preload (order + 1, driven),] memory (1, N + 16), out=None)` returns a matrix: rows of
    efforts and of the motion of the drives as `LoopKernel` has them. Twists are spatial. The memory holds the
    joint positions from which Newton's method starts, those of a limb from the platform to the ground, and
    the pose; both are replaced by those found. `result.item(defect_at)` below one says that the result is
    right; else nothing in it counts, and the memory is as it was. The first number of the last row grows
    without bounds towards singular poses, like the square of a condition number.
    """

    def __init__(self, model: ParallelModel, order: int, setting: LimbKernelSpec = LimbKernelSpec()) -> None:
        LimbCall.__init__(self, model, order)
        self.setting = setting
        every, groups, widest = self.limbs, self.groups, self.widest
        motion_size = 12 + 6 * (order + 2)

        def platform(pose: Stack, twists: Stack, *loads: Stack) -> Stack:
            motion, wrench, wrong = platform_motion(model, order, pose, twists, loads)
            return [[*(motion * widest), *(value for row in wrench for value in row), wrong]]

        loads_shapes = [(order + 1, 6)] * 2 if setting.loads else []
        preload_shapes = [(order + 1, model.n_driven)] if setting.preload else []
        inputs = ["pose", "twists", *["body_wrench", "world_wrench"][: len(loads_shapes)]]
        given_shapes = [(4, 4), (order + 2, 6), *loads_shapes]
        platform_size = widest * motion_size + (order + 1) * 6 + 1
        work, memory, out = arrays(("work", "memory", "out"))
        body: list[Statement] = [Run(straight_line(platform, given_shapes), [*arrays(inputs), work])]
        remember: list[Statement] = []
        buffers: dict[str, int] = {}
        for g, group in enumerate(groups):
            limb = every[group[0]]
            n, size = len(limb.chain), limb_result_size(limb, order)
            limbs, motion = self.group(g, f"states{g}", n + 1), View(f"motions{g}")
            shapes = [(1, len(limb.numbers)), (1, motion_size), (1, n + 1)]
            step = side_by_side(partial(newton_step, limb, model.length), shapes)
            moved = side_by_side(
                partial(limb_motion, limb, model.length, model.gravity.tolist(), order), shapes
            )
            errors = Sum([limbs.states.at(i * (n + 1) + n) for i in range(len(group))])
            body += [
                *limbs.recall(memory),
                newton([limbs.run(step, work, limbs.states, limbs.states)], errors),
                limbs.run(moved, work, limbs.states, motion),
            ]
            remember += limbs.remember(memory)
            buffers |= {limbs.states.buffer: len(group) * (n + 1), motion.buffer: len(group) * size}

        def end(work: Stack, *stacks: Stack) -> Stack:
            buffers, (memory, *preload) = stacks[: 2 * len(groups)], stacks[2 * len(groups) :]
            wrenches = work[0][widest * motion_size :]
            given = [taylor(row, k) for k, row in enumerate(preload[0])] if preload else None
            return self._end(wrenches, buffers, memory[0], given)

        n_memory = model.n_joints + 16
        end_shapes = [(1, size) for size in (platform_size, *buffers.values(), n_memory)]
        names = [*inputs, *["preload"][: len(preload_shapes)]]
        arguments = arrays(names)
        last = straight_line(end, [*end_shapes, *preload_shapes])
        body.append(Run(last, [work, *arrays(buffers), memory, *arguments[len(inputs) :], out]))
        remember.append(Copy(memory.at(model.n_joints), arguments[0], 16))
        body.append(where_right(out.at(self.defect_at), remember))
        said = [f"the {name.replace('_', ' ')}" for name in (*names, "memory")]
        Call.__init__(self, list(zip(said, [*given_shapes, *preload_shapes, (1, n_memory)])), self.shape)
        self._finish([*arguments, memory, out], {"work": platform_size, **buffers}, body)

    def _end(
        self, platform: Sequence[Any], buffers: Sequence[Stack], memory: Sequence[Any], preload: Stack | None
    ) -> Stack:
        """Trace the balance on the platform and the result.

        `platform`: coefficients of its wrench, and what is wrong with its motion; `buffers`: states and
        results of each group of limbs; `preload`: coefficients.
        """
        order, limbs = self.order, self.limbs
        defect = platform[-1] * (1.0 / RIGID**2)
        singularity: Any = 0.0
        wrenches: dict[int, Stack] = {}
        against: dict[int, list[Stack]] = {}
        motion: dict[int, list[list[Any]]] = {}
        for group, states, results in zip(self.groups, buffers[::2], buffers[1::2]):
            for i, l in enumerate(group):
                limb = limbs[l]
                n = len(limb.chain)
                state = states[0][i * (n + 1) : (i + 1) * (n + 1)]
                defect = defect + state[n] * (1.0 / CLOSED)
                defect = defect + self.moved_joints(l, state[:n], memory) * (1.0 / JUMP**2)
                size = limb_result_size(limb, order)
                row = results[0][i * size : (i + 1) * size]
                singularity = singularity + row[0]
                rates = [row[1 + k * n : 1 + (k + 1) * n] for k in range(order + 2)]
                motion[l] = [[state[d], *(rate[d] for rate in rates)] for d in limb.driven]
                parts = _sixes(row[1 + (order + 2) * n :])
                split = [parts[k * (order + 1) : (k + 1) * (order + 1)] for k in range(1 + len(limb.driven))]
                wrenches[l], against[l] = split[0], split[1:]
        every = range(len(limbs))
        forces, near = drive_series(
            self.basis,
            _sixes(platform[:-1]),
            [wrenches[l] for l in every],
            [drive for l in every for drive in against[l]],
            preload,
            self.reach,
        )
        singularity = singularity + near
        drives = [drive for l in every for drive in motion[l]]
        rows = [*to_derivatives(forces), *([drive[k] for drive in drives] for k in range(order + 3))]
        defect = unless_small(defect) + singularity * SINGULAR_LENGTH**2 + overflow(forces)
        rest = [0.0] * (len(rows[0]) - 1)
        return [*rows, [defect, *rest], [singularity, *rest]]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that comes back."""
        return 2 * self.order + 6, self.model.n_driven

    @property
    def defect_at(self) -> int:
        """Where the number is that must be below one."""
        return (2 * self.order + 4) * self.model.n_driven

    @property
    def batch_rows(self) -> slice:
        """Rows of the result that batches are of: efforts."""
        return slice(0, self.order + 1)


def _sixes(values: Sequence[Any]) -> Stack:
    return [list(values[i : i + 6]) for i in range(0, len(values), 6)]


def _groups(limbs: Sequence[LimbConstants], size: float) -> list[list[int]]:
    groups: list[list[int]] = []
    for l, limb in enumerate(limbs):
        for group in groups:
            if limb.is_like(limbs[group[0]], size):
                group.append(l)
                break
        else:
            groups.append([l])
    return groups
