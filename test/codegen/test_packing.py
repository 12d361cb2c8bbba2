"""Equal parts of a traced function, side by side in the lanes of vectors."""

from typing import Any

import numpy as np
import pytest

from hodyn_ros.codegen import emit
from hodyn_ros.codegen.kernel import Kernel, Stack, traced
from hodyn_ros.codegen.packing import Packing
from hodyn_ros.codegen.tracer import Own, of_part

FACTORS = (0.3, -1.7, 0.0, 2.5, 1.0, 0.9, -0.4, 3.1, 0.2)


def law(count: int, x: Stack, shared: Stack) -> Stack:
    """Compute the same of each of some parts, what they have together, and what that means for each."""
    own = [of_part(x[0][i], (0, i), "x") for i in range(count)]
    turned = [
        np.sin(p) * Own.of(factor, (0, i), "factor") - shared[0][0] * np.cos(p)
        for i, (p, factor) in enumerate(zip(own, FACTORS))
    ]
    total: Any = 0.0
    for value in turned:
        total = total + value
    return [[*(value * total - p for value, p in zip(turned, own)), total]]


@pytest.mark.parametrize("count", [2, 6, 8])
def test_equal_parts_are_the_same_operations_on_vectors(count: int) -> None:
    def trace(x: Stack, shared: Stack) -> Stack:
        return law(count, x, shared)

    graph, outputs, _ = traced(trace, [(1, count), (1, 1)], packs=True)
    packing = Packing(graph, graph.needed(outputs))
    assert all(len(row) == count for row in packing.vectors)
    operations = [graph.nodes[row[0]][0] for row in packing.vectors]
    assert sorted(operations) == sorted(["lane", "lane", "sin", "cos", *"**-*-"])
    sums = [n for n in graph.needed(outputs) if graph.nodes[n][0] == "+" and n not in packing.of]
    assert len(sums) == count - 1

    kernel = Kernel(trace, [("x", (1, count)), ("what is shared", (1, 1))])
    x, shared = np.random.default_rng(count).uniform(-1.0, 1.0, (1, count)), np.array([[0.7]])
    expected = law(count, x.tolist(), shared.tolist())
    assert np.allclose(kernel.function(x, shared), expected, rtol=1e-14, atol=1e-14)


def test_what_one_part_lacks_is_computed_alone() -> None:
    """Two parts of three take a square root, which no vector holds then, nor what follows from it."""

    def trace(x: Stack) -> Stack:
        own = [of_part(value, (0, i), "x") for i, value in enumerate(x[0])]
        return [[(p * p + 2.0) ** 0.5 * p if i else p * p for i, p in enumerate(own)]]

    graph, outputs, _ = traced(trace, [(1, 3)], packs=True)
    packing = Packing(graph, graph.needed(outputs))
    assert [graph.nodes[row[0]][0] for row in packing.vectors] == ["lane", "*"]
    kernel, x = Kernel(trace, [("x", (1, 3))]), np.array([[0.4, -1.2, 2.0]])
    root = np.sqrt(x * x + 2.0) * x
    assert np.allclose(kernel.function(x), [[x[0, 0] ** 2, root[0, 1], root[0, 2]]], rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("length", [2, 4, 6, 10])
def test_products_round_with_their_sums_wherever_a_block_ends(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: LLVM makes one operation of a product and a sum only where they are in one block."""

    def trace(x: Stack, shared: Stack) -> Stack:
        return law(6, x, shared)

    arguments = [("x", (1, 6)), ("what is shared", (1, 1))]
    expected = Kernel(trace, arguments)
    monkeypatch.setattr(emit, "_BLOCK", length)
    monkeypatch.setenv("HODYN_CACHE_DIR", "")
    kernel, rng = Kernel(trace, arguments), np.random.default_rng(0)
    for x, shared in zip(rng.uniform(-1.0, 1.0, (50, 1, 6)), rng.uniform(-1.0, 1.0, (50, 1, 1))):
        np.testing.assert_array_equal(kernel.function(x, shared), expected.function(x, shared))
