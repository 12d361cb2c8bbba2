"""The page of error messages: all that the package raises, from the sources, by the part that raises it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from reference.tables import plain, table

_ROOT = "HodynError"
_INTRODUCTION = """# Error messages

All that the package raises, by the part that raises it. Each message names the thing and what to do about it;
`…` stands for what differs from case to case, so search for the words that stay. On the command line they
follow `error:`, in nodes they are one line in the log, counted in `/diagnostics`. What stops a motor has
[reasons of its own](../safety.md#states).

| class | means |
| --- | --- |
| `HodynError` | the root of all of them, a `ValueError` |
| `ModelError` | the description of a robot is wrong: a file, or arrays |
| `InputError` | numbers, shapes or names of a call are wrong, and the kinds of it: |
| `SingularError` | too near a singular pose; `condition`, and the highest `order` that still holds |
| `ConvergenceError` | an iteration found no solution; what was missing in the end |
| `OverflowingError` | numbers so large that the result is not finite |
| `ShapeError` | an array of another shape: its `name`, the `shape` wanted, what was `found` |
| `NotFiniteError` | NaN or infinite numbers: the `name` of the array, the `index` of the first |
| `UnknownNameError` | no such thing: `what`, its `name`, those `known` |
| `RangeError` | a figure beyond its range: its `name` and `value`, `low`, `high` |
| `MessageRejected` | a node does not answer a message; `reason` is what it counts as |

The other classes are kinds of these.
"""


def error_page(sources: Path) -> str:
    """Return the page, from the folder of the package."""
    bases: dict[str, set[str]] = {}
    parts: dict[str, set[tuple[str, str]]] = {}
    for path in sorted(sources.rglob("*.py")):
        part = path.relative_to(sources).parts[0].removesuffix(".py")
        parts.setdefault(part, set()).update(_made(ast.parse(path.read_text(encoding="utf-8")), bases))
    kinds = {_ROOT}
    while found := {name for name, of in bases.items() if of & kinds} - kinds:
        kinds |= found
    text = [_INTRODUCTION]
    for part, messages in sorted(parts.items()):
        errors = [(message, kind) for message, kind in messages if kind in kinds]
        rows = [(plain(message), f"`{kind}`") for message, kind in sorted(errors, key=_words)]
        text += [f"## {part}\n", table(("message", "class"), rows)] if rows else []
    return "\n".join(text)


def _words(row: tuple[str, str]) -> str:
    return row[0].lstrip("…'\" ").lower()


def _made(tree: ast.AST, bases: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Give message and class of all that is made with a text or makes its own, raised or not, error or not.

    What its classes derive from is added to `bases`. Nothing of the tree is kept, as that takes long.
    """
    own: dict[ast.AST, str] = {}
    for node in ast.walk(tree):  # classes come before what is in them
        if isinstance(node, ast.ClassDef):
            bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
            for call in ast.walk(node):
                if getattr(getattr(call, "func", None), "attr", "") == "__init__":
                    own[call] = node.name
        elif isinstance(node, ast.Call) and (kind := own.get(node, getattr(node.func, "id", ""))):
            for text in map(_template, node.args):  # of some the reason comes first
                if len(text.replace("…", "").split()) > 1:
                    yield text, kind
                    break


def _template(node: ast.expr) -> str:
    """Return the text of an expression, with … for what it puts in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return "…"
