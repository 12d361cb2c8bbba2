"""The gallery: all pictures of the pages, each with its words and a link to where it is explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_PICTURE = re.compile(r"^!\[(?P<words>[^\]]+)\]\((?:\.\./)?pictures/(?P<file>[^)]+)\)", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def gallery_page(docs: Path) -> str:
    """Return the page; `docs` is the folder of the pages. A picture of several pages is shown with one."""
    figures = "\n".join(_figures(docs))
    return (
        "# Gallery\n\nWhat the pages show; each picture leads to its page, which says how it was made.\n\n"
        f'<div class="gallery">\n\n{figures}\n</div>\n'
    )


def _figures(docs: Path) -> Iterator[str]:
    shown: set[str] = set()
    for path in sorted([*docs.glob("*.md"), *docs.glob("tutorials/*.md")]):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(docs).with_suffix(".html").as_posix()
        title = _TITLE.search(text)
        for match in _PICTURE.finditer(text):
            file, words = match["file"], match["words"]
            if title is None or path.name == "index.md" or file in shown:
                continue
            shown.add(file)
            yield (
                f"```{{figure}} ../pictures/{file}\n:target: ../{place}\n:alt: {words}\n\n"
                f"**{title[1]}**: {words}\n```\n"
            )
