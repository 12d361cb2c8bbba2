"""Fixed calls with the numbers that the functions must give for them, and a program that times them."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.export.c_function import CFunction, sizes
from hodyn_ros.export.c_text import table

_TOLERANCE = "1e-9"  # of the program


def self_test(prefix: str, functions: Sequence[CFunction], *, small: bool = False) -> list[str]:
    """Write the tables, the function `<prefix>_self_test`, and a program that calls it.

    `small`: that program prints nothing, as small processors have nowhere to.
    """
    lines: list[str] = []
    for function in functions:
        lines += [*_tables(function), *_test(function), ""]
    tests = [f"  largest = fmax(largest, test_{function.name}());" for function in functions]
    whole = [
        f"double {prefix}_self_test(void)",
        "{",
        "  double largest = 0.0;",
        *tests,
        "  return largest;",
        "}",
    ]
    program = _silent_program(prefix) if small else _program(prefix, functions)
    return [*_DEVIATION, "", *lines, *whole, "", *program]


def _tables(function: CFunction) -> list[str]:
    lines: list[str] = []
    for name, values in {**function.cases.inputs, **function.cases.results}.items():
        if values[0].size:
            lines += [*table(f"test_{function.name}_{name}", values.reshape(len(values), -1)), ""]
    if function.fails:
        codes = ", ".join(map(str, function.cases.codes))
        lines += [f"static const int test_{function.name}_codes[{function.cases.count}] = {{{codes}}};", ""]
    return lines


def _test(function: CFunction) -> list[str]:
    """Write the function that makes all calls and returns the largest error; of failing calls, of zeros."""
    called = function.call(_passed(function, "m"))
    call = [f"    {called};"]
    if function.fails:
        call = [
            f"    if ({called} != test_{function.name}_codes[m]) {{",
            "      return HUGE_VAL;",
            "    }",
        ]
    checks = []
    for name, values in function.cases.results.items():
        if values[0].size:
            rows, columns = values.shape[1:]
            expected = f"test_{function.name}_{name}[m]"
            checks.append(f"    largest = fmax(largest, deviation({name}, {expected}, {rows}, {columns}));")
    return [
        f"static double test_{function.name}(void)",
        "{",
        "  double largest = 0.0;",
        "  int m;",
        *_memory(function.prefix, function.memory),
        f"  for (m = 0; m < {function.cases.count}; ++m) {{",
        *[f"    double {name}[{size}] = {{0}};" for name, size in sizes(function.results).items()],
        *call,
        *checks,
        "  }",
        "  return largest;",
        "}",
    ]


def _program(prefix: str, functions: Sequence[CFunction]) -> list[str]:
    """Write a `main` that reports the error of the self-test and the time of a call of each function."""
    lines = [
        f"#ifdef {prefix.upper()}_MAIN",
        "int main(void)",
        "{",
        f"  const double error = {prefix}_self_test();",
        "  const int calls = 20000;",
        '  printf("largest relative error %.2g\\n", error);',
    ]
    for function in functions:
        results = sizes(function.results)
        failing, count = function.cases.failing, function.cases.count - function.cases.failing
        row = f"{failing} + i % {count}" if failing else f"i % {count}"
        lines += [
            "  {",
            "    double seconds, sum = 0.0;",
            *[f"    double {name}[{size}];" for name, size in results.items()],
            "    clock_t start;",
            "    int i;",
            *[f"  {line}" for line in _memory(prefix, function.memory)],
            "    start = clock();",
            "    for (i = 0; i < calls; ++i) {",
            f"      {function.call(_passed(function, row))};",
            f"      sum += {' + '.join(f'{name}[0]' for name in results)};",
            "    }",
            "    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;",
            "    /* the mean is printed so that no compiler leaves the calls out */",
            f'    printf("{function.full_name}: %.3f microseconds per call (mean %.3g)\\n",',
            "           1e6 * seconds / calls, sum / calls);",
            "  }",
        ]
    return [*lines, f"  return error <= {_TOLERANCE} ? 0 : 1;", "}", "#endif"]


def _silent_program(prefix: str) -> list[str]:
    macro = prefix.upper()
    passed = f"  return ({prefix}_self_test() <= {macro}_TOLERANCE) ? 0 : 1;"
    return [f"#ifdef {macro}_MAIN", "int main(void)", "{", passed, "}", "#endif"]


def _memory(prefix: str, needed: bool) -> list[str]:
    return [f"  {prefix}_memory memory;", f"  {prefix}_home(&memory);"] if needed else []


def _passed(function: CFunction, row: str) -> dict[str, str]:
    return {name: f"test_{function.name}_{name}[{row}]" for name in sizes(function.inputs)}


_DEVIATION = [
    "/* Row by row, the largest error against the largest expected number; infinite where not finite. */",
    "static double deviation(const double *found, const double *expected, int rows, int columns)",
    "{",
    "  double largest = 0.0;",
    "  int j;",
    "  int k;",
    "  for (k = 0; k < rows; ++k) {",
    "    double scale = 0.0;",
    "    double error = 0.0;",
    "    for (j = k * columns; j < (k + 1) * columns; ++j) {",
    "      const double difference = fabs(found[j] - expected[j]);",
    "      if (!(difference < HUGE_VAL)) {",
    "        return HUGE_VAL;",
    "      }",
    "      error = fmax(error, difference);",
    "      scale = fmax(scale, fabs(expected[j]));",
    "    }",
    "    if (scale > 0.0) {",
    "      error /= scale;",
    "    }",
    "    largest = fmax(largest, error);",
    "  }",
    "  return largest;",
    "}",
]
