"""Tables of the terminal: words give way to numbers, at every width."""

import io

import numpy as np
import pytest
from rich.console import Console

from hodyn_ros.tables import FittingTable, number, table


def printed(shown: FittingTable, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_random_tables_keep_digits_and_words(width: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        rows = [
            (
                " ".join("w" * k for k in rng.integers(1, 12, rng.integers(1, 8))),
                *(f"{value:.7g}" for value in rng.normal(size=2)),
                " ".join("v" * k for k in rng.integers(1, 12, rng.integers(1, 8))),
            )
            for _ in range(5)
        ]
        text = printed(table(("what it is", "one", "other", "more"), rows, texts=(0, 3)), width)
        assert max(map(len, text.splitlines())) <= width
        found = text.split()
        for row in rows:
            for cell in row:
                assert all(word in found for word in cell.split()), (cell, text)


def test_a_word_that_is_too_long_is_broken_and_no_number_is() -> None:
    text = printed(table(("name", "value"), [("a_joint_with_a_name_as_long_as_this", "-1.234567890")]), 30)
    assert "-1.234567890" in text
    assert "a_joint_with_a_name_as_long_as_this" in "".join(text.replace("-1.234567890", "").split())


def test_columns_without_anything_are_left_out() -> None:
    text = printed(table(("name", "nothing", "value"), [("a", "", "1"), ("b", "", "2")]), 80)
    assert "nothing" not in text and "value" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10000.0, "10000"),
        (0.0, "0"),
        (-2.89731, "-2.897"),
        (1e-9, "1e-09"),
        (float("inf"), ""),
        (2e8, "2e+08"),
    ],
)
def test_numbers_keep_the_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text
