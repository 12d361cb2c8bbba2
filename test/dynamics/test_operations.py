"""Operations are what the table says: laws are there, arguments are as they take them, a page shows it."""

import inspect
import re
import runpy

import numpy as np
import pytest
from linkages import robot_of
from oracles.mechanisms import MECHANISMS
from oracles.random_trees import random_tree
from places import ROOT

from hodyn_ros import BaseMotion, Robot
from hodyn_ros.array import Array
from hodyn_ros.dynamics import operations
from hodyn_ros.dynamics.operations import OPERATIONS, Operation
from hodyn_ros.engine import matrix_kernels
from hodyn_ros.engine.matrix_kernels import JacobianLaw
from hodyn_ros.engine.series.vectors import dot

EACH = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
TREES = [Robot.from_screws(**random_tree(3, 2, floating_base=floats).arguments()) for floats in (False, True)]
LOOPS = robot_of(MECHANISMS["palletiser"]())


@EACH
def test_all_that_an_entry_names_is_there(operation: Operation) -> None:
    for of in ("tree", "loops", "kernel", "loops_call", "loops_plan", "published"):
        assert not getattr(operation, of) or callable(operation.law(of)), of
    assert inspect.isfunction(getattr(Robot, operation.name)), "a call of a robot has its name"


def test_the_page_shows_the_table() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "operations_table.py"))
    written = tool["PAGE"].read_text(encoding="utf-8")
    assert tool["page"](written) == written, "write it anew: tools/operations_table.py"
    of_export = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    for name, operation in OPERATIONS.items():
        assert f"| `{name}` |" in written
        assert not operation.exported or f"`{name}`" in of_export


def test_the_page_adds_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "contributing_operation.md").read_text(encoding="utf-8")
    law, entry, method = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    names = {**vars(matrix_kernels), "dot": dot}
    exec(law, names)
    operation = eval(entry, dict(vars(operations)))
    assert operation.sizes(**{"order + 1": 3}) == (3, 1) and operation.rates == 1
    assert f"def {operation.name}(" in method and f'"{operation.name}"' in method
    add(monkeypatch, operation, names[operation.name.upper()])
    for robot in (*TREES, LOOPS):
        q, base, velocity = moving(robot)
        expected = 0.5 * velocity @ robot.mass_matrix(q[:1], base)[0] @ velocity
        called = robot._dynamics.computed(operation.name, q, base)
        np.testing.assert_allclose(called, [[expected]], rtol=1e-12)
        compiled = robot._dynamics.compiled(operation.name, 0, ())
        np.testing.assert_allclose(compiled(*arrays(q, base)), [[expected]], rtol=1e-12)


def test_what_follows_from_a_jacobian_is_one_law_and_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    law = JacobianLaw(lambda jacobian, terms: [[dot(a, b) for b in jacobian] for a in jacobian])
    operation = operations._of_motion(
        "of_jacobian", "(order + 1, 6, 6)", 0, "J J^T", law="OF_JACOBIAN", frames="one", base="spatial"
    )
    add(monkeypatch, operation, law)
    for robot in (*TREES, LOOPS):
        q, base, _ = moving(robot)
        body = robot.tree.body_names[-1]
        found = robot._dynamics.computed(operation.name, q, base, body, "hybrid")
        value, rate = robot.jacobian(q, base, body=body, representation="hybrid")
        expected = [value @ value.T, rate @ value.T + value @ rate.T]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def add(monkeypatch: pytest.MonkeyPatch, operation: Operation, law: object) -> None:
    monkeypatch.setitem(operations.OPERATIONS, operation.name, operation)
    monkeypatch.setitem(operations.RATES, operation.name, operation.rates)
    monkeypatch.setattr(matrix_kernels, operation.name.upper(), law, raising=False)


def moving(robot: Robot) -> tuple[Array, BaseMotion | None, Array]:
    """Return a motion of two rows, and the velocities of the coordinates."""
    q = robot.home[0] + np.random.default_rng(3).uniform(-0.1, 0.1, (2, robot.n_coordinates))
    if not robot.tree.floating_base:
        return q, None, q[1]
    base = BaseMotion(np.eye(4), [[0.3, -0.2, 0.5, 1.0, 2.0, -1.0]])
    return q, base, np.concatenate([base.twists[0], q[1]])


def arrays(q: Array, base: BaseMotion | None) -> list[Array]:
    return [q] if base is None else [q, base.pose, np.array(base.twists)]
