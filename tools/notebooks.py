"""Runs the notebooks of docs/notebooks, and writes what they show into them: `make notebooks`.

What changes from run to run without a reason, such as times and versions, is left out, so that a difference
of the file is one of the text or of a figure.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"


def executed(path: Path, timeout: float = 240.0) -> nbformat.NotebookNode:
    """Run a notebook in a fresh kernel, and return it with its outputs.

    `timeout` [s] holds for each cell. Raises CellExecutionError, which shows the cell, where one fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=timeout, record_timing=False, resources={"metadata": {"path": path.parent}}
    )
    client.execute()
    return cleaned(notebook)


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave what a reader sees, and the language."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:  # beside it stands only what kind of object it is
                output.data = {"image/png": data["image/png"]}
                output.metadata = {}
    return notebook


def main() -> None:
    """Run those that are named, or all."""
    named = [Path(name) for name in sys.argv[1:]]
    for path in named or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(f"wrote {path}, {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
