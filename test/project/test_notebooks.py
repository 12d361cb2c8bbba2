"""The notebooks run in a kernel of their own, and show what is stored in them."""

import re
import sys
from pathlib import Path

import pytest
import sweeps
from places import ROOT

pytestmark = pytest.mark.thorough

nbformat = pytest.importorskip("nbformat", reason="notebooks need `pip install nbclient ipykernel`")

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
NEAR = 0.02  # of a printed number: one unit of its last digit


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What cells print, and the values that they end with."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("name", sweeps.some(NOTEBOOKS, "own_robot"))
def test_a_notebook_shows_what_is_stored(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="notebooks need `pip install nbclient ipykernel`")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    import notebooks

    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    found = notebooks.executed(FOLDER / f"{name}.ipynb")
    assert pictures(found) == pictures(stored) >= 1
    before, after = "\n".join(printed(stored)), "\n".join(printed(found))
    assert NUMBER.sub("", after) == NUMBER.sub("", before)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (after, before)]
    assert numbers[0] == pytest.approx(numbers[1], rel=NEAR)


def test_there_is_one_of_each_subject() -> None:
    subjects = ("delta", "elastic_against_rigid", "first_torque_rates", "identification", "own_robot", "plan")
    assert sorted(subjects) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_stored_notebooks_are_small_and_clean(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < 200_000  # pictures of the size of a page
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run `make notebooks`"
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert any("assert " in cell.source for cell in code)
    assert sys.prefix not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_of_notebooks_lead_somewhere(name: str) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert not [link for link in links if "://" not in link and not (FOLDER / link).exists()]
