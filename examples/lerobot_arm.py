"""A policy of LeRobot on a simulated arm whose drives take position, velocity, gains and torque.

    python examples/lerobot_arm.py

A data set is made in LeRobot's format, as teleoperation would record it. A policy that repeats its episodes,
each chunk a little off, drives an elastic Panda at 500 Hz through a pipeline with `hodyn_ros_chunk_executor`;
one of its chunks is broken. Needs `pip install .[lerobot] lerobot[dataset]`, and Python 3.12.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.processor import DataProcessorPipeline, TransitionKey
from lerobot.processor.converters import create_transition, identity_transition

from hodyn_ros import Robot, share
from hodyn_ros.interop.lerobot import BEGIN, ChunkExecutorStep, bend_of
from hodyn_ros.simulation.simulation import RobotSimulation

FPS = 50
POINTS = 50  # of a chunk
PERIOD = 0.002  # [s] between two commands
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
FILE = share.find("config", "panda.yaml")


def make_data_set(root: Path, robot: Robot, episodes: int = 3, seconds: float = 6.0) -> LeRobotDataset:
    """Record made episodes: all joints swing about home, from rest; degrees, as LeRobot has them."""
    names = [f"{name}.pos" for name in robot.joint_names]
    vector = {"dtype": "float32", "shape": (7,), "names": names}
    data = LeRobotDataset.create(
        "made/panda", FPS, {"observation.state": vector, "action": vector}, root=root, use_videos=False
    )
    random = np.random.default_rng(0)
    times = np.arange(0.0, seconds, 1.0 / FPS)[:, None]
    u = np.clip(times / 1.5, 0.0, 1.0)
    for _ in range(episodes):
        frequency, phase = random.uniform(0.2, 0.6, 7), random.uniform(0.0, 6.0, 7)
        swing = 0.2 * np.sin(2.0 * np.pi * frequency * times + phase)
        actions = np.degrees(HOME + u**3 * (10.0 - 15.0 * u + 6.0 * u * u) * swing).astype(np.float32)
        for action in actions:
            data.add_frame({"observation.state": action, "action": action, "task": "swing"})
        data.save_episode()
    data.finalize()
    return data


def episodes_of(data: LeRobotDataset) -> list[np.ndarray]:
    """Return the actions (frames, 7) of all episodes [degrees]."""
    actions = np.asarray(data.hf_dataset["action"], dtype=np.float64)
    numbers = np.asarray(data.hf_dataset["episode_index"]).ravel()
    return [actions[numbers == number] for number in np.unique(numbers)]


def main() -> None:
    """Make a data set, follow chunks of it, and say how well."""
    robot = Robot.load(FILE)
    with TemporaryDirectory() as folder:
        recorded = episodes_of(make_data_set(Path(folder) / "data", robot))
    instant = [0.0]
    drives = robot.require_drives()
    step = ChunkExecutorStep(
        robot=str(FILE),
        spacing=1.0 / FPS,
        kp=(900.0 * drives.motor_inertia).tolist(),
        kd=(60.0 * drives.motor_inertia).tolist(),
        bend=bend_of(recorded),
        lead=0.5 * PERIOD,
        clock=lambda: instant[0],
    )
    pipeline = DataProcessorPipeline(
        [step], to_transition=identity_transition, to_output=lambda transition: transition
    )
    arm, random, episode = RobotSimulation(robot, HOME), np.random.default_rng(1), recorded[0]
    begins, off, broken = 0.8, [], 30
    for k in range(round(4.0 / PERIOD)):
        instant[0] = now = PERIOD * k
        state = arm.measurement
        observation = {}
        for j, name in enumerate(robot.joint_names):
            observation[f"{name}.pos"] = np.degrees(state.motor_position[j])
            observation[f"{name}.vel"] = np.degrees(state.motor_velocity[j])
        chunk, data = None, {}
        if k % 50 == 0 and now >= begins:
            frame = round((now - begins) * FPS)
            chunk = episode[frame : frame + POINTS] + random.uniform(-0.3, 0.3, 7)
            data = {BEGIN: now}
            if k // 50 == broken:
                chunk[20:] += 8.0
        transition = create_transition(observation=observation, action=chunk, complementary_data=data)
        sent = pipeline(transition)[TransitionKey.ACTION]
        if not sent:
            continue  # its brakes hold it
        values = np.array([[sent[f"{name}.{what}"] for name in robot.joint_names] for what in _WHAT])
        position, velocity, kp, kd, torque = values
        if step.executor.following:
            off.append(state.position - step.executor.desired(now, 0)[0])
        for _ in range(2):
            state = arm.measurement
            pull = kp * (np.radians(position) - state.motor_position)
            brake = kd * (np.radians(velocity) - state.motor_velocity)
            arm.advance(0.5 * PERIOD, torque + pull + brake)
    faults = {fault.value: count for fault, count in step.executor.check.faults.items() if count}
    print(f"chunks that were not followed: {faults}")
    print(
        f"links off the motion that is asked of them: {1e6 * np.sqrt(np.mean(np.square(off))):.0f} µrad RMS"
    )


_WHAT = ("pos", "vel", "kp", "kd", "torque")

if __name__ == "__main__":
    main()
