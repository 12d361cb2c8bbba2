"""C code beside the exported functions: several calls at once, and the memory, for who calls from Python."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.export.c_function import CFunction, sizes


def calls_source(prefix: str, functions: Sequence[CFunction]) -> str:
    """Write `<prefix>_<name>_calls` of every function, `<prefix>_memory_size` and `<prefix>_memory_home`.

    The first makes `count` calls, and returns how many had a result before one had none.
    """
    has_memory = any(function.memory for function in functions)
    size = f"sizeof({prefix}_memory)" if has_memory else "1"
    lines = [
        f"/* Calls of {prefix}.h for Python, written by `hodyn export --lang python`. */",
        f'#include "{prefix}.h"',
        "",
        "#include <stddef.h>",
        "",
        *["static int finite_numbers(const double *numbers, long count)", "{"],
        *["  double zero = 0.0;", "  long k;", "  for (k = 0; k < count; ++k) {"],
        *["    zero += 0.0 * numbers[k];", "  }", "  return zero == 0.0;", "}", ""],
        *[f"size_t {prefix}_memory_size(void)", "{", f"  return {size};", "}", ""],
        *[f"void {prefix}_memory_home(void *memory)", "{", "  (void)memory;"],
        *([f"  {prefix}_home(({prefix}_memory *)memory);"] if has_memory else []),
        *["}", ""],
    ]
    for function in functions:
        lines += [*_calls(prefix, function), ""]
    return "\n".join(lines)


def _calls(prefix: str, function: CFunction) -> list[str]:
    inputs, results = sizes(function.inputs), sizes(function.results)
    given = {
        name: (f"given[{i}]", size) for i, name in enumerate(function.inputs) if (size := inputs.get(name))
    }
    found = {
        name: (f"found[{i}]", size) for i, name in enumerate(function.results) if (size := results.get(name))
    }
    passed = {name: f"{array} + k * {size}" for name, (array, size) in {**given, **found}.items()}
    call = function.call(passed, f"({prefix}_memory *)memory")
    macro = prefix.upper()
    # functions that return a code check numbers themselves
    steps = (
        [
            f"    const int code = {call};",
            f"    if (code == {macro}_FAILED) {{",
            *["      return k;", "    }"],
            f"    *near_singular |= code == {macro}_NEAR_SINGULAR;",
        ]
        if function.fails
        else [
            *_stop_unless_finite(given),
            f"    {call};",
        ]
    )
    return [
        f"long {function.full_name}_calls(long count, void *memory, int *near_singular,",
        "    const double *const *given, double *const *found)",
        *["{", "  long k;", "  (void)memory;", "  (void)near_singular;"],
        *[
            "  for (k = 0; k < count; ++k) {",
            *steps,
            *_stop_unless_finite(found),
            "  }",
            "  return count;",
            "}",
        ],
    ]


def _stop_unless_finite(arrays: dict[str, tuple[str, int]]) -> list[str]:
    tests = [f"finite_numbers({array} + k * {size}, {size})" for array, size in arrays.values()]
    return [f"    if (!({' && '.join(tests)})) {{", "      return k;", "    }"] if tests else []
