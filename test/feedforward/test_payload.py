"""What a robot carries: the combined body, against one built by hand and against a second body on a joint."""

import numpy as np
from hinged_arm import HINGED_ARM
from refusals import assert_refused

from hodyn_ros import share
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.feedforward.config import FeedforwardConfig
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.model.tree import TreeArrays, TreeModel

RNG = np.random.default_rng(3)


def with_load_as_a_body(model: TreeModel, payload: Payload, place: np.ndarray) -> TreeModel:
    """Return the tree with the payload as one more body, on a joint that will stand still."""
    axis = np.array([0.0, 0.0, 1.0])
    placement = model.placements[-1] @ place
    screw = np.concatenate([axis, np.cross(placement[:3, 3], axis)])
    arrays = TreeArrays(
        [*model.parents, model.n_bodies - 1],
        [*model.screws, screw],
        [*model.placements, placement],
        [*model.masses, payload.mass],
        [*model.coms, payload.centre],
        [*model.inertias, payload.tensor],
    )
    return TreeModel.build(arrays, model.gravity)


def test_a_payload_counts_like_a_body_that_does_not_move_on_its_carrier() -> None:
    robot = Robot.load(share.find("config", "panda.yaml"))
    payload = Payload(2.5, (0.03, -0.02, 0.11), (0.02, 0.001, -0.002, 0.03, 0.0005, 0.025))
    loaded = Robot(payload.on_tree(robot))
    other = Robot(with_load_as_a_body(robot.model, payload, np.eye(4)))
    q = RNG.normal(size=(6, 7))
    expected = other.inverse_dynamics(np.hstack([q, np.zeros((6, 1))]))[:, :7]
    found = loaded.inverse_dynamics(q)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)
    assert np.abs(found - robot.inverse_dynamics(q)).max() > 1.0


def test_a_payload_in_a_frame_behind_a_fixed_joint_is_seen_from_there() -> None:
    robot = Robot.from_urdf(HINGED_ARM)
    payload = Payload(0.7, (0.01, 0.05, 0.02), (0.004, 0.0, 0.0, 0.003, 0.0, 0.002), "tool")
    loaded = Robot(payload.on_tree(robot))
    place = robot.frames["tool"].pose
    other = Robot(with_load_as_a_body(robot.model, payload, place))
    q = RNG.normal(size=(5, 1))
    expected = other.inverse_dynamics(np.hstack([q, np.zeros((5, 1))]))[:, :1]
    np.testing.assert_allclose(loaded.inverse_dynamics(q), expected, rtol=1e-12, atol=1e-12)


def test_numbers_whose_squares_overflow_are_refused_by_name() -> None:
    assert_refused(
        (lambda: Payload(1.0, (1e300, 0.0, 0.0)),
         "'payload_centre' is [1e+300, 0.0, 0.0]; give 3 finite values"),
        (lambda: FeedforwardConfig(gravity=(1e308, 1e308, 0.0)),
         "'gravity' is [1e+308, 1e+308, 0.0]; give three finite values"),
    )  # fmt: skip


def test_nothing_to_carry_leaves_the_model_alone() -> None:
    robot = Robot.from_urdf(HINGED_ARM)
    assert Payload().on_tree(robot) is robot.model


def test_what_no_body_has_is_refused() -> None:
    assert_refused(
        ({"mass": -1.0}, "'payload_mass' is -1 kg; give zero or more"),
        ({"mass": float("nan")}, "'payload_mass' is nan"),
        ({"mass": 1.0, "centre": (1.0,)}, "'payload_centre' is [1.0]; give 3 finite values, or none"),
        ({"mass": 1.0, "inertia": (1.0, float("inf"), 0, 1, 0, 1)}, "'payload_inertia' is"),
        ({"mass": 1.0, "inertia": (1.0, 0, 0, 1, 0, 2.5)}, "no body has"),
        ({"mass": 1.0, "inertia": (1.0, 2.0, 0, 1, 0, 1)}, "no body has"),
        ({"inertia": (1.0, 0, 0, 1, 0, 1)}, "give the mass as well"),
        by=lambda fields: Payload(**fields),
    )


def test_a_carrier_that_is_not_there_is_refused_by_name() -> None:
    platform = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
    assert_refused(
        (lambda: Payload(1.0, body="hand").on_tree(Robot.from_urdf(HINGED_ARM)),
         "'payload_body' is 'hand'; the robot has the bodies ['link']"),
        (lambda: Payload(1.0, body="base").on_tree(Robot.from_urdf(HINGED_ARM)),
         "'payload_body' is 'base'; the robot has"),
        (lambda: Payload(1.0, body="leg").on_tree(platform),
         "'payload_body' is 'leg'; the robot has the bodies ['platform',"),
    )  # fmt: skip
