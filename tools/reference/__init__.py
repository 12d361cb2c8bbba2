"""The reference pages of the documentation, generated from the sources.

`docs/conf.py` calls `write_all` before Sphinx reads its pages; nothing of what it writes is committed. The
nodes are imported for their parameters, so this runs where rclpy is: in the `.venv` of `make`, or in a
sourced workspace.
"""

from __future__ import annotations

from pathlib import Path

from reference.api import api_pages
from reference.commands import command_page
from reference.error_messages import error_page
from reference.gallery import gallery_page
from reference.launch_files import launch_page
from reference.links import outside_pages
from reference.messages import message_page
from reference.parameters import parameter_page
from reference.schemas import schema_page

__all__ = ["pages", "write_all"]


def pages(root: Path) -> dict[str, str]:
    """Return all generated pages, by path below docs/; `root` is the folder of the sources."""
    reference = {
        "reference/messages.md": message_page(root / "msg"),
        "reference/parameters.md": parameter_page(),
        "reference/command_line.md": command_page(),
        "reference/launch.md": launch_page(root / "launch"),
        "reference/schemas.md": schema_page(),
        "reference/errors.md": error_page(root / "hodyn_ros"),
        "reference/gallery.md": gallery_page(root / "docs"),
        **api_pages(),
    }
    return {**reference, **outside_pages(root)}


def write_all(root: Path, docs: Path) -> None:
    """Write the generated pages below `docs`, and remove those that an earlier run left there."""
    wanted = pages(root)
    for old in (docs / "reference").rglob("*.md"):
        if old.relative_to(docs).as_posix() not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = docs / name
        # an untouched file spares Sphinx the work of reading it again
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
