"""External functions of CasADi as C99 without dependencies, for acados and for code that CasADi generates."""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.export.c_text import comment_block, string
from hodyn_ros.export.straight_line import StraightLine, Tables, checked_length
from hodyn_ros.interop.casadi_functions import Block, External


def source(functions: Sequence[External], title: Sequence[str]) -> str:
    """Return the text of one file with external functions; InputError where one would be too long."""
    tables = Tables()
    written = [_function(function, tables) for function in functions]
    most = max([1, *(block.size for function in functions for block in function.inputs)])
    patterns = dict.fromkeys(
        tuple(block.sparsity) for function in functions for block in (*function.inputs, *function.outputs)
    )
    names = {pattern: f"sparsity{i}" for i, pattern in enumerate(patterns)}
    lines = [
        *comment_block(title),
        "#include <math.h>",
        "",
        "#ifndef casadi_int",
        "#define casadi_int long long int",
        "#endif",
        "",
        *(line for pattern, name in names.items() for line in _pattern(name, pattern)),
        "",
        f"static const double zeros[{most}] = {{0.0}};",
        "",
        *tables.lines(),
    ]
    for function, body in zip(functions, written):
        lines += [*body, "", *_about(function, names), ""]
    return "\n".join(lines)


def _function(function: External, tables: Tables) -> list[str]:
    flat = [value for values in function.values for value in values]
    checked_length(function.graph, flat, function.name)
    inputs = [f"in{i}" for i in range(len(function.inputs))]
    code = StraightLine(function.graph, inputs, flat, tables)
    lines = [
        f"int {function.name}(const double **arg, double **res, casadi_int *iw, double *w, int mem)",
        "{",
        *[f"  const double *const {name} = arg[{i}] ? arg[{i}] : zeros;" for i, name in enumerate(inputs)],
        *code.lines,
        *[f"  (void){name};" for name in (*inputs, "iw", "w", "mem")],
    ]
    for j, values in enumerate(function.values):
        if values:
            lines.append(f"  if (res[{j}]) {{")
            lines += [f"    res[{j}][{i}] = {code.text(value)};" for i, value in enumerate(values)]
            lines.append("  }")
    return [*lines, "  return 0;", "}"]


def _about(function: External, patterns: dict[tuple[int, ...], str]) -> list[str]:
    """Write the functions that say what a function takes and gives."""
    name, sizes = function.name, (len(function.inputs), len(function.outputs))
    lines = [
        f"casadi_int {name}_n_in(void) {{ return {sizes[0]}; }}",
        f"casadi_int {name}_n_out(void) {{ return {sizes[1]}; }}",
        f"void {name}_incref(void) {{}}",
        f"void {name}_decref(void) {{}}",
        f"int {name}_work(casadi_int *arg, casadi_int *res, casadi_int *iw, casadi_int *w)",
        "{",
        *[
            f"  if ({argument}) *{argument} = {size};"
            for argument, size in zip(("arg", "res", "iw", "w"), (*sizes, 0, 0))
        ],
        "  return 0;",
        "}",
    ]
    for end, blocks in (("in", function.inputs), ("out", function.outputs)):
        lines += _switch(f"const char *{name}_name_{end}", [string(one.name) for one in blocks])
        lines += _switch(
            f"const casadi_int *{name}_sparsity_{end}", [_named(one, patterns) for one in blocks]
        )
    return lines


def _named(block: Block, patterns: dict[tuple[int, ...], str]) -> str:
    return patterns[tuple(block.sparsity)]


def _switch(head: str, values: Sequence[str]) -> list[str]:
    cases = [f"    case {i}: return {value};" for i, value in enumerate(values)]
    return [f"{head}(casadi_int i)", "{", "  switch (i) {", *cases, "    default: return 0;", "  }", "}"]


def _pattern(name: str, values: Sequence[int]) -> list[str]:
    rows = [", ".join(map(str, values[i : i + 24])) for i in range(0, len(values), 24)]
    return [f"static const casadi_int {name}[{len(values)}] = {{", *[f"  {row}," for row in rows], "};"]
