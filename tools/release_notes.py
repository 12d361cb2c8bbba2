"""Print the notes of a release from CHANGELOG.rst, or say in one line each what its tag does not agree with.

`python tools/release_notes.py 0.1.0`, which the release workflow runs before it builds anything. Needs
catkin_pkg, which reads changelogs as bloom does. Exit code 1 where something disagrees.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from catkin_pkg.changelog import CHANGELOG_FILENAME, get_changelog_from_path

_VERSIONS = {
    "pyproject.toml": r'^version = "(.+)"$',
    "package.xml": r"<version>(.+)</version>",
    "CITATION.cff": r"^version: (.+)$",
}


def disagreements(folder: Path, version: str) -> list[str]:
    """Return what is not of this version in a repository, one line each."""
    lines = []
    for file, pattern in _VERSIONS.items():
        found = re.findall(pattern, (folder / file).read_text(encoding="utf-8"), re.MULTILINE)
        if found != [version]:
            lines.append(f"{file} says {', '.join(found) or 'no version'}, and the tag {version}")
    if notes(folder, version) is None:
        lines.append(f"{CHANGELOG_FILENAME} has no dated section {version}; run catkin_prepare_release first")
    return lines


def notes(folder: Path, version: str) -> str | None:
    """Return the section of a version, None where there is none."""
    path = folder / CHANGELOG_FILENAME
    released = [found for found, _, _ in get_changelog_from_path(str(path), "hodyn_ros").foreach_version()]
    if version not in released:
        return None
    title = rf"^{re.escape(version)} \(.+\)\n-+\n"
    section = re.search(rf"{title}(.*?)(?=^\S.*\n-+\n|\Z)", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return section[1].strip() if section else None


def main() -> int:
    """Check the tag that is named, and print its notes."""
    (version,) = sys.argv[1:]
    folder = Path(__file__).resolve().parents[1]
    lines = disagreements(folder, version)
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    if not lines:
        print(notes(folder, version))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
