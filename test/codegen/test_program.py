"""Programs: what the readers of one make of it is the same, in Python, in machine code and in C."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_code import CC, WARNINGS, compiled_by, needs_c
from numpy.typing import NDArray

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.codegen.kernel import computes, straight_line
from hodyn_ros.codegen.program import (
    All,
    Choose,
    Code,
    Compare,
    Copy,
    For,
    Index,
    Look,
    Not,
    Program,
    Put,
    Repeat,
    Return,
    Run,
    Statement,
    View,
    When,
    arrays,
    integer,
)
from hodyn_ros.codegen.program_llvm import compile_program
from hodyn_ros.codegen.program_numbers import run
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.engine.loops.loop_efforts import EffortCode
from hodyn_ros.engine.loops.loop_kernel import LoopFunction
from hodyn_ros.engine.loops.platform_drives import PlatformCode
from hodyn_ros.export.program_c import function_lines

ROWS, COLUMNS = 3, 2


def heron(x: list[list[Any]]) -> list[list[Any]]:
    """Improve the square root of a[0], x[1], and return how far it was, too."""
    ((a, root),) = x
    better = 0.5 * (root + a / root)
    return [[a, better, (better - root) * (better - root)]]


HERON_IN_C = [
    "static void heron(const double *x, double *result)",
    "{",
    "  const double a = x[0], root = x[1], better = 0.5 * (root + a / root);",
    "  result[2] = (better - root) * (better - root);",
    "  result[0] = a;",
    "  result[1] = better;",
    "}",
]


def program_of_roots(code: Code) -> Program:
    """Square roots of numbers (count, ROWS, COLUMNS) of which a table says how each is written."""
    i, j, kind, count = map(integer, ("i", "j", "kind", "count"))
    numbers, table, out, state, factors = arrays(("numbers", "table", "out", "state", "factors"))
    place = (count - 1 - i) * (ROWS * COLUMNS) + j * COLUMNS  # the last first
    result = out.at(place)
    one: list[Statement] = [
        Copy(state, numbers.at(place)),
        When(Not(Compare(state, ">", 0.0)), [Return(integer("i") + 1)]),
        Put(state.at(1), 1.0),
        Repeat([Run(code, [state, state])], Compare(state.at(2), ">", 1e-30), 40),
        Look(kind, table.at(i * ROWS + j)),
        Choose(
            kind, {0: [Copy(result, state.at(1))], 2: [Copy(result, factors), Copy(result.at(1), state, 2)]}
        ),
    ]
    both = All([Compare(out.at(1), "<=", 1e9), Compare(out, ">", 0.0)])
    body = [For(i, count, [For(j, Index.of(ROWS), one)]), When(both, [Put(out, -3.0)])]
    arguments = [numbers, table, out, count]
    return Program("roots", arguments, {"state": 3}, body, {"factors": np.array([0.25])}, returns=True)


def samples(count: int) -> tuple[Array, NDArray[np.int64]]:
    rng = np.random.default_rng(7)
    return rng.uniform(0.1, 9.0, count * ROWS * COLUMNS), rng.integers(0, 3, count * ROWS)


def by_machine(program: Program, *given: Any) -> tuple[int, Array]:
    compiled = compile_program(program)
    kinds = [ctypes.c_int64 if isinstance(x, int) else ctypes.c_void_p for x in given]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(compiled.address)
    return function(*(x if isinstance(x, int) else x.ctypes.data for x in given)), given[-2]


def test_programs_with_other_constants_share_code_on_disk_and_keep_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path))
    out = View("out")

    def constant(number: float) -> Program:
        return Program("constant", [out], {}, [Copy(out, View("number"), 1)], {"number": np.array([number])})

    programs = constant(2.0), constant(3.0)
    codes = [compile_program(program) for program in programs]
    for code, expected in zip(codes, (2.0, 3.0)):
        found = np.zeros(1)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address)(found.ctypes.data)
        assert found[0] == expected
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("count, spoilt", [(0, None), (4, None), (4, 5)])
def test_machine_code_does_what_numbers_say(count: int, spoilt: int | None) -> None:
    program = program_of_roots(straight_line(heron, [(1, 2)]))
    numbers, table = samples(count)
    if spoilt is not None:
        numbers[spoilt * COLUMNS] = np.nan
    expected, out = np.zeros(len(numbers) + 2), np.zeros(len(numbers) + 2)
    returned = run(program, [numbers, table, expected, count])
    assert by_machine(program, numbers, table, out, count)[0] == returned
    assert np.array_equal(out, expected)
    assert returned == (0 if spoilt is None else count - spoilt // ROWS)


def test_numbers_are_right() -> None:
    program = program_of_roots(Code("heron", compute=computes(heron, [(1, 2)])))
    numbers, table = samples(4)
    out = np.zeros(len(numbers))
    assert run(program, [numbers, np.zeros_like(table), out, 4]) == 0
    assert out[0] == -3.0
    assert np.abs(out[COLUMNS::COLUMNS] / np.sqrt(numbers[COLUMNS::COLUMNS]) - 1.0).max() < 1e-15


@needs_c
def test_c_does_what_numbers_say(tmp_path: Path) -> None:
    program = program_of_roots(Code("heron", compute=computes(heron, [(1, 2)])))
    numbers, table = samples(5)
    expected, out = np.zeros(len(numbers) + 2), np.zeros(len(numbers) + 2)
    returned = run(program, [numbers, table, expected, 5])
    source, library = tmp_path / "roots.c", tmp_path / "roots.so"
    lines = function_lines(program)
    start = next(k for k, line in enumerate(lines) if line.startswith("long roots"))
    declared = "long roots(double *numbers, double *table, double *out, long count);"
    source.write_text("\n".join([*lines[:start], *HERON_IN_C, declared, *lines[start:]]) + "\n")
    flags = ("-std=c99", *WARNINGS, "-O1", "-ffp-contract=off", "-fPIC", "-shared")
    compiled_by(CC, flags, [source], library)
    function = ctypes.CDLL(str(library)).roots
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long]
    as_doubles = table.astype(float)
    assert function(numbers.ctypes.data, as_doubles.ctypes.data, out.ctypes.data, 5) == returned
    assert np.array_equal(out, expected)


def test_memory_without_a_known_size_is_given_back_at_every_return() -> None:
    n, work, out = integer("n"), View("work"), View("out")
    copied: list[Statement] = [Copy(work.at(n - 1), out), Copy(out.at(n - 1), work.at(n - 1))]
    body: list[Statement] = [When(Compare(out, "<", 0.0), [Return(n * n)]), *copied]
    program = Program("heap", [out, n], {"work": n * 100_000}, body, returns=True)
    for first, size in ((2.0, 3), (-2.0, 3)):
        expected, out_here = np.full(size, first), np.full(size, first)
        expected[1:] = out_here[1:] = 0.0
        compiled = compile_program(program)
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(compiled.address)
        assert function(out_here.ctypes.data, size) == run(program, [expected, size])
        assert np.array_equal(out_here, expected)


def test_indices_are_polynomials() -> None:
    i, n = integer("i"), integer("n")
    assert (2 * i - i - i).constant == 0
    assert ((n - 1 - i) * (n + 1)).terms == (n * n - 1 - i * n - i).terms
    assert i.name == "i" and (i + 1).constant is None


def test_newton_of_loops_goes_on_in_numbers_as_in_machine_code() -> None:
    closure = Robot.load(share.find("config", "palletiser.yaml")).closure
    assert closure is not None
    looped = LoopedDynamics(closure)
    kernel = LoopFunction(EffortCode(closure, looped.independence.of_joints, 1))
    rng = np.random.default_rng(3)
    given = [rng.uniform(-0.1, 0.1, shape) for _, shape in kernel.arguments[:-1]]
    given[0][0] += looped.known.y
    assert_same(kernel, given, looped.memory[:, : kernel.arguments[-1][1][1]])


def test_limbs_side_by_side_are_the_same_one_after_the_other() -> None:
    closure = Robot.load(share.find("config", "gough_stewart_6ups.yaml")).closure
    assert closure is not None
    memory, rng = np.asarray(LoopedDynamics(closure).memory), np.random.default_rng(5)
    pose = memory[0, -16:].reshape(4, 4).copy()
    kernel = LoopFunction(EffortCode(closure, np.zeros(0, dtype=int), 0))
    pose[:3, 3] += 1e-3
    assert_same(kernel, [np.zeros((3, 0)), pose, rng.uniform(-0.1, 0.1, (2, 6))], memory)
    direct = LoopFunction(PlatformCode(closure, 1))
    drives = rng.uniform(-1e-3, 1e-3, direct.arguments[0][1])
    drives[0] += memory[0, [closure.leading.index(joint) for joint in closure.driven]]
    assert_same(direct, [drives], memory)


def assert_same(kernel: Any, given: list[Array], memory: Array) -> None:
    """Hold what a call does, its memory included, against its program carried out on numbers."""
    memory = np.array(memory)
    expected, remembered = np.zeros(kernel.result), memory.copy()
    found = kernel.function(*given, memory)
    run(kernel.compiled.program, [*(x.ravel() for x in given), remembered.reshape(-1), expected.reshape(-1)])
    counts = expected.ravel()[kernel.defect_at] < 1.0
    assert counts and found.ravel()[kernel.defect_at] < 1.0
    rows = kernel.batch_rows
    assert np.allclose(
        found[rows].ravel()[: kernel.defect_at],
        expected[rows].ravel()[: kernel.defect_at],
        rtol=1e-11,
        atol=1e-11,
    )
    assert np.allclose(memory, remembered, rtol=1e-13, atol=1e-13)
