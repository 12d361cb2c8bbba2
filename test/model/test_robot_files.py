"""What a robot's file may say besides bodies and joints: propellers, rotors, payload, locked joints."""

import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from oracles.motions import random_stack
from refusals import assert_refused, refused

from hodyn_ros import Propeller, PropellerLimits, Robot, share
from hodyn_ros.dynamics.read_robot import read_robot
from hodyn_ros.errors import FigureWarning, ModelError
from hodyn_ros.feedforward.payload import Payload
from hodyn_ros.feedforward.robot_files import RobotFiles
from hodyn_ros.model.description import RobotDescription
from hodyn_ros.model.drive_spec import FrictionSpec

ARM = """\
name: arm
{beside}
bodies:
  - {{name: upper, mass: 2, com: [0, 0, 0.1], inertia: &ball {{about: com, ixx: 0.2, ixy: 0.01, ixz: 0,
      iyy: 0.25, iyz: 0.02, izz: 0.3}}}}
  - {{name: middle, mass: 1.5, com: [0.1, 0, 0], inertia: *ball}}
  - {{name: lower, mass: 1, com: [0, 0.2, 0], inertia: *ball}}
joints:
  - {{name: shoulder, type: revolute, parent: world, child: upper, axis: [0, 1, 0], drive: {drive}}}
  - {{name: elbow, type: {kind}, parent: upper, child: middle, axis: [1, 2, 0], origin: {{xyz: [0, 0.1, 0.3],
      rpy: [0.1, 0.2, 0.3]}}, limits: {{lower: -2, upper: 2}}, {elbow} drive: {drive}}}
  - {{name: wrist, type: revolute, parent: middle, child: lower, axis: [0, 0, 3],
      origin: {{xyz: [0.4, 0, 0]}}, drive: {drive}}}
frames:
  - {{name: tool, body: lower, origin: {{xyz: [0.1, 0, 0.2], rpy: [0.3, -0.2, 0.5]}}}}
"""
PLAIN = "{motor_inertia: 0.4, stiffness: 900}"


def written(folder: Path, text: str) -> Path:
    path = folder / "robot.yaml"
    path.write_text(text)
    return path


def arm(
    folder: Path, beside: str = "", drive: str = PLAIN, elbow: str = "", kind: str = "revolute"
) -> RobotDescription:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_robot(written(folder, ARM.format(beside=beside, drive=drive, elbow=elbow, kind=kind)))


FLYING = """\
name: flying
floating_base: {floats}
bodies:
  - {{name: hull, mass: 2, com: [0, 0, 0.1], inertia: {{about: com, ixx: 0.2, ixy: 0, ixz: 0,
      iyy: 0.2, iyz: 0, izz: 0.3}}}}
joints: []
frames:
  - {{name: arm, body: hull, origin: {{xyz: [0.2, 0, 0], rpy: [0, 0, 1.5707963267948966]}}}}
propellers:
  - {{name: one, frame: {frame}, origin: {{xyz: [0.1, 0, 0]}}, drag: 0.01, {more}}}
  - {{name: two}}
"""


class TestPropellers:
    def flying(
        self, folder: Path, more: str = "", frame: str = "arm", floats: str = "true"
    ) -> RobotDescription:
        return read_robot(written(folder, FLYING.format(more=more, frame=frame, floats=floats)))

    def test_they_sit_on_a_frame_of_the_base(self, tmp_path: Path) -> None:
        found = self.flying(tmp_path, "tilts: true, coefficient: 1e-5, limits: {most: 12, tilt: 0.5}")
        one, two = found.propellers
        np.testing.assert_allclose(one.pose[:3, 3], [0.2, 0.1, 0.0], atol=1e-15)
        assert one.tilts and (one.drag, one.coefficient) == (0.01, 1e-5)
        assert one.limits == PropellerLimits(most=12.0, tilt=0.5)
        np.testing.assert_array_equal(two.pose, np.eye(4))
        robot = Robot.of(found)
        assert robot.propellers is not None and robot.propellers.names == ("one", "two")
        copies = robot.with_tree(robot.model.with_gravity((0, 0, -1))), pickle.loads(pickle.dumps(robot))
        assert all(copy.propellers and copy.propellers.names == ("one", "two") for copy in copies)

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"frame": "nowhere"}, "there is no frame 'nowhere' on the base; known"),
            ({"more": "limits: {tilt: 1}"}, "propeller 'one' does not tilt"),
            ({"more": "limits: {least: 3, most: 2}"}, "thrusts from 3 to 2 N leave none"),
            ({"more": "limits: {most: 2, rat: 2}"}, "rate"),
            ({"floats": "false"}, "set floating_base: true"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_place(
        self, given: dict[str, str], reason: str, tmp_path: Path
    ) -> None:
        refused(lambda: self.flying(tmp_path, **given), f"robot.yaml ... {reason}", ModelError)

    def test_a_base_that_stands_has_none(self) -> None:
        panda = Robot.load(share.find("config", "panda.yaml"))
        call = partial(Robot, panda.model, propellers=[Propeller("one", np.eye(4))])
        refused(call, "a base that does not float", ModelError)


class TestRotors:
    def test_a_rotor_is_reflected_by_the_square_of_its_ratio(self, tmp_path: Path) -> None:
        config = arm(tmp_path, drive="{rotor_inertia: 6e-5, gear_ratio: 100, stiffness: 900}")
        assert config.drives is not None
        np.testing.assert_allclose([drive.motor_inertia for drive in config.drives], 0.6, rtol=1e-15)
        assert config.drives[0].gear_ratio == 100.0
        direct = arm(tmp_path, drive="{rotor_inertia: 6e-5, gear_ratio: 1, stiffness: rigid}")
        assert direct.drives is not None and [drive.motor_inertia for drive in direct.drives] == [6e-5] * 3

    @pytest.mark.parametrize(
        ("drive", "words"),
        [
            ("{rotor_inertia: 6e-5, stiffness: 900}", "rotor_inertia needs the gear_ratio"),
            ("{stiffness: 900}", "give either motor_inertia ... or rotor_inertia ... with gear_ratio"),
            ("{rotor_inertia: 1, motor_inertia: 1, gear_ratio: 2, stiffness: 9}",
                "give either motor_inertia"),
            ("{rotor_inertia: -1, gear_ratio: 2, stiffness: 9}",
                "rotor_inertia: joint 'shoulder': must be greater than 0"),
        ],
    )  # fmt: skip
    def test_one_way_of_the_two(self, tmp_path: Path, drive: str, words: str) -> None:
        refused(lambda: arm(tmp_path, drive=drive), f"robot.yaml: ... : joints[0] ... {words}", ModelError)

    @pytest.mark.parametrize(
        ("drive", "words"),
        [
            ("{motor_inertia: 6e-5, stiffness: rigid}", "6e-05 kg m^2 reflected to the link side is unheard"),
            ("{motor_inertia: 1e-3, gear_ratio: 100, stiffness: 20000}", "swing on its spring at 712 Hz"),
        ],
    )
    def test_the_inertia_of_the_rotor_itself_is_warned_about(
        self, tmp_path: Path, drive: str, words: str
    ) -> None:
        path = written(tmp_path, ARM.format(beside="", drive=drive, elbow="", kind="revolute"))
        with pytest.warns(FigureWarning) as found:
            read_robot(path)
        lines = [str(line.message) for line in found]
        assert len(lines) == 3
        assert all(words in line and "give it as rotor_inertia" in line for line in lines)
        assert "joint 'shoulder'" in lines[0]


class TestPayload:
    BESIDE = (
        "payload: {body: tool, mass: 0.7, com: [0.01, 0.05, 0.02],\n"
        "  inertia: {about: com, ixx: 0.004, ixy: 0, ixz: 0, iyy: 0.003, iyz: 0, izz: 0.002}}"
    )

    def test_it_counts_as_the_parameter_does(self, tmp_path: Path) -> None:
        bare = arm(tmp_path)
        loaded = arm(tmp_path, self.BESIDE)
        payload = Payload(0.7, (0.01, 0.05, 0.02), (0.004, 0.0, 0.0, 0.003, 0.0, 0.002), "tool")
        expected = payload.on_tree(Robot(bare.model, frames=bare.frames))
        for field in ("masses", "coms", "inertias"):
            np.testing.assert_array_equal(getattr(loaded.model, field), getattr(expected, field))
        whole = RobotFiles.from_file(tmp_path / "robot.yaml").robot()
        assert isinstance(whole, Robot)
        np.testing.assert_array_equal(whole.model.inertias, expected.inertias)

    def test_a_point_on_the_last_body(self, tmp_path: Path) -> None:
        model = arm(tmp_path, "payload: {mass: 1}").model
        assert model.masses.tolist() == [2.0, 1.5, 2.0]
        assert model.coms[2].tolist() == [0.0, 0.1, 0.0]
        assert arm(tmp_path, "payload: {mass: 0, body: tool}").model.masses[2] == 1.0

    def test_on_a_platform(self, tmp_path: Path) -> None:
        source = share.find("config", "gough_stewart_6ups.yaml")
        path = written(tmp_path, source.read_text() + "\npayload: {mass: 2, com: [0.1, 0, 0.05]}\n")
        found = Robot.load(path).tree
        expected = Payload(2.0, (0.1, 0.0, 0.05)).on_tree(Robot.load(source))
        np.testing.assert_array_equal(found.masses, expected.masses)
        np.testing.assert_array_equal(found.coms, expected.coms)
        np.testing.assert_array_equal(found.inertias, expected.inertias)

    def test_impossible_ones(self, tmp_path: Path) -> None:
        assert_refused(
            ("payload: {mass: 1, body: hand}", "payload.body: there is no body or frame 'hand'"),
            ("payload: {mass: 1, body: world}", "there is no body or frame 'world' that could carry"),
            ("payload: {com: [0, 0, 1]}", "'mass' is missing"),
            (self.BESIDE.replace("0.7", "0"), "without mass has no inertia"),
            (self.BESIDE.replace("izz: 0.002", "izz: 0.02"), "principal moments ... which no body has"),
            (self.BESIDE.replace("izz: 0.002", "izz: -0.002"), "principal moments ... which no body has"),
            by=lambda beside: arm(tmp_path, beside),
            error=ModelError,
        )


class TestLockedJoints:
    @pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
    def test_the_rest_moves_as_if_the_joint_stood_there(self, tmp_path: Path, kind: str) -> None:
        pitch = "pitch: 0.05," if kind == "helical" else ""
        whole = Robot(arm(tmp_path, kind=kind, elbow=pitch).model)
        config = arm(tmp_path, kind=kind, elbow=pitch + "locked: 0.6,")
        stiff = Robot(config.model, config.limits, config.drives, config.frames)
        assert stiff.joint_names == ("shoulder", "wrist")
        assert stiff.drive_train is not None and len(stiff.drive_train.specs) == 2
        q = random_stack(1, 5, 2)
        moved = np.zeros((5, 3))
        moved[:, [0, 2]], moved[0, 1] = q, 0.6
        expected = whole.inverse_dynamics(moved)[:, [0, 2]]
        np.testing.assert_allclose(stiff.inverse_dynamics(q), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            stiff.forward_kinematics(q).pose_of("middle"),
            whole.forward_kinematics(moved).pose_of("middle"),
            rtol=0,
            atol=1e-14,
        )

    def test_of_a_urdf(self, tmp_path: Path) -> None:
        urdf = share.find("config", "panda.urdf")
        path = written(tmp_path, f"urdf: {urdf}\njoints: [{{name: panda_joint4, locked: -1.5}}]\n")
        stiff, whole = Robot.load(path), Robot.from_urdf(urdf)
        rest = [0, 1, 2, 4, 5, 6]
        assert stiff.joint_names == tuple(whole.joint_names[i] for i in rest)
        q = random_stack(2, 4, 6)
        moved = np.zeros((4, 7))
        moved[:, rest], moved[0, 3] = q, -1.5
        gravity = Robot(whole.model.with_gravity(stiff.gravity))
        np.testing.assert_allclose(
            stiff.inverse_dynamics(q), gravity.inverse_dynamics(moved)[:, rest], rtol=1e-11, atol=1e-11
        )

    def test_impossible_ones(self, tmp_path: Path) -> None:
        refused(lambda: arm(tmp_path, elbow="locked: 3,"), "'elbow' is locked at 3, beyond", ModelError)
        urdf = share.find("config", "panda.urdf")
        for joint, words in (
            ("{name: panda_joint4, locked: 0.5}", "'panda_joint4' is locked at 0.5, beyond its limits"),
            ("{name: joint4, locked: 0.5}", "there is no joint 'joint4' to lock"),
        ):
            path = written(tmp_path, f"urdf: {urdf}\njoints: [{joint}]\n")
            refused(partial(read_robot, path), words, ModelError)


def test_a_drive_of_all_joints_is_doubted_as_one_of_its_own(tmp_path: Path) -> None:
    TestFrictionOfUrdf().file(tmp_path)
    text = "urdf: robot.urdf\nurdf_friction: false\ndrive: {motor_inertia: 1e6, stiffness: 1e12}"
    with pytest.warns(FigureWarning, match=r"robot.yaml:\d+: drive: joint 'one': a stiffness of 1e\+12"):
        read_robot(written(tmp_path, text))


def test_an_uncertainty_without_limits_of_efforts_is_doubted(tmp_path: Path) -> None:
    TestFrictionOfUrdf().file(tmp_path)
    text = "urdf: robot.urdf\nurdf_friction: false\nuncertainty: {payload: 2}\n"
    limits = "joints: [{name: one, limits: {effort: 3}}, {name: two, limits: {effort: 3}}]\n"
    with pytest.warns(FigureWarning, match=r"robot.yaml:3: uncertainty: joints 'one', .*no effort limit"):
        read_robot(written(tmp_path, text))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FigureWarning)
        read_robot(written(tmp_path, text + limits))
        read_robot(written(tmp_path, text.split("uncertainty")[0]))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            "{lower: -170, upper: 170}",
            "'one' may turn to 170 rad, 27 turns; limits are in rad",
        ),
        ("{upper: 90}", "'one' may turn to 90 rad"),
        ("{lower: -12.6, upper: 12.6}", ""),  # four turns, as of a wrist
        ("{lower: -1e4, upper: 1e4}", ""),  # that is how none is written
    ],
)
def test_limits_in_degrees_are_doubted(tmp_path: Path, limits: str, said: str) -> None:
    """They hold nothing back: a joint that may turn to 170 rad is not stopped at 3."""
    TestFrictionOfUrdf().file(tmp_path)
    path = written(tmp_path, f"urdf: robot.urdf\njoints: [{{name: one, limits: {limits}}}]")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_robot(path)
    assert len(found) == bool(said) and all(said in str(each.message) for each in found)


class TestFrictionOfUrdf:
    ROBOT = """<robot name="r"><link name="base"/>
      <link name="a"><inertial><mass value="1"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <link name="b"><inertial><mass value="1"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="one" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
        <dynamics damping="0.5" friction="0.1"/></joint>
      <joint name="two" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
        <dynamics damping="7"/></joint></robot>"""

    def file(self, folder: Path, beside: str = "", urdf: str = ROBOT) -> Path:
        (folder / "robot.urdf").write_text(urdf)
        return written(
            folder,
            f"urdf: robot.urdf\n{beside}\njoints:\n"
            "  - {name: one, drive: {motor_inertia: 0.2, stiffness: 800}}\n"
            "  - {name: two, drive: {motor_inertia: 0.2, stiffness: 800, link_friction: {viscous: 3}}}\n",
        )

    def test_it_is_said_not_to_count(self, tmp_path: Path) -> None:
        with pytest.warns(
            FigureWarning, match="'one': the URDF's damping 0.5 and friction 0.1 do not count"
        ) as f:
            robot = Robot.load(self.file(tmp_path))
        assert len(f) == 1 and robot.drive_train.specs is not None
        assert robot.drive_train.specs[0].link_friction == FrictionSpec()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_robot(self.file(tmp_path, "urdf_friction: false"))

    def test_it_counts_in_the_drives_and_not_in_inverse_dynamics(self, tmp_path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            robot = Robot.load(self.file(tmp_path, "urdf_friction: true"))
        assert robot.drive_train is not None and robot.drive_train is not None
        assert robot.drive_train.specs[0].link_friction == FrictionSpec(0.5, 0.1, 0.01)
        assert robot.drive_train.specs[1].link_friction == FrictionSpec(3.0)
        q = random_stack(3, 5, 2)
        torques = robot.inverse_dynamics(q)
        np.testing.assert_array_equal(torques, Robot.from_urdf(tmp_path / "robot.urdf").inverse_dynamics(q))
        v = q[1]
        friction = np.array([0.5 * v[0] + 0.1 * v[0] / np.hypot(v[0], 0.01), 3.0 * v[1]])
        springs = 800.0 * (robot.drive_train.feedforward(q, torques).position[0] - q[0])
        np.testing.assert_allclose(springs, torques[0] + friction, rtol=1e-12, atol=1e-10)

    def test_bad_ones(self, tmp_path: Path) -> None:
        call = partial(Robot.from_urdf, self.ROBOT.replace('damping="0.5"', 'damping="-0.5"'))
        refused(call, "'one': ... -0.5; make it finite", ModelError)
        self.file(tmp_path)
        call = partial(read_robot, written(tmp_path, "urdf: robot.urdf\nurdf_friction: true\n"))
        refused(call, "urdf_friction needs drives", ModelError)


class TestFiguresBesideUrdf:
    DRAWN = TestFrictionOfUrdf.ROBOT.replace('<mass value="1"/>', '<mass value="0"/>').replace('"1"', '"0"')
    BODY = (
        "{{name: {}, mass: {}, com: [0, 0, 0.1], inertia: {{about: com, ixx: {}, ixy: 0, ixz: 0, iyy: 0.1, "
        "iyz: 0, izz: 0.1}}}}"
    )

    def file(self, folder: Path, *bodies: str) -> Path:
        (folder / "robot.urdf").write_text(self.DRAWN)
        return written(folder, f"urdf: robot.urdf\nbodies: [{', '.join(bodies)}]\n")

    def test_links_that_are_only_drawn_get_a_mass(self, tmp_path: Path) -> None:
        path = self.file(tmp_path, self.BODY.format("b", 2, 0.1), self.BODY.format("a", 1, 0.1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            robot = Robot.load(path)
        np.testing.assert_array_equal(robot.model.masses, [1.0, 2.0])
        gravity = robot.gravity_torque([[0.3, 0.2]])[0]
        lever = [-0.1 * np.sin(0.3) - 2 * 0.1 * np.sin(0.5), -2 * 0.1 * np.sin(0.5)]
        np.testing.assert_allclose(gravity, 9.81 * np.array(lever), rtol=1e-14)

    def test_what_is_missing_is_said_with_what_to_do(self, tmp_path: Path) -> None:
        path = self.file(tmp_path)
        assert_refused(
            {
                "no mass at all": (
                    lambda: Robot.load(path),
                    "robot 'r' has a mass ... under bodies in a robot file",
                ),
                "none at the end": (
                    lambda: Robot.load(self.file(tmp_path, self.BODY.format("a", 1, 0.1))),
                    "'b' has no mass ... give it mass ... or lock its joint",
                ),
                "no such link": (
                    lambda: Robot.load(self.file(tmp_path, self.BODY.format("forarm", 1, 0.1))),
                    "there is no link 'forarm'",
                ),
                "twice": (
                    lambda: Robot.load(self.file(tmp_path, *[self.BODY.format("a", 1, 0.1)] * 2)),
                    "'a' is described twice",
                ),
            },
            error=ModelError,
        )

    def test_inertias_that_no_body_has_are_named(self, tmp_path: Path) -> None:
        """Moments are integrals of y^2 + z^2, z^2 + x^2 and x^2 + y^2: two are never less than the third."""
        thin = [self.BODY.format("a", 1, 0.2), self.BODY.format("b", 1, 0.2)]  # a plate
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_robot(self.file(tmp_path, *thin))
        with pytest.warns(FigureWarning, match=r"no body has .* of 'b' \(0.1, 0.1, 0.21 kg m\^2\)") as found:
            read_robot(self.file(tmp_path, thin[0], self.BODY.format("b", 1, 0.21)))
        assert len(found) == 1 and "'a'" not in str(found[0].message)
