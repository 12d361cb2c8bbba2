"""What inverse kinematics of trees refuses, with which words."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from case_robots import panda
from oracles.random_trees import random_tree
from places import CONFIG
from refusals import Row, assert_refused, misshapen, not_finite, refused, unknown

from hodyn_ros import BaseMotion, ConvergenceError, Robot, SingularError
from hodyn_ros.dynamics.kinematics.skeleton import read_skeleton
from hodyn_ros.lie.se3 import exp
from hodyn_ros.model.frames import Frame

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
TWO, NAN = np.zeros((2, 6)), np.full(7, np.nan)
AWAY, NO_ROW, STILL = np.eye(4), np.eye(4), np.zeros((5, 1))
AWAY[0, 3], NO_ROW[3, 0] = 5.0, 0.5
FRAMES = ["panda_link7", "panda_link4"]


def call(pose: Any = None, twists: Any = TWO, **named: Any) -> object:
    reached = panda().forward_kinematics(HOME[None]).pose_of(6)
    named = {"seed": HOME, **named}
    return panda().inverse_kinematics(reached if pose is None else pose, twists, **named)


def compiled(seed: Any = HOME[None], pose: Any = None, twists: Any = TWO, **named: Any) -> object:
    reached = panda().forward_kinematics(HOME[None]).pose_of(6)
    function = panda().compile(2, "inverse_kinematics")
    return function(seed, reached if pose is None else pose, *([] if twists is None else [twists]), **named)


def decomposed(**independent: Any) -> object:
    return call(method="decomposition", independent=independent)


@cache
def branched() -> Robot:
    arguments = random_tree(23, 9, branching=0.0, kinds=("revolute",)).arguments()
    arguments["parents"] = (*arguments["parents"][:6], 1, 6, 2)  # two side branches
    return Robot(Robot.from_screws(**arguments).model, frames={"table": Frame(-1, np.eye(4))})


@cache
def flyer() -> Robot:
    return Robot.from_screws(**random_tree(7, 7, branching=0.0, floating_base=True).arguments())


ROWS: dict[str, Row] = {
    "pose too small": (lambda: call(np.eye(3)), misshapen("the pose", (3, 3), "(4, 4)")),
    "pose no rotation": (lambda: call(2.0 * np.eye(4)), "the pose ... rotation"),
    "pose mirrored": (lambda: call(np.diag([-1.0, 1.0, 1.0, 1.0])), "the pose ... rotation"),
    "pose NaN": (lambda: call(np.full((4, 4), np.nan)), not_finite("the pose", (0, 0))),
    "pose out of reach": (lambda: call(AWAY), "panda_link7 ... rad and 4. ... m", ConvergenceError),
    "twist alone": (lambda: call(twists=np.zeros(6)), misshapen("the twists", (6,), "(order, 6)")),
    "twists too short": (lambda: call(twists=np.zeros((2, 5))), misshapen("the twists", (2, 5))),
    "twists infinite": (lambda: call(twists=np.full((2, 6), np.inf)), not_finite("the twists", (0, 0))),
    "twists text": (lambda: call(twists=[["a"] * 6]), "the twists ... numbers"),
    "seed too short": (lambda: call(seed=np.zeros(6)), misshapen("the seed", (6,), "(7,)")),
    "seed NaN": (lambda: call(seed=NAN), not_finite("the seed", (0, 0))),
    "weights too many": (lambda: call(weights=np.ones(8)), misshapen("the weights", (8,), "(7,)")),
    "weight zero": (
        lambda: call(weights=[1, 1, 0, 1, 1, 1, 1]), "the weights ... above zero ... 0.0 ... index 2"),
    "representation": (
        lambda: call(representation="world"), "representation ... spatial ... body_fixed ... 'world'"),
    "task": (lambda: call(task="rows"), "task ... pose ... position ... orientation ... 'rows'"),
    "base on the ground": (lambda: call(base=BaseMotion(np.eye(4), TWO)), "has a fixed base"),
    "method for six joints": (lambda: call(method="solve"), "7 joints ... 6 components ... pseudo_inverse"),
    "nothing independent": (
        lambda: call(method="decomposition"), "leave 1 joints independent; independent holds 0"),
    "two independent": (
        lambda: decomposed(panda_joint1=0.0, panda_joint3=0.0), "independent holds 2"),
    "independent of all": (
        lambda: call(method="pseudo_inverse", independent={"panda_joint1": 0.0}),
        "decomposition ... 'pseudo_inverse'"),
    "method": (lambda: call(method="magic"), "'magic'"),
    "independent joint": (lambda: decomposed(elbow=0.0), unknown("joint", "elbow")),
    "independent motion": (
        lambda: call(twists=np.zeros((4, 6)), independent={"panda_joint2": np.zeros(2)}),
        misshapen("the motion of joint 'panda_joint2'", (2,), "(5,)")),
    "poses of frames": (lambda: call(np.eye(4), None, body=FRAMES), misshapen("the poses", (4, 4))),
    "twists of frames": (
        lambda: call(np.eye(4)[None], TWO, body=FRAMES[:1]), misshapen("the twists", (2, 6))),
    "tasks of frames": (
        lambda: call(np.array([np.eye(4)] * 2), None, body=FRAMES, task=["pose"]),
        "2 frames need as many tasks"),
    "number of a frame": (lambda: call(body=2.5), "found 2.5"),
    "compiled, out of reach": (
        lambda: compiled(pose=AWAY), "panda_link7 ... nearest ... m.", ConvergenceError),
    "compiled, singular": (
        lambda: compiled(np.zeros((1, 7)), panda().forward_kinematics(np.zeros((1, 7))).pose_of(6)),
        "condition number", SingularError),
    "compiled, no rotation": (lambda: compiled(pose=2.0 * np.eye(4)), "pose 0 must be a homogeneous matrix"),
    "compiled, last row": (lambda: compiled(pose=NO_ROW), "pose 0 must be a homogeneous matrix"),
    "compiled, twists": (
        lambda: compiled(twists=np.zeros((3, 6))), misshapen("the twists", (3, 6), "(2, 6)")),
    "compiled, seed": (lambda: compiled(NAN[None]), not_finite("the seed", (0, 0))),
    "compiled, arrays": (lambda: compiled(twists=None), "expected 3 arrays"),
    "compiled, out": (lambda: compiled(out=np.empty((2, 7))), "out must be a float64 array of shape (3, 7)"),
    "compiled, frame": (
        lambda: panda().compile(2, "inverse_kinematics", ["hand"]), unknown("body or frame", "hand")),
    "which tip": (
        lambda: branched().inverse_kinematics(np.eye(4)), "body6 ... body8 ... body9 ... body=..."),
    "ground": (lambda: branched().inverse_kinematics(np.eye(4), body="table"), "no joint moves 'table'"),
    "frame": (
        lambda: branched().inverse_kinematics(np.eye(4), body="hand"), unknown("body or frame", "hand")),
    "base twists": (
        lambda: flyer().inverse_kinematics(np.eye(4), np.zeros((3, 6)), base=BaseMotion(np.eye(4), TWO)),
        "3 base twists ... found 2"),
    "drawn without its platform": (
        lambda: read_skeleton(CONFIG / "planar_3rrr.yaml").lines(np.empty(0), None),
        "is moved by its platform 'tool'; give its motion as base="),
}  # fmt: skip


def test_inverse_kinematics() -> None:
    assert_refused(ROWS)


@pytest.mark.parametrize("order", [1, 3])
def test_twists_that_fewer_joints_cannot_follow(order: int) -> None:
    robot = Robot.from_screws(**random_tree(3, 4, branching=0.0, kinds=("revolute",)).arguments())
    q, twists = np.array([[0.3, 0.9, -0.4, 0.1]]), np.zeros((3, 6))
    twists[order - 1, :3] = 0.1
    pose = robot.forward_kinematics(q).pose_of(3)
    words = "cannot follow the twist" if order == 1 else f"cannot follow the derivative {order - 1}"
    refused(lambda: robot.inverse_kinematics(pose, twists, seed=q[0]), words)
    turned = pose @ exp(np.array([0.5, 0.4, 0.3, 0.0, 0.0, 0.0]))
    refused(lambda: robot.inverse_kinematics(turned, seed=q[0]), "rad", ConvergenceError)
