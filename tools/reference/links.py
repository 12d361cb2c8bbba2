"""Links that are right in the repository, made right in the documentation.

Pages link to files beside them, so that they can be read on a forge. In the documentation some of these files
are pages, in other places; the others are not there, and their links become plain text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

OUTSIDE = {
    "README.md": "reference/readme.md",
    "CONTRIBUTING.md": "reference/contributing.md",
    "QUALITY_DECLARATION.md": "reference/quality_declaration.md",
    "CHANGELOG.rst": "reference/changelog.md",
    "config/README.md": "reference/config.md",
}
"""Pages from outside docs/, by path in the repository, with their places below docs/."""

_PLACES = {
    **OUTSIDE,
    "msg/DesiredMotion.msg": "reference/messages.md",
    "msg/FeedforwardTorque.msg": "reference/messages.md",
    "config": "reference/config.md",
    "docs": "index.md",
}

# What index.md does not link to, because it is generated.
_GENERATED = """
## Reference

- [Messages](reference/messages.md)
- [Nodes and parameters](reference/parameters.md)
- [Launch files](reference/launch.md)
- [Command line](reference/command_line.md)
- [Robot and trajectory files](reference/config.md), and all their [keys](reference/schemas.md)
- [Python API](reference/api/index.md)
- [Error messages](reference/errors.md), with what to do about each

## Project

- [Gallery](reference/gallery.md)
- [Read me](reference/readme.md)
- [Contributing](reference/contributing.md)
- [Quality declaration](reference/quality_declaration.md)
- [Changes](reference/changelog.md)
"""

_PAGES = (".md", ".ipynb")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def relinked(text: str, page: str, place: str) -> str:
    """Return a page with its links changed.

    `page` is its path in the repository, which its links start from; `place` its path below docs/.
    """

    def changed(match: re.Match[str]) -> str:
        target, label = match["target"], match["text"]
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        found = _PLACES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if found is None:
            return label
        link = posixpath.relpath(found, posixpath.dirname(place) or ".")
        return f"{match['image']}[{label}]({link}{match['anchor'] or ''})"

    return _outside_code(text, lambda part: _LINK.sub(changed, part))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Change a page outside its blocks of code."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def outside_pages(root: Path) -> dict[str, str]:
    """Return the pages of the repository that lie outside docs/, by path below docs/."""
    pages = {}
    for page, place in OUTSIDE.items():
        text = (root / page).read_text(encoding="utf-8")
        if page.endswith(".rst"):
            pages[place] = f"```{{eval-rst}}\n{text}```\n"
        else:
            pages[place] = relinked(text, page, place)
    return pages


def with_navigation(index: str) -> str:
    """Return the index page with the generated pages, and a hidden table of contents made from its links."""
    parts = re.split(r"^(?=## )", index + _GENERATED, flags=re.MULTILINE)
    sections = []
    for part in parts:
        pages = [m["target"].rpartition(".")[0] for m in _LINK.finditer(part) if m["target"].endswith(_PAGES)]
        if pages and part.startswith("## "):
            caption = part.splitlines()[0].removeprefix("## ")
            entries = "\n".join(pages)
            part += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n\n"
        sections.append(part)
    return "".join(sections)
