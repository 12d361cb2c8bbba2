"""Wrenches that the environment applies to bodies, in the loops of the generic kernels.

The loops are the same for any number of wrenches on any bodies. They get the values of the wrenches one after
the other, `applied`, a plan of them, `applied_plan`, and constants of each, `applied_constants`. The plan
begins with their number; then it has for each the record of its body, whether it is given in the world frame,
and the way outward to its body: where in the plan it stands, over how many joints, kind and record of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.codegen.emit import function_text
from hodyn_ros.codegen.program import Choose, Code, For, Look, Run, Statement, View, arrays, integer
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.kernel_spec import Loads
from hodyn_ros.engine.large_trees.tree_loops import BASE_CONSTANTS, RECORDS, base_of
from hodyn_ros.engine.large_trees.tree_loops import CONSTANTS as LOOP_CONSTANTS
from hodyn_ros.engine.large_trees.tree_memory import (
    BLOCK,
    CONSTANTS,
    KINDS,
    NOTHING,
    OWN,
    PARENT,
    Record,
    Target,
    Text,
    traced_body,
)
from hodyn_ros.engine.series.applied import AppliedWrench, CarriedWrench
from hodyn_ros.engine.series.body import Body
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.spatial import Spatial
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.engine.series.vectors import halves, subtract
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import JointKind, TreeModel

APPLIED = arrays(("applied", "applied_plan", "applied_constants"))
_NOW = View("applied_now")
_ENTRY = 4  # numbers of a wrench in the plan
_PLACEMENT = 12  # constants of a wrench: where the user's frame of its body lies in the engine's


def load_plan(model: TreeModel, bodies: Sequence[CanonicalBody], loads: Loads) -> NDArray[np.int64]:
    """Return the plan of wrenches on bodies of a robot."""
    entries: list[tuple[int, ...]] = []
    ways: list[list[tuple[int, int]]] = []
    start = 1 + _ENTRY * len(loads)
    for number, frame in loads:
        way = []
        body = number
        while body >= 0 and model.kinds[body] in KINDS:
            way.append((KINDS.index(model.kinds[body]), body + 1))
            body = bodies[body].parent
        entries.append((number + 1, int(frame == "spatial"), start, len(way)))
        ways.append(way[::-1])
        start += 2 * len(way)
    table = [len(loads), *(x for entry in entries for x in entry)]
    return np.array([*table, *(x for way in ways for joint in way for x in joint)], dtype=np.int64)


def load_constants(bodies: Sequence[CanonicalBody], loads: Loads) -> Array:
    """Return the constants of wrenches on bodies of a robot."""
    placements = [bodies[body].body_in_frame for body, _ in loads]
    return np.array([[*p[:3, :3].ravel(), *p[:3, 3]] for p in placements])


def scratch(order: int) -> dict[str, int]:
    """Return the local memory for one wrench."""
    return {_NOW.buffer: 6 * (order + 1)}


def load_texts(name: str, record: Record, targets: Sequence[Target], floating: bool) -> list[Text]:
    """Write the steps of a wrench, taken from what `targets` name in a body's record."""
    count = targets[-1][0] + 1
    texts = [_take_text(name, count), _settle_text(name, count), _place_text(name, targets)]
    texts += [_carry_text(name, kind, record, count) for kind in KINDS]
    return [*texts, _base_text(name, record, count)] if floating else texts


def _take_text(name: str, count: int) -> Text:
    """Write the step from what is given to Taylor coefficients; arguments (given, load, -)."""
    graph = Graph()
    stores = [
        (1, 6 * k + i, graph.input(0, 6 * k + i) * (1.0 / factorial(k)))
        for k in range(count)
        for i in range(6)
    ]
    return function_text(f"{name}_take", graph, stores, 3)


def _settle_text(name: str, count: int) -> Text:
    """Write the step from the user's frame of a body to the engine's; arguments (load, -, constants)."""
    graph = Graph()
    placement = np.full((4, 4), 0.0, dtype=object)
    numbers = [graph.input(CONSTANTS, i) for i in range(_PLACEMENT)]
    placement[:3, :3] = np.array(numbers[:9], dtype=object).reshape(3, 3)
    placement[:3, 3] = numbers[9:]
    body = Body(replace(NOTHING, body_in_frame=placement))
    wrench = AppliedWrench(0, "body_fixed")
    settled = [wrench.extend([body], None, [*moment, *force]) for moment, force in _read(graph, 0, count)]
    return function_text(f"{name}_settle", graph, _stores(0, settled), 3)


def _carry_text(name: str, kind: JointKind, record: Record, count: int) -> Text:
    """Write the step outward through a joint; arguments (load, record of its body, constants)."""
    graph = Graph()
    body = Body(traced_body(graph, kind))
    cosines, sines, body.slide = (
        [record.read(graph, OWN, part, k)[0] for k in range(count)] for part in ("cosines", "sines", "slide")
    )
    (cosine,), (sine,) = (record.read(graph, OWN, part) for part in ("cosine", "sine"))
    body.turn = Turn.restored(cosine, sine, cosines, sines)
    carried = CarriedWrench()
    wrenches = [carried.extend(body, wrench, k) for k, wrench in enumerate(_read(graph, 0, count))]
    return function_text(f"{name}_carry_{kind.value}", graph, _stores(0, wrenches), 3)


def _base_text(name: str, record: Record, count: int) -> Text:
    """Write the step from the world to a floating base; arguments (pose, its record, constants, load)."""
    graph = Graph()
    base = traced_base(graph, record, count)
    moments, forces = zip(*_read(graph, 3, count))
    wrenches = [base.wrench_to_body(moments, forces, k) for k in range(count)]
    return function_text(f"{name}_carry_base", graph, _stores(3, wrenches), 4)


def traced_base(graph: Graph, record: Record, count: int) -> FloatingBase:
    """Return a base whose pose's series is found from the present pose and the twist in the record."""
    pose = [[graph.input(PARENT, 4 * i + j) for j in range(4)] for i in range(4)]
    base = FloatingBase(pose, (0.0, 0.0, 0.0), "body_fixed")
    for k in range(count):
        base.extend([x for part in ("angular", "velocity") for x in record.read(graph, OWN, part, k)])
    return base


def _place_text(name: str, targets: Sequence[Target]) -> Text:
    """Write the step that takes a wrench from what moves its body; arguments (load, record, -)."""
    graph, stores = Graph(), []
    for k, *places in targets:
        for place, part in zip(places, _read(graph, 0, k + 1)[k]):
            x, y, z = (graph.input(OWN, place + i) for i in range(3))
            stores += [(OWN, place + i, value) for i, value in enumerate(subtract((x, y, z), part))]
    return function_text(f"{name}_place", graph, stores, 3)


def _read(graph: Graph, argument: int, count: int) -> list[Spatial]:
    return [halves([graph.input(argument, 6 * k + i) for i in range(6)]) for k in range(count)]


def _stores(argument: int, wrenches: Sequence[Spatial]) -> list[tuple[int, int, Any]]:
    return [
        (argument, 6 * k + i, x)
        for k, (moment, force) in enumerate(wrenches)
        for i, x in enumerate([*moment, *force])
    ]


def each_load(name: str, record: Record, floating: bool) -> list[Statement]:
    """Return the loop over all wrenches, with the steps of the same name."""
    size = record.size
    wrench, plan, constants, now = (*APPLIED, _NOW)
    count, load, number, frame, way, joints = map(
        integer, ("loads", "load", "loaded_record", "frame", "way", "way_joints")
    )
    joint, kind, passed = map(integer, ("way_joint", "way_kind", "way_record"))
    own = RECORDS.at(number * size)
    placement = constants.at(load * _PLACEMENT)

    def step(part: str, *arguments: View) -> Run:
        return Run(Code(f"{name}_{part}"), arguments)

    outward: list[Statement] = []
    if floating:
        outward.append(step("carry_base", View("pose"), base_of(record), BASE_CONSTANTS, now))
    through = [now, RECORDS.at(passed * size), LOOP_CONSTANTS.at(passed * BLOCK)]
    carried = {i: [step(f"carry_{one.value}", *through)] for i, one in enumerate(KINDS)}
    looked = [Look(kind, plan.at(2 * joint + way)), Look(passed, plan.at(2 * joint + way + 1))]
    outward.append(For(joint, joints, [*looked, Choose(kind, carried)]))
    entries = [
        Look(entry, plan.at(load * _ENTRY + 1 + i)) for i, entry in enumerate((number, frame, way, joints))
    ]
    body: list[Statement] = [
        *entries,
        step("take", wrench.at(load * (6 * (record.order + 1))), now, placement),
        Choose(frame, {0: [step("settle", now, own, placement)], 1: outward}),
        step("place", now, own, placement),
    ]
    return [Look(count, plan), For(load, count, body)]
