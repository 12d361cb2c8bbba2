"""Batches of robots with loops in the lanes of vector registers, Newton's method and what follows it.

The samples of a block all start where the one before them was found. Each lane takes the steps that it would
take alone, and keeps what it has found while others go on: from the same start a sample rounds alike, in a
lane and on its own. Whether the branch was kept is asked of neighbouring samples, as it is of single ones.
"""

from __future__ import annotations

from hodyn_ros.codegen.literals import splat


def driver_text(
    n_arguments: int, n_told: int, n: int, step: int, end: int, lanes: int, limits: tuple[float, int, float]
) -> str:
    """Write `i64 @hodyn_samples(ptr argument, i64 step, ..., ptr memory, ptr out, i64 count)`.

    `n_arguments` without the memory, the first `n_told` of them the motion, pose and twists. The codes at the
    addresses `step` and `end` are of `lane_function_text`: one improves `n` positions, the other writes
    results, and keeps what must be below a limit. `limits`: from where on Newton's method goes no further,
    how many steps there are at most, and what must be below. Returns how many samples count before the
    first block of which one does not; the memory is that of the last of them.
    """
    vector, flags = f"<{lanes} x double>", f"<{lanes} x i1>"
    arrived, most, sure = limits
    inputs = "".join(f"ptr %a{i}, i64 %s{i}, " for i in range(n_arguments))
    of_step = "".join(f"ptr %a{i}, i64 %s{i}, " for i in range(min(n_told, 2)))
    every = "<" + ", ".join(["i1 true"] * lanes) + ">"
    places = [
        (name, k) for name, count in (("state", n + 1), ("new", n + 1), ("before", n)) for k in range(count)
    ]
    lines = [
        f"define i64 @hodyn_samples({inputs}ptr %memory, ptr %out, i64 %count) {{",
        "entry:",
        *(f"%{name} = alloca [{n + 1} x {vector}], align 64" for name in ("state", "new", "before")),
        f"%bad_at = alloca {vector}, align 64",
        *(f"%{name}{k} = getelementptr {vector}, ptr %{name}, i64 {k}" for name, k in places),
        *(f"%memory{k} = getelementptr double, ptr %memory, i64 {k}" for k in range(n)),
        "%last = sub i64 %count, 1",
        "%any = icmp sgt i64 %count, 0",
        "br i1 %any, label %block, label %none",
        "none:",
        "ret i64 0",
        "block:",
        "%first = phi i64 [0, %entry], [%next, %remember]",
    ]
    for k in range(n):
        lines += [
            f"%start{k} = load double, ptr %memory{k}, align 8",
            f"%one{k} = insertelement {vector} poison, double %start{k}, i32 0",
            f"%all{k} = shufflevector {vector} %one{k}, {vector} poison, <{lanes} x i32> zeroinitializer",
            f"store {vector} %all{k}, ptr %state{k}, align 64",
        ]
    lines += [
        f"store {vector} {splat(0.0, lanes)}, ptr %state{n}, align 64",
        "br label %newton",
        "newton:",
        "%round = phi i64 [0, %block], [%rounds, %newton]",
        f"%moving = phi {flags} [{every}, %block], [%far, %newton]",
        f"call void inttoptr (i64 {step} to ptr)({of_step}ptr %state, i64 0, i64 %first, i64 %last, "
        "ptr %out, ptr %new)",
    ]
    for k in range(n + 1):
        lines += [
            f"%old{k} = load {vector}, ptr %state{k}, align 64",
            f"%found{k} = load {vector}, ptr %new{k}, align 64",
            f"%now{k} = select {flags} %moving, {vector} %found{k}, {vector} %old{k}",
            f"store {vector} %now{k}, ptr %state{k}, align 64",
        ]
    lines += [
        f"%far = fcmp ogt {vector} %now{n}, {splat(arrived, lanes)}",
        f"%one_is_far = call i1 @llvm.vector.reduce.or.v{lanes}i1({flags} %far)",
        "%rounds = add i64 %round, 1",
        f"%early = icmp slt i64 %rounds, {most}",
        "%again = and i1 %one_is_far, %early",
        "br i1 %again, label %newton, label %arrived",
        "arrived:",
    ]
    shifted = ", ".join(f"i32 {lane - 1 if lane else lanes}" for lane in range(lanes))
    for k in range(n):
        lines += [
            f"%then{k} = shufflevector {vector} %now{k}, {vector} %all{k}, <{lanes} x i32> <{shifted}>",
            f"store {vector} %then{k}, ptr %before{k}, align 64",
        ]
    lines += [
        f"call void inttoptr (i64 {end} to ptr)({inputs}ptr %before, i64 0, ptr %state, i64 0, i64 %first, "
        "i64 %last, ptr %out, ptr %bad_at)",
        f"%defect = load {vector}, ptr %bad_at, align 64",
        f"%good = fcmp olt {vector} %defect, {splat(sure, lanes)}",
        f"%all_good = call i1 @llvm.vector.reduce.and.v{lanes}i1({flags} %good)",
        "br i1 %all_good, label %remember, label %stop",
        "stop:",
        "ret i64 %first",
        "remember:",
    ]
    for k in range(n):  # spare lanes repeat the last sample
        lines += [
            f"%kept{k} = extractelement {vector} %now{k}, i32 {lanes - 1}",
            f"store double %kept{k}, ptr %memory{k}, align 8",
        ]
    lines.append(f"%next = add i64 %first, {lanes}")
    if n_told > 1:
        lines += [
            "%end_of_block = sub i64 %next, 1",
            "%newest = call i64 @llvm.smin.i64(i64 %end_of_block, i64 %last)",
            "%pose_offset = mul i64 %newest, %s1",
            "%pose = getelementptr double, ptr %a1, i64 %pose_offset",
            f"%pose_at = getelementptr double, ptr %memory, i64 {n}",
            "call void @llvm.memcpy.p0.p0.i64(ptr align 8 %pose_at, ptr align 8 %pose, i64 128, i1 false)",
        ]
    lines += [
        "%more = icmp slt i64 %next, %count",
        "br i1 %more, label %block, label %done",
        "done:",
        "ret i64 %count",
        "}",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        f"declare i1 @llvm.vector.reduce.or.v{lanes}i1({flags})",
        f"declare i1 @llvm.vector.reduce.and.v{lanes}i1({flags})",
    ]
    return "\n".join(lines) + "\n"
