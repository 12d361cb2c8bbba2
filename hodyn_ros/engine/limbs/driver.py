"""The program that calls the codes of limbs and platform in turn, as the text of an LLVM module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hodyn_ros.codegen.driver_end import kept_where_good
from hodyn_ros.codegen.literals import literal
from hodyn_ros.engine.series.validity import ARRIVED

_ITERATIONS = 8  # of Newton's method; from a warm start two or three do


@dataclass(frozen=True)
class GroupCode:
    """Limbs of one build: addresses of their codes, of their constants, and the sizes of what they need."""

    newton: int
    motion: int
    constants: int
    count: int
    joints: int
    result: int


def driver_text(
    inputs: Sequence[str],
    platform_inputs: Sequence[str],
    platform_size: int,
    platform: int,
    groups: Sequence[GroupCode],
    joints: Sequence[Sequence[Sequence[int]]],
    end: int,
    end_inputs: Sequence[str],
    bad: int,
) -> str:
    """Write `void @hodyn_kernel(ptr input, ..., ptr memory, ptr out)`.

    The code at address `platform` returns `platform_size` numbers from `platform_inputs`; then come Newton's
    method and the motion of each group of limbs; the code at `end` takes what the platform's code returned,
    positions and motions of each group, the memory and `end_inputs`, and writes `out`. Positions go to the
    memory, from which the next call starts, where `out[bad]` is less than one, and the pose behind them;
    `joints` says where, by group, limb and joint.
    """
    places, size = [], platform_size
    for group in groups:
        states = size
        motions = states + group.count * (group.joints + 1)
        size = motions + group.count * group.result
        places.append((states, motions))
    names = ", ".join(f"ptr %{name}" for name in (*inputs, "memory", "out"))
    lines = [
        f"define void @hodyn_kernel({names}) {{",
        "entry:",
        f"%work = alloca double, i64 {size}, align 64",
    ]
    arguments = ", ".join(f"ptr %{name}" for name in platform_inputs)
    lines.append(f"call void {_at(platform)}({arguments}, ptr %work)")
    for g, (group, (states, motions)) in enumerate(zip(groups, places)):
        lines.append(f"%states{g} = getelementptr double, ptr %work, i64 {states}")
        lines.append(f"%motions{g} = getelementptr double, ptr %work, i64 {motions}")
        for source, target in _memory_places(group, joints[g]):
            lines += copied(f"in{g}_{source}", "memory", source, f"states{g}", target, 1)
    previous = "entry"
    for g, group in enumerate(groups):
        constants = f"ptr inttoptr (i64 {group.constants} to ptr)"
        lines += [
            f"br label %newton{g}",
            f"newton{g}:",
            f"%round{g} = phi i64 [0, %{previous}], [%next{g}, %newton{g}]",
            f"call void {_at(group.newton)}({constants}, ptr %work, ptr %states{g}, ptr %states{g}, "
            f"i64 {group.count})",
        ]
        total = literal(0.0)
        for l in range(group.count):
            place = l * (group.joints + 1) + group.joints
            lines += [
                f"%error_at{g}_{l} = getelementptr double, ptr %states{g}, i64 {place}",
                f"%error{g}_{l} = load double, ptr %error_at{g}_{l}, align 8",
                f"%errors{g}_{l} = fadd double {total}, %error{g}_{l}",
            ]
            total = f"%errors{g}_{l}"
        lines += [
            f"%next{g} = add i64 %round{g}, 1",
            f"%far{g} = fcmp ogt double {total}, {literal(ARRIVED)}",
            f"%early{g} = icmp slt i64 %next{g}, {_ITERATIONS}",
            f"%again{g} = and i1 %far{g}, %early{g}",
            f"br i1 %again{g}, label %newton{g}, label %arrived{g}",
            f"arrived{g}:",
            f"call void {_at(group.motion)}({constants}, ptr %work, ptr %states{g}, ptr %motions{g}, "
            f"i64 {group.count})",
        ]
        previous = f"arrived{g}"
    buffers = [part for g in range(len(groups)) for part in (f"ptr %states{g}", f"ptr %motions{g}")]
    more = [f"ptr %{name}" for name in end_inputs]
    lines.append(
        f"call void {_at(end)}({', '.join(['ptr %work', *buffers, 'ptr %memory', *more, 'ptr %out'])})"
    )
    remember: list[str] = []
    for g, group in enumerate(groups):
        for target, source in _memory_places(group, joints[g]):
            remember += copied(f"out{g}_{target}", f"states{g}", source, "memory", target, 1)
    behind = 1 + max(place for group in joints for limb in group for place in limb)
    remember += copied("pose_out", platform_inputs[0], 0, "memory", behind, 16)
    lines += kept_where_good(bad, remember)
    return "\n".join(lines) + "\n"


def _memory_places(group: GroupCode, joints: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return pairs of places, in the memory and among the states of a group of limbs."""
    return [
        (place, limb * (group.joints + 1) + joint)
        for limb, places in enumerate(joints)
        for joint, place in enumerate(places)
    ]


def _at(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


def copied(name: str, source: str, start: int, target: str, place: int, count: int) -> list[str]:
    """Return lines that copy numbers from a place of one array to a place of another."""
    return [
        f"%{name}_from = getelementptr double, ptr %{source}, i64 {start}",
        f"%{name}_to = getelementptr double, ptr %{target}, i64 {place}",
        f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 %{name}_to, ptr align 8 %{name}_from, "
        f"i64 {8 * count}, i1 false)",
    ]
