"""The page of error messages: all that the package raises, from the sources, by the part that raises it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from reference.tables import plain, table

_KINDS = ("InputError", "ModelError", "SingularError", "ConvergenceError", "OverflowingError", "HodynError")
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
"""


def error_page(sources: Path) -> str:
    """Return the page, from the folder of the package."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(sources.rglob("*.py")):
        part = path.relative_to(sources).parts[0].removesuffix(".py")
        for kind, message in _raised(ast.parse(path.read_text(encoding="utf-8"))):
            parts.setdefault(part, []).append((message, kind))
    text = [_INTRODUCTION]
    for part, messages in sorted(parts.items()):
        rows = [(plain(message), f"`{kind}`") for message, kind in sorted(set(messages), key=_words)]
        text += [f"## {part}\n", table(("message", "class"), rows)]
    return "\n".join(text)


def _words(row: tuple[str, str]) -> str:
    return row[0].lstrip("…'\" ").lower()


def _raised(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give class and message of everything that is raised with a text of its own."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        kind = getattr(node.exc.func, "id", "")
        message = _template(node.exc.args[0])
        if kind in _KINDS and len(message.replace("…", "").split()) > 1:
            yield kind, message


def _template(node: ast.expr) -> str:
    """Return the text of an expression, with … for what it puts in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return "…"
