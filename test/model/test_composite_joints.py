"""Universal, ball, planar, floating and rolling joints in trees, files and loops."""

from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pinocchio as pin
import pytest
from linkages import three_rps
from oracles import mp_dynamics as mp
from oracles import mp_loops
from oracles.cases import relative_errors
from oracles.mechanisms import Closed, Mechanism
from oracles.motions import Base
from oracles.random_trees import Tree, random_inertia, random_pose
from refusals import assert_refused, refused
from sweeps import THOROUGH

from hodyn_ros import (
    BaseMotion,
    Constraints,
    Coupling,
    Limb,
    Loop,
    ParallelRobot,
    Platform,
    Robot,
    share,
)
from hodyn_ros.array import Array
from hodyn_ros.errors import ModelError
from hodyn_ros.model.composite_joints import (
    FREEDOMS,
    CompositeJoint,
    ball,
    floating,
    of_kind,
    planar,
    rolling,
    universal,
)
from hodyn_ros.model.frames import from_rpy
from hodyn_ros.model.parallel.closure import model_of

JOINTS = [
    *(f"base_{name}" for name in ("x", "y", "z", "rz", "ry", "rx")),
    *("hip_rz", "hip_ry", "hip_rx", "knee", "shoe_x", "shoe_y", "shoe_rz", "wrist_r1", "wrist_r2"),
]


def tree_arguments() -> dict[str, object]:
    """Return a tree with a joint of every kind, in frames of any orientation."""
    rng = np.random.default_rng(0)
    placements = np.array([random_pose(rng) for _ in range(5)])
    points, axes = placements[:, :3, 3], placements[:, :3, :3]
    knee = np.concatenate([axes[2, :, 1], np.cross(points[2], axes[2, :, 1])])
    screws = [
        floating(points[0], axes[0]),
        ball(points[1], axes[1]),
        knee,
        planar(axes[3, :, 2], axes[3, :, 0], points[3]),
        universal(axes[4, :, 0], axes[4, :, 1] + 0.3 * axes[4, :, 0], points[4]),
    ]
    masses = rng.uniform(0.5, 3.0, 5)
    return {
        "parents": [-1, 0, 1, 2, 1],
        "screws": screws,
        "placements": placements,
        "masses": masses,
        "coms": rng.uniform(-0.1, 0.1, (5, 3)),
        "inertias": [random_inertia(rng, mass) for mass in masses],
        "gravity": (1.0, -2.0, -9.0),
        "joint_names": ["base", "hip", "knee", "shoe", "wrist"],
        "body_names": ["body", "thigh", "shank", "plate", "hand"],
    }


@pytest.mark.parametrize("kind", FREEDOMS)
def test_a_kind_has_its_own_joints(kind: str) -> None:
    """One without a function in `of_kind` is no floating joint."""
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    figures = {"universal": (x, y), "rolling": (x, y, (0.1, 0.2))}.get(kind, ())
    assert of_kind(kind, *figures).names == FREEDOMS[kind]
    with pytest.raises(KeyError):
        of_kind(f"new {kind}")


@pytest.fixture
def robot() -> Robot:
    return Robot.from_screws(**tree_arguments())


def twin() -> pin.Model:
    """Return the same tree in Pinocchio, with joints of its own for balls."""
    given = tree_arguments()
    placements = np.array(given["placements"])
    model = pin.Model()
    model.gravity.linear = np.array(given["gravity"])
    slides = [pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ()]
    one = pin.JointModelComposite()
    for part in (*slides, pin.JointModelSphericalZYX()):
        one.addJoint(part)
    plane = pin.JointModelComposite()
    for part in (*slides[:2], pin.JointModelRZ()):
        plane.addJoint(part)
    cross = pin.JointModelComposite()
    cross.addJoint(pin.JointModelRX())
    cross.addJoint(pin.JointModelRevoluteUnaligned(np.array([0.3, 1.0, 0.0]) / np.hypot(0.3, 1.0)))
    joints = [one, pin.JointModelSphericalZYX(), pin.JointModelRY(), plane, cross]
    for i, (parent, joint) in enumerate(zip(given["parents"], joints)):
        above = np.eye(4) if parent < 0 else placements[parent]
        place = np.linalg.inv(above) @ placements[i]
        model.addJoint(parent + 1, joint, pin.SE3(place[:3, :3], place[:3, 3]), f"joint{i}")
        inertia = pin.Inertia(given["masses"][i], given["coms"][i], given["inertias"][i])
        model.appendBodyToJoint(i + 1, inertia, pin.SE3.Identity())
    return model


class TestDynamics:
    def test_names(self, robot: Robot) -> None:
        assert list(robot.joint_names) == JOINTS
        assert robot.model.body_names[:7] == (*(f"{name}_link" for name in JOINTS[:5]), "body", "hip_rz_link")

    def test_pinocchio(self, robot: Robot) -> None:
        model = twin()
        data = model.createData()
        for seed in range(3):
            q = np.random.default_rng(seed).uniform(-1.0, 1.0, (3, 15))
            expected = pin.rnea(model, data, *q)
            assert relative_errors(robot.inverse_dynamics(q), expected[None]).max() < 1e-12
            torques = np.random.default_rng(seed).uniform(-1.0, 1.0, 15)
            accelerations = pin.aba(model, data, q[0], q[1], torques)
            found = robot.forward_dynamics(q[:2], torques[None])
            assert relative_errors(found, accelerations[None]).max() < 1e-11

    def test_angles_are_those_of_roll_pitch_and_yaw(self) -> None:
        arguments = {"masses": [1.0], "coms": np.zeros((1, 3)), "inertias": [np.eye(3)]}
        place = from_rpy(np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6]))
        free = floating(place[:3, 3], place[:3, :3])
        robot = Robot.from_screws([-1], [free], [place], **arguments)
        q = np.array([[0.7, -0.3, 0.2, 0.9, -0.4, 0.3]])
        pose = robot.forward_kinematics(q).pose_of("body1")
        moved = place @ from_rpy(np.array([0.7, -0.3, 0.2]), np.array([0.3, -0.4, 0.9]))
        np.testing.assert_allclose(pose, moved, atol=1e-15)

    @pytest.mark.parametrize(
        ("normal", "shifts"),
        [
            ((0, 0, 2), ((1, 0, 0), (0, 1, 0))),
            ((1, 0, 0), ((0, 1, 0), (0, 0, 1))),
            ((0, 1, 0), ((0, 0, 1), (1, 0, 0))),
        ],
    )
    def test_planes_without_a_first_direction(self, normal: Array, shifts: tuple[Array, Array]) -> None:
        np.testing.assert_array_equal(planar(normal).screws[:2, 3:], shifts)

    def test_a_pitch_of_ninety_degrees_is_singular(self, robot: Robot) -> None:
        state = np.zeros((3, 15))
        state[0, JOINTS.index("hip_ry")] = np.pi / 2
        assert np.isfinite(robot.inverse_dynamics(state)).all()
        refused(lambda: robot.forward_dynamics(state[:2], np.zeros((1, 15))), "joints ['hip_rz', 'hip_rx']")


@pytest.mark.thorough
class TestLoops:
    """A rod between two balls, one of which is a joint of the tree, in a linkage of skew cranks."""

    @staticmethod
    def arguments() -> dict[str, object]:
        rng = np.random.default_rng(4)
        placements = np.tile(np.eye(4), (3, 1, 1))
        placements[:, :3, 3] = ((0, 0, 0), (0.05, 0.15, 0.02), (0.5, 0.1, 0.1))
        axes = np.array([[0.1, 0.2, 1.0], [1.0, 0.1, -0.2]])
        axes /= np.linalg.norm(axes, axis=1)[:, None]
        hinges = [np.concatenate([e, np.cross(p, e)]) for e, p in zip(axes, placements[[0, 2], :3, 3])]
        masses = np.array([1.0, 0.7, 1.5])
        coms = rng.uniform(-0.1, 0.1, (3, 3))
        inertias = np.array([random_inertia(rng, mass) for mass in masses])
        # a rod, symmetric about the line between the balls, about which it may stand at any angle
        line = np.array([0.47, 0.05, 0.33])
        coms[1], inertias[1] = 0.4 * line, 0.02 * np.eye(3) - 0.05 * np.outer(line, line)
        return {
            "parents": [-1, 0, -1],
            "screws": [hinges[0], ball(placements[1, :3, 3]), hinges[1]],
            "placements": placements,
            "masses": masses,
            "coms": coms,
            "inertias": inertias,
        }

    def test_dependent_joints_are_exact(self) -> None:
        end, line = np.array([0.52, 0.2, 0.35]), np.array([0.47, 0.05, 0.33])
        loops = [
            Loop(1, 2, "ball", end),
            Loop("world", 1, "spin", end, line),
        ]
        constraints = Constraints(loops, coordinates=[0], driven=["joint1"])
        robot = Robot.from_screws(**self.arguments(), constraints=constraints)
        assert robot.tree.joint_names == ("joint1", "joint2_rz", "joint2_ry", "joint2_rx", "joint3")
        closed = (Closed("ball", 3, 4, end), Closed("spin", -1, 3, end, axis=line))
        order = 6 if THOROUGH else 2
        y = np.random.default_rng(5).uniform(-1.0, 1.0, (order + 3, 1))
        y[0] *= 0.1
        exact = mp_loops.efforts(Mechanism(Tree.of(robot.tree), closed, (0,), (0,)), y, order)
        assert relative_errors(robot.inverse_dynamics(y), exact).max() < 1e-12
        assert robot.solve_loops(y).motion_margin > 0.01

    def test_platforms_on_ball_joints(self) -> None:
        robot, rows = three_rps(), ("rx", "ry", "z")
        assert robot.coordinates == ("body6.rx", "body6.ry", "body6.z")
        tree, rng = Tree.of(robot.tree), np.random.default_rng(6)
        legs = [loop.a for loop in robot.structure.loops]
        points = [(tree.placements[leg.body] @ np.append(leg.point, 1.0))[:3] for leg in legs]
        closed = tuple(Closed("ball", leg.body, 8, point) for leg, point in zip(legs, points))
        order = 4 if THOROUGH else 1
        twists = rng.uniform(-0.5, 0.5, (order + 2, 6))
        pose = from_rpy(np.array([0.0, 0.0, 0.62]), np.array([0.05, -0.04, 0.0]))
        exact = mp_loops.efforts(
            Mechanism(tree, closed, (), (1, 3, 5), platform=(8, rows)),
            np.zeros((order + 3, 0)),
            order,
            Base(pose, twists, "spatial"),
        )
        found = robot.inverse_dynamics(None, BaseMotion(pose, twists))
        assert relative_errors(found, exact).max() < 1e-12

    def test_indices_are_those_of_what_was_given(self) -> None:
        arguments = self.arguments()
        couplings = [Coupling(2, 0, 2.0)]
        platform = [("body2", ["rx", "ry", "rz"]), 0]
        drives = ["joint1", "joint2_rz", "joint2_ry", "joint2_rx"]
        constraints = Constraints(couplings=couplings, coordinates=platform, driven=drives)
        robot = Robot.from_screws(**arguments, constraints=constraints)
        assert robot.coordinates == ("joint1", "body2.rx", "body2.ry", "body2.rz")
        assert robot.tree.body_names == ("body1", "joint2_rz_link", "joint2_ry_link", "body2", "body3")

    def test_what_is_wrong_is_named(self) -> None:
        assert_refused(
            ({"constraints": Constraints(coordinates=[1])},
             "coordinates: there is no joint 'joint2'; ... 'joint2_rz'"),
            ({"constraints": Constraints(coordinates=[3])}, "there is no index 3; there are 3: ... 'joint3'"),
            ({"constraints": Constraints([Loop(4, 0, "ball", (0, 0, 0))])},
             "there is no index 4; there are 3"),
            ({"screws": [ball()]}, "screws must hold one joint per body, 3 in all, found 1"),
            ({"screws": [ball(), (0, 0, 1), ball()]}, "screws must be numbers of shape"),
            ({"masses": [1.0]}, "masses must have shape"),
            ({"parents": [-1, 2, 0]}, "'joint2_rz_link' ... has parent"),
            ({"parents": [-1, "one", 0]}, "parents must be integers"),
            ({"parents": [-1]}, "screws must hold one joint per body, 1 in all, found 3"),
            by=lambda change: Robot.from_screws(**{**self.arguments(), **change}),
            error=ModelError,
        )  # fmt: skip

    def test_floating_bases_carry_them(self) -> None:
        given = self.arguments()
        given["parents"] = [-1, 0, 0]
        robot = Robot.from_screws(**given, floating_base=True)
        assert robot.joint_names == ("joint1_rz", "joint1_ry", "joint1_rx", "joint2")
        given["screws"][0] = ball()  # of the base nothing is taken
        same = Robot.from_screws(**given, floating_base=True)
        np.testing.assert_array_equal(same.model.screws, robot.model.screws)
        q = np.random.default_rng(7).uniform(-1.0, 1.0, (5, 4))
        base = Base(np.eye(4), np.random.default_rng(8).uniform(-1.0, 1.0, (4, 6)), "spatial")
        exact = mp.inverse_dynamics(Tree.of(robot.model), q, base=base)
        _, torques = robot.inverse_dynamics(q, BaseMotion(base.pose, base.twists))
        assert relative_errors(torques, mp.to_float(exact.torques)).max() < 1e-12


@pytest.mark.thorough
class TestLimbs:
    def test_legs_of_a_platform(self) -> None:
        """As the shipped one, in which each of their freedoms is a joint."""
        platform = Robot.load(share.find("config", "gough_stewart_6ups.yaml"))
        model, limbs = model_of(platform.structure), []
        for limb in model.limbs:
            chain = limb.chain
            first, second, slide = chain.screws[:3]
            base, top = chain.placements[0, :3, 3], chain.placements[3, :3, 3]
            arrays = {
                what: getattr(chain, what)[1:3] for what in ("placements", "masses", "coms", "inertias")
            }
            screws = [universal(first[:3], second[:3], base), slide, ball(top, chain.placements[2, :3, :3])]
            limbs.append(Limb(screws, **arrays, driven=[1], name=limb.name))
        spec = model.platform
        plate = Platform(spec.mass, spec.com, spec.inertia, spec.placement)
        robot = ParallelRobot.from_screws(limbs, plate, model.dof, platform.gravity)
        assert robot.driven_joints == tuple(f"leg{i}_joint2" for i in range(1, 7))
        assert robot.structure.driven == platform.structure.driven
        assert robot.tree.parents == platform.tree.parents
        for name in ("masses", "coms", "inertias", "gravity"):
            np.testing.assert_allclose(getattr(robot.tree, name), getattr(platform.tree, name), atol=1e-15)
        for one, other in zip(model_of(robot.structure).limbs, model.limbs, strict=True):
            ours, theirs = one.chain.screws, other.chain.screws
            np.testing.assert_allclose(ours[:3], theirs[:3], atol=1e-15)
            turns = ours[3:] @ np.linalg.pinv(theirs[3:])  # about the same point
            np.testing.assert_allclose(turns @ theirs[3:], ours[3:], atol=1e-14)
            assert abs(np.linalg.det(turns)) == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"driven": [0]}, "limb 'leg': there is no joint 'leg_joint1' to be driven; ... 'leg_joint1_r1'"),
            ({"driven": [5]}, "there is no index 5; there are 3"),
            ({"masses": [1.0]}, "limb 'leg': masses must have shape"),
        ],
    )
    def test_what_is_wrong_is_named(self, change: dict[str, object], said: str) -> None:
        given = {"placements": [np.eye(4)] * 2, "masses": [1, 1], "coms": np.zeros((2, 3)), "driven": [1]}
        given |= {"inertias": [np.eye(3)] * 2, "name": "leg", **change}
        limb = Limb([universal((1, 0, 0), (0, 1, 0)), (0, 0, 0, 0, 0, 1), ball()], **given)
        plate = Platform(1.0, np.zeros(3), np.eye(3), np.eye(4))
        refused(lambda: ParallelRobot.from_screws([limb], plate, np.eye(6)), said, ModelError)


class TestJoints:
    def test_what_is_wrong_is_named(self) -> None:
        assert_refused(
            (lambda: universal((0, 0, 1), (0, 0, -2)), "axes of a universal joint are parallel"),
            (lambda: planar((0, 0, 1), (0, 1, 1)), "must lie in its plane"),
            (lambda: planar((0, 0, 0)), "a direction must be three numbers, not all zero"),
            (lambda: ball(axes=np.ones((3, 3))), "must be a right-handed frame"),
            (lambda: rolling((0, 0, 1), (0, 1, 1), (0.1, 0.2)), "line ... must be normal to [0. 0. 1.]"),
            (lambda: rolling((0, 0, 1), (0, 1, 0), (0.1, 0.0)), "must be above zero, found [0.1, 0.0]"),
            (lambda: rolling((0, 0, 1), (0, 1, 0), (0.1,)), "radii of a rolling joint must have shape (2,)"),
            (lambda: CompositeJoint(np.eye(6), ("a", "b")), "screws of a joint must have shape (2, 6)"),
            (lambda: CompositeJoint(np.eye(6)[:2], ("a", "a")), "more than once"),
            error=ModelError,
        )


def link(name: str, mass: float = 1.0) -> str:
    figures = f'<mass value="{mass}"/><inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0.02"/>'
    return f'<link name="{name}"><inertial><origin xyz="0.1 0.02 -0.03"/>{figures}</inertial></link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>{inside}</joint>'
    )


def urdf(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/><dynamics damping="1" friction="2"/>'


class TestUrdf:
    def test_planar_joints_are_those_of_pinocchio(self) -> None:
        text = urdf(
            link("ground"),
            link("sledge"),
            link("arm"),
            joint("slip", "planar", "ground", "sledge", '<axis xyz="0 0 1"/>' + LIMIT),
            joint("turn", "continuous", "sledge", "arm", '<axis xyz="1 2 3"/>'),
        )
        robot, model = Robot.from_urdf(text), pin.buildModelFromXML(text)
        assert robot.joint_names == ("slip_x", "slip_y", "slip_rz", "turn")
        assert np.isinf(robot.limits.position_upper).all()
        q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4))
        # velocities of Pinocchio's planar joint are in the axes of the child
        c, s, w = np.cos(q[2]), np.sin(q[2]), v[2]
        turn, rate = np.array([[c, s], [-s, c]]), w * np.array([[-s, c], [-c, -s]])
        rates = np.concatenate([turn @ v[:2], v[2:]])
        accelerations = np.concatenate([turn @ a[:2] + rate @ v[:2], a[2:]])
        position = np.array([q[0], q[1], c, s, np.cos(q[3]), np.sin(q[3])])
        found = pin.rnea(model, model.createData(), position, rates, accelerations)
        expected = np.concatenate([turn.T @ found[:2], found[2:]])
        assert relative_errors(robot.inverse_dynamics(np.stack([q, v, a])), expected[None]).max() < 1e-12

    def test_floating_joints_stand_anywhere(self) -> None:
        text = urdf(link("ground"), link("a"), link("b"))
        text = text.replace(
            "</robot>",
            joint("turn", "continuous", "ground", "a")
            + joint("drift", "floating", "a", "b", LIMIT)
            + "</robot>",
        )
        robot = Robot.from_urdf(text)
        assert robot.joint_names[1:] == tuple(f"drift_{name}" for name in ("x", "y", "z", "rz", "ry", "rx"))
        model = pin.buildModelFromXML(text)
        q = np.zeros((3, 7))
        q[0] = np.random.default_rng(0).uniform(-1.0, 1.0, 7)
        q[2, 0] = 1.0
        x, y, z, yaw, pitch, roll = q[0, 1:]
        place = from_rpy(np.array([x, y, z]), np.array([roll, pitch, yaw]))
        position = np.concatenate(
            [[np.cos(q[0, 0]), np.sin(q[0, 0])], pin.SE3ToXYZQUAT(pin.SE3(place[:3, :3], place[:3, 3]))]
        )
        torque = pin.rnea(model, model.createData(), position, np.zeros(7), np.array([1.0, *np.zeros(6)]))
        found = robot.inverse_dynamics(q)[0]
        assert found[0] == pytest.approx(torque[0], rel=1e-12)
        np.testing.assert_allclose(found[1:4], place[:3, :3] @ torque[1:4], rtol=1e-12)

    def test_a_floating_root_is_the_base(self) -> None:
        rest = link("body") + link("arm") + joint("turn", "continuous", "body", "arm")
        text = urdf('<link name="world"/>', rest, joint("drift", "floating", "world", "body"))
        assert Robot.from_urdf(text).n_joints == 7
        found, expected = (Robot.from_urdf(x, floating_base=True) for x in (text, urdf(rest)))
        assert found.model.body_names == expected.model.body_names == ("body", "arm")
        np.testing.assert_array_equal(found.model.screws, expected.model.screws)

    def test_bodies_between_have_names_of_their_own(self) -> None:
        parts = link("slip_x_link"), link("b"), joint("slip", "planar", "slip_x_link", "b")
        refused(lambda: Robot.from_urdf(urdf(*parts)), "link 'slip_x_link' is described twice", ModelError)

    @pytest.mark.parametrize("follower", ["slip", "turn"])
    def test_what_mimics_has_one_degree_of_freedom(self, follower: str) -> None:
        other = "turn" if follower == "slip" else "slip"
        kinds = {"slip": "planar", "turn": "continuous"}
        text = urdf(
            link("a"),
            link("b"),
            link("c"),
            joint(follower, kinds[follower], "a", "b", f'<mimic joint="{other}"/>'),
            joint(other, kinds[other], "b", "c"),
        )
        with pytest.raises(
            ModelError, match=f"'{follower}' mimics joint '{other}', but joint 'slip' is planar"
        ):
            Robot.from_urdf(text)
        assert Robot.from_urdf(text, mimic=False).n_joints == 4

    def test_planes_need_a_normal(self) -> None:
        text = urdf(link("a"), link("b"), joint("slip", "planar", "a", "b", '<axis xyz="0 0 0"/>'))
        refused(lambda: Robot.from_urdf(text), "joint 'slip' has the axis [0.0, 0.0, 0.0]", ModelError)


LEG = """
name: leg
bodies:
  - {name: thigh, mass: 1, com: [0.1, 0, 0], inertia: &I
      {about: com, ixx: 1, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 2}}
  - {name: shank, mass: 1, com: [0.1, 0, 0], inertia: *I}
  - {name: foot, mass: 1, com: [0.1, 0, 0], inertia: *I}
  - {name: sledge, mass: 1, com: [0.1, 0, 0], inertia: *I}
joints:
  - {name: slip, type: planar, parent: world, child: sledge, axis: [0, 0, 1], axis_b: [0, 1, 0]}
  - name: hip
    type: ball
    parent: sledge
    child: thigh
    origin: {xyz: [0.1, 0.2, 0.3], rpy: [0.1, 0, 0]}
    freedoms:
      ry: {limits: {lower: -1, upper: 2}}
      rx: {locked: 0.3}
  - {name: drift, type: floating, parent: thigh, child: shank}
  - {name: ankle, type: universal, parent: shank, child: foot, axis: [1, 0, 0], axis_b: [0, 2, 0]}
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "robot.yaml"
        path.write_text(text)
        return path

    return write


class TestRobotFiles:
    def test_freedoms_have_limits_and_places_of_their_own(self, written: Callable[[str], Path]) -> None:
        robot = Robot.load(written(LEG))
        drift = [f"drift_{name}" for name in ("x", "y", "z", "rz", "ry", "rx")]
        names = ["slip_x", "slip_y", "slip_rz", "hip_rz", "hip_ry", *drift, "ankle_r1", "ankle_r2"]
        assert list(robot.joint_names) == names
        assert robot.limits.position_upper[4] == 2.0
        first = robot.model.screws[:2, 3:]
        np.testing.assert_array_equal(first, [[0, 1, 0], [-1, 0, 0]])
        hip = robot.forward_kinematics(np.zeros((1, 13))).pose_of("thigh")
        expected = from_rpy(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0, 0]))
        np.testing.assert_allclose(hip, expected @ from_rpy(np.zeros(3), np.array([0.3, 0, 0])), atol=1e-15)

    def test_drives_of_single_freedoms(self, written: Callable[[str], Path]) -> None:
        drive = "drive: {motor_inertia: 0.1, stiffness: 900}"
        text = LEG.replace("ry: {limits", f"rz: {{{drive}}}\n      ry: {{{drive}, limits")
        assert_refused(
            (lambda: Robot.load(written(text)), "joint 'slip_x' has no drive, but others have", ModelError),
            (lambda: Robot.load(written(text + "driven: [slip_x]\n")),
             "freedoms.rz.drive: joint 'hip_rz' has a drive, but is not among", ModelError),
        )  # fmt: skip

    def test_what_is_wrong_is_named(self, written: Callable[[str], Path]) -> None:
        assert_refused(
            (("ry: {limits", "rw: {limits"), "17: joints[1].freedoms.rw: joint 'hip': unknown key; known"),
            (("ry: {limits", "x: {limits"), "joints[1].freedoms: joint 'hip' is ball, with the degrees of"),
            (("type: ball", "type: ball\n    limits: {upper: 2}"),
             "'hip' is a row of joints; give those that have 'limits' under freedoms"),
            (("type: ball", "type: ball\n    axis: [0, 0, 1]"), "joint 'hip': a ball joint has no axis"),
            ((", axis_b: [0, 2, 0]", ""), "joint 'ankle': a universal joint needs axis and axis_b"),
            (("[0, 2, 0]", "[2, 0, 0]"), "joint 'ankle': the axes of a universal joint are parallel"),
            (("axis_b: [0, 1, 0]", "axis_b: [0, 1, 1]"),
             "joint 'slip': the first direction ... in its plane"),
            (("universal", "revolute"), "joint 'ankle' is revolute, so it cannot have 'axis_b'"),
            by=lambda change: Robot.load(written(LEG.replace(*change))),
            error=ModelError,
        )  # fmt: skip


FINGER = """
name: finger
gravity: [0, -9.81, 0]
bodies:
  - {name: palm, mass: 1, com: [0, 0, 0], inertia: &I
      {about: com, ixx: 0.02, ixy: 0, ixz: 0, iyy: 0.01, iyz: 0, izz: 0.03}}
  - {name: tip, mass: 0.7, com: [0.05, 0.3, -0.02], inertia: *I}
joints:
  - {name: lift, type: prismatic, parent: world, child: palm, axis: [0, 1, 0]}
  - name: knee
    type: rolling
    parent: palm
    child: tip
    origin: {xyz: [0, 0.5, 0]}
    axis: [0, 0, 2]
    axis_b: [0, 1, 0]
    radii: [0.03, 0.02]
    freedoms: {r1: {limits: {lower: -1, upper: 1.2, effort: 40}}}
"""


class TestRolling:
    """A cylinder of 20 mm that rolls on one of 30 mm, and turns by 2.5 times the turn of their line."""

    @staticmethod
    def efforts(q: Array, order: int) -> Array:
        """Return those of a held palm by virtual power, the plane as complex numbers, of many digits."""
        with mpmath.workdps(50):
            mass, inertia, down = (mpmath.mpf(x) for x in ("0.7", "0.03", "9.81"))
            parts = [(1, mpmath.mpc(0, "0.05")), (mpmath.mpf("2.5"), mpmath.mpc("0.05", "0.3"))]

            def effort(t: mpmath.mpf) -> mpmath.mpf:
                x, v, a = (
                    sum(
                        mpmath.mpf(c) * t ** (j - k) / mpmath.factorial(j - k)
                        for j, c in enumerate(q)
                        if j >= k
                    )
                    for k in range(3)
                )
                arms = [(1j * gain, arm * mpmath.expj(gain * x)) for gain, arm in parts]
                way = sum(turn * arm for turn, arm in arms)
                acceleration = a * way + v**2 * sum(turn**2 * arm for turn, arm in arms)
                force = mass * (acceleration + 1j * down)
                return (mpmath.conj(way) * force).real + inertia * mpmath.mpf("6.25") * a

            return np.array([[float(mpmath.diff(effort, 0, r))] for r in range(order + 1)])

    def test_efforts_of_any_order(self, written: Callable[[str], Path]) -> None:
        robot = Robot.load(written(FINGER))
        assert robot.coordinates == robot.driven_joints == ("lift", "knee_r1")
        assert robot.limits.position_upper[1] == 1.2
        q = np.zeros((8, 2))
        q[:, 1] = np.random.default_rng(0).uniform(-1.0, 1.0, 8)
        exact = self.efforts(q[:, 1], 5)
        found = robot.inverse_dynamics(q)
        assert relative_errors(found[:, 1:], exact).max() < 1e-13
        assert relative_errors(robot.forward_dynamics(q[:2], found), q[2:]).max() < 1e-10

    def test_among_screws(self) -> None:
        place, inertia = random_pose(np.random.default_rng(1)), np.diag([0.02, 0.01, 0.03])
        joint = rolling(place[:3, 2], place[:3, 1], (0.03, 0.02), place[:3, 3])
        given = {"placements": [place], "masses": [0.7], "coms": [[0.05, 0.3, -0.02]], "inertias": [inertia]}
        robot = Robot.from_screws([-1], [joint], **given, gravity=-9.81 * place[:3, 1], joint_names=["knee"])
        assert (robot.joint_names, robot.tree.joint_names) == (("knee_r1",), ("knee_r1", "knee_r2"))
        q = np.random.default_rng(2).uniform(-1.0, 1.0, (5, 1))
        assert relative_errors(robot.inverse_dynamics(q), self.efforts(q[:, 0], 2)).max() < 1e-13
        leg = Limb([joint], [], [], [], [], driven=[0], name="leg")
        platform = Platform(1.0, np.zeros(3), np.eye(3), place)
        refused(
            lambda: ParallelRobot.from_screws([leg], platform, np.eye(6)),
            "limb 'leg': joint 'leg_joint1_r2' follows another",
            ModelError,
        )

    def test_what_touches_stands_still(self, written: Callable[[str], Path]) -> None:
        found = Robot.load(written(FINGER)).forward_kinematics(np.array([[0.0, 0.7], [0.0, 2.0]]))
        turn, shift = np.split(found.twists_of("tip")[0], 2)
        touch = np.array([-0.03 * np.sin(0.7), 0.45 + 0.03 * np.cos(0.7), 0.0])
        np.testing.assert_allclose(shift + np.cross(turn, touch), 0.0, atol=1e-14)
        np.testing.assert_allclose(turn, [0.0, 0.0, 5.0], atol=1e-14)

    def test_curves_of_ones_own(self) -> None:
        slide = planar((0, 0, 1), (1, 0, 0))
        curves = {"y": (0.0, 0.2, -0.5), "rz": (0.0, 1.0, 0.4, -0.1)}
        row = CompositeJoint(
            slide.screws, slide.names, tuple(Coupling(name, "x", polynomial=f) for name, f in curves.items())
        )
        beside = Constraints(
            couplings=[Coupling(f"slot_{name}", "slot_x", polynomial=f) for name, f in curves.items()]
        )
        given = {
            "masses": [0.8],
            "coms": [[0.1, 0.05, 0.0]],
            "inertias": [0.02 * np.eye(3)],
            "joint_names": ["slot"],
        }
        found, expected = (
            Robot.from_screws([-1], [joint], [np.eye(4)], **given, constraints=constraints)
            for joint, constraints in ((row, None), (slide, beside))
        )
        assert found.coordinates == ("slot_x",)
        q = np.random.default_rng(3).uniform(-1.0, 1.0, (5, 1))
        np.testing.assert_array_equal(found.inverse_dynamics(q), expected.inverse_dynamics(q))

    def test_locked(self, written: Callable[[str], Path]) -> None:
        free = Robot.load(written(FINGER)).forward_kinematics(np.array([[0.0, 0.3]])).pose_of("tip")
        held = Robot.load(written(FINGER.replace("r1: {", "r1: {locked: 0.3, ")))
        assert held.joint_names == ("lift",)
        np.testing.assert_allclose(held.forward_kinematics(np.zeros((1, 1))).pose_of("tip"), free, atol=1e-14)

    def test_what_is_wrong_is_named(self, written: Callable[[str], Path]) -> None:
        assert_refused(
            (("    radii: [0.03, 0.02]\n", ""), "joint 'knee': a rolling joint needs axis, axis_b and radii"),
            (("type: rolling", "type: universal"), "joint 'knee': a universal joint has no radii"),
            (("r1: {", "r2: {"), "joint 'knee' is rolling, with the degrees of freedom r1"),
            (("axis: [0, 1, 0]", "axis: [0, 1, 0], radii: [1, 1]"),
             "'lift' is prismatic, so it cannot have 'radii'"),
            by=lambda change: Robot.load(written(FINGER.replace(*change))),
            error=ModelError,
        )  # fmt: skip
