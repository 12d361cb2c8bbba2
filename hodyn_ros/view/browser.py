"""A page in a browser on which a scene is drawn, by viser."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO

import numpy as np
import viser
from numpy.typing import NDArray
from viser._messages import RunJavascriptMessage

from hodyn_ros.array import Array
from hodyn_ros.errors import InputError
from hodyn_ros.view.bars import bars
from hodyn_ros.view.meshes import triangles
from hodyn_ros.view.own_pages import only_own_pages
from hodyn_ros.view.scene import Figure, Scene
from hodyn_ros.view.track import DriveLimit, Instant, Track

Colour = tuple[int, int, int]

_PERIOD = 1.0 / 30.0  # [s] between two pictures
_BODY, _LOOP, _GHOST, _SPRING = (68, 119, 170), (34, 136, 51), (238, 160, 60), (238, 102, 119)
_JOINT = (40, 60, 90)
_LINE, _DOT, _AXES = 0.034, 0.034, 0.07  # shares of the robot's size
_NOWHERE = np.zeros((1, 2, 3))


class _Skeleton:
    """A robot as lines with dots where bodies are joined."""

    def __init__(self, server: viser.ViserServer, name: str, size: float, colours: Sequence[Colour]) -> None:
        body, loop, joint = colours
        scene = server.scene
        thick = _LINE * size
        self._bodies = scene.add_line_segments(f"/{name}/bodies", _NOWHERE, body, thickness=thick)
        self._loops = scene.add_line_segments(f"/{name}/loops", _NOWHERE, loop, thickness=0.6 * thick)
        self._joints = scene.add_point_cloud(
            f"/{name}/joints",
            _NOWHERE[0],
            joint,
            point_size=_DOT * size,
            point_shape="circle",
            precision="float32",
        )

    def draw(self, figure: Figure | None, shown: bool) -> None:
        """Draw a robot, or nothing."""
        for handle, lines in (
            (self._bodies, None if figure is None else figure.bodies),
            (self._loops, None if figure is None else figure.loops),
        ):
            handle.visible = shown and lines is not None and len(lines) > 0
            if handle.visible and lines is not None:
                handle.points = lines.astype(np.float32)
        self._joints.visible = shown and figure is not None and len(figure.joints) > 0
        if self._joints.visible and figure is not None:
            self._joints.points = figure.joints.astype(np.float32)


class _Bodies:
    """A robot as the shapes of its bodies."""

    def __init__(self, server: viser.ViserServer, name: str, scene: Scene, ghost: Colour | None) -> None:
        self._carriers, self._handles, self.missing = [], [], []
        for i, visual in enumerate(scene.visuals):
            try:
                mesh = triangles(visual)
            except InputError as error:
                self.missing.append(str(error))
                continue
            path = f"/{name}/{i}"
            handle = (
                server.scene.add_mesh_trimesh(path, mesh)
                if ghost is None
                else server.scene.add_mesh_simple(
                    path, mesh.vertices, mesh.faces, color=ghost, opacity=0.35, cast_shadow=False
                )
            )
            self._carriers.append(visual.body)
            self._handles.append(handle)

    def draw(self, figure: Figure | None, shown: bool) -> None:
        """Draw a robot, or nothing."""
        poses = np.eye(4)[None] if figure is None else np.concatenate([figure.poses, np.eye(4)[None]])
        turned = _quaternions(poses)
        for body, handle in zip(self._carriers, self._handles):
            handle.visible = shown and figure is not None
            if handle.visible:
                handle.position, handle.wxyz = poses[body, :3, 3], turned[body]


class Browser:
    """Serves the page, and draws on it.

    `limits` of the drives that bars are for; `largest` deflection [rad or m] that will be shown. `missing`:
    what of the robot's looks could not be drawn. Raises InputError where the address is taken.
    """

    def __init__(
        self, scene: Scene, limits: Sequence[DriveLimit], largest: float, host: str, port: int
    ) -> None:
        self._scene, self._limits = scene, limits
        self.server = _server(host, port, scene.robot.name)
        self.url = f"http://{host}:{self.server.get_port()}"
        self._bodies = _Bodies(self.server, "bodies", scene, None)
        self._ghosts = _Bodies(self.server, "desired_bodies", scene, _GHOST)
        self.missing = tuple(self._bodies.missing)
        self._lines = _Skeleton(self.server, "lines", scene.size, (_BODY, _LOOP, _JOINT))
        self._ghost_lines = _Skeleton(self.server, "desired", 0.6 * scene.size, (_GHOST, _GHOST, _GHOST))
        self._set_stage()
        self._add_controls(largest)
        self._drawn: object = None

    def _set_stage(self) -> None:
        scene, server = self._scene, self.server
        size, middle = scene.size, (scene.lowest + scene.highest) / 2.0
        server.gui.configure_theme(control_width="medium", show_logo=False)
        server.gui.main_panel.dock_right()
        server.scene.configure_default_lights(cast_shadow=False)  # shadows are slow without a graphics card
        server.gui.set_panel_label(scene.robot.name)
        # viser has no call for the title of the tab, and this message for what every page runs
        title = json.dumps(f"{scene.robot.name} - hodyn view")
        server.gui._websock_interface.queue_message(RunJavascriptMessage(source=f"document.title = {title};"))
        server.initial_camera.look_at = middle
        server.initial_camera.position = middle + size * np.array([0.68, -0.76, 0.34])
        cell = 10.0 ** np.floor(np.log10(size))
        server.scene.add_grid(
            "/ground",
            width=20.0 * size,
            height=20.0 * size,
            cell_size=cell / 2.0,
            section_size=cell,
            section_color=(205, 210, 216),
            cell_color=(226, 229, 233),
            fade_distance=6.0 * size,
            position=(0.0, 0.0, min(0.0, float(scene.lowest[2]))),
        )
        self._frames = server.scene.add_batched_axes(
            "/frames",
            *_axes(scene.frames(scene.home)),
            axes_length=_AXES * size,
            axes_radius=0.004 * size,
        )
        self._sectors = server.scene.add_mesh_simple(
            "/springs",
            np.zeros((3, 3)),
            np.array([[0, 1, 2]]),
            color=_SPRING,
            opacity=0.85,
            side="double",
            material="standard",
            cast_shadow=False,
        )

    def _add_controls(self, largest: float) -> None:
        gui, scene = self.server.gui, self._scene
        self.time_controls = gui.add_folder("Time", visible=False)
        with gui.add_folder("Shown"):
            meshes = bool(scene.visuals) and len(self.missing) < len(scene.visuals)
            self._with_bodies = gui.add_checkbox("Bodies", meshes, visible=meshes)
            self._with_lines = gui.add_checkbox("Lines", not meshes)
            self._with_desired = gui.add_checkbox("Desired motion", True, visible=False)
            self._with_frames = gui.add_checkbox("Frames", False)
            self._with_springs = gui.add_checkbox("Springs", True, visible=bool(scene.springs))
            times = scene.magnification(largest)
            self._times = gui.add_slider(
                "Deflection ×",
                0.0,
                2.0 * times,
                times / 100.0,
                times,
                visible=bool(scene.springs),
                hint="how many times wider the deflections of springs are drawn, from link to motor",
            )
        self._torques = gui.add_folder("Torques of the drives", visible=False)
        with self._torques:
            self._bars = gui.add_html("")

    def draw(self, instant: Instant) -> None:
        """Draw the robot as it is at an instant, unless all is as it was."""
        controls = (
            self._with_bodies.value,
            self._with_lines.value,
            self._with_desired.value,
            self._with_frames.value,
            self._with_springs.value,
            self._times.value,
        )
        if self._drawn is not None and self._drawn == (tuple(map(id, instant)), controls):
            return
        bodies, lines, desired, frames, springs, times = controls
        figure, ghost = self._scene.figures(instant)
        with self.server.atomic():
            self._with_desired.visible = self._with_desired.visible or ghost is not None
            self._bodies.draw(figure, bodies)
            self._ghosts.draw(ghost, bodies and desired)
            self._lines.draw(figure, lines)
            self._ghost_lines.draw(ghost, lines and desired)
            self._draw_frames(figure, frames)
            self._draw_springs(figure, instant.deflections if springs else None, times)
            self._torques.visible = self._torques.visible or instant.torques is not None
            if instant.torques is not None:
                self._bars.content = bars(self._limits, instant.torques)
        # the arrays are kept, so that their identities are not given to others
        self._kept = instant
        self._drawn = (tuple(map(id, instant)), controls)

    def _draw_frames(self, figure: Figure | None, shown: bool) -> None:
        self._frames.visible = shown and figure is not None
        if self._frames.visible and figure is not None:
            self._frames.batched_wxyzs, self._frames.batched_positions = _axes(self._scene.frames(figure))

    def _draw_springs(self, figure: Figure | None, deflections: Array | None, times: float) -> None:
        self._sectors.visible = figure is not None and deflections is not None and bool(self._scene.springs)
        if self._sectors.visible and figure is not None and deflections is not None:
            corners = self._scene.sectors(figure, deflections, times).reshape(-1, 3).astype(np.float32)
            self._sectors.vertices = corners
            self._sectors.faces = np.arange(len(corners), dtype=np.uint32).reshape(-1, 3)

    def follow(self, newest: Callable[[], Instant], waiting: str = "") -> None:
        """Draw what is newest, until Ctrl+C; the page says what it is `waiting` for until something comes."""
        self.waiting = self.server.gui.add_markdown(waiting, visible=bool(waiting))
        with suppress(KeyboardInterrupt):
            while True:
                instant = newest()
                if self.waiting.visible and any(part is not None for part in instant):
                    self.waiting.visible = False
                self.draw(instant)
                time.sleep(_PERIOD)

    def play(self, track: Track) -> None:
        """Draw a track at the time of its slider, until Ctrl+C."""
        player = Player(self, track)
        last = time.monotonic()
        with suppress(KeyboardInterrupt):
            while True:
                now = time.monotonic()
                player.advance(now - last)
                last = now
                time.sleep(_PERIOD)


class Player:
    """The time of a track: a slider, a button that plays and pauses, and how fast."""

    def __init__(self, browser: Browser, track: Track) -> None:
        self._browser, self._track = browser, track
        gui, folder = browser.server.gui, browser.time_controls
        folder.visible = True
        with folder:
            end = max(track.duration, 1e-3)
            self.slider = gui.add_slider("Time [s]", 0.0, end, min(1e-3, end), 0.0)
            self._speed = gui.add_slider("Speed ×", 0.05, 2.0, 0.05, 1.0)
            self._button = gui.add_button("Pause")
        self.playing = True
        self._button.on_click(lambda _: self._turn())

    def _turn(self) -> None:
        self.playing = not self.playing
        self._button.label = "Pause" if self.playing else "Play"

    def advance(self, seconds: float) -> None:
        """Go on by seconds where it plays, from the end to the start again; draw the time of the slider."""
        if self.playing:
            later = self.slider.value + seconds * self._speed.value
            over = later > self._track.duration
            self.slider.value = 0.0 if over else later  # type: ignore[misc] # viser's handles have a setter
        self._browser.draw(self._track.at(self.slider.value))


def _server(host: str, port: int, name: str) -> viser.ViserServer:
    # browsers open connections ahead and leave some of them unused
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    with socket.socket() as trial:  # viser would take the next port that is free
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            where = f"{host}:{port}: {error.strerror}"
            raise InputError(f"cannot serve at {where}; choose another --port") from error
    with only_own_pages(host), redirect_stdout(StringIO()):  # which tells the address in a box
        return viser.ViserServer(host=host, port=port, label=name, verbose=False)


def _quaternions(poses: Array) -> Array:
    """Return unit quaternions (N, 4), real part first."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(poses[:, :3, :3]).as_quat()[:, [3, 0, 1, 2]])


def _axes(poses: Array) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    if not len(poses):
        return np.zeros((0, 4), np.float32), np.zeros((0, 3), np.float32)
    return _quaternions(poses).astype(np.float32), poses[:, :3, 3].astype(np.float32)
