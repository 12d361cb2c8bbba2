"""Operations are what the table says: laws are there, arguments are as they take them, a page shows it."""

from __future__ import annotations

import inspect
import re
import runpy

import numpy as np
import pytest
from oracles.random_trees import random_tree
from places import ROOT

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.dynamics import operations
from hodyn_ros.dynamics.named_frames import placed
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.engine import matrix_kernels
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.engine.series.vectors import dot

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
TREES = [Robot.from_screws(**random_tree(3, 2, floating_base=floats).arguments()) for floats in (False, True)]
NAME = TREES[0].tree.body_names[:2]


@EACH
def test_all_that_an_entry_names_is_there(operation: Operation) -> None:
    for of in ("tree", "loops", "kernel", "loops_call", "loops_plan", "published"):
        assert not getattr(operation, of) or callable(operation.law(of)), of
    assert inspect.isfunction(getattr(Robot, operation.name)), "a call of a robot has its name"


@EACH
def test_what_is_offered_has_a_law(operation: Operation) -> None:
    by_law = operation.frames == "several" or (operation.in_c and operation.about)
    for offered in (operation.compiled, operation.batched, operation.exported):
        if "tree" in offered:
            assert operation.tree or operation.takes == "poses"
    if "loops" in operation.compiled | operation.batched:
        assert operation.loops or operation.loops_call
    if "tree" in operation.exported:
        assert operation.tree and by_law
    if "loops" in operation.exported:
        assert operation.loops_plan or (operation.loops and by_law)
    assert operation.batched <= operation.compiled and operation.says


@pytest.mark.parametrize("robot", TREES, ids=("fixed", "floating"))
@EACH
def test_laws_take_as_many_rows_as_the_entry_says(operation: Operation, robot: Robot) -> None:
    if not operation.tree:
        return
    of = {"none": (), "one": (NAME[0], "hybrid"), "several": (NAME, "hybrid")}[operation.frames]
    order, n = 0 if "second" in operation.name else 1, robot.n_coordinates
    tree = robot.tree
    further = [KernelSpec.of(tree)] if operation.kernel else placed(tree, robot.frames, of)
    _, arguments = operation.law("tree")(tree, order, *further)
    (_, first), *others = arguments
    rows = 2 if operation.takes == "state" else order + 1 + operation.rates
    assert first == (rows, n)
    if operation.takes == "state":
        assert others.pop(0)[1] == (order + 1, n)
    if tree.floating_base:
        assert [shape for _, shape in others[:2]] == [(4, 4), (rows - 1, 6)]


def test_the_page_shows_the_table() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "operations_table.py"))
    written = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["page"](written) == written, "write it anew: tools/operations_table.py"
    of_export = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    for name, operation in OPERATIONS.items():
        assert f"| `{name}` |" in written
        assert not operation.exported or f"`{name}`" in of_export


@pytest.mark.parametrize("robot", TREES, ids=("fixed", "floating"))
def test_the_page_adds_an_operation(robot: Robot) -> None:
    text = (ROOT / "docs" / "contributing_operation.md").read_text(encoding="utf-8")
    law, entry, method = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    names = {**vars(matrix_kernels), "dot": dot}
    exec(law, names)
    operation = eval(entry, dict(vars(operations)))
    assert operation.sizes(**{"order + 1": 3}) == (3, 1) and operation.rates == 1
    assert f"def {operation.name}(" in method and f'"{operation.name}"' in method
    q = np.random.default_rng(3).uniform(-1.0, 1.0, (2, robot.n_coordinates))
    base = BaseMotion(np.eye(4), [[0.3, -0.2, 0.5, 1.0, 2.0, -1.0]]) if robot.tree.floating_base else None
    trace, arguments = names[operation.name.upper()].of_tree(robot.tree, 0)
    given = [array.tolist() for array in (q, *((base.pose, base.twists) if base else ()))]
    assert len(arguments) == len(given)
    velocity = np.concatenate([base.twists[0], q[1]]) if base else q[1]
    expected = 0.5 * velocity @ robot.mass_matrix(q[:1], base)[0] @ velocity
    np.testing.assert_allclose(trace(*given), [[expected]], rtol=1e-12)
