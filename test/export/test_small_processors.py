"""`hodyn export --float32`: numbers of 24 bits, no library, a known stack; also on an emulated Cortex-M7."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import Hodyn
from exported_code import CC, WARNINGS, compiled_by, needs_c, write
from places import CONFIG
from refusals import assert_refused, refused
from sweeps import THOROUGH

from benchmarks.cortex_m7 import emulated
from benchmarks.cortex_m7.__main__ import casadi_cells, measured
from hodyn_ros import Robot
from hodyn_ros.export import CSource, c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.small.single import in_single
from hodyn_ros.export.small.turns import ERROR, LARGEST, turn
from hodyn_ros.export.small.wide import ERROR as WIDE_ERROR
from hodyn_ros.export.small.wide import wide_lines

BAR = 1e-5  # relative error
# All robots in config/, and the order to which they are tried; limbs of the 6-UPS are long code.
SHIPPED = dict.fromkeys(
    ("panda", "panda_hand", "kuka_kr300", "aerial_manipulator", "ankle_linkage", "humanoid_leg"), 2
) | {"palletiser": 2, "planar_3rrr": 2, "delta": 2, "gough_stewart_6ups": 0}
thorough = pytest.mark.skipif(not THOROUGH, reason="takes a minute: make test-thorough")
needs_board = pytest.mark.skipif(bool(emulated.missing()), reason=f"not installed: {emulated.missing()}")
# Advisory rules that are not kept: functions and macros for users, which the file itself does not use
# (2.4, 2.5, 8.7), tables of the self-test beside its functions (8.9), and several exits (15.5).
DEVIATIONS = {"2.4", "2.5", "8.7", "8.9", "15.5"}


def robot_of(name: str) -> Robot:
    return Robot.load(CONFIG / f"{name}.yaml")


def library_of(code: CSource, folder: Path, *flags: str) -> ctypes.CDLL:
    path = folder / f"{code.name}.so"
    strict = (
        "-std=c99",
        *WARNINGS,
        "-Wmissing-prototypes",
        "-Wdouble-promotion",
        "-Wvla",
        "-fPIC",
        "-shared",
    )
    compiled_by(CC, (*strict, *(flags or ("-O0",))), [write(code, folder)], path)
    loaded = ctypes.CDLL(str(path))
    getattr(loaded, f"{code.name}_self_test").restype = ctypes.c_float
    return loaded


def macro(code: CSource, name: str) -> float:
    found = re.search(rf"#define {code.name.upper()}_{name} ([\d.e+-]+)", code.header)
    assert found is not None
    return float(found[1])


def addresses(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    return [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest error relative to the largest number of its row."""
    return float((np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max())


@needs_c
@pytest.mark.parametrize("name", ["panda"])
def test_efforts_of_joints_and_motors_as_python_has_them(name: str, tmp_path: Path) -> None:
    robot, order, rng = robot_of(name), 2, np.random.default_rng(3)
    code = c_source(robot, ExportRequest(order, target="cortex-m7"))
    library, n = library_of(code, tmp_path), robot.n_joints
    assert library.panda_self_test() <= macro(code, "TOLERANCE") == np.float32(BAR)
    train = robot.require_drives()
    for _ in range(100):
        q = rng.uniform(-2.0, 2.0, (order + 3, n)).astype(np.float32)
        tau, position, effort = (np.empty((rows, n), np.float32) for rows in (3, 3, 1))
        library.panda_feedforward(*addresses(q, tau, position, effort))
        efforts = robot.inverse_dynamics(q.astype(np.float64), formulation="spatial")
        motors = train.feedforward(q.astype(np.float64), efforts)
        assert apart(tau, efforts) <= BAR
        assert apart(position, motors.position) <= BAR
        assert apart(effort, motors.effort) <= BAR


@needs_c
def test_nothing_of_a_library_is_called(tmp_path: Path) -> None:
    """Neither memory nor state either: what the self-test takes aside, there are no other symbols."""
    code = c_source(robot_of("panda"), ExportRequest(1, target="generic"))
    library_of(code, tmp_path)
    symbols = subprocess.run(
        ["nm", tmp_path / "panda.so"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    needed = {line.split()[-1].split("@")[0] for line in symbols if line.split()[-2] == "U"}
    assert needed <= {"fmaxf", "__stack_chk_fail"}
    assert "volatile" not in code.source and "double" not in code.source.split("*/", 1)[1]


@needs_c
def test_robots_with_loops(tmp_path: Path) -> None:
    """Newton's method arrives; what is impossible, open or too far off still fails."""
    robot, rng = robot_of("palletiser"), np.random.default_rng(1)
    code = c_source(robot, ExportRequest(0, "arm", target="generic"))
    library, n, m = library_of(code, tmp_path), len(robot.driven_joints), robot.n_coordinates
    assert library.arm_self_test() <= macro(code, "TOLERANCE")
    memory, home = (ctypes.c_float * 64)(), (ctypes.c_float * 64)()
    library.arm_home(memory)
    library.arm_home(home)
    start = c_source(robot, ExportRequest(0)).functions[0].cases.inputs["q"][1, 0]
    for _ in range(20):
        q = rng.uniform(-1.0, 1.0, (3, m)).astype(np.float32)
        q[0] = start + 0.1 * q[0]
        tau, motion = np.empty((1, n), np.float32), np.empty((3, n), np.float32)
        assert library.arm_inverse_dynamics(memory, *addresses(q, tau, motion)) == 0
        assert apart(tau, robot.inverse_dynamics(q.astype(np.float64))) <= BAR
    before, tau[:] = bytes(memory), 7.0
    for spoiled in (np.nan, np.inf, 3.0):
        q[0, 0] = spoiled
        assert library.arm_inverse_dynamics(memory, *addresses(q, tau, motion)) == 2
        assert (tau == 7.0).all() and bytes(memory) == before


@needs_c
@pytest.mark.parametrize("double", [0, 1], ids=["pairs of float", "double"])
def test_positions_of_loops_are_as_right_as_all_else(double: int, tmp_path: Path) -> None:
    """Closed by residuals of 24 bits they are off by 2e-4 as near home as this."""
    robot, rng, order = robot_of("ankle_linkage"), np.random.default_rng(2), 1
    code = c_source(robot, ExportRequest(order, "ankle", target="generic"))
    library = library_of(code, tmp_path, "-O0", f"-DANKLE_DOUBLE={double}")
    assert library.ankle_self_test() <= macro(code, "TOLERANCE") == np.float32(BAR)
    n = len(robot.driven_joints)
    driven = [robot.tree.joint_names.index(name) for name in robot.driven_joints]
    memory = (ctypes.c_float * 64)()
    library.ankle_home(memory)
    for _ in range(40):
        q = rng.uniform(-1.0, 1.0, (order + 3, robot.n_coordinates)).astype(np.float32)
        q[0] *= np.float32(0.02)
        tau, motion = np.empty((order + 1, n), np.float32), np.empty((order + 3, n), np.float32)
        assert library.ankle_inverse_dynamics(memory, *addresses(q, tau, motion)) == 0
        exact = q.astype(np.float64)
        assert apart(motion, robot.joint_motion(exact)[:, driven]) <= BAR
        assert apart(tau, robot.inverse_dynamics(exact)) <= BAR


HARNESS = """
#if T_DOUBLE
#define VALUE(a) (a)
#else
#define VALUE(a) ((double)(a).high + (double)(a).low)
#endif
void compute(int count, const float *x, double *result);
void compute(int count, const float *x, double *result)
{
  for (int i = 0; i < count; ++i, x += 4, result += 5) {
    const wide a = wide_of(x[0], x[1]), b = wide_of(x[2], x[3]);
    const turn t = turned(a);
    const wide results[5] = {plus(a, b), minus(a, b), times(a, b), t.sine, t.cosine};
    for (int k = 0; k < 5; ++k) {
      result[k] = VALUE(results[k]);
    }
  }
}
"""


@needs_c
@pytest.mark.parametrize("flags", [(), ("-ffp-contract=fast",), ("-DT_DOUBLE=1",)], ids=lambda x: "".join(x))
def test_numbers_of_twice_the_digits(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "wide.c").write_text(in_single("\n".join(["#include <math.h>", *wide_lines("T")])) + HARNESS)
    strict = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-fPIC", "-shared")
    compiled_by(CC, (*strict, *flags), [tmp_path / "wide.c"], tmp_path / "wide.so", "-lm")
    rng = np.random.default_rng(4)
    exact = rng.uniform(-LARGEST, LARGEST, (20_000, 2)) * rng.choice([1.0, 1e-2, 1e-4], (20_000, 2))
    high = exact.astype(np.float32)
    x = np.stack([high, (exact - high).astype(np.float32)], axis=-1)
    a, b = x.astype(np.float64).sum(axis=-1).T
    found = np.empty((len(x), 5))
    ctypes.CDLL(str(tmp_path / "wide.so")).compute(len(x), *addresses(x, found))
    expected = np.array([a + b, a - b, a * b, np.sin(a), np.cos(a)]).T
    scale = np.array([np.abs(a) + np.abs(b), np.abs(a) + np.abs(b), np.abs(a * b)]).T
    assert (np.abs(found - expected)[:, :3] <= 2.0**-44 * scale).all()
    assert np.abs(found - expected)[:, 3:].max() <= WIDE_ERROR


def test_sines_and_cosines_are_as_right_as_promised() -> None:
    angles = np.random.default_rng(0).uniform(-LARGEST, LARGEST, 200_000).astype(np.float32)
    angles[:50_000] = np.linspace(-7.0, 7.0, 50_000, dtype=np.float32)
    sine, cosine = turn(angles)
    assert sine.dtype == np.float32
    exact = angles.astype(np.float64)
    assert np.abs(sine - np.sin(exact)).max() <= ERROR
    assert np.abs(cosine - np.cos(exact)).max() <= ERROR


def frames(folder: Path, name: str) -> dict[str, int]:
    """Return the bytes of stack of each function, as the compiler says."""
    lines = [line.split("\t") for line in next(folder.glob(f"*{name}.su")).read_text().splitlines()]
    assert {kind for _, _, kind in lines} <= {"static", "dynamic,bounded"}
    return {place.rsplit(":", 1)[1].split(".")[0]: int(size) for place, size, _ in lines}


def deepest(code: CSource, sizes: dict[str, int], name: str) -> int:
    """Return the stack of a call with all that it calls, by the text."""
    body = re.search(rf"\b{name}\([^;{{]*\)\n{{\n(.*?)\n}}", code.source, re.DOTALL)
    called = set(re.findall(r"\b(\w+)\(", body[1])) & sizes.keys() if body else set()
    return sizes.get(name, 0) + max((deepest(code, sizes, one) for one in called), default=0)


def check_stack(code: CSource, folder: Path, compiler: tuple[str, ...]) -> None:
    for level in ("-O0", "-O1", "-O2", "-O3", "-Os") if THOROUGH else ("-O0", "-O1"):
        flags = ("-std=c99", level, "-fstack-usage", "-c", "-o", str(folder / "stack.o"))
        subprocess.run([*compiler, *flags, str(write(code, folder))], check=True, timeout=120)
        sizes = frames(folder, "stack" if list(folder.glob("*stack.su")) else code.name)
        assert sizes[code.functions[0].full_name] > 0
        for function in code.functions:
            assert deepest(code, sizes, function.full_name) <= macro(code, "STACK"), level


@needs_c
@pytest.mark.skipif(CC is None or "clang" in str(CC), reason="GCC says what stack functions take")
def test_the_stack_is_what_the_header_says(tmp_path: Path) -> None:
    check_stack(c_source(robot_of("panda"), ExportRequest(1, target="generic")), tmp_path, (str(CC),))


@thorough
@needs_board
@pytest.mark.parametrize("name", ["panda", "humanoid_leg", "palletiser", "delta", "planar_3rrr"])
def test_the_stack_on_a_cortex_m7(name: str, tmp_path: Path) -> None:
    check_stack(
        c_source(robot_of(name), ExportRequest(2, target="cortex-m7")),
        tmp_path,
        (emulated.COMPILER, *emulated.FLAGS),
    )


def of_emulated(code: CSource, *flags: str, case: int = 0) -> list[float]:
    """Return instructions, stack, what is promised of it, RAM, flash and error of the longest function."""
    cells = measured(code, code.functions[-1].name, *flags, case=case)
    return [float(cell) for cell in cells.split(" | ")]


@thorough
@needs_board
@pytest.mark.parametrize("name", SHIPPED)
def test_on_an_emulated_cortex_m7(name: str) -> None:
    code = c_source(robot_of(name), ExportRequest(SHIPPED[name], "robot", target="cortex-m7"))
    instructions, stack, promised, memory, _, error = of_emulated(code)
    assert stack <= promised
    assert error <= BAR == macro(code, "TOLERANCE")
    if name == "panda":
        assert memory <= 4096
        pytest.importorskip("casadi")
        theirs = [float(casadi_cells(edition).split(" | ")[0]) for edition in ("textbook", "regrouped")]
        assert instructions <= min(theirs)


@thorough
@needs_board
@pytest.mark.parametrize("double", [0, 1], ids=["pairs of float", "double"])
def test_loops_take_the_same_time_for_all_positions(double: int) -> None:
    code = c_source(robot_of("ankle_linkage"), ExportRequest(1, "robot", target="cortex-m7"))
    flags = f"-DROBOT_DOUBLE={double}", "-DROBOT_CONSTANT_TIME=1"
    (first, stack, promised, *_, error), *others = (of_emulated(code, *flags, case=k) for k in range(3))
    assert stack <= promised and error <= BAR
    assert [one[0] for one in others] == [first, first]


@thorough
@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="there is no cppcheck, which checks MISRA C")
@pytest.mark.parametrize("name", ["panda", "palletiser", "ankle_linkage"])
def test_rules_of_misra_c(name: str, tmp_path: Path) -> None:
    source = write(c_source(robot_of(name), ExportRequest(2, target="cortex-m7")), tmp_path)
    command = ["cppcheck", "--addon=misra", "--enable=style", "--std=c99", "-q", str(source)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stderr
    assert set(re.findall(r"misra-c2012-([\d.]+)", said)) <= DEVIATIONS
    assert "error:" not in said and "warning:" not in said


def test_code_becomes_that_of_float() -> None:
    code = 'double a1 = -0.1 * sqrt(x2[30]) + 1e-300 + 2 * 1e5; /* double 0.1 */ string = "double 0.1";'
    expected = "float a1 = -0.1F * sqrtf(x2[30]) + 0.0F + 2 * 100000.0F; /* double 0.1 */"
    assert in_single(code) == f'{expected} string = "double 0.1";'
    refused(lambda: in_single("x = 1e39;"), "1e+39 of the robot is too large for float32")


def test_what_cannot_be_is_refused() -> None:
    assert_refused(
        (lambda: c_source(robot_of("panda"), ExportRequest(0, target="avr")),
         "no target 'avr'; choose cortex-m7 or generic"),
        (lambda: c_source(robot_of("panda"), ExportRequest(0, what="momentum_observer", target="generic")),
         "momentum_observer need float64"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target", "generic"), "--target is of --float32"),
        (("--float32", "--lang", "mjcf"), "--float32 and --target are of --lang c"),
        (("--float32", "--shared"), "--float32 and --target are of --lang c without --shared"),
    ],
    ids=["target", "mjcf", "shared"],
)
def test_bad_options_give_one_line(hodyn: Hodyn, arguments: tuple[str, ...], words: str) -> None:
    result = hodyn("export", "panda.yaml", *arguments)
    assert result.returncode == 2 and words in result.stderr


def test_the_command_writes_both_files(hodyn: Hodyn, tmp_path: Path) -> None:
    result = hodyn("export", "panda.yaml", "--order", 0, "--float32", "--out", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "For generic: numbers are float." in (tmp_path / "panda.h").read_text()
