"""C code beside the exported functions: several calls at once, and the memory, for who calls from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hodyn_ros.codegen.kernel import Shape
from hodyn_ros.export.c_function import ALL_FINITE, CFunction, sizes


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
        *ALL_FINITE["all_finite"],
        "",
        *[f"size_t {prefix}_memory_size(void)", "{", f"  return {size};", "}", ""],
        *[f"void {prefix}_memory_home(void *memory)", "{", "  (void)memory;"],
        *([f"  {prefix}_home(({prefix}_memory *)memory);"] if has_memory else []),
        *["}", ""],
    ]
    for function in functions:
        lines += [*_calls(prefix, function), ""]
    return "\n".join(lines)


def _calls(prefix: str, function: CFunction) -> list[str]:
    given, found = _of_one_call("given", function.inputs), _of_one_call("found", function.results)
    passed = {name: array for name, (array, _) in {**given, **found}.items()}
    call, macro = function.call(passed, f"({prefix}_memory *)memory"), prefix.upper()
    # functions that return a code look at the numbers themselves
    steps = [*_stop_unless_finite(given), f"    {call};"]
    if function.fails:
        steps = [
            *[
                f"    const int code = {call};",
                f"    if (code == {macro}_FAILED) {{",
                "      return k;",
                "    }",
            ],
            f"    *near_singular |= code == {macro}_NEAR_SINGULAR;",
        ]
    return [
        f"long {function.full_name}_calls(long count, void *memory, int *near_singular,",
        "    const double *const *given, double *const *found)",
        *["{", "  long k;", "  (void)memory;", "  (void)near_singular;"],
        "  for (k = 0; k < count; ++k) {",
        *[*steps, *_stop_unless_finite(found)],
        *["  }", "  return count;", "}"],
    ]


def _of_one_call(arrays: str, shapes: Mapping[str, Shape]) -> dict[str, tuple[str, int]]:
    """Return where the numbers of call `k` stand, and how many; arrays without numbers are not passed."""
    counts = sizes(shapes)
    return {
        name: (f"{arrays}[{i}] + k * {counts[name]}", counts[name])
        for i, name in enumerate(shapes)
        if name in counts
    }


def _stop_unless_finite(arrays: Mapping[str, tuple[str, int]]) -> list[str]:
    tests = [f"all_finite({array}, {size})" for array, size in arrays.values()]
    return [f"    if (!({' && '.join(tests)})) {{", "      return k;", "    }"] if tests else []
