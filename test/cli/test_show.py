"""`hodyn show`: what robot files say, as tables that stay whole at 80 columns."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import refused
from rich.console import Console

from hodyn_ros import ModelError, Robot, share
from hodyn_ros.cli.robot_sheet import read_sheet
from hodyn_ros.cli.show import run_show
from hodyn_ros.dynamics.robot_choice import RobotChoice

PANDA = share.find("config", "panda.yaml")
DRAWN = ("planar_3rrr.yaml", "delta.yaml", "aerial_manipulator.yaml")  # a platform, loops, a base that moves


def shown(robot: str | Path, picture: Path | None = None, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    run_show(RobotChoice(str(robot)), picture, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("robot", "wanted"),
    [
        (
            "panda.yaml",
            ["7 joints, 7 bodies of 16.06 kg", "panda_link8", "joints[3] panda_joint4: drive.stif"],
        ),
        (
            "panda.urdf",
            ["A URDF says nothing about drives", "soft limits (safety_controller) do not count", "No drives"],
        ),
        (
            "planar_3rrr.yaml",
            [
                "9 joints, 10 bodies of 1.074 kg; moved by its platform 'tool'",
                "top_shoulder revolute top_body1 top_foot",
                "tool.y yes left_hinge left_elbow left_shoulder yes",
                "tool_spin1 spin world tool",
                "left_shoulder linear 40 0.002",
                "No limits",
            ],
        ),
        (
            "gough_stewart_6ups.yaml",
            ["leg6_slide prismatic leg6_body3 leg6_body2", "platform.rx yes", "leg1 weld world leg1_foot"],
        ),
        ("delta.yaml", ["18 joints", "parallelogram3", "elbow1b_r2", "drive3", "rigid"]),
        ("humanoid_leg.yaml", ["floating base", "knee_linkage", "left_ankle_drive", "rod"]),
        ("palletiser.yaml", ["upper_parallelogram", "axis4", "hinge"]),
        ("panda_hand.yaml", ["panda_finger_joint2", "panda_hand_tcp"]),
        ("aerial_manipulator.yaml", ["floating base", "right_joint3", "gravity = 0.0, 0.0, -9.81"]),
    ],
)
def test_robots_of_all_kinds_are_shown(robot: str, wanted: list[str], tmp_path: Path) -> None:
    drawn = robot in DRAWN
    text = shown(robot, tmp_path / "sub" / "robot.png" if drawn else None)
    joined = " ".join(text.split())
    for part in wanted:
        assert part in joined
    assert max(map(len, text.splitlines()[: -1 if drawn else None])) <= 80
    assert not drawn or np.asarray(Image.open(tmp_path / "sub" / "robot.png")).std() > 3.0


def test_a_robot_that_is_only_drawn_is_shown_and_said_to_be_so(tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.urdf"
    drawn.write_text(
        '<robot name="drawn"><link name="foot"/><link name="arm"/><joint name="hinge" type="continuous">'
        '<parent link="foot"/><child link="arm"/></joint></robot>'
    )
    assert "No command computes with it: no body of robot 'drawn' has a mass" in shown(drawn, width=300)
    refused(lambda: Robot.from_urdf(drawn), "no body of robot 'drawn' has a mass", ModelError)


def test_figures_are_those_of_the_robot() -> None:
    robot = Robot.load(PANDA)
    assert robot.drive_train is not None
    lines = [line.split() for line in shown("panda.yaml").splitlines()]
    for i, name in enumerate(robot.joint_names):
        moved, limits, drive = [line for line in lines if line[:1] == [name]]
        assert moved[1] == "revolute"
        assert float(limits[1]) == pytest.approx(robot.limits.position_lower[i], rel=1e-3)
        assert float(limits[4]) == robot.limits.effort[i]
        assert float(drive[2]) == robot.drive_train.stiffness[i]


def test_all_that_is_assumed_is_said() -> None:
    sheet = read_sheet(RobotChoice(str(PANDA)))
    assert len(sheet.assumed) == 8
    assert sheet.assumed[0].startswith(
        "bodies[0] panda_link1: com = 0.003875, 0.002081, -0.175 (x and y [gaz]; z"
    )


def test_drives_of_every_kind_have_a_name(tmp_path: Path) -> None:
    text = PANDA.read_text()
    kinds = {
        "damped, 3 s": "spring_damping: 3",
        "hardening, 4000 cubed": "cubic_stiffness: 4000",
        "motor 0.2 viscous, 0.5 coulomb": "motor_friction: {viscous: 0.2, coulomb: 0.5}",
    }
    stiffness = 'stiffness: {value: 10000, assumed: true, source: "assumed: no published value"}'
    for line in kinds.values():
        text = text.replace(stiffness, f"stiffness: 10000\n      {line}", 1)
    file = tmp_path / "robot.yaml"
    file.write_text(text)
    rows = " ".join(shown(file, width=140).split())
    for name in kinds:
        assert name in rows
