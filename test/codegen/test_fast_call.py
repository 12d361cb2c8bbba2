"""Calls of compiled code from Python: checked, converted or refused, and never a crash or a leak."""

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import assert_refused, misshapen, not_finite, refused

from hodyn_ros import OverflowingError
from hodyn_ros.array import Array
from hodyn_ros.codegen import fast_call
from hodyn_ros.codegen.kernel import Kernel, Stack
from hodyn_ros.errors import InputError

A, B = np.arange(6.0).reshape(2, 3) + 1.0, np.array([[0.5, -2.0]])


def product(a: Stack, b: Stack) -> Stack:
    """Return b a, with a (2, 3) and b (1, 2)."""
    return [[b[0][0] * a[0][j] + b[0][1] * a[1][j] for j in range(3)]]


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel(product, [("a", (2, 3)), ("b", (1, 2))])


@pytest.fixture(params=["compiled", "ordinary"], scope="module")
def f(request: pytest.FixtureRequest, kernel: Kernel) -> Callable[..., Any]:
    """Return the compiled call, or the one that stands in for it on an interpreter that it does not know."""
    if request.param == "compiled":
        return kernel.function
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_call, "_layout_is_known", lambda: False)
        return Kernel(product, [("a", (2, 3)), ("b", (1, 2))]).function


def test_the_compiled_call_is_used_here(kernel: Kernel) -> None:
    """CPython with a global lock on a 64-bit machine is what the project is tested on."""
    assert type(kernel.function) is type(len)


def test_it_computes(f: Callable[..., Any]) -> None:
    found = f(A, B)
    np.testing.assert_array_equal(found, B @ A)
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape, found.flags.c_contiguous) == (np.float64, (1, 3), True)
    assert found.flags.owndata and found.flags.writeable


def test_out_receives_the_result(f: Callable[..., Any]) -> None:
    out = np.full((1, 3), np.nan)
    assert f(A, B, out=out) is out
    np.testing.assert_array_equal(out, B @ A)
    np.testing.assert_array_equal(f(A, B, out=None), B @ A)


class Tagged(np.ndarray):
    """A subclass of an array."""


class Wrapped:
    """Something that turns into an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(A, dtype=dtype)


SAME: dict[str, Callable[[], Any]] = {
    "read-only": lambda: np.frombuffer(A.tobytes()).reshape(2, 3),
    "float32": lambda: A.astype(np.float32),
    "float128": lambda: A.astype(np.longdouble),
    "integers": lambda: A.astype(int),
    "swapped": lambda: A.astype(">f8"),
    "fortran": lambda: np.asfortranarray(A),
    "strided": lambda: np.repeat(A, 2, axis=1)[:, ::2],
    "reversed": lambda: A[::-1].copy()[::-1],
    "unaligned": lambda: np.frombuffer(b"x" + A.tobytes(), np.uint8)[1:].view(float).reshape(2, 3),
    "subclass": lambda: A.view(Tagged),
    "matrix": lambda: A.view(np.matrix),
    "masked": lambda: np.ma.masked_array(A),
    "objects": lambda: A.astype(object),
    "list": lambda: A.tolist(),
    "tuples": lambda: tuple(map(tuple, A)),
    "rows": lambda: list(A),
    "wrapped": Wrapped,
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_numbers_in_any_form(f: Callable[..., Any], name: str) -> None:
    np.testing.assert_array_equal(f(SAME[name](), B), B @ A)


def test_a_subclass_receives_the_result_too(f: Callable[..., Any]) -> None:
    out = np.zeros((1, 3)).view(Tagged)
    assert f(A, B, out=out) is out
    np.testing.assert_array_equal(out, B @ A)


def test_what_does_not_fit_is_named(f: Callable[..., Any]) -> None:
    assert_refused(
        ((), "2 arrays ... 'a', 'b' ... found 0"),
        ((A,), "2 arrays ... 'a', 'b' ... found 1"),
        ((A, B, np.zeros((1, 3))), "found 3"),
        ((A,) * 300, "found 300"),
        ((B, A), misshapen("a", (1, 2), "(2, 3)")),
        ((A, B.T), misshapen("b", (2, 1), "(1, 2)")),
        ((A.T, B), misshapen("a", (3, 2), "(2, 3)")),
        ((A.ravel(), B), misshapen("a", (6,), "(2, 3)")),
        ((A[None], B), misshapen("a", (1, 2, 3), "(2, 3)")),
        ((np.float64(1.0), B), misshapen("a", (1,), "(2, 3)")),
        ((np.zeros((2, 0)), B), misshapen("a", (2, 0), "(2, 3)")),
        ((None, B), "a is None; give an array"),
        ((A, None), "b is None; give an array"),
        (("text", B), "a must hold real numbers"),
        ((A, object()), "b must hold real numbers"),
        ((A + 1j, B), "a must hold real numbers ... complex"),
        (([[1.0, 2.0, 3.0], [1.0]], B), "a must hold real numbers"),
        by=lambda arguments: f(*arguments),
    )


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_found_anywhere(f: Callable[..., Any], value: float) -> None:
    out = np.zeros((1, 3))
    for name, array in (("a", A), ("b", B)):
        for place in np.ndindex(array.shape):
            spoiled = {"a": A.copy(), "b": B.copy()}
            spoiled[name][place] = value
            refused(partial(f, spoiled["a"], spoiled["b"], out=out), not_finite(name, place))
    np.testing.assert_array_equal(out, 0.0)


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 16, 27])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 2.0**60, -(2.0**60)])
def test_each_number_is_looked_at_whatever_their_count(columns: int, value: float) -> None:
    """Several at a time, and those that are left one by one."""
    kernel = Kernel(lambda x: [[x[0][0]]], [("x", (1, columns))])
    call = fast_call.fast_call(kernel.address, [(1, columns)], (1, 1), lambda x: "passed on")
    x = np.full((1, columns), np.nextafter(2.0**60, 0.0))
    assert call(x) == x[0, 0]
    for place in range(columns):
        spoiled = x.copy()
        spoiled[0, place] = value
        assert call(spoiled) == "passed on"


@pytest.mark.parametrize("size", [2.0**59, 2.0**60, 1e100, 5e-324])
def test_large_and_tiny_numbers_are_numbers(f: Callable[..., Any], size: float) -> None:
    np.testing.assert_array_equal(f(size * A, B), B @ (size * A))


def test_an_overflow_is_refused(f: Callable[..., Any]) -> None:
    for out in (None, np.zeros((1, 3))):
        refused(partial(f, 1e200 * A, 1e200 * B, out=out), "", OverflowingError)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"into": np.zeros((1, 3))}, "into"),
        ({"out": None, "into": None}, "into"),
        ({"a": A}, "a"),
        ({"": A}, "''"),
    ],
)
def test_a_keyword_that_there_is_not(f: Callable[..., Any], keywords: dict[str, Any], words: str) -> None:
    refused(lambda: f(A, B, **keywords), f"unexpected keyword argument ... {words}", TypeError)


def test_arguments_have_no_names(f: Callable[..., Any]) -> None:
    refused(lambda: f(a=A, b=B), "unexpected keyword argument", TypeError)


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((3, 1)),
        np.zeros(3),
        np.zeros((1, 3), dtype=np.float32),
        np.zeros((1, 3), dtype=">f8"),
        np.zeros((1, 6))[:, ::2],
        np.broadcast_to(np.zeros(1), (1, 3)),
        np.frombuffer(bytes(24)).reshape(1, 3),
        np.frombuffer(bytearray(25), np.uint8)[1:].view(float).reshape(1, 3),
        [[0.0, 0.0, 0.0]],
        3,
        "out",
    ],
    ids=[
        "turned",
        "flat",
        "short",
        "swapped",
        "strided",
        "one",
        "read-only",
        "unaligned",
        "list",
        "3",
        "text",
    ],
)
def test_an_out_that_does_not_fit(f: Callable[..., Any], out: Any) -> None:
    refused(lambda: f(A, B, out=out), "out must be")


def test_a_base_without_joints_has_nothing_to_say_of_them() -> None:
    """Arrays with no columns among others, and results without."""

    def trace(q: Stack, twist: Stack) -> Stack:
        return [[2.0 * value for value in twist[0]]]

    kernel = Kernel(trace, [("q", (3, 0)), ("twist", (1, 6))])
    np.testing.assert_array_equal(kernel.function(np.zeros((3, 0)), np.ones((1, 6))), np.full((1, 6), 2.0))
    call = partial(kernel.function, np.zeros((2, 0)), np.ones((1, 6)))
    refused(call, misshapen("q", (2, 0), "(3, 0)"))
    empty = Kernel(lambda q: [[], []], [("q", (2, 0))])
    assert empty.function(np.zeros((2, 0))).shape == (2, 0)


def test_an_error_inside_comes_out(f: Callable[..., Any]) -> None:
    class Refuses:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            raise KeyError("from inside")

    refused(lambda: f(Refuses(), B), "from inside", KeyError)


def test_references_are_neither_kept_nor_lost(f: Callable[..., Any]) -> None:
    out, strange = np.zeros((1, 3)), np.zeros((3, 1))
    things = (A, B, out, strange, np.ndarray, f)
    before = [sys.getrefcount(thing) for thing in things]
    for _ in range(300):
        f(A, B)
        f(A, B, out=out)
        with pytest.raises(TypeError):
            f(A, B, a=A)
        with pytest.raises(InputError):
            f(A, B, out=strange)
        with pytest.raises(InputError):
            f(A, strange)
        with pytest.raises(InputError):
            f(1e200 * A, 1e200 * B, out=out)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in things] == before
    assert sys.getrefcount(f(A, B)) == sys.getrefcount(np.zeros((1, 3)))


def test_threads_share_it(f: Callable[..., Any]) -> None:
    def work(seed: int) -> bool:
        a = np.random.default_rng(seed).uniform(size=(2, 3))
        out = np.empty((1, 3))
        expected = f(a, B).copy()
        return all((f(a, B) == expected).all() and (f(a, B, out=out) == expected).all() for _ in range(300))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing goes but what nobody knows: the collector rarely looks for cycles among few objects."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_code_lives_without_its_kernel_and_dies_with_the_function(no_collector: None) -> None:
    kernel = Kernel(product, [("a", (2, 3)), ("b", (1, 2))])
    watched, code, function = weakref.ref(kernel), weakref.ref(kernel.code), kernel.function
    del kernel
    assert watched() is None and code() is not None
    np.testing.assert_array_equal(function(A.tolist(), B), B @ A)
    del function
    assert code() is None


def scaling(number: float) -> Kernel:
    return Kernel(lambda a: [[number * a[0][0]]], [("a", (1, 1))])


def test_many_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 kernels, each with other code, leave less than 8 MiB behind; kept, they would be 40 MiB."""
    monkeypatch.setenv("HODYN_CACHE_DIR", "")

    def build_and_drop(first: int) -> None:
        for number in range(first, first + 80):
            found = scaling(float(number)).function(np.ones((1, 1)))
            assert found[0, 0] == number
        gc.collect()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    build_and_drop(100)  # what the garbage collector leaves lying for a while is used again
    before = resident()
    build_and_drop(1000)
    assert resident() - before < 8 * 2**20


def test_the_interpreter_may_end_at_any_time() -> None:
    """A call from a finaliser at the very end must not crash."""
    script = (
        "import numpy as np\n"
        "from hodyn_ros.codegen.kernel import Kernel\n"
        "f = Kernel(lambda a: [[2.0 * a[0][0]]], [('a', (1, 1))]).function\n"
        "class Last:\n"
        "    def __init__(self, f, a):\n"
        "        self.f, self.a = f, a\n"
        "    def __del__(self):\n"
        "        self.f(self.a)\n"
        "last = Last(f, np.ones((1, 1)))\n"
        "last.me = last\n"
        "print(f(np.ones((1, 1)))[0, 0])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
