"""`hodyn learn` and `hodyn simulate --correction`: from recordings to a correction, and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from bag_samples import SECOND, START, header, serialised, write
from command_line import run
from PIL import Image

from hodyn_ros.bags.comparison.sources import DESIRED_MOTION
from hodyn_ros.bags.joint_states import JOINT_STATE
from hodyn_ros.bags.messages import Message, Topic
from hodyn_ros.learning import read_correction
from hodyn_ros.trajectory.files.reader import read_motion

ROBOT = """
name: arm
bodies:
  - {name: upper, mass: 4, com: [0.2, 0, 0],
     inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.1, iyz: 0, izz: 0.1}}
  - {name: fore, mass: 2, com: [0.2, 0, 0],
     inertia: {about: com, ixx: 0.01, ixy: 0, ixz: 0, iyy: 0.05, iyz: 0, izz: 0.05}}
joints:
  - {name: lift, type: revolute, parent: world, child: upper, axis: [0, -1, 0], limits: {effort: 200},
     drive: {motor_inertia: 0.8, gear_ratio: 100, stiffness: 6000}}
  - {name: bend, type: revolute, parent: upper, child: fore, axis: [0, -1, 0], origin: {xyz: [0.4, 0, 0]},
     limits: {effort: 100}, drive: {motor_inertia: 0.4, gear_ratio: 100, stiffness: 3000}}
"""
MOTION = """
type: waypoints
joint_names: [lift, bend]
order: 6
points:
  - {time: 0, positions: [0.2, 0.5]}
  - {time: 0.5, positions: [0.9, -0.2]}
  - {time: 1.0, positions: [0.2, 0.5]}
"""
WRONG = (
    "--payload-error",
    "1",
    "--stiffness-error=-20%",
    "--link-delay",
    "0",
    "--record",
    "run.csv",
    "--rate",
    "100",
)


SLOW = ("--bandwidth", 4)  # what takes the least to learn


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arm.yaml").write_text(ROBOT)
    Path("move.yaml").write_text(MOTION)


@pytest.mark.thorough
def test_simulated_repetitions_teach(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: tuple[str, ...] = ()
    for _ in range(2):
        assert run(monkeypatch, "simulate", "arm.yaml", "move.yaml", *WRONG, *played) == 0
        written = ("--out", "learned.yaml", "--picture", "picture.png", "--json")
        arguments = ("run.csv", "--begin", 1, *written, *SLOW)
        capsys.readouterr()
        assert run(monkeypatch, "learn", "arm.yaml", "move.yaml", *arguments, *played) == 0
        captured = capsys.readouterr()
        played = ("--correction", "learned.yaml")
    assert "next repetition:" in captured.err and "written: learned.yaml, picture.png" in captured.err
    figures = json.loads(captured.out)
    first, second = (step["rms"] for step in figures["history"])
    assert second < 0.15 * first and figures["contraction"] <= 0.7 and figures["notes"] == []
    assert Image.open("picture.png").width > 800
    assert run(monkeypatch, "simulate", "panda.yaml", "panda_excitation.yaml", *played) == 2
    assert "is of the joints ['lift', 'bend'], the robot has" in capsys.readouterr().err


def test_a_bag_tells_when_the_motion_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two repetitions in one bag, with its desired motion beside the states."""
    motion = read_motion(Path("move.yaml")).trajectory
    messages = []
    for i, time in enumerate(np.arange(0.0, 5.0, 0.004).tolist()):
        phase = float(np.clip(time - (0.5 if time < 2.2 else 2.7), 0.0, motion.duration))
        q = motion.sample(phase, 0)[0]
        stamp = START + round(time * SECOND)
        noise = 1e-6 * np.random.default_rng(i).standard_normal(2)
        named = {"header": header(stamp)}
        moved = serialised(DESIRED_MOTION, joint_names=["lift", "bend"], positions=q, **named)
        state = {"position": q + [1e-3, 2e-3] + noise, "effort": np.sin([time, 2.0 * time])}
        seen = serialised(JOINT_STATE, name=["lift", "bend"], **state, **named)
        messages.append(Message("/desired_motion", stamp, moved))
        messages.append(Message("/joint_states", stamp, seen))
    topics = (Topic("/desired_motion", DESIRED_MOTION), Topic("/joint_states", JOINT_STATE))
    write(Path("bag"), "mcap", messages, topics)
    assert run(monkeypatch, "learn", "arm.yaml", "move.yaml", "bag", "--json", *SLOW) == 0
    (step,) = json.loads(capsys.readouterr().out)["history"]
    assert step["repetitions"] == 2
    np.testing.assert_allclose(step["rms"], np.sqrt(2.5e-6), rtol=1e-2)
    assert read_correction(Path("out/learned.yaml")).history[0].verdict == "learnt"


def test_words_on_what_cannot_be_learnt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = np.arange(0.0, 1.4, 0.01)
    table = np.column_stack([times, *(np.sin(times + i) for i in range(4))])
    heads = "time,lift.position,bend.position,lift.effort,bend.effort"
    np.savetxt("run.csv", table, delimiter=",", header=heads, comments="")
    assert run(monkeypatch, "learn", "arm.yaml", "move.yaml", "run.csv") == 2
    assert "it is of another motion, or begins at another time: lift is off" in capsys.readouterr().err
    assert run(monkeypatch, "learn", "arm.yaml", "move.yaml", "run.csv", "--correction", "none.yaml") == 2
    assert "there is no correction 'none.yaml'" in capsys.readouterr().err
    assert run(monkeypatch, "learn", "delta.yaml", "delta_motion.yaml", "run.csv") == 2
    assert "learning is for arms and trees on the ground" in capsys.readouterr().err
