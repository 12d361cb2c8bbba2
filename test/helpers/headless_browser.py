"""A browser without a window, steered through Chromium's debugging protocol."""

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    "--remote-debugging-port=0",
)


def browser() -> str | None:
    """Return the path of a browser, if one is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """One page of a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._count = socket, 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=120.0))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]  # type: ignore[no-any-return]

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page's own language."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 90.0) -> Any:
        """Return the value of an expression once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < end, f"{expression} has not become true"
            time.sleep(0.2)
        return value

    def screenshot(self) -> bytes:
        """Return a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def page(url: str, folder: Path, size: tuple[int, int] = (1000, 640)) -> Iterator[Page]:
    """Open a page; `folder` is for what the browser keeps."""
    command = browser()
    assert command is not None
    window = f"--window-size={size[0]},{size[1]}"
    arguments = [command, *_FLAGS, window, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "DevTools listening" in line)
            found = re.search(r"ws://([^/]+)/", line)
            assert found is not None
            with urllib.request.urlopen(f"http://{found.group(1)}/json") as answer:
                tabs = json.load(answer)
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            with connect(address, max_size=None) as socket:
                opened = Page(socket)
                opened.call("Page.bringToFront")  # nothing is drawn on hidden pages
                opened.call("Emulation.setFocusEmulationEnabled", enabled=True)
                opened.call("Page.navigate", url=url)
                yield opened
        finally:
            process.terminate()
