"""Puts a built documentation beside those of other versions.

    python tools/site_versions.py out/docs SITE 0.2.0

SITE holds a folder for each version, `versions.json`, from which the pages of all of them fill their switch,
and an `index.html` that leads to the newest release, or to `main` before there is one. What is built stays
as it was built; so a release needs no build of the older ones.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

RELEASE = re.compile(r"\d+\.\d+\.\d+")
LATEST = "main"  # what the default branch is called
_LEADS = """<!doctype html>
<meta charset="utf-8">
<title>hodyn_ros</title>
<meta http-equiv="refresh" content="0; url={name}/index.html">
<a href="{name}/index.html">hodyn_ros {name}</a>
"""


def add(built: Path, site: Path, name: str) -> list[str]:
    """Put a build in the place of a version; return the names of all, newest release first, `main` last."""
    if name != LATEST and not RELEASE.fullmatch(name):
        raise SystemExit(f"error: {name!r} is no version; name a release such as 0.2.0, or {LATEST}")
    if not (built / "index.html").is_file():
        raise SystemExit(f"error: {built} holds no documentation; run `make docs` first")
    if (site / name).exists():
        shutil.rmtree(site / name)
    shutil.copytree(built, site / name)
    releases = [path.name for path in site.iterdir() if RELEASE.fullmatch(path.name)]
    releases.sort(key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    names = releases + [LATEST] * (site / LATEST).is_dir()
    (site / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_LEADS.format(name=names[0]), encoding="utf-8")
    (site / ".nojekyll").touch()  # folders whose names begin with _ are pages' own, not of Jekyll
    return names


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit("usage: python tools/site_versions.py BUILT SITE VERSION")
    print("versions:", ", ".join(add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))
