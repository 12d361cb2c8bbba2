"""What a Python file imports."""

import ast
from collections.abc import Iterator
from pathlib import Path


def imports_of(path: Path, for_types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports of a file, within functions as well; those under `if TYPE_CHECKING:` if asked for.

    These are statements, so that nothing looks into expressions, which are ten times as many.
    """
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        if for_types or not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            for block in ("body", "orelse", "handlers", "finalbody", "cases"):
                waiting += getattr(node, block, ())
