"""Machine code is found by what its law can see: for the same alone, and never that of other code."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracles.cases import make_case
from places import ROOT

from hodyn_ros import JointTree, Robot
from hodyn_ros.codegen import keys
from hodyn_ros.codegen.kernel import Kernel, straight_module
from hodyn_ros.codegen.keys import key_of
from hodyn_ros.codegen.llvm import Module
from hodyn_ros.dynamics.operations import OPERATIONS
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.kernels import hybrid_dynamics_trace, inverse_dynamics_trace
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.recursions.recursion import Recursion
from hodyn_ros.engine.series import canonical
from hodyn_ros.engine.series.validity import DOUBLE
from hodyn_ros.feedforward.limits import FeedforwardLimits
from hodyn_ros.feedforward.model import CompiledFeedforward
from hodyn_ros.interop.robot_functions import function_of
from hodyn_ros.lie.se3 import Array

CONFIG = ROOT / "config"


@pytest.fixture(autouse=True)
def written_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that this session may have written are those that it runs; a cache of one's own."""
    monkeypatch.setattr(keys._sources, "_changed", False)
    monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path / "cache"))


def panda() -> Robot:
    return Robot.load(CONFIG / "panda.yaml")


def key_of_law(model: Any, *further: Any) -> str | None:
    trace, arguments = inverse_dynamics_trace(model, *(further or (1,)))
    return key_of(straight_module, trace, arguments)


def effort_code(robot: Robot, *, preload: bool = False) -> EffortCode:
    assert robot.closure is not None
    chosen: Any = np.arange(len(robot.closure.leading))
    return EffortCode(robot.closure, chosen, 1, preload=preload)


def changed(value: Any) -> Any:
    """Return the nearest other value of its kind."""
    if isinstance(value, np.ndarray):
        result = value.copy()
        result.flat[-1] = np.nextafter(result.flat[-1], np.inf)
        return result
    if isinstance(value, bool):
        return not value
    return (*value[:-1], changed(value[-1])) if isinstance(value, tuple) else value + type(value)(1)


class TestWhatALawSees:
    def test_the_same_robot_has_the_same_key(self) -> None:
        assert key_of_law(panda().tree) == key_of_law(panda().tree) != None  # noqa: E711

    @pytest.mark.parametrize(
        "name", ["masses", "coms", "inertias", "screws", "placements", "gravity", "parents"]
    )
    def test_another_figure_is_another_key(self, name: str) -> None:
        """By one unit in the last place."""
        model = panda().tree
        other = replace(model, **{name: changed(getattr(model, name))})
        assert key_of_law(model) != key_of_law(other)

    def test_every_field_of_a_robot_counts(self) -> None:
        model = panda().tree
        others = [replace(model, **{f.name: _another(getattr(model, f.name))}) for f in fields(model)]
        found = [key_of_law(model, 1, KernelSpec()) for model in (model, *others)]
        assert None not in found
        assert len(set(found)) == len(found)

    def test_a_warning_changes_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Python notes in the module that it was given."""
        before = key_of_law(panda().tree)
        monkeypatch.setitem(vars(keys), "__warningregistry__", {"version": 1})
        assert key_of_law(panda().tree) == before != None  # noqa: E711

    def test_operation_order_and_options_count(self) -> None:
        model = panda().tree
        specs = [
            KernelSpec(),
            KernelSpec(loads=((1, "spatial"),)),
            KernelSpec(loads=((1, "body_fixed"),)),
            KernelSpec(loads=((2, "spatial"),)),
        ]
        found = [key_of_law(model, order, spec) for order in (0, 1) for spec in specs]
        found += [
            key_of(straight_module, *hybrid_dynamics_trace(model, 0, spec))
            for spec in (KernelSpec(), KernelSpec(prescribed=(0,)), KernelSpec(prescribed=(1,)))
        ]
        assert len(set(found)) == len(found)

    @pytest.mark.parametrize(
        "old, new",
        [
            ("com: {value: [0.1, 0, 0.35]", "com: {value: [0.1, 0, 0.35000000000000003]"),
            ("gravity: [0, 0, -9.81]", "gravity: [0, 0, -9.82]"),
        ],
    )
    def test_robots_with_loops(self, tmp_path: Path, old: str, new: str) -> None:
        text = (CONFIG / "palletiser.yaml").read_text()
        assert old in text
        found = []
        for content in (text, text, text.replace(old, new)):
            (tmp_path / "robot.yaml").write_text(content)
            robot = Robot.load(tmp_path / "robot.yaml")
            code = effort_code(robot)
            shapes = [(4, robot.n_coordinates), (1, len(code.closure.leading) + 1)]
            found.append(key_of(straight_module, code.newton_step, shapes))
        assert found[0] == found[1] != None  # noqa: E711
        assert found[0] != found[2]

    def test_whether_redundant_drives_are_preloaded_and_how_close_loops_are_closed(self) -> None:
        robot = Robot.load(CONFIG / "palletiser.yaml")
        plain, preloaded = (effort_code(robot, preload=preload) for preload in (False, True))
        plain.tolerances = preloaded.tolerances = DOUBLE
        before = key_of(plain.end)
        assert before != key_of(preloaded.end)
        plain.tolerances = DOUBLE._replace(arrived=DOUBLE.arrived)
        assert key_of(plain.end) == before
        plain.tolerances = DOUBLE._replace(arrived=2.0 * DOUBLE.arrived)
        assert key_of(plain.end) != before

    def test_limits_of_joints_count_where_code_checks_them(self) -> None:
        robot = panda()
        limits, train = robot.limits, robot.drive_train
        assert limits is not None and train is not None
        faster = replace(limits, velocity=changed(limits.velocity))
        found = [FeedforwardLimits.of(one, train) for one in (limits, limits, faster)]
        first, again, other = (key_of(one.excess) for one in found if one is not None)
        assert first == again != other
        assert first is not None

    def test_kinds_of_numbers_and_shapes_count(self) -> None:
        values = (
            0,
            0.0,
            -0.0,
            False,
            np.float64(0.0),
            np.zeros(1),
            np.zeros((1, 1)),
            "0",
            b"0",
            (0,),
            [0],
            None,
        )
        found = [key_of(inverse_dynamics_trace, value) for value in values]
        assert len(set(found)) == len(values)
        one, other = np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2).T
        assert key_of(inverse_dynamics_trace, one) != key_of(inverse_dynamics_trace, other)
        assert key_of(inverse_dynamics_trace, ["ab", "c"]) != key_of(inverse_dynamics_trace, ["a", "bc"])

    def test_what_refers_to_itself(self) -> None:
        some: list[Any] = [1.0]
        some.append(some)
        other: list[Any] = [1.0]
        other.append([1.0, other])
        assert key_of(inverse_dynamics_trace, some) != key_of(inverse_dynamics_trace, other)


def _another(value: Any) -> Any:
    return f"{value}x" if isinstance(value, str) else changed(value)


class TestWithoutKey:
    """Whatever is not known by its value is written every time."""

    def test_functions_of_other_code(self) -> None:
        assert key_of(lambda: 1.0) is None
        assert key_of(inverse_dynamics_trace, lambda: 1.0) is None
        assert key_of(partial(straight_module, changed)) is None

    def test_objects_of_other_code(self, tmp_path: Path) -> None:
        class Own(JointTree):
            """A robot of somebody else."""

        with (tmp_path / "file").open("w") as file:
            for value in (object(), file, Own, iter([1.0]), os.environ):
                assert key_of(inverse_dynamics_trace, value) is None, value

    def test_a_law_that_changes_what_it_sees_is_not_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        noted: list[int] = []
        calls = []

        def write(store: list[int]) -> tuple[str, tuple[int, ...]]:
            calls.append(1)
            store.append(1)
            return "", ()

        monkeypatch.setattr(keys, "_ours", lambda module: True)
        for _ in range(2):
            Module(write, noted)
        assert len(calls) == 2

    def test_replaced_functions_and_constants(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = panda().tree
        before = key_of_law(model)
        with monkeypatch.context() as patch:
            patch.setattr(Recursion, "transmit", lambda *_: None)
            assert key_of_law(model) is None
        assert key_of_law(model) == before
        with monkeypatch.context() as patch:
            patch.setattr(canonical, "_CROSSED", 1e-3)
            assert key_of_law(model) is None
        assert key_of_law(model) == before

    def test_what_is_replaced_in_a_module_that_was_loaded_later(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        late = ModuleType("hodyn_ros.engine.late")
        late.__spec__ = ModuleSpec(late.__name__, None, origin=keys.__file__)
        late.figure = 1.0  # type: ignore[attr-defined]
        before = key_of_law(panda().tree)
        monkeypatch.setitem(sys.modules, late.__name__, late)
        assert key_of_law(panda().tree) == before != None  # noqa: E711
        late.figure = 2.0  # type: ignore[attr-defined]
        assert key_of_law(panda().tree) is None
        late.figure = 1.0  # type: ignore[attr-defined]
        del keys._sources._namespaces[late.__name__]

    def test_files_written_since_the_process_began(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sources = keys._Sources()
        assert sources.digest() is not None
        later = keys._Sources()
        later._began = 0.0
        assert later.digest() is None


class TestFound:
    """What is found is what would have been written."""

    @pytest.mark.parametrize("name", sorted(one for one in OPERATIONS if OPERATIONS[one].tree))
    def test_laws_of_trees(self, name: str) -> None:
        operation = OPERATIONS[name]
        if operation.frames != "none":
            pytest.skip("its law takes frames, which the call finds")
        model = Robot.from_screws(**make_case(70, 2, 1).tree.arguments()).tree
        trace, arguments = operation.law("tree")(model, 0)
        shapes = [shape for _, shape in arguments]
        first, again = (Module(straight_module, trace, shapes) for _ in range(2))
        assert again._text is None, "it has no key"
        assert (again._name, again.facts) == (first._name, first.facts)
        assert again._written() == first._written()

    def test_what_a_caller_needs_is_kept(self) -> None:
        robot, q = panda(), np.random.default_rng(0).uniform(-0.5, 0.5, (4, 7))
        first, again = (CompiledFeedforward(1, robot.drive_train, None, tree=robot.tree)(q) for _ in range(2))
        assert first is not None and again is not None
        np.testing.assert_array_equal(first.efforts, again.efforts)
        assert first.motor_positions.shape == again.motor_positions.shape == (2, 7)

    def test_a_kernel_from_disk_is_the_same(self) -> None:
        model = panda().tree
        q = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 7))
        first, again = (Kernel(*inverse_dynamics_trace(model, 1)) for _ in range(2))
        assert (first.operations, first.result) == (again.operations, again.result)
        np.testing.assert_array_equal(first.function(q), again.function(q))

    def test_code_that_was_forgotten_is_written_again(self, tmp_path: Path) -> None:
        law = inverse_dynamics_trace(panda().tree, 0)
        first = Kernel(*law)
        for file in (tmp_path / "cache").iterdir():
            if file.stat().st_size > 1000:
                file.unlink()
        q = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7))
        np.testing.assert_array_equal(Kernel(*law).function(q), first.function(q))


class TestFoundOfLoops:
    """Batches in lanes and partial derivatives are found for the same robot, and never for another."""

    @pytest.fixture
    def written(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The names of functions that have written a module."""
        names: list[str] = []
        make = Module.__init__

        def noted(module: Module, write: Any, *arguments: Any) -> None:
            make(module, write, *arguments)
            if module._text is not None:
                names.append(write.__name__)

        monkeypatch.setattr(Module, "__init__", noted)
        monkeypatch.setattr(keys, "_sources", keys._Sources())  # which knows of no other code
        monkeypatch.setattr(keys._sources, "_began", time.time() + 60.0)
        return names

    @pytest.mark.parametrize(
        "writers, compute",
        [
            ({"_step_in_lanes", "_end_in_lanes"}, lambda robot, q: robot.compile_batch(0)(q)),
            ({"still", "moving"}, lambda robot, q: robot.inverse_dynamics_derivatives(q[0])),
            ({"still", "moving"}, lambda robot, q: robot.forward_dynamics_derivatives(q[0, :2], q[0, 2:])),
            ({"still", "moving"}, lambda robot, q: robot.matrix_derivatives(q[0, :2]).mass_by_position),
        ],
    )
    def test_the_same_robot_and_another(
        self,
        writers: set[str],
        compute: Callable[[Robot, Array], Array],
        written: list[str],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        text = (CONFIG / "ankle_linkage.yaml").read_text()
        heavier = text.replace("mass: {value: 1.2,", "mass: {value: 1.3,")
        assert heavier != text
        q = np.tile(np.random.default_rng(0).uniform(-0.1, 0.1, (3, 2)), (64, 1, 1))

        def computed(content: str) -> tuple[Array, set[str]]:
            written.clear()
            (tmp_path / "robot.yaml").write_text(content)
            return compute(Robot.load(tmp_path / "robot.yaml"), q), set(written)

        first, new = computed(text)
        assert writers <= new
        again, new = computed(text)
        assert not writers & new
        np.testing.assert_array_equal(again, first)
        other, new = computed(heavier)
        assert writers <= new
        assert np.abs(other - first).max() > 1e-3 * np.abs(first).max()
        monkeypatch.setenv("HODYN_CACHE_DIR", "")
        np.testing.assert_array_equal(computed(heavier)[0], other)


@pytest.mark.parametrize("name", ["law", "jacobian", "gradient", "change", "curvature", "second"])
def test_functions_for_other_libraries(name: str) -> None:
    """Each law has its key, which changes with the robot."""
    model = Robot.from_screws(**make_case(70, 2, 1).tree.arguments())
    heavier = model.with_tree(replace(model.tree, masses=changed(model.tree.masses)))
    found = [key_of(getattr(function_of(robot, "com", 0), name)) for robot in (model, model, heavier)]
    assert found[0] == found[1] != None  # noqa: E711
    assert found[0] != found[2]
    others = ["law", "jacobian", "gradient", "change", "curvature", "second"]
    assert len({key_of(getattr(function_of(model, "com", 0), each)) for each in others}) == len(others)


EDITED = """
import sys, time
from hodyn_ros.codegen import keys, llvm
keys._sources._began = time.time() + 60.0  # files of this copy count as old
from hodyn_ros import Robot
from hodyn_ros.engine.kernels import inverse_dynamics
import numpy as np
written = []
write = llvm.Module.__init__
def noted(self, *arguments):
    write(self, *arguments)
    written.append(self._text is not None)
llvm.Module.__init__ = noted
keys._sources._namespaces.clear()
keys._sources._n_modules = 0
robot = Robot.load(sys.argv[1])
print(inverse_dynamics(robot.model, 0).function(np.ones((3, 7)))[0, 1].item(), written)
"""


def test_an_edited_source_is_never_served_old_code(tmp_path: Path) -> None:
    """The sign of what a joint's torque is made of, in a file that nothing else sees."""
    shutil.copytree(ROOT / "hodyn_ros", tmp_path / "hodyn_ros", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "hodyn_ros" / "engine" / "series" / "body.py"

    def computed() -> str:
        command = [sys.executable, "-c", EDITED, str(CONFIG / "panda.yaml")]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    original = edited.read_text()
    first = computed()
    assert first.endswith("[True]")
    edited.write_text(_with_other_sign(original))
    other = computed()
    assert other.endswith("[True]")
    assert float(other.split()[0]) == -float(first.split()[0])
    edited.write_text(original)
    assert computed() == first.replace("True", "False")


def _with_other_sign(text: str) -> str:
    at = text.index("return ", text.index("def along_joint("))
    end = text.index("\n", at)
    return f"{text[:at]}return -({text[at + 7 : end]}){text[end:]}"
