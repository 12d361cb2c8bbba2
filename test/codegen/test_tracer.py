"""The scalars that write code: what folds, what is shared, and that the code computes what was written."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import mp_dynamics as mp
from refusals import refused
from sweeps import examples

from hodyn_ros.array import Array
from hodyn_ros.codegen.differentiate import derivatives
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.codegen.tracer import Graph, Traced

Expression = Callable[[Any], Any]
"""Computes something from a sequence of scalars."""


class TestFolding:
    def setup_method(self) -> None:
        self.graph = Graph()
        self.x, self.y = self.graph.input(0, 0), self.graph.input(0, 1)
        self.inputs = len(self.graph.nodes)

    def same(self, a: Any, b: Any) -> bool:
        return (a.number, a.negative) == (b.number, b.negative)

    @pytest.mark.parametrize("zero", [0.0, -0.0, 0, np.float64(0.0)])
    def test_zero_vanishes(self, zero: float) -> None:
        x = self.x
        for result in (x + zero, zero + x, x - zero, -(zero - x)):
            assert self.same(result, x)
        for result in (x * zero, zero * x, zero / x):
            assert result == 0.0
        assert len(self.graph.nodes) == self.inputs

    @pytest.mark.parametrize("one", [1.0, 1, np.float64(1.0)])
    def test_one_vanishes_and_minus_one_is_a_sign(self, one: float) -> None:
        x = self.x
        for result in (x * one, one * x, x / one, -(x * -one), (-one) * -x, -x / -one):
            assert self.same(result, x)
        assert len(self.graph.nodes) == self.inputs

    def test_a_difference_with_itself_is_zero(self) -> None:
        for result in (self.x - self.x, self.x + -self.x, -self.x + self.x):
            assert result == 0.0
        product = self.x * self.y
        assert product - self.y * self.x == 0.0

    def test_signs_move_outward(self) -> None:
        x, y = self.x, self.y
        negative = -x
        assert self.same(-negative, x)
        assert self.same((-x) * y, -(x * y))
        assert self.same((-x) * (-y), x * y)
        assert self.same((-x) + (-y), -(x + y))
        assert self.same(x + (-y), x - y)
        assert self.same((-x) + y, y - x)
        assert self.same((-x) - y, -(x + y))
        assert self.same(x / -y, -(x / y))
        assert self.same(3.0 * -x, -3.0 * x)
        assert self.same(-3.0 - x, -(x + 3.0))

    def test_equal_expressions_share_a_node(self) -> None:
        x, y = self.x, self.y
        assert self.same(x + y, y + x)
        assert self.same(x * y, y * x)
        assert self.same(x - y, -(y - x))
        assert self.same(x * 0.5, x / 2.0)
        assert self.same((x + y) * (x - y), (y - x) * -(y + x))
        assert self.same(self.graph.input(0, 1), y)

    def test_cosine_is_even_and_sine_is_odd(self) -> None:
        assert self.same(np.cos(-self.x), np.cos(self.x))
        assert self.same(np.sin(-self.x), -np.sin(self.x))

    def test_only_what_is_needed_counts(self) -> None:
        x, y = self.x, self.y
        used = np.cos(x * y + 2.0) - x / y
        unused = (x + y) * (x - y)
        assert self.graph.count_operations([used]) == 4
        assert self.graph.count_operations([used, used, -used, 3.0]) == 4
        assert self.graph.count_operations([used, unused]) == 7
        assert self.graph.count_operations([1.0]) == 0


INPUTS = 4


def expressions() -> st.SearchStrategy[tuple[str, Expression]]:
    """Return a strategy of expressions, with their text, of sums and products of inputs and numbers."""
    leaves = st.one_of(
        st.integers(0, INPUTS - 1).map(lambda i: (f"x[{i}]", lambda x: x[i])),
        st.sampled_from([0.0, 1.0, -1.0, 2.0, -3.0, 0.5]).map(lambda c: (f"({c})", lambda x: c)),
    )

    def combined(children: Any) -> Any:
        def binary(sign: str, operation: Callable[[Any, Any], Any]) -> Any:
            return st.tuples(children, children).map(
                lambda pair: (
                    f"({pair[0][0]} {sign} {pair[1][0]})",
                    lambda x: operation(pair[0][1](x), pair[1][1](x)),
                )
            )

        return st.one_of(
            binary("+", lambda a, b: a + b),
            binary("-", lambda a, b: a - b),
            binary("*", lambda a, b: a * b),
            children.map(lambda child: (f"-{child[0]}", lambda x: -child[1](x))),
            children.map(lambda child: (f"{child[0]} / 4", lambda x: child[1](x) / 4.0)),
        )

    return st.recursive(leaves, combined, max_leaves=25)


class TestCompiled:
    @given(
        several=st.lists(expressions(), min_size=1, max_size=6),
        samples=st.lists(
            st.lists(st.integers(-7, 7), min_size=INPUTS, max_size=INPUTS), min_size=3, max_size=3
        ),
    )
    @examples(60)
    def test_it_computes_what_was_written(
        self, several: list[tuple[str, Expression]], samples: list[list[int]]
    ) -> None:
        """On small whole numbers doubles are exact, in any order and fused or not; so is the comparison."""
        kernel = Kernel(lambda x: [[evaluate(x[0]) for _, evaluate in several]], [("x", (1, INPUTS))])
        batch = np.array(samples, dtype=np.float64)[:, None]
        together = kernel.batch(batch)
        for x, in_batch in zip(batch, together):
            expected = [[float(evaluate(x[0].tolist())) for _, evaluate in several]]
            if np.abs(expected).max() < 2.0**40:
                np.testing.assert_array_equal(kernel.function(x), expected)
                np.testing.assert_array_equal(in_batch, expected)

    @given(x=st.lists(st.floats(-10.0, 10.0), min_size=2, max_size=2))
    @examples(40)
    def test_quotients(self, x: list[float]) -> None:
        x = [x[0], math.copysign(1.0 + abs(x[1]), x[1])]
        found = quotients().function([x])
        a, b = mp.exact(x)
        expected = [float(a / b), float(1 / b), float(-3 / (a * b + 200)), float(a / 7)]
        np.testing.assert_allclose(found[0], expected, rtol=4e-16, atol=0.0)


def quotients() -> Kernel:
    if not _kept:
        _kept.append(
            Kernel(
                lambda x: [
                    [x[0][0] / x[0][1], 1.0 / x[0][1], -3.0 / (x[0][0] * x[0][1] + 200.0), x[0][0] / 7.0]
                ],
                [("x", (1, 2))],
            )
        )
    return _kept[0]


_kept: list[Kernel] = []


class TestSineAndCosine:
    """Written in LLVM's language, without the library; within a unit in the last place."""

    @staticmethod
    def trace(x: Any) -> Any:
        return [[np.sin(a) for a in x[0]], [np.cos(a) for a in x[0]]]

    @pytest.fixture(scope="class")
    def kernel(self) -> Kernel:
        return Kernel(self.trace, [("angles", (1, 5))])

    @staticmethod
    def angles() -> Array:
        rng = np.random.default_rng(0)
        quarters = np.arange(-40, 41) * (np.pi / 2)
        near = (quarters[:, None] + [0.0, 1e-16, -1e-13, 1e-9, 3e-4]).ravel()
        multiples = np.round(rng.uniform(1.0, 2.0**20 / (np.pi / 2), 100)) * (np.pi / 2)
        many = rng.uniform(-1.0, 1.0, 200) * 10.0 ** rng.uniform(-12, 6, 200)
        few = [0.0, -0.0, 5e-324, -1e-310, 1e-8, 2.0**20, -(2.0**20), 2.0**20 + 1.0, 1e9, -1e22, 1e300]
        return np.concatenate([near, multiples, many, few])

    def test_to_one_unit_in_the_last_place(self, kernel: Kernel) -> None:
        angles = self.angles()
        rows = np.resize(angles, (-(-len(angles) // 5), 1, 5))
        single = np.array([kernel.function(row) for row in rows])
        together = kernel.batch(rows)
        for x, *found in zip(
            rows.ravel(), *(values[:, k].ravel() for values in (single, together) for k in range(2))
        ):
            with mp.digits(350):
                exact = mp.sin(float(x)), mp.cos(float(x))
                for value, right in zip(found, exact * 2):
                    unit = math.ulp(float(right))
                    assert abs(float(value) - right) <= 1.0 * unit, f"at {float(x)!r}"

    def test_roots_of_what_is_computed_before(self) -> None:
        """Square roots, also of a scalar whose sign is kept apart."""

        def trace(x: Any) -> Any:
            a, b = x[0]
            return [[np.sqrt(a * a + b * b), np.sqrt(-(b * 3.0)), np.cos(np.sqrt(a * a)) * np.sqrt(a * a)]]

        kernel = Kernel(trace, [("x", (1, 2))])
        x = np.array([[0.3, -1.2]])
        expected = trace(x.tolist())
        np.testing.assert_allclose(kernel.function(x), expected, rtol=1e-15)
        np.testing.assert_allclose(kernel.batch(x[None])[0], expected, rtol=1e-15)

    def test_of_each_other(self) -> None:
        """Sines of cosines have to wait for their angles."""

        def trace(x: Any) -> Any:
            first = np.cos(x[0][0])
            second = np.sin(first + x[0][1])
            return [[first, second, np.cos(second * 3.0) + np.sin(x[0][1])]]

        kernel = Kernel(trace, [("x", (1, 2))])
        x = np.array([[0.3, -1.2]])
        expected = trace(x.tolist())
        np.testing.assert_allclose(kernel.function(x), expected, rtol=1e-15)
        np.testing.assert_allclose(kernel.batch(x[None])[0], expected, rtol=1e-15)


def test_a_traced_scalar_is_no_number() -> None:
    graph = Graph()
    with pytest.raises(TypeError):
        float(graph.input(0, 0))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        graph.input(0, 0) < 1.0  # type: ignore[operator]  # noqa: B015
    assert isinstance(graph.input(0, 0), Traced)


def test_floors_of_either_sign_in_one_sample_and_in_lanes() -> None:
    x = np.array([[-2.0, -1.5, -0.0, 0.0, 0.5, 0.99, 1.0, 3.7]])
    kernel = Kernel(lambda x: [[y for s in x[0] for y in (np.floor(s), np.floor(-s))]], [("x", x.shape)])
    exact = [[y for s in x[0] for y in (math.floor(s), math.floor(-s))]]
    np.testing.assert_array_equal(kernel.function(x), exact)
    np.testing.assert_array_equal(kernel.batch(x[None])[0], exact)


def test_tables_are_looked_up_in_compiled_code() -> None:
    starts, rows = [-1.0, 0.0, 0.5, 2.0, 7.0], [[1.0, 2.0, 3.0, 4.0, 5.0], [-3.0, 0.1, 0.2, 0.3, 9.0]]

    def trace(x: Any) -> Any:
        return [
            [y for s in x[0] for y in (*s.looked_up(starts, rows), *(-s).looked_up(starts, rows), abs(s))]
        ]

    x = np.array([[-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.9, 2.0, 6.9, 7.0, 70.0, -7.0]])
    kernel = Kernel(trace, [("x", x.shape)])
    exact = []
    for s in x[0]:
        for side in (s, -s):
            piece = max(sum(side >= start for start in starts) - 1, 0)
            exact += [row[piece] for row in rows]
        exact.append(abs(s))
    np.testing.assert_array_equal(kernel.function(x), [exact])
    shifted = np.stack([x, x[:, ::-1].copy(), np.zeros_like(x)])
    np.testing.assert_array_equal(kernel.batch(shifted), [kernel.function(one) for one in shifted])


def test_powers_that_the_tracer_does_not_know_are_refused() -> None:
    refused(lambda: Graph().input(0, 0) ** 3, "knows the powers", TypeError)


def test_derivatives_in_one_direction() -> None:
    """Of every operation, against complex steps, which lose no digits."""

    def trace(x: list[list[Any]], way: list[list[Any]]) -> list[list[Any]]:
        a, b, c = x[0]
        results = [
            a * b - c / a,
            np.sin(a) * np.cos(b * c),
            np.sqrt(a + b * b),
            -(a * 3.0) + b,
            2.0 - c / 4.0,
        ]
        results += [abs(c) * a, b / abs(a)]
        changes = {value.number: change for value, change in zip(x[0], way[0])}
        return [derivatives(a.graph, results, changes)]

    kernel = Kernel(trace, [("x", (1, 3)), ("way", (1, 3))])
    x, way = np.array([[0.7, -1.3, -0.4]]), np.array([[0.3, 0.8, -1.1]])
    a, b, c = (x + 1e-30j * way)[0]
    expected = [a * b - c / a, np.sin(a) * np.cos(b * c), np.sqrt(a + b * b), -3.0 * a + b, 2.0 - c / 4.0]
    expected += [-c * a, b / a]
    np.testing.assert_allclose(kernel.function(x, way)[0], np.imag(expected) / 1e-30, rtol=1e-14)
    assert derivatives(Graph(), [1.0], {}) == [0.0]
