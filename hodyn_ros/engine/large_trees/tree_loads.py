"""Wrenches that the environment applies to bodies, in the loops of the generic kernels.

The loops are the same for any number of wrenches on any bodies. They get an array of pointers to the values
of each wrench, %applied, a plan of them, %applied_plan, and constants of each, %applied_constants. The plan
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
from hodyn_ros.codegen.tracer import Graph
from hodyn_ros.engine.large_trees.tree_memory import (
    BLOCK,
    CONSTANTS,
    KINDS,
    NOTHING,
    OWN,
    PARENT,
    Record,
    Text,
    traced_body,
)
from hodyn_ros.engine.series.applied import AppliedWrench, CarriedWrench
from hodyn_ros.engine.series.body import Body, Spatial
from hodyn_ros.engine.series.canonical import CanonicalBody
from hodyn_ros.engine.series.floating_base import FloatingBase
from hodyn_ros.engine.series.turn import Turn
from hodyn_ros.engine.series.vectors import subtract
from hodyn_ros.lie.motion import BaseRepresentation
from hodyn_ros.lie.se3 import Array
from hodyn_ros.model.tree import JointKind, TreeModel

Loads = Sequence[tuple[int, BaseRepresentation]]  # body and frame of each
Target = tuple[int, int, int]  # order, index of the moment, of the force

ARGUMENTS = ("applied", "applied_plan", "applied_constants")
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
    flat = [len(loads), *(x for entry in entries for x in entry)]
    return np.array([*flat, *(x for way in ways for joint in way for x in joint)], dtype=np.int64)


def load_constants(bodies: Sequence[CanonicalBody], loads: Loads) -> Array:
    """Return the constants of wrenches on bodies of a robot."""
    placements = [bodies[body].body_in_frame for body, _ in loads]
    return np.array([[*p[:3, :3].ravel(), *p[:3, 3]] for p in placements])


def scratch_lines(order: int) -> list[str]:
    """Make room for one wrench; at the entry of the function."""
    return [f"%applied_now = alloca double, i64 {6 * (order + 1)}, align 8"]


def load_texts(
    name: str, record: Record, count: int, targets: Sequence[Target], floating: bool
) -> list[Text]:
    """Write the steps for `count` orders of a wrench, taken from what `targets` name in a body's record."""
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
    series = [
        [record.read(graph, OWN, part, k) for k in range(count)] for part in ("cosines", "sines", "slide")
    ]
    cosine, sine = (record.read(graph, OWN, "turn", i) for i in range(2))
    body.turn, body.slide = Turn.restored(cosine, sine, series[0], series[1]), series[2]
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
    angular = record.read_vectors(graph, OWN, "angular", count)
    for w, v in zip(angular, record.read_vectors(graph, OWN, "velocity", count)):
        base.extend([*w, *v])
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
    numbers = [[graph.input(argument, 6 * k + i) for i in range(6)] for k in range(count)]
    return [((n[0], n[1], n[2]), (n[3], n[4], n[5])) for n in numbers]


def _stores(argument: int, wrenches: Sequence[Spatial]) -> list[tuple[int, int, Any]]:
    return [
        (argument, 6 * k + i, x)
        for k, (moment, force) in enumerate(wrenches)
        for i, x in enumerate([*moment, *force])
    ]


def load_lines(name: str, record: Record, floating: bool) -> list[str]:
    """Write the loop over all wrenches, with the steps of the same name."""
    lines = [
        f"%{name}_count = load i64, ptr %applied_plan, align 8",
        f"br label %{name}_start",
        f"{name}_start:",
        f"%{name}_any = icmp sgt i64 %{name}_count, 0",
        f"br i1 %{name}_any, label %{name}, label %{name}_done",
        f"{name}:",
        f"%{name}_i = phi i64 [0, %{name}_start], [%{name}_next, %{name}_placed]",
        f"%{name}_given_at = getelementptr ptr, ptr %applied, i64 %{name}_i",
        f"%{name}_given = load ptr, ptr %{name}_given_at, align 8",
        f"%{name}_row = mul i64 %{name}_i, {_ENTRY}",
    ]
    for i, part in enumerate(("number", "frame", "way", "joints")):
        lines += [
            f"%{name}_{part}_place = add i64 %{name}_row, {1 + i}",
            f"%{name}_{part}_at = getelementptr i64, ptr %applied_plan, i64 %{name}_{part}_place",
            f"%{name}_{part} = load i64, ptr %{name}_{part}_at, align 8",
        ]
    lines += [
        *_address(f"{name}_own", "records", f"%{name}_number", record.size),
        *_address(f"{name}_constants", "applied_constants", f"%{name}_i", _PLACEMENT),
        f"call void @{name}_take(ptr %{name}_given, ptr %applied_now, ptr %{name}_constants)",
        f"%{name}_is_world = icmp ne i64 %{name}_frame, 0",
        f"br i1 %{name}_is_world, label %{name}_world, label %{name}_body",
        f"{name}_body:",
        f"call void @{name}_settle(ptr %applied_now, ptr %{name}_own, ptr %{name}_constants)",
        f"br label %{name}_placed",
        f"{name}_world:",
    ]
    if floating:
        lines.append(
            f"call void @{name}_carry_base(ptr %pose, ptr %base, ptr %base_constants, ptr %applied_now)"
        )
    cases = " ".join(f"i64 {i}, label %{name}_{kind.value}" for i, kind in enumerate(KINDS))
    lines += [
        f"%{name}_any_joint = icmp sgt i64 %{name}_joints, 0",
        f"br i1 %{name}_any_joint, label %{name}_walk, label %{name}_placed",
        f"{name}_walk:",
        f"%{name}_j = phi i64 [0, %{name}_world], [%{name}_j_next, %{name}_walked]",
        *_address(f"{name}_joint_at", "applied_plan", f"%{name}_j", 2, "i64", f"%{name}_way"),
        f"%{name}_kind = load i64, ptr %{name}_joint_at, align 8",
        f"%{name}_record_at = getelementptr i64, ptr %{name}_joint_at, i64 1",
        f"%{name}_record = load i64, ptr %{name}_record_at, align 8",
        *_address(f"{name}_passed", "records", f"%{name}_record", record.size),
        *_address(f"{name}_passed_constants", "constants", f"%{name}_record", BLOCK),
        f"switch i64 %{name}_kind, label %{name}_walked [{cases}]",
    ]
    for kind in KINDS:
        lines += [
            f"{name}_{kind.value}:",
            f"call void @{name}_carry_{kind.value}(ptr %applied_now, ptr %{name}_passed, "
            f"ptr %{name}_passed_constants)",
            f"br label %{name}_walked",
        ]
    return [
        *lines,
        f"{name}_walked:",
        f"%{name}_j_next = add i64 %{name}_j, 1",
        f"%{name}_farther = icmp slt i64 %{name}_j_next, %{name}_joints",
        f"br i1 %{name}_farther, label %{name}_walk, label %{name}_placed",
        f"{name}_placed:",
        f"call void @{name}_place(ptr %applied_now, ptr %{name}_own, ptr %{name}_constants)",
        f"%{name}_next = add i64 %{name}_i, 1",
        f"%{name}_more = icmp slt i64 %{name}_next, %{name}_count",
        f"br i1 %{name}_more, label %{name}, label %{name}_done",
        f"{name}_done:",
    ]


def _address(
    name: str, array: str, index: str, size: int, element: str = "double", start: str = "0"
) -> list[str]:
    """Find element `start + index size` of an array."""
    return [
        f"%{name}_offset = mul i64 {index}, {size}",
        f"%{name}_place = add i64 %{name}_offset, {start}",
        f"%{name} = getelementptr {element}, ptr %{array}, i64 %{name}_place",
    ]
