"""The processor step of LeRobot: chunks of recorded episodes in, commands for a simulated arm out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from refusals import assert_refused
from run_examples import run_example

from hodyn_ros import Robot, share
from hodyn_ros.array import Array
from hodyn_ros.simulation.simulation import RobotSimulation

processor = pytest.importorskip(
    "lerobot.processor", reason="lerobot is not installed (Python 3.12, and torch)"
)
torch = pytest.importorskip("torch", reason="torch is not installed")
from lerobot.configs.types import PipelineFeatureType  # noqa: E402
from lerobot.processor.converters import create_transition, identity_transition  # noqa: E402

from hodyn_ros.interop.lerobot import BEGIN, ChunkExecutorStep, bend_of  # noqa: E402

FILE = str(share.find("config", "panda.yaml"))
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
KEY = processor.TransitionKey
PERIOD, SPACING = 0.002, 0.02
NAMES = Robot.load(FILE).joint_names
WHAT = ("pos", "vel", "kp", "kd", "torque")


def episode(count: int = 150) -> Array:
    """Return recorded actions (points, motors) in degrees, from rest."""
    times = SPACING * np.arange(count)[:, None]
    u = np.clip(times, 0.0, 1.0)
    return np.asarray(np.degrees(HOME + 0.2 * u**3 * np.sin(3.0 * times + np.arange(7))))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def step(clock: Clock, **more: Any) -> ChunkExecutorStep:
    kp, kd = [300.0] * 4 + [60.0] * 3, [20.0] * 4 + [4.0] * 3
    settings = {"bend": bend_of([episode()]), "lead": 0.5 * PERIOD} | more
    return ChunkExecutorStep(FILE, SPACING, kp, kd, clock=clock, **settings)


def observed(arm: RobotSimulation) -> dict[str, float]:
    state = arm.measurement
    where = {f"{name}.pos": np.degrees(x) for name, x in zip(NAMES, state.motor_position)}
    return where | {f"{name}.vel": np.degrees(v) for name, v in zip(NAMES, state.motor_velocity)}


def test_a_simulated_arm_follows_chunks_of_a_pipeline(caplog: pytest.LogCaptureFixture) -> None:
    clock, arm, actions = Clock(), RobotSimulation(Robot.load(FILE), HOME), episode()
    one = step(clock)
    pipeline = processor.DataProcessorPipeline(
        [one], to_transition=identity_transition, to_output=identity_transition
    )
    off = []
    for k in range(800):
        clock.now = PERIOD * k
        chunk: Any = None
        if k % 50 == 0 and k >= 400:
            frame = (k - 400) // 10
            chunk = torch.tensor(actions[frame : frame + 50])[None]  # as policies give them
            if k == 600:
                chunk[0, 20, 3] = torch.nan
        data = {BEGIN: clock.now} if chunk is not None else {}
        sent = pipeline(create_transition(observed(arm), chunk, complementary_data=data))[KEY.ACTION]
        if not sent:
            continue
        position, velocity, kp, kd, torque = (
            np.array([sent[f"{name}.{what}"] for name in NAMES]) for what in WHAT
        )
        if one.executor.following:
            off.append(arm.measurement.position - one.executor.desired(clock.now)[0])
        for _ in range(2):
            state = arm.measurement
            pull = kp * (np.radians(position) - state.motor_position)
            arm.advance(0.5 * PERIOD, torque + pull + kd * (np.radians(velocity) - state.motor_velocity))
    assert len(off) > 400 and np.abs(off).max() < 1e-3
    np.testing.assert_allclose(arm.measurement.position, np.radians(actions[40]), atol=0.02)
    assert sum(one.executor.check.faults.values()) == 1
    assert "point 20 of joint 'panda_joint4' is not finite" in caplog.text


def test_single_actions_are_points() -> None:
    clock = Clock()
    one = step(clock, degrees=False, bend=None)
    still = {f"{name}.pos": float(x) for name, x in zip(NAMES, HOME)}
    for k in range(500):
        clock.now = PERIOD * k
        sent = one(create_transition(still, still if k % 10 == 0 else None))[KEY.ACTION]
    assert one.executor.following
    for name, x in zip(NAMES, HOME):
        assert abs(sent[f"{name}.pos"] - x) < 0.02 and sent[f"{name}.kp"] > 0.0


def test_it_is_saved_and_made_again(tmp_path: Any) -> None:
    one = step(Clock())
    assert json.loads(json.dumps(one.get_config())) == one.get_config()
    pipeline = processor.DataProcessorPipeline([one], name="arm")
    pipeline.save_pretrained(tmp_path)
    again = processor.DataProcessorPipeline.from_pretrained(tmp_path, config_filename="arm.json").steps[0]
    assert isinstance(again, ChunkExecutorStep)
    assert again.get_config() == one.get_config()


def test_features_say_what_drives_are_sent() -> None:
    found = step(Clock()).transform_features({PipelineFeatureType.ACTION: {"action": None}})
    assert set(found[PipelineFeatureType.ACTION]) == {f"{name}.{what}" for name in NAMES for what in WHAT}


def test_errors_name_what_is_missing() -> None:
    assert_refused(
        (lambda: step(Clock())(create_transition({"panda_joint2.pos": 0.0})),
         "'panda_joint1.pos' is missing; it holds"),
        (lambda: step(Clock(), motor_names=["a", "b"]), "2 motor_names for the 7 driven joints"),
    )  # fmt: skip


def test_the_example_leaves_the_broken_chunk_out() -> None:
    pytest.importorskip("lerobot.datasets", reason="lerobot[dataset] is not installed")
    done = run_example("lerobot_arm")
    assert done.returncode == 0, done.stderr
    followed, off = done.stdout.splitlines()[-2:]
    assert followed == "chunks that were not followed: {'jump': 1}"
    assert float(off.split()[-3]) < 1000.0  # µrad
