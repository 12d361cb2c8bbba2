"""How Sphinx builds the documentation: `make docs`, or rosdoc2."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.inspect import TypeAliasForwardRef

import hodyn_ros

# rosdoc2 builds in a copy of this folder; the sources are then found by the package.
SOURCES = [Path(__file__).resolve().parents[1], Path(hodyn_ros.__file__).resolve().parents[1]]
ROOT = next(folder for folder in SOURCES if (folder / "package.xml").exists())
sys.path.insert(0, str(ROOT / "tools"))

from reference import write_all  # noqa: E402
from reference.examples import with_example  # noqa: E402
from reference.links import relinked, with_navigation  # noqa: E402

project = "hodyn_ros"
author = "hodyn_ros maintainers"
project_copyright = f"{author}, Apache-2.0"
release = version = importlib.metadata.version("hodyn_ros")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
# What rosdoc2 puts beside our pages; our copies of these have links that lead somewhere.
exclude_patterns = ["index.rst", "README.md", "C*.md", "C*.rst", "QUALITY_DECLARATION.md", "__*", "msg"]
html_theme = "furo"
html_title = f"hodyn_ros {release}"

myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks hold what they show; `make notebooks` runs them
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["hodyn.css"]
html_js_files = ["versions.js"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "versions.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
autosummary_generate = False  # its tables only; the pages are ours

default_role = "code"  # docstrings put code between single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = ["launch", "launch_ros", "ament_index_python", "control_msgs"]  # not on PyPI
autodoc_type_aliases = {"Array": "Array", "ArrayLike": "ArrayLike"}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # Sphinx 9 shows its own class around the names
add_module_names = False
toc_object_entries = False
python_use_unqualified_type_names = True


def change_links(app: Any, page: str, source: list[str]) -> None:
    """Let the links of a page of this folder lead to where things are in the documentation."""
    if page.startswith("reference/"):
        return  # written with the right links
    text = relinked(source[0], f"docs/{page}.md", f"{page}.md")  # of notebooks, too, which are JSON
    source[0] = with_navigation(text) if page == "index" else text


def change_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Show paragraphs of a docstring that stand farther in, which are formulas, as they are written.

    Calls of `Robot` are followed by their example.
    """
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()  # what Python says of every field of a NamedTuple
    last = ""
    for i, line in enumerate(lines):
        if line.startswith("    ") and last and not lines[i - 1] and last[0] not in " -*.:>":
            lines[i - 1] = "\n::\n"
        last = line or last
    lines[:] = with_example(name, "\n".join(lines).split("\n"))


def inline_formula(self: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers typeset themselves: no script, no font, no network."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed_formula(self: Any, node: Any) -> None:
    """Write a formula on a line of its own."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Write the generated pages; connect what changes the others."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    write_all(ROOT, Path(app.srcdir))
    app.connect("source-read", change_links)
    app.connect("autodoc-process-docstring", change_docstring)
