"""Which requests the page of a robot answers, asked by a real client of websockets over a real socket."""

import http.client
import socket
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from hinged_arm import HINGED_ARM
from websockets import Headers
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from hodyn_ros import Robot
from hodyn_ros.view.own_pages import refusal
from hodyn_ros.view.scene import Scene

ADDRESS = "127.0.0.1"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    from hodyn_ros.view.browser import Browser  # here, as it takes long, and every worker reads this file

    with socket.socket() as trial:
        trial.bind((ADDRESS, 0))
        free = int(trial.getsockname()[1])
    made = Browser(Scene(Robot.from_urdf(HINGED_ARM)), (), 1e-3, ADDRESS, free)
    yield made.server.get_port()
    made.server.stop()


def attached(port: int, host: str, origin: str | None) -> bool:
    """Whether a page `origin` gets what is drawn from a server that it calls by the name `host`."""
    try:
        with (
            socket.create_connection((ADDRESS, port)) as to,
            connect(
                f"ws://{host}",
                sock=to,
                origin=None if origin is None else Origin(origin),
                subprotocols=[Subprotocol(f"viser-v{version('viser')}")],
            ) as client,
        ):
            return len(client.recv(10.0)) > 0
    except InvalidStatus as error:
        assert error.response.status_code == 403
        return False


@pytest.mark.parametrize("name", [ADDRESS, "localhost", "LocalHost", "[::1]"])
def test_the_page_itself_is_answered(port: int, name: str) -> None:
    assert attached(port, f"{name}:{port}", f"http://{name}:{port}")
    assert attached(port, f"{name}:9000", f"http://{name}:9000")  # through a tunnel of ssh


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "http://localhost:1", "https://127.0.0.1.evil.example:{port}"),
        *("null", "", "http://[", "http://evil.example/127.0.0.1:{port}", "http://127.0.0.1", None),
    ],
)
def test_no_other_page_is(port: int, origin: str | None) -> None:
    asking = None if origin is None else origin.replace("{port}", str(port))
    assert not attached(port, f"{ADDRESS}:{port}", asking)


def test_a_name_that_is_made_to_lead_here_is_not(port: int) -> None:
    """As in DNS rebinding: the browser takes page and server for one site."""
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example"):
        assert not attached(port, f"{name}:{port}", f"http://{name}:{port}")


@pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("[::1]", 200), ("evil.example", 403)])
def test_the_page_is_served_to_those_who_ask_for_it_here(port: int, host: str, status: int) -> None:
    asking = http.client.HTTPConnection(ADDRESS, port, timeout=10.0)
    asking.request("GET", "/", headers={"Host": f"{host}:{port}"})
    assert asking.getresponse().status == status


def test_names_of_the_machine_are_its_own_where_all_addresses_are_served() -> None:
    mine = socket.gethostname().lower()
    for served, name, right in (
        ("0.0.0.0", mine, True),
        ("::", f"{mine}.local", True),
        ("0.0.0.0", "10.1.2.3", True),
        (ADDRESS, mine, mine == "localhost"),
        ("robot.lab", "robot.lab", True),
        ("robot.lab", "evil.example", False),
        ("0.0.0.0", "evil.example", False),
    ):
        answer = refusal(Headers(Host=f"{name}:8080"), served)
        assert (answer is None) == right, answer


def test_a_request_that_names_no_host_or_two_is_refused() -> None:
    two = Headers([("Host", "localhost"), ("Host", "evil.example")])
    for headers in (Headers(), two, Headers(Host=""), Headers(Host="[")):
        assert "does not serve" in str(refusal(headers, ADDRESS))
