"""Robots with couplings and loops exported as C, called along motions, into failure and back."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import linkages
import numpy as np
import pytest
from exported_code import (
    CC,
    RELATIVE,
    WARNINGS,
    Array,
    assert_rows_close,
    call,
    compiled,
    compiled_by,
    declared,
    needs_c,
    write,
)
from linkages import motion_of, readable_solution, robot_of, three_rps
from oracles.mechanisms import MECHANISMS
from refusals import refused
from sweeps import THOROUGH, some

from hodyn_ros import AppliedWrench, BaseMotion, InputError, Robot, share
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.engine.loops.loop_kernel import compiles
from hodyn_ros.errors import HodynError
from hodyn_ros.export import CSource, c_source
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.lie.se3 import exp
from hodyn_ros.trajectory import read_motion

SHIPPED = ("delta", "humanoid_leg", "palletiser", "panda_hand")
OK, NEAR_SINGULAR, FAILED = range(3)
OPERAND = r"([xw]\d+|work\[\d+\]|\d+(\.\d+)?(e[-+]?\d+)?)"
STRAIGHT = (
    r"  \(void\)\w+;"
    r"|  const double x\d+ = (q|pose|twists|reached|memory->leading|a\d)\[\d+\];"
    r"|  const double w\d+ = work\[\d+\];"
    rf"|  const double x\d+ = ({OPERAND} [-+*/] {OPERAND}|(sin|cos|fabs)\({OPERAND}\));"
    rf"|  (tau|motion|base_wrench|work)\[\d+\] = -?{OPERAND};"
    r"|  double work\[\d+\];|  part\d+\([\w>, -]+\);"
)


def shipped(name: str) -> Robot:
    return linkages.shipped(f"{name}.yaml")


def near_home(robot: Robot, order: int, rng: np.random.Generator) -> tuple[Array | None, BaseMotion | None]:
    """Return a motion that follows any other one without a jump."""
    closure, home = robot.closure, robot.home
    assert closure is not None
    q, base = rng.uniform(-0.02, 0.02, (order + 1, robot.n_coordinates)), None
    q[0] += home[0]
    if home[1] is not None:
        pose = exp(closure.directions @ rng.uniform(-0.02, 0.02, closure.directions.shape[1])) @ home[1]
        twists = rng.uniform(-0.3, 0.3, (max(order, 1), closure.directions.shape[1])) @ closure.directions.T
        base = BaseMotion(pose, twists)
    return q if robot.n_coordinates else None, base


def library_of(code: CSource, folder: Path) -> tuple[ctypes.CDLL, Array]:
    """Compile code; return the library and a memory at home."""
    library, memory = compiled(code, folder), np.zeros(200)
    assert library.robot_self_test() <= RELATIVE
    call(library.robot_home, memory)
    return library, memory


def arrays_of(q: Array | None, base: BaseMotion | None, order: int) -> list[Array]:
    given = [] if base is None else [np.ascontiguousarray(base.pose)]
    given += [] if base is None or not order else [base.twists[:order].copy()]
    return [*([] if q is None else [q]), *given]


@cache
def code_of(robot: Robot, order: int) -> CSource:
    return c_source(robot, ExportRequest(order, "robot"))


class Exported:
    """The C code of a robot with its memory, beside the robot."""

    def __init__(self, robot: Robot, order: int, folder: Path, *flags: str) -> None:
        self.robot, self.order = robot, order
        self.library = compiled(code_of(robot, order), folder, *flags)
        closure = robot.closure
        assert closure is not None
        self.memory = np.full(len(closure.leading), np.nan)
        n = len(robot.driven_joints)
        self.tau, self.motion = np.zeros((order + 1, n)), np.zeros((order + 3, n))
        self.wrench = np.zeros((order + 1, 6)) if closure.base_prescribed else None
        call(self.library.robot_home, self.memory)

    def __call__(self, q: Array | None, base: BaseMotion | None = None) -> int:
        arrays = [self.memory, *([] if q is None else [np.ascontiguousarray(q)])]
        if base is not None:
            twists = base.in_representation("spatial").twists[: self.order + 2]
            arrays += [np.ascontiguousarray(base.pose), np.ascontiguousarray(twists)]
        results = [*([] if self.wrench is None else [self.wrench]), self.tau, self.motion]
        return int(call(self.library.robot_inverse_dynamics, *arrays, *results))

    def lead(self, to: Array, base: BaseMotion | None = None) -> None:
        """Go from home to positions, in still poses half a tenth of the way apart."""
        home = self.robot.home[0]
        for share_of in np.linspace(0.05, 1.0, 20):
            q = np.zeros((self.order + 3, len(to)))
            q[0] = home + share_of * (to - home)
            assert self(q, base) in (OK, NEAR_SINGULAR)

    def agrees(self, q: Array | None, base: BaseMotion | None = None) -> None:
        """Call both, and compare all that they return."""
        expected = self.robot.drive_state(q, base)
        assert self(q, base) == (NEAR_SINGULAR if expected.near_singularity else OK)
        assert_rows_close(self.tau, expected.efforts)
        np.testing.assert_allclose(self.motion[0], expected.motion[0], rtol=0.0, atol=RELATIVE)
        assert_rows_close(self.motion[1:], expected.motion[1:])
        if self.wrench is not None:
            assert_rows_close(self.wrench, expected.base_wrench)


def samples(name: str, order: int, count: int = 60) -> list[tuple[Array, BaseMotion | None]]:
    """Return coordinates (order + 3, k) and motion of the base along the shipped motion."""
    motion = read_motion(share.find("config", f"{name}_motion.yaml")).for_joints(shipped(name).joint_names)
    found = []
    for time in np.linspace(0.0, motion.trajectory.duration, count):
        sample = motion.sample(float(time), order + 2)
        base = None
        if sample.pose is not None and sample.twists is not None:
            base = BaseMotion(sample.pose, sample.twists, representation="body_fixed").in_representation(
                "spatial"
            )
        found.append((sample.joints, base))
    return found


@needs_c
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("order", some((0, 1, 2), 1))
def test_along_the_shipped_motion(name: str, order: int, tmp_path: Path) -> None:
    exported = Exported(shipped(name), order, tmp_path)
    assert exported.library.robot_self_test() <= RELATIVE
    motion = samples(name, order)
    exported.lead(motion[0][0][0], motion[0][1])
    for q, base in motion:
        exported.agrees(q, base)


def still(robot: Robot, change: Array, order: int) -> Array:
    """Return a pose at rest, given by the change of the coordinates from home."""
    q = np.zeros((order + 3, robot.n_coordinates))
    q[0] = robot.home[0] + change
    return q


class TestFailure:
    def test_the_delta_stretched_until_it_cannot_and_back(self, tmp_path: Path) -> None:
        """Through poses near singular ones into failure; neither results nor memory change there."""
        robot = shipped("delta")
        exported, codes, depths = Exported(robot, 1, tmp_path), [], np.arange(0.0, -0.3, -0.0005)
        for depth in depths:
            q = still(robot, np.array([0.0, 0.0, depth]), 1)
            before = [array.copy() for array in (exported.memory, exported.tau, exported.motion)]
            codes.append(exported(q))
            if codes[-1] == FAILED:
                after = (exported.memory, exported.tau, exported.motion)
                assert all(np.array_equal(a, b) for a, b in zip(before, after))
                continue
            assert codes[-1] == (NEAR_SINGULAR if robot.drive_state(q).near_singularity else OK)
        assert codes == sorted(codes) and set(codes) == {OK, NEAR_SINGULAR, FAILED}
        with pytest.raises(HodynError):
            robot.drive_state(q)
        robot.reset()
        back = float(depths[codes.index(FAILED) - 1])
        for depth in (back, *np.linspace(back, 0.0, 60)[1:]):
            q = np.random.default_rng(3).uniform(-1.0, 1.0, (4, 3))
            q[0] = [0.0, 0.0, depth]
            expected = robot.drive_state(q)
            assert exported(q) == (NEAR_SINGULAR if expected.near_singularity else OK)
            assert_rows_close(exported.tau, expected.efforts, 1e-10 if depth == back else RELATIVE)

    def test_numbers_that_are_none_leave_everything_as_it_is(self, tmp_path: Path) -> None:
        for name in SHIPPED:
            (folder := tmp_path / name).mkdir()
            exported = Exported(shipped(name), 1, folder)
            q, base = samples(name, 1, 3)[0]
            exported.lead(q[0], base)
            assert exported(q, base) != FAILED
            kept = [exported.memory.copy(), exported.tau.copy(), exported.motion.copy()]
            for place in np.ndindex(q.shape):
                for value in (np.nan, np.inf):
                    spoiled = q.copy()
                    spoiled[place] = value
                    assert exported(spoiled, base) == FAILED
            assert np.array_equal(kept[0], exported.memory)
            assert np.array_equal(kept[1], exported.tau) and np.array_equal(kept[2], exported.motion)

    def test_a_jump_is_refused(self, tmp_path: Path) -> None:
        robot = shipped("palletiser")
        exported = Exported(robot, 1, tmp_path)
        assert exported(still(robot, np.full(4, 0.6), 1)) == FAILED
        exported.agrees(still(robot, np.full(4, 0.1), 1))

    def test_a_wrong_constant_of_newtons_method_is_found(self, tmp_path: Path) -> None:
        code = c_source(shipped("delta"), ExportRequest(0))
        begin = code.source.index("static void newton_step")
        step = code.source[begin:]
        spoiled = step.replace("sin(", "0.9 * sin(", 1)
        assert spoiled != step
        wrong = CSource("delta", code.header, code.source[:begin] + spoiled, 0, ())
        assert compiled(wrong, tmp_path).delta_self_test() == np.inf


class TestForm:
    def test_constant_time_gives_the_same(self, tmp_path: Path) -> None:
        exported = Exported(shipped("delta"), 1, tmp_path, "-DROBOT_CONSTANT_TIME=1")
        motion = samples("delta", 1)
        exported.lead(motion[0][0][0])
        for q, _ in motion:
            exported.agrees(q)

    @pytest.mark.parametrize("name", SHIPPED)
    def test_no_branch_but_the_stated_ones(self, name: str) -> None:
        source = code_of(shipped(name), 1).source
        body = source.split("int robot_inverse_dynamics(")[1].split("\n}\n")[0].splitlines()[2:]
        kept = [line.strip() for line in body if not re.fullmatch(STRAIGHT, line)]
        kept = [re.sub(OPERAND, "#", line).replace("((-#", "((#") for line in kept]
        for part in source.split("static void part")[1:]:
            lines = part.split("\n}\n")[0].splitlines()[2:]
            assert [line for line in lines if not re.fullmatch(STRAIGHT, line)] == []
        copy = ["for (int k = #; k < #; ++k) {", "reached[k] = memory->leading[k];", "}"]
        given = ", pose" if "pose" in source else ""
        finite = " && all_finite(pose, #) && all_finite(twists, #)" if given else ""
        newton = [
            "int round# = #;",
            "do {",
            f"newton_step(q{given}, reached);",
            "} while ((++round# < #) && (ROBOT_CONSTANT_TIME || (reached[#] > #)));",
        ]
        expected = [
            "double reached[#];",
            *copy,
            *(["reached[#] = #;"] if name == "panda_hand" else newton),
            f"if (!((# < #) && all_finite(q, #){finite})) {{",
            "return ROBOT_FAILED;",
            "}",
            copy[0],
            "memory->leading[k] = reached[k];",
            "}",
            "return (# > #) ? ROBOT_NEAR_SINGULAR : ROBOT_OK;",
        ]
        assert kept == expected

    @needs_c
    def test_the_program_and_cpp(self, tmp_path: Path) -> None:
        source, program = (
            write(c_source(shipped("palletiser"), ExportRequest(0)), tmp_path),
            tmp_path / "test",
        )
        flags = ("-std=c99", *WARNINGS, "-DPALLETISER_MAIN", "-O1")
        compiled_by(CC, flags, [source], program, "-lm")
        result = subprocess.run([program], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0
        assert "palletiser_inverse_dynamics" in result.stdout and "microseconds" in result.stdout
        cxx = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
        if cxx is not None:
            as_cpp = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")
            subprocess.run([cxx, *as_cpp, source], check=True, timeout=120)

    def test_the_branch_of_the_robot_stays_where_it_is(self) -> None:
        robot = shipped("palletiser")
        robot.inverse_dynamics(still(robot, np.full(4, 0.1), 0))
        before = robot.positions
        c_source(robot, ExportRequest(0))
        assert np.array_equal(before, robot.positions)

    def test_names_and_units_of_both_sides(self) -> None:
        header = c_source(shipped("delta"), ExportRequest(0)).header
        for words in ("0 x (m, N)", "0 drive1 (rad, N.m)", "DELTA_DRIVEN 3", "DELTA_NEAR_SINGULAR = 1"):
            assert words in header

    def test_what_the_engine_does_not_compile_is_refused_in_a_line(self) -> None:
        call = partial(c_source, shipped("delta"), ExportRequest(10))
        refused(call, "no compiled inverse dynamics of order 10")


@needs_c
@pytest.mark.parametrize("name", some(["palletiser", "humanoid_leg"], "humanoid_leg"))
def test_wrenches_of_the_environment(name: str, tmp_path: Path) -> None:
    robot, order, rng = shipped(name), 1, np.random.default_rng(2)
    body, n = robot.tree.body_names[-1], len(robot.driven_joints)
    library, memory = library_of(c_source(robot, ExportRequest(order, "robot", wrenches=[body])), tmp_path)
    tau, motion, wrench = np.empty((order + 1, n)), np.empty((order + 3, n)), np.empty((order + 1, 6))
    for q, base in samples(name, order, 10):
        q[0] = robot.home[0] + 0.2 * (q[0] - robot.home[0])
        load = rng.uniform(-9.0, 9.0, (order + 1, 6))
        given = [q] if base is None else [q, np.ascontiguousarray(base.pose), base.twists[: order + 2].copy()]
        results = [*([] if base is None else [wrench]), tau, motion]
        assert call(library.robot_inverse_dynamics, memory, *given, load, *results) == OK
        state = robot.drive_state(q, base, [AppliedWrench(body, load)])
        assert_rows_close(tau, state.efforts)
        if base is not None:
            assert_rows_close(wrench, state.base_wrench)


OFFERED = [name for name, one in OPERATIONS.items() if "loops" in one.exported]


def in_python(robot: Robot, what: str, order: int, frames: Sequence[str], arrays: list[Array]) -> Array:
    """Call what is compiled with the arrays of C, which has none without a number."""
    operation, moved = OPERATIONS[what], robot.moves_base
    if operation.weighted:
        *motion, multiplier = arrays
        q = motion.pop(0) if robot.n_coordinates else np.zeros((order + 3, 0))
        base = BaseMotion(*motion) if moved else None
        return robot.inverse_dynamics_hessian(q, multiplier, base)
    rows = 2 if operation.takes == "state" else order + 1 + operation.rates
    given = list(arrays)
    if not (robot.n_coordinates or operation.q_left_out or operation.takes == "drives"):
        given.insert(0, np.zeros((rows, 0)))
    if moved and rows == 1 and arrays[-1].shape == (4, 4):
        given.append(np.zeros((0, 6)))
    return robot.compile(order, what, (frames or None) if operation.frames != "none" else None)(*given)


@needs_c
@pytest.mark.parametrize(
    ("name", "order"),
    some(
        [
            *(("coupled linkage", 1), ("flying cam", 0), ("planar 3-RRR", 0), ("hinged 3-RRR", 0)),
            *(("palletiser", 1), ("humanoid_leg", 0), ("delta", 1), ("planar_3rrr", 0), ("planar_3rrr", 1)),
        ],
        *(("coupled linkage", 1), ("flying cam", 0), ("planar 3-RRR", 0), ("hinged 3-RRR", 0)),
    ),
)
def test_every_operation_is_that_of_compile(name: str, order: int, tmp_path: Path) -> None:
    """In one file, with one memory: of joints, of a base, of platforms, of more drives than coordinates."""
    robot = robot_of(MECHANISMS[name]()) if name in MECHANISMS else shipped(name)
    rng, closure = np.random.default_rng(4), robot.closure
    assert closure is not None
    leaves = () if THOROUGH or order else ("inverse_dynamics_hessian",)  # which takes long
    offered = [what for what in OFFERED if what not in leaves]
    frames = robot.tree.body_names[-2:-1] if robot.moves_base else []  # by default all, or the last one
    code = c_source(robot, ExportRequest(order, "robot", what=offered, frames=frames))
    library, memory = compiled(code, tmp_path), np.zeros(200)
    assert library.robot_self_test() <= 1e-11
    call(library.robot_home, memory)
    for what in offered:
        q, base = near_home(robot, order + 2, rng)
        if q is None:
            q = np.zeros((order + 3, 0))
        drives = robot.joint_motion(q[: order + 1], base)[:, list(closure.driven)]
        values = {"q": q, "drives": drives, "state": q[:2]}
        if base is not None:
            values |= {"pose": base.pose, "twists": base.twists, "twist": base.twists[:1]}
        arrays, results = [], []
        for name, size, is_given in declared(code.header, f"robot_{what}"):
            rows = values.get(name, rng.uniform(-1.0, 1.0, (order + 1, size // (order + 1))))
            if is_given:
                arrays.append(np.ascontiguousarray(rows[: size * len(rows) // max(rows.size, 1)]))
            else:
                results.append(np.full(size, np.nan))
        assert call(getattr(library, f"robot_{what}"), memory, *arrays, *results) == OK
        expected = in_python(robot, what, order, frames, arrays)
        if what == "inverse_dynamics":
            results.pop()  # the motion of the drives, which is held along motions below
        whole = np.concatenate([one.reshape(len(expected), -1) for one in results], axis=1)
        # rows of Jacobians are no orders: some are zero but for the rounding of others
        rounding = 1e-15 * np.abs(expected).max() if "jacobian" in what else 0.0
        assert_orders_close(whole, expected.reshape(whole.shape), rounding)
        kept = [memory.copy(), *(one.copy() for one in results)]
        for i, right in enumerate(arrays):
            arrays[i] = right.copy()
            arrays[i].flat[rng.integers(right.size)] = np.nan
            assert call(getattr(library, f"robot_{what}"), memory, *arrays, *results) == FAILED, (what, i)
            arrays[i] = right
        assert all(map(np.array_equal, kept, (memory, *results)))


@needs_c
@pytest.mark.parametrize(
    ("name", "order"),
    some(
        [("planar_3rrr", 2), ("gough_stewart_6ups", 2), ("3-RPS", 0), ("3-RPS", 1)],
        *(("planar_3rrr", 2), ("3-RPS", 0)),
    ),
)
def test_a_platform_from_its_drives(name: str, order: int, tmp_path: Path) -> None:
    """As Python finds it; of more drives than freedoms those that contradict each other are refused."""
    drifts = name == "3-RPS"  # whatever of its pose is no coordinate
    robot, rng = three_rps(floating=True) if drifts else shipped(name), np.random.default_rng(8)
    assert robot.closure is not None
    code = c_source(robot, ExportRequest(order, "robot", what="motion_from_drives"))
    library, memory = library_of(code, tmp_path)
    found, twists = np.empty((4, 4)), np.empty((order, 6))
    results = [found, twists] if order else [found]
    driven = [robot.tree.joint_names.index(joint) for joint in robot.driven_joints]
    for _ in range(2):
        base = near_home(robot, order, rng)[1]
        assert base is not None
        drives = np.ascontiguousarray(robot.joint_motion(np.zeros((order + 1, 0)), base)[:, driven])
        assert call(library.robot_motion_from_drives, memory, drives, *results) == OK
        if not drifts:
            np.testing.assert_allclose(found, base.pose, rtol=0.0, atol=1e-12)
            np.testing.assert_allclose(twists, base.twists[:order], rtol=0.0, atol=1e-11)
        platform = robot.motion_from_drives(drives).base
        assert platform is not None
        np.testing.assert_allclose(found, platform.pose, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(twists, platform.twists[:order], rtol=0.0, atol=1e-13)
    kept = memory.copy(), found.copy(), twists.copy()
    redundant = len(driven) > robot.closure.n_coordinates
    for place in np.ndindex(drives.shape):
        for change in (1e-6, 10.0, np.nan):
            if not redundant and np.isfinite(change) and (place[0] or change < 1.0):
                continue  # the platform can do that
            spoiled = drives.copy()
            spoiled[place] += change
            assert call(library.robot_motion_from_drives, memory, spoiled, *results) == FAILED
    for before, after in zip(kept, (memory, found, twists)):
        assert np.array_equal(before, after)


def test_jacobians_of_what_loops_hold_are_refused() -> None:
    with pytest.raises(InputError, match="loops hold '.*' where it is; choose a frame that moves"):
        robot = shipped("planar_3rrr")
        c_source(robot, ExportRequest(0, what="jacobian", frames=[robot.tree.body_names[-1]]))


def assert_orders_close(found: Array, expected: Array, rounding: float = 0.0) -> None:
    for one, other in zip(found, expected):
        assert np.abs(one - other).max() <= RELATIVE * np.abs(other).max() + rounding


def test_partial_derivatives_that_are_not_compiled_are_refused() -> None:
    call = partial(c_source, three_rps(floating=True), ExportRequest(0, what="inverse_dynamics_derivatives"))
    refused(call, "no compiled partial derivatives")


@needs_c
def test_a_platform_of_two_freedoms(tmp_path: Path) -> None:
    """Wrenches may act on bodies of its limbs; what the platform cannot do fails."""
    robot = shipped("planar_3rrr")
    body, n, rng = robot.tree.body_names[1], len(robot.driven_joints), np.random.default_rng(3)
    library, memory = library_of(c_source(robot, ExportRequest(0, "robot", wrenches=[body])), tmp_path)
    tau, motion = np.empty((1, n)), np.empty((3, n))
    for _ in range(3):
        base, load = near_home(robot, 2, rng)[1], rng.uniform(-5.0, 5.0, (1, 6))
        assert base is not None and robot.closure is not None
        given = arrays_of(None, base, 2)
        assert call(library.robot_inverse_dynamics, memory, *given, load, tau, motion) == OK
        expected = readable_solution(robot, None, base, [AppliedWrench(body, load)])
        assert_rows_close(tau, expected.efforts)
        assert_rows_close(motion[1:], expected.drives[1:])
    beyond = base.twists + np.where(robot.closure.directions.any(axis=1), 0.0, 1.0)
    assert call(library.robot_inverse_dynamics, memory, given[0], beyond, load, tau, motion) == FAILED


@needs_c
@pytest.mark.parametrize("name", some(MECHANISMS, "RSSR", "coupled linkage", "flying cam", "held rows"))
def test_mechanisms_of_the_references(name: str, tmp_path: Path) -> None:
    """Loops of all kinds, platforms and floating bases; the robots are held against references elsewhere."""
    mechanism = MECHANISMS[name]()
    robot = robot_of(mechanism)
    if not compiles(robot.closure, 1):
        refused(lambda: c_source(robot, ExportRequest(1)), "has no compiled inverse dynamics")
        return
    exported = Exported(robot, 1, tmp_path)
    assert exported.library.robot_self_test() <= 1e-11
    for seed in range(5):
        q, base = motion_of(mechanism, 1, seed)
        q[0] *= 0.3  # no jump from one to the next
        exported.agrees(q if len(mechanism.joints) else None, base)
