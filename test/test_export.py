"""Robots exported as C, compiled by the system's compilers and called through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.motions import random_base, random_motion
from oracles.random_trees import Tree, random_tree
from ros_processes import child_environment

from hodyn_ros import InputError, Robot
from hodyn_ros.export import CSource, c_source, export_c
from hodyn_ros.model.drives import Drives

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion")
RELATIVE = 1e-12

CC = next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path), None)
CXX = next((path for path in map(shutil.which, ("c++", "g++", "clang++")) if path), None)
needs_c = pytest.mark.skipif(CC is None, reason="there is no C compiler (cc, gcc or clang) on the path")
needs_cxx = pytest.mark.skipif(CXX is None, reason="there is no C++ compiler (c++, g++, clang++) on the path")


def panda() -> Robot:
    return Robot.from_config(ROOT / "config" / "panda.yaml")


def robot_of(tree: Tree) -> Robot:
    return Robot.from_screws(**tree.arguments())


def write(code: CSource, folder: Path) -> Path:
    (folder / f"{code.name}.h").write_text(code.header)
    path = folder / f"{code.name}.c"
    path.write_text(code.source)
    return path


def compiled(code: CSource, folder: Path) -> ctypes.CDLL:
    assert CC is not None
    library = folder / f"{code.name}.so"
    flags = ("-std=c99", *WARNINGS, "-Wmissing-prototypes", "-O1", "-fPIC", "-shared")
    subprocess.run([CC, *flags, write(code, folder), "-o", library, "-lm"], check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    getattr(loaded, f"{code.name}_self_test").restype = ctypes.c_double
    return loaded


def call(function: Callable[..., None], *arrays: Array) -> None:
    function(*[array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in arrays])


def assert_rows_close(found: Array, expected: Array) -> None:
    """Compare order by order, against the largest number of the order."""
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert np.isfinite(found).all()
    assert (np.abs(found - expected) <= RELATIVE * scale).all(), np.abs(found - expected) / scale


class TestNumbers:
    @needs_c
    @pytest.mark.parametrize("order", (0, 2, 3))
    def test_the_panda_as_the_engine_has_it(self, order: int, tmp_path: Path) -> None:
        robot, rng = panda(), np.random.default_rng(order)
        library = compiled(c_source(robot, order), tmp_path)
        assert library.panda_self_test() <= RELATIVE
        compute = robot.compile(order)
        for _ in range(20):
            q, tau = rng.uniform(-2.0, 2.0, (order + 3, 7)), np.empty((order + 1, 7))
            call(library.panda_inverse_dynamics, q, tau)
            assert_rows_close(tau, compute(q))

    @needs_c
    @pytest.mark.parametrize("floating", (False, True), ids=("fixed", "floating"))
    def test_random_trees_as_the_published_formulation_has_them(self, floating: bool, tmp_path: Path) -> None:
        """All kinds of joints; the base wrench, too, where the base floats."""
        for seed in range(3):
            rng, order = np.random.default_rng(seed), 2
            tree = random_tree(rng, 6, floating_base=floating)
            robot = robot_of(tree)
            code = c_source(robot, order, f"tree{seed}")
            library = compiled(code, tmp_path)
            assert getattr(library, f"{code.name}_self_test")() <= RELATIVE
            function = getattr(library, f"{code.name}_inverse_dynamics")
            q, tau = random_motion(rng, tree, order), np.empty((order + 1, robot.n_joints))
            if not floating:
                call(function, q, tau)
                assert_rows_close(tau, robot.inverse_dynamics(q, formulation="spatial"))
                continue
            base, wrench = random_base(rng, order, "world"), np.empty((order + 1, 6))
            pose, twists = np.ascontiguousarray(base.pose), np.ascontiguousarray(base.twists[: order + 2])
            call(function, q, pose, twists, wrench, tau)
            expected = robot.compile(order)(q, pose, twists)
            assert_rows_close(wrench, expected[:, :6])
            assert_rows_close(tau, expected[:, 6:])

    @needs_c
    @pytest.mark.parametrize(
        ("stiffness", "order", "rows"),
        (((800.0, 500.0), 2, 1), ((np.inf, 500.0), 3, 2), ((np.inf, np.inf), 1, 2)),
        ids=("elastic", "mixed", "rigid"),
    )
    def test_motors(self, stiffness: tuple[float, float], order: int, rows: int, tmp_path: Path) -> None:
        rng = np.random.default_rng(5)
        tree = random_tree(rng, 2, kinds=("revolute",))
        drives = Drives(np.array(stiffness), np.array([0.3, 0.2]))
        robot = Robot(robot_of(tree).model, drives=drives)
        library = compiled(c_source(robot, order, "driven"), tmp_path)
        assert library.driven_self_test() <= RELATIVE
        q = random_motion(rng, tree, order)
        tau = robot.compile(order)(q)
        position, effort = np.empty((order + 1, 2)), np.empty((rows, 2))
        call(library.driven_motor_feedforward, q, tau, position, effort)
        assert robot.actuation is not None
        expected = robot.actuation.feedforward(q, tau)
        assert_rows_close(position, expected.position)
        assert_rows_close(effort, expected.effort)

    @needs_c
    def test_results_may_overwrite_the_motion(self, tmp_path: Path) -> None:
        library = compiled(c_source(panda(), 1), tmp_path)
        q = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 7))
        expected = panda().compile(1)(q)
        call(library.panda_inverse_dynamics, q, q)
        assert_rows_close(q[:2], expected)


class TestSelfTest:
    @needs_c
    def test_a_wrong_constant_is_found(self, tmp_path: Path) -> None:
        code = c_source(panda(), 0)
        lines = code.source.splitlines()
        at = next(i for i, line in enumerate(lines) if re.search(r"= \d\.\d{4,} \* x\d+;|= x\d+ \* \d", line))
        lines[at] = re.sub(r"(\d+\.\d+)", lambda match: repr(float(match[1]) * 1.001), lines[at])
        spoiled = CSource(code.name, code.header, "\n".join(lines) + "\n", code.operations, code.notes)
        assert compiled(spoiled, tmp_path).panda_self_test() > 1e-7

    @needs_c
    def test_nan_is_found(self, tmp_path: Path) -> None:
        code = c_source(panda(), 0)
        source = re.sub(r"tau\[3\] = .*;", "tau[3] = sqrt(-1.0 - q[0] * q[0]);", code.source)
        assert source != code.source
        spoiled = CSource(code.name, code.header, source, code.operations, code.notes)
        assert compiled(spoiled, tmp_path).panda_self_test() == np.inf

    @needs_c
    def test_the_program_says_so(self, tmp_path: Path) -> None:
        assert CC is not None
        source, program = write(c_source(panda(), 2), tmp_path), tmp_path / "panda_test"
        flags = ("-std=c99", *WARNINGS, "-DPANDA_MAIN", "-O1")
        subprocess.run([CC, *flags, source, "-o", program, "-lm"], check=True, timeout=120)
        result = subprocess.run([program], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0
        assert "largest relative error" in result.stdout and "microseconds" in result.stdout


class TestLanguage:
    @needs_cxx
    def test_cpp_compiles_it_and_links_to_the_c_code(self, tmp_path: Path) -> None:
        assert CC is not None and CXX is not None
        source = write(c_source(panda(), 2), tmp_path)
        as_cpp = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only")
        subprocess.run([CXX, *as_cpp, source], check=True, timeout=120)
        user = tmp_path / "user.cpp"
        user.write_text(
            '#include "panda.h"\n'
            "static_assert(PANDA_JOINTS == 7 && PANDA_ORDER == 2);\n"
            "static_assert(PANDA_HAS_MOTORS && !PANDA_FLOATING_BASE);\n"
            "int main() { return panda_joint_names[6][0] == 'p' && panda_self_test() < 1e-12 ? 0 : 1; }\n"
        )
        code, program = tmp_path / "panda.o", tmp_path / "user"
        subprocess.run([CC, "-std=c99", "-O1", "-c", source, "-o", code], check=True, timeout=120)
        subprocess.run([CXX, "-std=c++17", user, code, "-o", program], check=True, timeout=120)
        assert subprocess.run([program], timeout=60).returncode == 0

    def test_the_recursion_is_straight_line_code(self) -> None:
        """No branch, no loop and no call but those of sine and cosine: constant time, and no memory."""
        for robot in (panda(), Robot.from_config(ROOT / "config" / "aerial_manipulator.yaml")):
            source = c_source(robot, 2, "robot").source
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
    def test_it_needs_sine_and_cosine_and_keeps_no_state(self, tmp_path: Path) -> None:
        assert CC is not None
        source, code = write(c_source(panda(), 2), tmp_path), tmp_path / "panda.o"
        subprocess.run([CC, "-std=c99", "-O1", "-c", source, "-o", code], check=True, timeout=120)
        symbols = subprocess.run(["nm", code], check=True, capture_output=True, text=True).stdout.splitlines()
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
        code = c_source(robot, 0, origin="a*/b\\")
        assert code.name == "robot_2"
        library = compiled(code, tmp_path)
        found = (ctypes.c_char_p * 2).in_dll(library, "robot_2_joint_names")
        assert tuple(name.decode() for name in found if name is not None) == names

    def test_every_number_comes_back_the_same(self) -> None:
        code = c_source(panda(), 2)
        text = code.source.split("test_tau[5][21] = {")[1].split("};")[0]
        numbers = np.array([float(x) for x in re.findall(r"-?\d[\d.e+-]*", text)]).reshape(5, 3, 7)
        text = code.source.split("test_q[5][35] = {")[1].split("};")[0]
        motions = np.array([float(x) for x in re.findall(r"-?\d[\d.e+-]*", text)]).reshape(5, 5, 7)
        for q, tau in zip(motions, numbers):
            assert np.array_equal(panda().compile(2)(q), tau)


class TestExample:
    """The ros2_control example, as far as it can be looked at without ros2_control."""

    FOLDER = ROOT / "examples" / "ros2_control_feedforward"

    def test_it_uses_what_the_export_offers(self) -> None:
        controller = (self.FOLDER / "src" / "feedforward_controller.cpp").read_text()
        used = set(re.findall(r"\b(?:panda|PANDA)_\w+", controller))
        header = c_source(panda(), 2).header
        assert {"panda_inverse_dynamics", "panda_motor_feedforward", "PANDA_JOINTS"} <= used
        assert used <= set(re.findall(r"\b(?:panda|PANDA)_\w+", header))

    def test_its_files_name_the_same_plugin(self) -> None:
        library = ElementTree.parse(self.FOLDER / "feedforward_controller.xml").getroot()
        plugin = library.find("class")
        assert plugin is not None
        controller = (self.FOLDER / "src" / "feedforward_controller.cpp").read_text()
        exported = f"PLUGINLIB_EXPORT_CLASS({plugin.get('type')}, {plugin.get('base_class_type')})"
        assert exported in controller
        assert f"type: {plugin.get('name')}" in (ROOT / "docs" / "export.md").read_text()
        package = ElementTree.parse(self.FOLDER / "package.xml").getroot()
        cmake = (self.FOLDER / "CMakeLists.txt").read_text()
        assert f"project({library.get('path')} " in cmake
        assert package.findtext("name") == library.get("path")
        found = set(re.findall(r"find_package\((\w+)", cmake)) - {"ament_cmake"}
        assert found == {depend.text for depend in package.findall("depend")}


class TestWords:
    def test_the_file_says_where_it_comes_from_and_what_it_takes(self, tmp_path: Path) -> None:
        path = ROOT / "config" / "panda.yaml"
        code, paths = export_c("panda.yaml", 2, tmp_path / "new" / "folder")
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
        assert c_source(panda(), 1) == c_source(panda(), 1)

    def test_motors_that_need_a_higher_order_are_left_out_with_a_word(self) -> None:
        code = c_source(panda(), 1)
        assert "panda_motor_feedforward(" not in code.header
        assert "#define PANDA_HAS_MOTORS 0" in code.header
        assert code.notes == (
            "panda_motor_feedforward is left out: the motor efforts of elastic joints need order 2 or "
            "higher, and this is order 1.",
        )

    @pytest.mark.parametrize("name", ("", "2nd", "a b", "a__b", "_a", "a_", "ä", "a" * 64, "a;b"))
    def test_names_that_c_cannot_take_are_refused(self, name: str) -> None:
        with pytest.raises(InputError, match="cannot start a C function"):
            c_source(panda(), 0, name)

    @pytest.mark.parametrize("order", (-1, True, 1.5))
    def test_orders_that_make_no_sense_are_refused(self, order: int) -> None:
        with pytest.raises(InputError, match="the order must be 0 or a positive integer"):
            c_source(panda(), order)

    def test_a_recursion_too_long_for_a_compiler_is_refused(self) -> None:
        robot = robot_of(random_tree(np.random.default_rng(0), 60))
        with pytest.raises(InputError, match="choose a lower order"):
            c_source(robot, 4)

    def test_the_base_of_a_yaml_file_floats_by_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="says itself whether its base floats"):
            export_c("panda.yaml", 0, tmp_path, floating_base=True)


class TestCommand:
    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hodyn_ros.cli", "export", *map(str, arguments)]
        return subprocess.run(command, env=child_environment(), capture_output=True, text=True, timeout=60)

    def test_it_says_what_it_wrote(self, tmp_path: Path) -> None:
        result = self.run(
            "--robot", "panda.yaml", "--order", "1", "--lang", "c", "--out", tmp_path, "--name", "arm"
        )
        assert (result.returncode, result.stderr) == (0, "")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["arm.c", "arm.h"]
        assert "arm.h" in result.stdout and "arm.c" in result.stdout and "operations" in result.stdout
        assert "note: arm_motor_feedforward is left out" in result.stdout

    @needs_c
    def test_a_urdf_file_whose_root_floats(self, tmp_path: Path) -> None:
        urdf = ROOT / "test" / "data" / "branched.urdf"
        result = self.run(
            "--robot", urdf, "--floating-base", "--order", "1", "--out", tmp_path, "--name", "two"
        )
        assert (result.returncode, result.stderr) == (0, "")
        code = CSource("two", (tmp_path / "two.h").read_text(), (tmp_path / "two.c").read_text(), 0, ())
        assert "#define TWO_FLOATING_BASE 1" in code.header
        assert compiled(code, tmp_path).two_self_test() <= RELATIVE

    @pytest.mark.parametrize(
        ("arguments", "words"),
        (
            (("--robot", "nowhere.yaml"), "no file 'nowhere.yaml'"),
            (("--robot", "panda.yaml", "--lang", "fortran"), "no export to 'fortran'; choose --lang c"),
            (("--robot", "panda.yaml", "--order", "-1"), "the order must be 0 or a positive integer"),
            (("--robot", "panda.yaml", "--name", "7 arms"), "the name '7 arms'"),
            (("--robot", "panda.yaml", "--out", "/proc/none"), "/proc/none"),
            (("--robot", "planar_3rrr.yaml"), "'planar_3rrr.yaml' is a parallel robot"),
            (("--robot", "panda_validation.yaml"), "panda_validation.yaml"),
        ),
        ids=("robot", "language", "order", "name", "folder", "parallel", "file"),
    )
    def test_bad_arguments_give_one_line(self, arguments: tuple[str, ...], words: str) -> None:
        result = self.run(*arguments)
        assert result.returncode == 2 and result.stdout == ""
        assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("error: ")
        assert words in result.stderr
