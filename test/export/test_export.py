"""Robots exported as C, compiled by the system's compilers and called through ctypes."""

import ctypes
import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from case_robots import of_tree, panda
from command_line import Hodyn
from exported_code import (
    CC,
    CXX,
    RELATIVE,
    WARNINGS,
    assert_rows_close,
    call,
    compiled,
    compiled_by,
    declared,
    needs_c,
    needs_cxx,
    write,
)
from oracles.motions import random_base, random_motion
from oracles.random_trees import random_tree
from places import CONFIG, DATA, ROOT
from refusals import assert_refused, refused, unknown
from sweeps import THOROUGH

from hodyn_ros import AppliedWrench, BaseMotion, Robot, share
from hodyn_ros.actuation.transmission import is_positive
from hodyn_ros.codegen.kernel import Kernel, Stack, traced
from hodyn_ros.codegen.tracer import Operation
from hodyn_ros.dynamics.operations import EXPORTED_OF_TREES
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import CSource, c_source, export_c, straight_line
from hodyn_ros.export.request import ExportRequest
from hodyn_ros.export.straight_line import WRITTEN, StraightLine, Tables
from hodyn_ros.lie.representations import Representation
from hodyn_ros.lie.se3 import pose as pose_at
from hodyn_ros.model.propeller import Propeller


@pytest.fixture(scope="module")
def panda_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Panda to order 2, compiled as who exports it compiles it; header and source lie beside it."""
    source = write(c_source(panda(), ExportRequest(2)), tmp_path_factory.mktemp("panda"))
    return compiled_by(CC, ("-std=c99", *WARNINGS, "-O1", "-fPIC", "-c"), [source], source.with_suffix(".o"))


class TestNumbers:
    @needs_c
    def test_the_panda_as_the_engine_has_it(self, panda_object: Path) -> None:
        """Results may overwrite the motion."""
        path, rng, compute = panda_object.with_suffix(".so"), np.random.default_rng(2), panda().compile(2)
        subprocess.run([str(CC), "-shared", panda_object, "-o", path, "-lm"], check=True, timeout=60)
        library = ctypes.CDLL(str(path))
        library.panda_self_test.restype = ctypes.c_double
        assert library.panda_self_test() <= RELATIVE
        for _ in range(20):
            q, tau = rng.uniform(-2.0, 2.0, (5, 7)), np.empty((3, 7))
            expected = compute(q)
            call(library.panda_inverse_dynamics, q, tau)
            assert_rows_close(tau, expected)
            call(library.panda_inverse_dynamics, q, q)
            assert_rows_close(q[:3], expected)

    @needs_c
    @pytest.mark.parametrize("floating", (False, True), ids=("fixed", "floating"))
    def test_random_trees_as_the_published_formulation_has_them(self, floating: bool, tmp_path: Path) -> None:
        """All kinds of joints; the base wrench, too, where the base floats."""
        for seed in range(3 if THOROUGH else 1):
            rng, order = np.random.default_rng(seed), 2
            tree = random_tree(rng, 6, floating_base=floating)
            robot = of_tree(tree)
            code = c_source(robot, ExportRequest(order, f"tree{seed}"))
            library = compiled(code, tmp_path)
            assert getattr(library, f"{code.name}_self_test")() <= RELATIVE
            function = getattr(library, f"{code.name}_inverse_dynamics")
            q, tau = random_motion(rng, tree, order), np.empty((order + 1, robot.n_coordinates))
            if not floating:
                call(function, q, tau)
                assert_rows_close(tau, robot.inverse_dynamics(q, formulation="spatial"))
                continue
            base, wrench = random_base(rng, order, "spatial"), np.empty((order + 1, 6))
            pose, twists = np.ascontiguousarray(base.pose), np.ascontiguousarray(base.twists[: order + 2])
            call(function, q, pose, twists, wrench, tau)
            expected = robot.compile(order)(q, pose, twists)
            assert_rows_close(wrench, expected[:, :6])
            assert_rows_close(tau, expected[:, 6:])


def aerial() -> Robot:
    return Robot.load(CONFIG / "aerial_manipulator.yaml")


def flier(tilting: bool) -> Robot:
    """Return a robot with four propellers, two of which may tilt about axes normal to each other."""
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    places = ((0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.25))
    propellers = [
        Propeller(
            f"p{i}",
            pose_at(turned if i == 3 else np.eye(3), np.array([*place, 0.1])),
            0.02 * (-1) ** i,
            tilts=tilting and i > 1,
        )
        for i, place in enumerate(places)
    ]
    return Robot(of_tree(random_tree(5, 2, floating_base=True)).model, propellers=propellers)


SMALL = tuple(of_tree(random_tree(5, 2, floating_base=floating)) for floating in (False, True))
ROBOTS = (panda(), aerial()) if THOROUGH else SMALL  # all functions of a large one take a C compiler long

SECOND = [what for what in EXPORTED_OF_TREES if what.endswith(("hessian", "second_derivatives"))]
SECOND.append("forward_kinematics_derivatives")
LONG = "forward_dynamics_derivatives", *SECOND  # these take long to compile


class TestWhat:
    """All that `Robot.compile` offers, and partial derivatives."""

    @needs_c
    @pytest.mark.parametrize("robot", ROBOTS, ids=("fixed", "floating"))
    def test_as_the_engine_has_it(self, robot: Robot, tmp_path: Path) -> None:
        floating, order, rng = robot.model.floating_base, 1, np.random.default_rng(6)
        chosen = [what for what in EXPORTED_OF_TREES if what not in LONG]
        code = c_source(robot, ExportRequest(order, "robot", what=chosen))
        library = compiled(code, tmp_path)
        assert library.robot_self_test() <= 1e-11
        values = {"q": rng.uniform(-1.0, 1.0, (order + 3, robot.n_coordinates))}
        values["pose"] = np.ascontiguousarray(random_base(rng, 0, "spatial").pose)
        values["twists"] = rng.uniform(-1.0, 1.0, (order + 2, 6))
        values |= {"state": values["q"][:2], "twist": values["twists"][:1]}
        efforts = robot.compile(order)(
            *([values[x] for x in ("q", "pose", "twists")] if floating else [values["q"]])
        )
        values["tau"] = np.ascontiguousarray(efforts[:, 6:] if floating else efforts)
        values["base_wrench"] = np.ascontiguousarray(efforts[:, :6])
        for what in chosen:
            given, found = [], []
            for name, size, is_given in declared(code.header, f"robot_{what}"):
                if is_given:
                    rows = size // values[name].shape[1]
                    given.append(np.ascontiguousarray(values[name][:rows]))
                else:
                    found.append(np.full(size, np.nan))
            call(getattr(library, f"robot_{what}"), *given, *found)
            if what == "inverse_dynamics_derivatives":
                base = BaseMotion(given[1], given[2], representation="body_fixed") if floating else None
                expected = robot.inverse_dynamics_derivatives(given[0], base)
            else:
                expected = robot.compile(order, what)(*given)
            rows = len(expected) if len(found) > 1 else 1
            whole = np.concatenate([one.reshape(rows, -1) for one in found], axis=1)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(whole.ravel(), expected.ravel(), rtol=0.0, atol=1e-11 * scale)

    @needs_c
    @pytest.mark.parametrize("floating", (False, True), ids=("fixed", "floating"))
    def test_partial_derivatives(self, floating: bool, tmp_path: Path) -> None:
        """First ones of forward dynamics and kinematics, and second ones."""
        robot = of_tree(random_tree(5, 2, floating_base=floating))
        longest = () if THOROUGH or not floating else ("forward_dynamics_second_derivatives",)
        code = c_source(robot, ExportRequest(0, "robot", what=[x for x in LONG if x not in longest]))
        library = compiled(code, tmp_path)
        assert library.robot_self_test() <= 1e-11
        assert "derivatives[" in code.header
        assert "multiplier[" in code.header

    def test_second_derivatives_by_themselves_are_of_robots_without_loops(self) -> None:
        robot = Robot.load(share.find("config", "palletiser.yaml"))
        what = "inverse_dynamics_second_derivatives"
        refused(lambda: c_source(robot, ExportRequest(0, what=what)), f"{what} are of robots without")

    @needs_c
    @pytest.mark.parametrize("order", (0, 2))
    def test_thrusts_of_propellers(self, order: int, tmp_path: Path) -> None:
        """Two that are fixed, and two that tilt: the wrench comes back from what C code gives."""
        robot = flier(tilting=True)
        library = compiled(c_source(robot, ExportRequest(order, "flier", what="propeller_thrusts")), tmp_path)
        assert library.flier_self_test() <= RELATIVE
        assert robot.propellers is not None
        rng = np.random.default_rng(4)
        base = random_base(rng, order, "spatial")
        pose, twists = np.ascontiguousarray(base.pose), np.ascontiguousarray(base.twists[: max(order, 1)])
        wrench = rng.normal(size=(order + 1, 6))
        wrench[0, 5] += 10.0
        thrusts, tilts = (np.empty((order + 1, 4)) for _ in range(2))
        call(library.flier_propeller_thrusts, wrench, pose, twists, thrusts, tilts)
        motion = BaseMotion(pose, twists)
        in_body = motion.wrenches_in_body(wrench)[0]
        np.testing.assert_allclose(robot.propellers.wrench(thrusts[0], tilts[0]), in_body, atol=1e-13)
        assert_rows_close(thrusts, robot.propellers.motion(wrench, motion).thrusts)

    @needs_c
    def test_what_propellers_cannot_give_is_left(self, tmp_path: Path) -> None:
        code = c_source(flier(tilting=False), ExportRequest(1, "flier", what="propeller_thrusts"))
        assert "double left[12]" in code.header, "parallel propellers push along one axis"
        assert compiled(code, tmp_path).flier_self_test() <= RELATIVE

    def test_thrusts_need_propellers(self) -> None:
        refused(lambda: c_source(panda(), ExportRequest(0, what="propeller_thrusts")), "has no propellers")

    @needs_c
    def test_frames_and_representations(self, tmp_path: Path) -> None:
        """Of those that have frames; others beside them have none."""
        robot, order, frames = Robot.load(DATA / "every_joint.yaml"), 2, ("tip", "table")
        kinds: tuple[Representation, ...] = ("spatial", "body_fixed", "hybrid")
        q = np.random.default_rng(0).uniform(-1.0, 1.0, (order + 1, 4))
        for kind in kinds:
            what = ("mass_matrix", "forward_kinematics")
            request = ExportRequest(order, kind, what=what, frames=frames, representation=kind)
            library = compiled(c_source(robot, request), tmp_path)
            poses, twists = np.empty((2, 16)), np.empty((2, 12))
            call(getattr(library, f"{kind}_forward_kinematics"), q, poses, twists)
            motion = robot.forward_kinematics(q, representation=kind)
            for i, name in enumerate(frames):
                np.testing.assert_allclose(poses[i].reshape(4, 4), motion.pose_of(name), atol=1e-13)
                np.testing.assert_allclose(twists[i].reshape(2, 6), motion.twists_of(name), atol=1e-13)
        request = ExportRequest(0, "one", what=("mass_matrix", "jacobian"), frames=frames[:1])
        library = compiled(c_source(robot, request), tmp_path)
        matrix, jacobian = np.empty((4, 4)), np.empty((6, 4))
        call(library.one_mass_matrix, q[:1], matrix)
        call(library.one_jacobian, q[:1], jacobian)
        np.testing.assert_allclose(matrix, robot.mass_matrix(q[:1])[0], atol=1e-13)
        np.testing.assert_allclose(jacobian, robot.jacobian(q[:1], body="tip")[0], atol=1e-13)

    @needs_c
    def test_wrenches_of_the_environment(self, tmp_path: Path) -> None:
        order, bodies, robot, rng = (
            1,
            ("body4", "body2"),
            of_tree(random_tree(5, 4)),
            np.random.default_rng(1),
        )
        request = ExportRequest(order, "arm", what=("inverse_dynamics", "forward_dynamics"), wrenches=bodies)
        library = compiled(c_source(robot, request), tmp_path)
        assert library.arm_self_test() <= 1e-11
        q, loads = rng.uniform(-1.0, 1.0, (order + 3, 4)), rng.uniform(-1.0, 1.0, (2, order + 1, 6))
        tau, rates = np.empty((order + 1, 4)), np.empty((order + 1, 4))
        acting = [AppliedWrench(body, load) for body, load in zip(bodies, loads)]
        call(library.arm_inverse_dynamics, q, *loads, tau)
        assert_rows_close(tau, robot.inverse_dynamics(q, wrenches=acting))
        call(library.arm_forward_dynamics, q[:2].copy(), tau, *loads, rates)
        np.testing.assert_allclose(rates, q[2:], atol=1e-10)

    @needs_c
    def test_singular_poses_of_bodies_without_mass_have_no_number(self, tmp_path: Path) -> None:
        """As that of a ball joint at 90 degrees of pitch: 1e35 rad/s^2 came back."""
        axes, heavy = np.eye(3, 6)[[2, 1, 0]], np.array([0.0, 0.0, 1.0])
        robot = Robot.from_screws(
            range(-1, 2), axes, np.tile(np.eye(4), (3, 1, 1)), heavy, np.full((3, 3), 0.1),
            heavy[:, None, None] * np.diag([0.1, 0.2, 0.25]), name="ball",
        )  # fmt: skip
        request = ExportRequest(2, what=("forward_dynamics", "forward_dynamics_derivatives"))
        library = compiled(c_source(robot, request), tmp_path)
        state, tau = np.full((2, 3), 0.3), np.full((3, 3), 0.2)
        rates, partials = np.empty((3, 3)), np.empty((3 * 5 * 3, 3))
        call(library.ball_forward_dynamics, state, tau, rates)
        np.testing.assert_allclose(rates, robot.forward_dynamics(state, tau), rtol=1e-11, atol=1e-11)
        state[0, 1] = np.pi / 2
        call(library.ball_forward_dynamics, state, tau, rates)
        call(library.ball_forward_dynamics_derivatives, state, tau, partials)
        assert not np.isfinite(rates).any() and not np.isfinite(partials[partials != 0.0]).any()

    def test_bodies_whose_names_c_cannot_tell_apart(self) -> None:
        tree = random_tree(np.random.default_rng(1), 2)
        robot = Robot.from_screws(**{**tree.arguments(), "body_names": ["a b", "a-b"]})
        header = c_source(robot, ExportRequest(0, "two", wrenches=("a b", "a-b"))).header
        assert "const double wrench_a_b_0[6], const double wrench_a_b_1[6]" in header

    def test_bad_wishes_give_one_line(self) -> None:
        assert_refused(
            ({"wrenches": ["gripper"]}, unknown("body", "gripper")),
            ({"what": "com", "wrenches": ["panda_link1"]}, "wrenches are of inverse_dynamics"),
            ({"what": "torques"}, "there is no 'torques' to export; choose some of inverse_dynamics,"),
            ({"what": ()}, "there is nothing to export"),
            ({"frames": ["panda_link1"]}, "frames are of forward_kinematics, jacobian, "),
            ({"what": "jacobian", "frames": ["panda_link1", "panda_link2"]}, "jacobian is of one frame"),
            ({"what": "jacobian", "frames": ["gripper"]}, unknown("body or frame", "gripper")),
            ({"what": "motion_from_drives"}, "motion_from_drives are of robots with couplings"),
            ({"what": "jacobian", "representation": "world"}, "representation must be one of"),
            by=lambda arguments: c_source(panda(), ExportRequest(1, **arguments)),
        )


class TestOperations:
    def test_c_knows_every_operation_of_the_tracer(self) -> None:
        assert set(get_args(Operation)) == {"constant", "input", "lane", *WRITTEN}  # C has no lanes

    @needs_c
    @pytest.mark.parametrize("parted", (False, True), ids=("whole", "parts"))
    def test_each_does_what_the_engine_does(
        self, parted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        starts, row, places = [-1.0, -0.25, 0.1, 0.5, 2.0], [3.0, -1.5, 0.25, 4.0, 7.5], list(range(9))

        def trace(rows: Stack) -> Stack:
            ((x, y),) = rows
            found, place = x.looked_up(starts, [row, [float(i) for i in places[: len(starts)]]])
            only = y.looked_up([0.3], [[2.5]])[0]
            return [
                [x + y, x - y, y - 2.5, x * y, x / y, 3.0 / -x, abs(x), abs(-y * 0.5)],
                [np.cos(x), np.sin(-y), np.sqrt(abs(x)), -found, place, only, is_positive(x), 0.125],
                [np.floor(x), np.floor(-y * 3.0), *[0.0] * 6],
            ]

        kernel = Kernel(trace, [("x", (1, 2))])
        graph, outputs, _ = traced(trace, [(1, 2)])
        used = {graph.nodes[node][0] for node in graph.needed(outputs)}
        assert used == set(get_args(Operation)) - {"lane"}
        if parted:
            monkeypatch.setattr(straight_line, "_PART", 3)
        tables = Tables()
        code = StraightLine(graph, ["a"], outputs, tables)
        stores = [f"  out[{i}] = {code.text(value)};" for i, value in enumerate(outputs)]
        head = ["#include <math.h>", *tables.lines(), "void f(const double *a, double *out);"]
        function = ["void f(const double *a, double *out)", "{", *code.lines, *stores, "}"]
        library = compiled(CSource("f", "", "\n".join([*head, *function, ""]), 0, ()), tmp_path)
        for x in (*starts, -3.0, np.nextafter(0.1, 0.0), 0.3, 1e5, 0.0, 5e-324, -5e-324):
            for y in (0.7, -2.0, 0.3):
                out = np.empty((3, 8))
                call(library.f, np.array([[x, y]]), out)
                if abs(x) > 1e-300:
                    expected = kernel.function(np.array([[x, y]]))
                    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=0.0)
                assert out[1, 3] == -row[max(np.searchsorted(starts, x, side="right") - 1, 0)]
                assert out[1, 6] == float(x > 0.0)


class TestSelfTest:
    @needs_c
    def test_long_functions_in_parts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of any length: the very same numbers, whatever is handed on."""
        robot = SMALL[0]
        whole = compiled(c_source(robot, ExportRequest(1, "whole")), tmp_path)
        q, expected, tau = (
            np.random.default_rng(0).uniform(-1.0, 1.0, (4, 2)),
            np.empty((2, 2)),
            np.empty((2, 2)),
        )
        call(whole.whole_inverse_dynamics, q, expected)
        for length in (1, 7, 50):
            monkeypatch.setattr(straight_line, "_PART", length)
            name = f"parts{length}"
            code = c_source(robot, ExportRequest(1, name))
            assert code.source.count("static void part") > 50 // length
            found = compiled(code, tmp_path)
            call(getattr(found, f"{name}_inverse_dynamics"), q, tau)
            assert_rows_close(tau, expected, 1e-15)

    @needs_c
    def test_a_wrong_constant_is_found(self, tmp_path: Path) -> None:
        code = c_source(panda(), ExportRequest(0))
        lines = code.source.splitlines()
        at = next(i for i, line in enumerate(lines) if re.search(r"= \d\.\d{4,} \* x\d+;|= x\d+ \* \d", line))
        lines[at] = re.sub(r"(\d+\.\d+)", lambda match: repr(float(match[1]) * 1.001), lines[at])
        spoiled = CSource(code.name, code.header, "\n".join(lines) + "\n", code.operations, code.notes)
        assert compiled(spoiled, tmp_path).panda_self_test() > 1e-7

    @needs_c
    def test_nan_is_found(self, tmp_path: Path) -> None:
        code = c_source(panda(), ExportRequest(0))
        source = re.sub(r"tau\[3\] = .*;", "tau[3] = sqrt(-1.0 - q[0] * q[0]);", code.source)
        assert source != code.source
        spoiled = CSource(code.name, code.header, source, code.operations, code.notes)
        assert compiled(spoiled, tmp_path).panda_self_test() == np.inf

    @needs_c
    def test_the_program_says_so(self, tmp_path: Path) -> None:
        source, program = write(c_source(panda(), ExportRequest(0)), tmp_path), tmp_path / "panda_test"
        flags = ("-std=c99", *WARNINGS, "-DPANDA_MAIN", "-O1")
        compiled_by(CC, flags, [source], program, "-lm")
        result = subprocess.run([program], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0
        assert "largest relative error" in result.stdout and "microseconds" in result.stdout


class TestLanguage:
    @needs_cxx
    def test_cpp_compiles_it_and_links_to_the_c_code(self, panda_object: Path, tmp_path: Path) -> None:
        assert CXX is not None
        source, include = panda_object.with_suffix(".c"), f"-I{panda_object.parent}"
        as_cpp = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")
        subprocess.run([CXX, *as_cpp, source], check=True, timeout=120)
        user = tmp_path / "user.cpp"
        user.write_text(
            '#include "panda.h"\n'
            "static_assert(PANDA_JOINTS == 7 && PANDA_ORDER == 2);\n"
            "static_assert(PANDA_HAS_MOTORS && !PANDA_FLOATING_BASE);\n"
            "int main() { return panda_joint_names[6][0] == 'p' && panda_self_test() < 1e-12 ? 0 : 1; }\n"
        )
        program = tmp_path / "user"
        command = [CXX, "-std=c++17", include, user, panda_object, "-o", program]
        subprocess.run(command, check=True, timeout=120)
        assert subprocess.run([program], timeout=60).returncode == 0

    def test_the_recursion_is_straight_line_code(self) -> None:
        """No branch, no loop and no call but those of sine and cosine: constant time, and no memory."""
        for robot in (panda(), Robot.load(CONFIG / "aerial_manipulator.yaml")):
            source = c_source(robot, ExportRequest(2, "robot")).source
            body = source.split("void robot_inverse_dynamics(")[1].split("\n}\n")[0].splitlines()[2:]
            operand = r"(x\d+|\d+(\.\d+)?(e[-+]?\d+)?)"
            statement = re.compile(
                r"  \(void\)\w+;"
                r"|  const double x\d+ = (q|pose|twists)\[\d+\];"
                rf"|  const double x\d+ = ({operand} [-+*/] {operand}|(sin|cos)\({operand}\));"
                rf"|  (tau|base_wrench)\[\d+\] = -?{operand};"
            )
            assert len(body) > 1000
            assert [line for line in body if not statement.fullmatch(line)] == []

    @needs_c
    @pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm to list symbols with")
    def test_it_needs_sine_and_cosine_and_keeps_no_state(self, panda_object: Path) -> None:
        symbols = subprocess.run(
            ["nm", panda_object], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        kinds = {line.split()[-1]: line.split()[-2] for line in symbols}
        needed = {name for name, kind in kinds.items() if kind == "U"}
        assert needed - {"sin", "cos", "sincos", "fmax", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"} == set()
        # writable data; nm counts the joints' names to it where code may move, as they are pointers
        assert {name for name, kind in kinds.items() if kind in "bBcCdD"} <= {"panda_joint_names"}

    @needs_c
    def test_names_from_outside_stay_within_their_quotes(self, tmp_path: Path) -> None:
        """Comments that would end, strings with quotes and trigraphs, and letters that are not ASCII."""
        names = ('*/ int x; /* "\\', "größe ??/ ??)\n")
        tree = random_tree(np.random.default_rng(1), 2)
        robot = Robot.from_screws(**{**tree.arguments(), "joint_names": names, "name": "*/ 2*/*"})
        code = c_source(robot, ExportRequest(0), origin="a*/b\\")
        assert code.name == "robot_2"
        library = compiled(code, tmp_path)
        found = (ctypes.c_char_p * 2).in_dll(library, "robot_2_joint_names")
        assert tuple(name.decode() for name in found if name is not None) == names

    def test_every_number_comes_back_the_same(self) -> None:
        code = c_source(panda(), ExportRequest(2))
        text = code.source.split("test_inverse_dynamics_tau[5][21] = {")[1].split("};")[0]
        numbers = np.array([float(x) for x in re.findall(r"-?\d[\d.e+-]*", text)]).reshape(5, 3, 7)
        text = code.source.split("test_inverse_dynamics_q[5][35] = {")[1].split("};")[0]
        motions = np.array([float(x) for x in re.findall(r"-?\d[\d.e+-]*", text)]).reshape(5, 5, 7)
        for q, tau in zip(motions, numbers):
            assert np.array_equal(panda().compile(2)(q), tau)


class TestWords:
    def test_the_file_says_where_it_comes_from_and_what_it_takes(self, tmp_path: Path) -> None:
        path = CONFIG / "panda.yaml"
        code, paths = export_c(RobotChoice("panda.yaml"), ExportRequest(2), tmp_path / "new" / "folder")
        assert [p.name for p in paths] == ["panda.h", "panda.c"]
        assert [p.read_text() for p in paths] == [code.header, code.source]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for text in (code.header, code.source):
            assert f"panda.yaml, SHA-256 {digest}" in text
            assert str(ROOT) not in text
        for words in (
            "up to order 2",
            "panda_joint4 (rad, N.m)",
            "up to order 4",
            "no branch depends on them",
        ):
            assert words in code.header

    def test_the_same_robot_gives_the_same_file(self) -> None:
        assert c_source(panda(), ExportRequest(1)) == c_source(panda(), ExportRequest(1))

    def test_motors_that_need_a_higher_order_are_left_out_with_a_word(self) -> None:
        code = c_source(panda(), ExportRequest(1))
        assert "panda_motor_feedforward(" not in code.header
        assert "#define PANDA_HAS_MOTORS 0" in code.header
        assert code.notes == (
            "panda_motor_feedforward is left out: the motor efforts of elastic joints need order 2 or "
            "higher, and this is order 1.",
        )

    def test_names_and_orders_that_cannot_be_are_refused(self) -> None:
        names = ("", "2nd", "a b", "a__b", "_a", "a_", "ä", "a" * 64, "a;b")
        assert_refused(
            *(((0, name), "cannot start a C function") for name in names),
            *(((order,), "the order must be 0 or a positive integer") for order in (-1, True, 1.5)),
            ((31,), "the order is 31, and 30 is the highest"),
            by=lambda arguments: c_source(panda(), ExportRequest(*arguments)),
        )

    def test_what_is_too_long_for_a_compiler_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(straight_line, "_MOST_OPERATIONS", 2000)
        c_source(panda(), ExportRequest(1))
        refused(lambda: c_source(panda(), ExportRequest(2)), "'panda' at order 2 takes 2573 operations")

    def test_the_base_of_a_yaml_file_floats_by_the_file(self, tmp_path: Path) -> None:
        floats = RobotChoice("panda.yaml", floating_base=True)
        refused(lambda: export_c(floats, ExportRequest(0), tmp_path), "says itself whether its base floats")


class TestCommand:
    def test_it_says_what_it_wrote(self, hodyn: Hodyn, tmp_path: Path) -> None:
        result = hodyn(
            "export", "panda.yaml", "--order", "1", "--lang", "c", "--out", tmp_path, "--name", "arm"
        )
        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["arm.c", "arm.h"]
        assert "arm.h" in result.stdout and "arm.c" in result.stdout and "operations" in result.stdout
        assert "note: arm_motor_feedforward is left out" in result.stdout

    @needs_c
    def test_a_urdf_file_whose_root_floats(self, hodyn: Hodyn, tmp_path: Path) -> None:
        urdf = DATA / "branched.urdf"
        result = hodyn("export", urdf, "--floating-base", "--order", "1", "--out", tmp_path, "--name", "two")
        assert (result.returncode, result.stderr) == (0, "")
        code = CSource("two", (tmp_path / "two.h").read_text(), (tmp_path / "two.c").read_text(), 0, ())
        assert "#define TWO_FLOATING_BASE 1" in code.header
        assert compiled(code, tmp_path).two_self_test() <= RELATIVE

    @pytest.mark.parametrize(
        ("arguments", "words"),
        (
            (("nowhere.yaml",), "no file 'nowhere.yaml'"),
            (("panda.yaml", "--lang", "fortran"), "no export to 'fortran'; choose --lang c"),
            (("panda.yaml", "--order", "-1"), "the order must be 0 or a positive integer"),
            (("panda.yaml", "--name", "7 arms"), "the name '7 arms'"),
            (("panda.yaml", "--out", "/proc/none"), "/proc/none"),
            (("delta.yaml", "--order", "10"), "robot 'delta' has no compiled inverse dynamics"),
            (("panda_validation.yaml",), "panda_validation.yaml"),
            (("panda.yaml", "--representation", "hybrid"), "--representation is of functions of frames"),
            (("panda.yaml", "--shared", "--period", "0.001"), "feedforward alone, takes no --period"),
        ),
        ids=("robot", "language", "order", "name", "folder", "platform", "file", "twists", "period"),
    )
    def test_bad_arguments_give_one_line(self, hodyn: Hodyn, arguments: tuple[str, ...], words: str) -> None:
        result = hodyn("export", *arguments)
        assert result.returncode == 2 and result.stdout == ""
        assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("error: ")
        assert words in result.stderr


def test_the_page_has_outputs_in_their_order() -> None:
    """docs/export.md against the declarations of a robot that has them all."""
    table = re.findall(
        r"^\| `(inverse_dynamics|forward_dynamics)` \|.*\|(.*)\|$",
        (ROOT / "docs" / "export.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    drone = Robot.load(CONFIG / "aerial_manipulator.yaml")
    header = c_source(drone, ExportRequest(0, what=[name for name, _ in table])).header
    for name, outputs in table:
        declared = re.search(rf"{name}\((.*?)\);", header, re.DOTALL)
        assert declared
        arguments = [part.strip() for part in declared[1].split(",")]
        written = [re.sub(r"double (\w+).*", r"\1", part) for part in arguments if "const" not in part]
        assert re.findall(r"`(\w+)`", outputs) == written
    assert len(table) == 2
