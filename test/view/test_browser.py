"""The page itself: what is served, and how it looks in a browser without a window."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from headless_browser import browser, page
from refusals import refused
from sweeps import THOROUGH

from hodyn_ros import Robot, share
from hodyn_ros.trajectory import read_motion
from hodyn_ros.view.looks import read_looks
from hodyn_ros.view.scene import Scene
from hodyn_ros.view.track import DriveLimit, Instant, drive_limits, track_of_motion

if TYPE_CHECKING:  # viser takes long to import, and every worker of the tests reads this file
    from hodyn_ros.view.browser import Browser, Player

HOST = "127.0.0.1"
WARNINGS = "document.querySelectorAll('[class*=Notification-closeButton]')"  # of no graphics card
URDF = """<robot name="crane">
  <link name="world"/>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5"/><geometry><box size="0.2 0.2 1"/></geometry>
      <material name="red"><color rgba="0.8 0.1 0.1 1"/></material></visual>
    <visual><origin xyz="0 0 1"/><geometry><mesh filename="{mesh}"/></geometry></visual>
    <visual><geometry><mesh filename="broken.stl"/></geometry></visual>
  </link>
  <joint name="j" type="revolute"><parent link="world"/><child link="arm"/><axis xyz="0 1 0"/></joint>
</robot>"""


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        return int(trial.getsockname()[1])


def browser_of(scene: Scene, limits: Sequence[DriveLimit], largest: float, port: int) -> Browser:
    from hodyn_ros.view.browser import Browser

    return Browser(scene, limits, largest, HOST, port)


@pytest.fixture(scope="module")
def panda() -> Iterator[tuple[Browser, Player]]:
    from hodyn_ros.view.browser import Player

    robot = Robot.load(share.find("config", "panda.yaml"))
    track = track_of_motion(robot, read_motion(share.find("config", "panda_excitation.yaml")), 2.0)
    made = browser_of(Scene(robot), drive_limits(robot), 4e-3, free_port())
    yield made, Player(made, track)
    made.server.stop()


def test_a_page_draws_what_an_instant_says(panda: tuple[Browser, Player]) -> None:
    made, player = panda
    player.playing = False
    player.slider.value = 1.5
    player.advance(1.0)
    scene, instant = made._scene, player._track.at(1.5)
    lines = made.server.scene.get_handle_by_name("/lines/bodies")
    assert lines is not None and instant.desired is not None and instant.deflections is not None
    expected = scene.figure(instant.desired)
    np.testing.assert_allclose(lines.points, expected.bodies, atol=1e-6)  # type: ignore[attr-defined]
    springs = made.server.scene.get_handle_by_name("/springs")
    corners = scene.sectors(expected, instant.deflections, made._times.value)
    np.testing.assert_allclose(springs.vertices, corners.reshape(-1, 3), atol=1e-6)  # type: ignore[union-attr]
    assert "panda_joint7" in made._bars.content and not made._with_desired.visible
    made.draw(Instant(desired=instant.desired, measured=instant.desired + 0.1))
    ghost = made.server.scene.get_handle_by_name("/desired/bodies")
    np.testing.assert_allclose(ghost.points, expected.bodies, atol=1e-6)  # type: ignore[union-attr]
    assert made._with_desired.visible and ghost is not None and ghost.visible
    made._with_desired.value = False
    made.draw(Instant(desired=instant.desired, measured=instant.desired + 0.1))
    assert not ghost.visible


def test_time_goes_on_where_it_plays_and_begins_again(panda: tuple[Browser, Player]) -> None:
    _, player = panda
    player.playing, player.slider.value = True, 1.0
    player.advance(0.25)
    assert player.slider.value == 1.25
    player.advance(1.0)
    assert player.slider.value == 0.0
    player._turn()
    player.advance(1.0)
    assert player.slider.value == 0.0 and player._button.label == "Play"
    player._turn()


def test_bodies_have_their_shapes_and_broken_meshes_are_named(tmp_path: Path) -> None:
    import trimesh

    trimesh.creation.icosphere(radius=0.2).export(tmp_path / "ball.stl")
    (tmp_path / "broken.stl").write_bytes(b"nothing")
    urdf = tmp_path / "crane.urdf"
    urdf.write_text(URDF.format(mesh="ball.stl"))
    robot = Robot.load(urdf)
    looks = read_looks(urdf, robot)
    made = browser_of(Scene(robot, looks.visuals), drive_limits(robot), 1e-3, free_port())
    try:
        assert len(made.missing) == 1 and "broken.stl' " in made.missing[0]
        made.draw(Instant(desired=np.array([np.pi / 2])))
        for name in ("/bodies/0", "/bodies/1"):
            handle = made.server.scene.get_handle_by_name(name)
            assert handle is not None and handle.visible
            np.testing.assert_allclose(handle.wxyz, [np.sqrt(0.5), 0, np.sqrt(0.5), 0], atol=1e-6)
        assert not made._with_lines.value and made._with_bodies.value
    finally:
        made.server.stop()


def test_a_page_says_what_it_waits_for_until_something_comes(panda: tuple[Browser, Player]) -> None:
    made, seen = panda[0], []
    instants = iter([Instant(), Instant(), Instant(desired=np.zeros(7)), Instant(desired=np.ones(7))])

    def newest() -> Instant:
        seen.append(made.waiting.visible)
        instant = next(instants, None)
        if instant is None:
            raise KeyboardInterrupt
        return instant

    made.follow(newest, "nothing has come")
    assert seen == [True, True, True, False, False]
    assert made.waiting.content == "nothing has come"


def test_a_port_that_is_taken_is_one_line(panda: tuple[Browser, Player]) -> None:
    made, _ = panda
    port = made.server.get_port()
    refused(lambda: browser_of(made._scene, (), 1e-3, port), f"cannot serve at {HOST}:{port}: ... --port")


def button(label: str) -> str:
    return f"[...document.querySelectorAll('button')].find(b => b.innerText == '{label}')"


def pixels(png: bytes) -> np.ndarray:
    """Return the colours (rows, columns, 3 or 4) of a PNG."""
    from io import BytesIO

    from matplotlib.image import imread

    return np.asarray(imread(BytesIO(png)))[..., :3]


@pytest.mark.thorough
@pytest.mark.skipif(not THOROUGH, reason="make test-thorough draws in a browser; that takes a minute")
@pytest.mark.skipif(browser() is None, reason="no Chromium here; Debian has it as chromium")
def test_a_browser_shows_the_robot_and_its_controls(panda: tuple[Browser, Player], tmp_path: Path) -> None:
    made, player = panda
    player.playing, player._button.label, player.slider.value = True, "Pause", 1.5
    player.advance(0.0)
    with page(made.url, tmp_path, (720, 360)) as shown:
        text = shown.wait_for("document.body.innerText.includes('panda_joint7') && document.body.innerText")
        for words in ("Torques of the drives", "Deflection ×", "Time [s]", "of 87 N·m"):
            assert words in text
        shown.wait_for("document.title == 'panda - hodyn view'")
        shown.wait_for(f"{button('Pause')} && ({button('Pause')}.click(), true)")
        shown.wait_for(f"!!{button('Play')}")
        assert not player.playing
        end = time.monotonic() + 120.0
        while time.monotonic() < end:  # the picture fades in, slowly without a graphics card
            time.sleep(1.0)
            shown.evaluate(f"{WARNINGS}.forEach(b => b.click())")
            colours = pixels(shown.screenshot())[:, :400]
            blue = (colours[..., 2] > colours[..., 0] + 0.3).sum()
            if blue > 100:
                return
    pytest.fail("the robot has not appeared")
