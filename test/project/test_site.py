"""The documentation of several versions side by side, and the switch between them."""

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from headless_browser import browser, page
from places import ROOT


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Return a build of one page with the switch, as Sphinx makes it."""
    folder = tmp_path / "built"
    (folder / "guides").mkdir(parents=True)
    switch = (ROOT / "docs" / "_templates" / "versions.html").read_text()
    script = (ROOT / "docs" / "_static" / "versions.js").read_text()
    for name, root in (("index.html", "./"), ("guides/loops.html", "../")):
        (folder / name).write_text(
            f'<html data-content_root="{root}"><body>{switch}<script>{script}</script></body></html>'
        )
    return folder


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import site_versions

    return site_versions.add


def test_the_newest_release_comes_first(add, built: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    site = tmp_path / "site"
    site.mkdir()
    assert add(built, site, "main") == ["main"]
    assert "url=main/index.html" in (site / "index.html").read_text()
    for name in ("0.9.0", "0.10.0", "0.2.0"):
        names = add(built, site, name)
    assert names == ["0.10.0", "0.9.0", "0.2.0", "main"] == json.loads((site / "versions.json").read_text())
    assert "url=0.10.0/index.html" in (site / "index.html").read_text()


def test_a_version_is_replaced_as_a_whole(add, built: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    site = tmp_path / "site"
    site.mkdir()
    add(built, site, "main")
    (built / "guides" / "loops.html").rename(built / "guides" / "cycles.html")
    add(built, site, "main")
    assert [path.name for path in (site / "main" / "guides").iterdir()] == ["cycles.html"]


def test_what_is_no_version_and_no_build_is_refused(add, built: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for name in ("v0.2.0", "../main", "feature"):
        with pytest.raises(SystemExit, match="is no version"):
            add(built, tmp_path, name)
    with pytest.raises(SystemExit, match="make docs"):
        add(tmp_path, tmp_path, "main")


def test_the_workflow_calls_what_there_is() -> None:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text())["jobs"]["site"]["steps"]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert 'python tools/site_versions.py out/docs site "$GITHUB_REF_NAME"' in commands
    assert (ROOT / "tools" / "site_versions.py").is_file()


@pytest.fixture
def server(add, built: Path, tmp_path: Path) -> Iterator[str]:  # type: ignore[no-untyped-def]
    site = tmp_path / "site"
    site.mkdir()
    add(built, site, "main")
    (built / "guides" / "loops.html").unlink()
    add(built, site, "0.2.0")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    ) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


@pytest.mark.skipif(browser() is None, reason="no Chromium here")
def test_the_switch_leads_to_the_same_page_or_the_first(server: str, tmp_path: Path) -> None:
    change = "s.value='0.2.0'; s.dispatchEvent(new Event('change'))"
    with page(f"{server}/main/guides/loops.html", tmp_path) as opened:
        opened.wait_for("document.querySelector('select')?.options.length === 2")
        assert opened.evaluate("document.querySelector('select').value") == "main"
        opened.evaluate(f"const s = document.querySelector('select'); {change}")
        opened.wait_for("location.pathname === '/0.2.0/'")
