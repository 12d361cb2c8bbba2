"""Who may look at a robot: the page that is served, and no other page that a browser has open.

A browser lets every page open a websocket to every address. So the server has to look where a request comes
from: `Origin` is the page that asks, `Host` whom it believes to ask. A page under a name of its own, which it
then lets lead here (DNS rebinding), has both alike; its name gives it away. viser has no option for that.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import websockets.asyncio.server
from websockets import Headers

from hodyn_ros.errors import InputError


@contextmanager
def only_own_pages(host: str) -> Iterator[None]:
    """Let what begins to serve at `host` within the block answer its own page alone.

    Raises InputError where nothing did: another viser, which serves in another way, would not be looked at.
    """
    serve, looked_at = websockets.asyncio.server.serve, []

    def begin(*arguments: Any, process_request: Callable[..., Any] | None = None, **options: Any) -> Any:
        looked_at.append(arguments)

        def answer(connection: Any, request: Any) -> Any:
            wrong = refusal(request.headers, host)
            if wrong is not None:
                return connection.respond(HTTPStatus.FORBIDDEN, f"{wrong}\n")
            return None if process_request is None else process_request(connection, request)

        return serve(*arguments, process_request=answer, **options)

    with patch.object(websockets.asyncio.server, "serve", begin):
        yield
    if not looked_at:
        raise InputError("this version of viser serves in a way that is not known; install one below 2")


def refusal(headers: Headers, host: str) -> str | None:
    """Return why a request to a server at `host` is refused; None where it is not.

    The host must be an address, `localhost`, `host`, or, where that stands for all addresses, the name of
    this machine. A websocket must be asked for by a page of the very same host.
    """
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or not _is_ours(hosts[0], host):
        return f"hodyn view does not serve {hosts}; open it by an address, or start it with --host"
    own = [[f"{scheme}://{hosts[0]}".lower()] for scheme in ("http", "https")]  # the latter behind a proxy
    if "Upgrade" in headers and [origin.lower() for origin in origins] not in own:
        return f"hodyn view at {hosts[0]} is for its own page; this comes from {origins}"
    return None


def _is_ours(asked: str, host: str) -> bool:
    own = {"localhost", host.lower()}
    try:
        if ip_address(host).is_unspecified:
            machine = socket.gethostname().lower()
            own |= {machine, f"{machine}.local"}
    except ValueError:  # a name
        pass
    name = ""
    try:
        name = urlsplit(f"//{asked}").hostname or ""
        ip_address(name)
    except ValueError:
        return name in own
    return True  # an address leads where it says, whoever asks
