"""A wrist: the motor of the last joint turns with the one before as well, so that it rubs in their sum."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_arm import ARM, drives_of, measured_arm, misjudged, swings

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, JointRecording, identify
from hodyn_ros.identification.validation import validate

SHARED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
INERTIA, VISCOUS, COULOMB = np.array([0.5, 0.4, 0.2]), np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])
OF_LINK = 0.7, 0.9  # [N·m·s/rad], [N·m] of the last joint, in its own velocity


def test_friction_of_a_motor_that_turns_with_two_joints_comes_out(tmp_path: Path) -> None:
    arm = measured_arm(tmp_path)
    rigid = arm.with_drives([replace(spec, stiffness=np.inf) for spec in drives_of(arm)])
    times = np.arange(2000) / 250.0
    q = swings().sample(times, 2)
    motors = SHARED @ np.moveaxis(q, 1, 2)  # (N, 3, n) to (N, n, 3) and on to the motors
    speed = motors[:, :, 1]
    of_motors = INERTIA * motors[:, :, 2] + VISCOUS * speed + COULOMB * speed / np.sqrt(speed**2 + 1e-4)
    own = q[:, 1, 2]
    efforts = rigid.inverse_dynamics(q)[:, 0] + of_motors @ SHARED  # the power is that of the motors
    efforts[:, 2] += OF_LINK[0] * own + OF_LINK[1] * own / np.sqrt(own**2 + 1e-4)
    random = np.random.default_rng(0)
    efforts += 0.05 * random.standard_normal(efforts.shape)
    recording = JointRecording(
        "a wrist", arm.joint_names, Channel(times, efforts), Channel(times, q[:, 0]), transmission=SHARED
    )
    found = identify(misjudged(rigid), recording.between(0.0, 4.5))
    for j, name in enumerate(arm.joint_names):
        assert found.figure(f"viscous friction of {name}").value == pytest.approx(VISCOUS[j], abs=0.1)
        assert found.figure(f"Coulomb friction of {name}").value == pytest.approx(COULOMB[j], abs=0.1)
    for kind, true in zip(("viscous", "Coulomb"), OF_LINK):
        assert found.figure(f"{kind} friction of the link of bend").value == pytest.approx(true, abs=0.1)
    assert [fit.rms for fit in validate(found, rigid, recording.between(4.5, 8.0))[0]] == pytest.approx(
        [0.05] * 3, rel=0.1
    )
    assert "the motor of bend turns with lift too" in " ".join(found.notes)
    assert "motors turn with more than one joint" in found.figure("stiffness of lift").reason


def test_a_robot_file_says_by_a_coupling_that_a_motor_turns_with_two_joints(tmp_path: Path) -> None:
    plain, rest = ARM.split("  - name: bend\n")
    bodies, joints = plain.split("joints:\n")
    origin = "origin: {xyz: [0.4, 0, 0]}"
    back = f"  - {{name: back, type: revolute, parent: upper, child: carrier, {origin}, axis: [0, -1, 0]}}\n"
    rest = rest.replace("parent: upper", "parent: carrier").replace(f"    {origin}\n", "")
    wrist = f"{bodies}  - {{name: carrier, mass: 0}}\njoints:\n{joints}{back}  - name: bend\n{rest}"
    wrist += "couplings: [{joint: back, of: lift, ratio: -1}]\n"
    (tmp_path / "wrist.yaml").write_text(wrist)
    robot, arm = Robot.load(tmp_path / "wrist.yaml"), measured_arm(tmp_path)
    q = np.random.default_rng(1).normal(size=(5, 3))
    state = robot.drive_state(q @ SHARED.T)
    np.testing.assert_allclose(state.motion, q @ SHARED.T, rtol=0, atol=1e-14)
    np.testing.assert_allclose(state.efforts @ SHARED, arm.inverse_dynamics(q), rtol=1e-12, atol=1e-12)
