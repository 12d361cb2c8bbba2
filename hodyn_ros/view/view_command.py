"""What `hodyn view` does, once its arguments are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.errors import InputError
from hodyn_ros.tables import say
from hodyn_ros.trajectory.files.reader import read_motion
from hodyn_ros.view.browser import Browser
from hodyn_ros.view.looks import read_looks
from hodyn_ros.view.scene import Scene
from hodyn_ros.view.track import Instant, Track, drive_limits, track_of_motion

_BAG_ENDS = (".mcap", ".db3", ".zstd")
_USUAL = 1.0 / 3.0  # share of the limits of efforts that motions use
_UNKNOWN = 1e-3  # [rad] largest deflection that is expected of a robot whose file says too little


def run_view(
    robot: RobotChoice,
    source: str | None,
    live: bool,
    duration: float | None,
    namespace: str,
    host: str,
    port: int,
    console: Console,
) -> None:
    """Serve a page with a robot until Ctrl+C: standing, along a motion or a bag, or live."""
    if live and source is not None:
        raise InputError(f"--live shows what the topics say; leave out '{source}'")
    path, machine = robot.path, robot.robot()
    track = None if source is None else _track(machine, source, duration, namespace)
    looks = read_looks(path, machine)
    scene = Scene(machine, looks.visuals)
    browser = Browser(scene, drive_limits(machine), _largest(machine, track), host, port)
    for line in (*looks.missing, *browser.missing, "" if track is None else track.note):
        if line:
            say(console, f"note: {line}")
    say(console, f"{machine.name} is at {browser.url} (Ctrl+C ends it)")
    if live:
        from hodyn_ros.view.live import TOPICS, LiveRobot

        with LiveRobot(machine, namespace) as newest:
            where = namespace.strip("/")
            browser.follow(newest, f"Nothing has come yet on {TOPICS} in the namespace `/{where}`.")
    elif track is not None:
        browser.play(track)
    else:
        still = Instant()
        browser.follow(lambda: still)


def _track(robot: Robot, source: str, duration: float | None, namespace: str) -> Track:
    path = Path(source)
    if path.is_dir() or path.suffix in _BAG_ENDS:
        from hodyn_ros.view.bag_track import track_of_bag

        return track_of_bag(robot, path, namespace or None)
    return track_of_motion(robot, read_motion(share.find("config", source)), duration)


def _largest(robot: Robot, track: Track | None) -> float:
    """Return the largest deflection [rad or m] of a track, or else that under a usual share of the limits.

    What is live comes later: springs that are drawn too wide would hide the robot.
    """
    if track is not None and track.deflections is not None and np.isfinite(track.deflections).any():
        return float(np.nanmax(np.abs(track.deflections)))
    train = robot.drive_train
    if train is None:
        return _UNKNOWN
    bent = _USUAL * robot.limits.effort / train.stiffness
    return float(max(bent[np.isfinite(bent) & (bent > 0.0)], default=_UNKNOWN))
