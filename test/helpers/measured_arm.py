"""An elastic arm of three joints, and recordings of it with the noise, skew and delays of real sensors."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, Identified, JointRecording
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.lie.jets import Array
from hodyn_ros.model.drive_spec import DriveSpec
from hodyn_ros.trajectory import FourierSeries

BODY = "inertia: {about: com, ixx: 0.02, ixy: 0.001, ixz: -0.002, iyy: 0.06, iyz: 0.001, izz: 0.07}"
ARM = f"""
name: arm
bodies:
  - {{name: post, mass: 4, com: [0.02, 0, 0.1], {BODY}}}
  - {{name: upper, mass: 3, com: [0.2, 0.01, 0.02], {BODY}}}
  - {{name: fore, mass: 2, com: [0.15, -0.02, 0.01], {BODY}}}
joints:
  - name: turn
    type: revolute
    parent: world
    child: post
    axis: [0, 0, 1]
    limits: {{lower: -2, upper: 2, velocity: 3, effort: 100, effort_rate: 2000}}
    drive: {{motor_inertia: 0.5, stiffness: 4000, gear_ratio: 100}}
  - name: lift
    type: revolute
    parent: post
    child: upper
    origin: {{xyz: [0.05, 0, 0.2]}}
    axis: [0, -1, 0]
    limits: {{lower: -2, upper: 2, velocity: 3, effort: 100, effort_rate: 2000}}
    drive: {{motor_inertia: 0.4, stiffness: 3000, gear_ratio: 80}}
  - name: bend
    type: revolute
    parent: upper
    child: fore
    origin: {{xyz: [0.4, 0, 0]}}
    axis: [0, -1, 0]
    limits: {{lower: -2, upper: 2, velocity: 3, effort: 100, effort_rate: 2000}}
    drive: {{motor_inertia: 0.2, stiffness: 2000, gear_ratio: 60}}
"""
VISCOUS, COULOMB, OFFSET = 1.5, 2.0, 0.3  # [N·m·s/rad], [N·m], [N·m]
LINK_DELAY, EFFORT_DELAY = 2e-3, 1e-3  # [s]


def measured_arm(folder: Path) -> Robot:
    """Write the arm's file and read it."""
    path = folder / "arm.yaml"
    path.write_text(ARM)
    return Robot.load(path)


def swings(n: int = 3, scale: float = 1.0) -> FourierSeries:
    """Return a motion of n joints that shows everything."""
    random = np.random.default_rng(3)
    return FourierSeries(
        0.9, scale * random.uniform(-0.7, 0.7, (4, n)), scale * random.uniform(-0.7, 0.7, (4, n)), np.zeros(n)
    )


def measured(
    robot: Robot,
    seed: int,
    duration: float = 14.0,
    rate: float = 250.0,
    noise: float = 1.0,
    motion: FourierSeries | None = None,
) -> JointRecording:
    """Return what sensors see: irregular stamps, encoders of 5 urad, efforts of 0.1 N·m."""
    random = np.random.default_rng(seed)
    motion = motion or swings(robot.n_coordinates)
    count = round(duration * rate)
    times = 1.0 + np.arange(count) / rate + random.uniform(-2e-4, 2e-4, count)

    def at(instants: Array) -> tuple[Array, Array, Array]:
        q = motion.sample(instants, 4)
        assert robot.drive_train is not None
        motors = robot.drive_train.feedforward(q, robot.inverse_dynamics(q))
        speed = motors.position[:, 1]
        friction = VISCOUS * speed + COULOMB * speed / np.sqrt(speed**2 + 1e-4) + OFFSET
        return q[:, 0], motors.position[:, 0], motors.effort[:, 0] + friction

    shape = (count, robot.n_coordinates)
    efforts = at(times - EFFORT_DELAY)[2] + 0.1 * noise * random.standard_normal(shape)
    motors = at(times)[1] + 5e-6 * noise * random.standard_normal(shape)
    links = at(times - LINK_DELAY)[0] + 5e-6 * noise * random.standard_normal(shape)
    return JointRecording(
        "a simulation",
        robot.joint_names,
        Channel(times, efforts),
        Channel(times, motors),
        Channel(times, links),
    )


def misjudged(robot: Robot, share: float = 0.2) -> Robot:
    """Return a robot whose figures are all wrong by up to a share, as those of a URDF are."""
    random = np.random.default_rng(5)
    tree = robot.tree
    masses = 1.0 + share * random.uniform(-1.0, 1.0, tree.n_bodies)
    coms = tree.coms * (1.0 + share * random.uniform(-1.0, 1.0, tree.coms.shape))
    wrong = tree.with_inertias(tree.masses * masses, coms, tree.inertias * masses[:, None, None])
    specs = tuple(
        replace(
            spec,
            stiffness=spec.stiffness * (1.0 + 2.0 * share * random.uniform(-1.0, 1.0)),
            motor_inertia=spec.motor_inertia * (1.0 + share * random.uniform(-1.0, 1.0)),
        )
        for spec in drives_of(robot)
    )
    return robot.with_tree(wrong).with_drives(specs)


def drives_of(robot: Robot) -> tuple[DriveSpec, ...]:
    """Return the figures of the drives."""
    assert robot.drive_train is not None
    return robot.drive_train.specs


def truth(arm: Robot, found: Identified) -> dict[str, float]:
    """Return the figures that the recording was made with, by name."""
    base = found.base.combination @ TorqueModel(arm).prior
    figures = dict(zip(found.base.names, base))
    for name, spec in zip(arm.joint_names, drives_of(arm)):
        figures[f"stiffness of {name}"] = spec.stiffness
        figures[f"delay of the link encoder of {name}"] = LINK_DELAY
        figures[f"viscous friction of {name}"] = VISCOUS
        figures[f"Coulomb friction of {name}"] = COULOMB
        figures[f"offset of the effort of {name}"] = OFFSET
    return {**figures, "delay of the efforts": EFFORT_DELAY}
