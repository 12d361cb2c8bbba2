"""What float32 code takes on a Cortex-M7, for docs/developing/export_sizes.md: `-m benchmarks.cortex_m7`.

Instructions and stack are counted by QEMU, sizes are GCC's, and errors those of the self-test there. CasADi's
code is of the same feedforward of the Panda, by the faster of two recursions, with `sinf` and `cosf`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cortex_m7.emulated import FLAGS, as_float, build, instructions, measuring_main, missing, run
from hodyn_ros import Robot, share
from hodyn_ros.actuation.springs.linear_spring import LinearSpring
from hodyn_ros.export import CSource, c_source
from hodyn_ros.export.c_function import CFunction, sizes
from hodyn_ros.export.request import ExportRequest

_ROWS = (
    ("panda", "feedforward", 2),
    ("panda", "inverse_dynamics", 0),
    ("panda", "inverse_dynamics", 2),
    ("panda", "forward_dynamics", 0),
    ("panda", "mass_matrix", 0),
    ("panda_hand", "feedforward", 2),
    ("kuka_kr300", "feedforward", 2),
    ("aerial_manipulator", "inverse_dynamics", 2),
    ("humanoid_leg", "feedforward", 2),
    ("ankle_linkage", "feedforward", 2),
    ("palletiser", "inverse_dynamics", 2),
    ("planar_3rrr", "inverse_dynamics", 2),
    ("delta", "feedforward", 2),
    ("gough_stewart_6ups", "inverse_dynamics", 0),
)
_PAIRS = ("humanoid_leg", "ankle_linkage", "delta")  # likewise with pairs of float in place of double
_ORDER = 2


def main() -> None:
    """Print the table."""
    if absent := missing():
        raise SystemExit(f"not installed: {absent} (Debian: gcc-arm-none-eabi qemu-system-arm)")
    print("| robot | what | order | instructions | stack | promised | RAM | flash | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, what, order in _ROWS:
        written = "inverse_dynamics" if what == "feedforward" else what
        robot = Robot.load(share.find("config", f"{name}.yaml"))
        code = c_source(robot, ExportRequest(order, "robot", what=written, target="cortex-m7"))
        print(f"| {name} | {what} | {order} | {measured(code, what)} |", flush=True)
        if name in _PAIRS:
            pairs = measured(code, what, "-DROBOT_DOUBLE=0")
            print(f"| {name}, pairs | {what} | {order} | {pairs} |", flush=True)
    for edition in ("textbook", "regrouped"):
        print(f"| panda | feedforward, CasADi, {edition} | {_ORDER} | {casadi_cells(edition)} |", flush=True)


def measured(code: CSource, what: str, *flags: str, case: int = 0) -> str:
    """Return the cells of a row: of a call with a motion of the self-test, the first one by default.

    `flags`: more of the compiler's.
    """
    function = next(one for one in code.functions if one.name == what)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"{code.name}.h").write_text(code.header)
        (folder / f"{code.name}.c").write_text(code.source)
        found = run(program(code, function, folder, flags, case))
        flash = _flash(folder / f"{code.name}.c", flags)
    arrays = 4 * sum(sizes({**function.inputs, **function.results}).values())
    stack, memory = found["call_stack"], found["memory"]
    promised = re.search(r"_STACK (\d+)", code.header)
    assert promised is not None
    error = as_float(found[f"{code.name}_self_test"])
    cells = [f"{instructions(found['call_ticks']):.0f}", stack, promised[1], stack + memory + arrays, flash]
    return " | ".join(map(str, [*cells, f"{error:.1e}"]))


def program(
    code: CSource, function: CFunction, folder: Path, flags: Sequence[str] = (), case: int = 0
) -> Path:
    """Build a program that makes calls of a function, and the self-test."""
    row = function.cases.failing + case
    inputs = {name: function.cases.inputs[name][row].ravel() for name in sizes(function.inputs)}
    declared = [
        f"static float {name}[] = {{{', '.join(f'{x!r}f' for x in values.astype(np.float32).tolist())}}};"
        for name, values in inputs.items()
    ]
    declared += [f"static float {name}[{size}];" for name, size in sizes(function.results).items()]
    call, remembers = function.call(), any(one.remembers for one in code.functions)
    if remembers:
        declared.append(f"static {code.name}_memory memory;")
        # every call starts where the robot is described, as the first one does
        call = f"{code.name}_home(&memory); {call}" if function.memory else call
    size = "sizeof memory" if remembers else "0"
    text = measuring_main([f"{code.name}.h"], {"call": call}, "\n".join(declared), [f"{code.name}_self_test"])
    main_file = folder / "main.c"
    main_file.write_text(text.replace("  return 0;", f'  report("memory", {size});\n  return 0;'))
    return build([main_file, folder / f"{code.name}.c"], folder, (*FLAGS, *flags, f"-I{folder}"))


def _flash(source: Path, flags: Sequence[str]) -> int:
    """Return the bytes of code and constants without the self-test."""
    built = source.with_suffix(".o")
    without = source.with_name("without.c")
    text = source.read_text()
    without.write_text(text[: text.index("/* Row by row, the largest error")])
    command = ["arm-none-eabi-gcc", "-std=c99", *FLAGS, *flags, "-c", str(without), "-o", str(built)]
    subprocess.run(command, check=True, timeout=600)
    said = subprocess.run(["arm-none-eabi-size", str(built)], check=True, capture_output=True, text=True)
    return int(said.stdout.split()[6])


def casadi_cells(edition: str) -> str:
    """Return the cells of CasADi's code."""
    import casadi

    from benchmarks.peers.casadi_rnea import feedforward

    robot = Robot.load(share.find("config", "panda.yaml"))
    train = robot.require_drives()
    springs = [drive.transmission for drive in train.drives]
    stiffness = np.array([spring.stiffness for spring in springs if isinstance(spring, LinearSpring)])
    function = feedforward(robot.model, _ORDER, edition, stiffness, train.motor_inertia)
    generator = casadi.CodeGenerator("casadi.c", {"casadi_real": "float"})
    generator.add(function)
    text = re.sub(r"\b(sin|cos)\(", r"\1f(", generator.dump())
    text = re.sub(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])", r"\1f", text)
    n = robot.n_joints
    declared = (
        "int feedforward(const float **, float **, long long *, float *, int);\n"
        f"static float q[{5 * n}] = {{0.1f, 0.2f}}, tau[{3 * n}], position[{3 * n}], effort[{n}];\n"
        f"static const float *given[{function.sz_arg()}] = {{q}};\n"
        f"static float *found[{function.sz_res()}] = {{tau, position, effort}}, work[{function.sz_w() + 1}];"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "casadi.c").write_text(text)
        call = {"call": "feedforward(given, found, 0, work, 0)"}
        (folder / "main.c").write_text(measuring_main([], call, declared, []))
        measured_ = run(build([folder / "main.c", folder / "casadi.c"], folder))
    return f"{instructions(measured_['call_ticks']):.0f} | {measured_['call_stack']} | | | |"


if __name__ == "__main__":
    main()
