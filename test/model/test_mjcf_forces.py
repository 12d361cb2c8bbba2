"""Forces of MJCF: what hodyn_ros does not compute of what MuJoCo does is said, and nothing else is."""

import re
import warnings
from typing import Any

import mujoco
import numpy as np
import pytest

from hodyn_ros import Robot
from hodyn_ros.errors import FigureWarning

MUJOCO_4 = hasattr(mujoco.MjModel.from_xml_string("<mujoco/>"), "actuator_armature")
Q, RATE, ACCELERATION = 0.3, 0.7, -0.9
FLAGS = '<option><flag {}="disable"/></option>'
FIXED = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'
CABLE = '<tendon><spatial name="t"><site site="wall"/><site site="s"/></spatial></tendon>'
PLUGGED = '<extension><plugin plugin="mujoco.pid"/></extension>'


def pendulum(joint: str = "", body: str = "", more: str = "", options: str = "") -> str:
    return (
        f'<mujoco><compiler angle="radian"/>{options}<worldbody><site name="wall"/><body name="a" {body}>'
        f'<joint name="j" axis="0 1 0" {joint}/><geom size="0.1" pos="0.2 0 0"/>'
        f'<site name="s" pos="0.2 0 0"/></body></worldbody>{more}</mujoco>'
    )


def on(actuator: str) -> str:
    return f"<actuator>{actuator}</actuator>"


def read(text: str, friction: bool | None = None) -> tuple[Robot, list[str]]:
    """Return a robot, and what was said of its file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", FigureWarning)
        robot = Robot.from_mjcf(text, friction=friction)
    return robot, [str(each.message) for each in said]


def effort_of(robot: Robot) -> float:
    """Return the effort of the motor of a pendulum."""
    effort = float(robot.inverse_dynamics(np.array([[Q], [RATE], [ACCELERATION]]))[0, 0])
    if robot.drive_train is None:
        return effort
    (drive,) = robot.drive_train.specs
    rubs = drive.link_friction
    return effort + drive.motor_inertia * ACCELERATION + rubs.viscous * RATE + rubs.coulomb * np.sign(RATE)


def effort_by_mujoco(text: str) -> float:
    """Return likewise what mj_inverse says with all passive forces."""
    model: Any = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = Q, RATE
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    data.qacc[:] = ACCELERATION
    mujoco.mj_inverse(model, data)
    return float(data.qfrc_inverse[0])


SINCE_4 = {
    "quadratic damping": pendulum('damping="0 3 0.5"'),
    "curved spring": pendulum('stiffness="0 3 0.5"'),
    "curved spring of a tendon": pendulum(more=FIXED.format('stiffness="0 2 0"')),
    "curved damping of a tendon": pendulum(more=FIXED.format('damping="0 2 0"')),
    "damping of an actuator": pendulum(more=on('<motor joint="j" gear="2" damping="0.5"/>')),
    "curved damping of an actuator": pendulum(more=on('<motor joint="j" gear="2" damping="0 0.3 0.1"/>')),
    "inertia of an actuator": pendulum(more=on('<motor joint="j" gear="2" armature="0.5"/>')),
    "two controls": pendulum(more=on('<pid joint="j" kp="3"/><motor joint="j" gear="7" armature="1"/>')),
    "actuator of a tendon": pendulum(more=FIXED.format("") + on('<motor tendon="t" armature="2"/>')),
    "springs that are off": pendulum('stiffness="3"', options=FLAGS.format("spring")),
    "dampers that are off": pendulum('damping="3"', options=FLAGS.format("damper")),
    "all that is passive off": pendulum(
        'damping="3"',
        body='gravcomp="0.5"',
        options='<option density="1000"><flag spring="disable" damper="disable"/></option>',
    ),
}
ALWAYS = {
    "nothing": pendulum(),
    "rotor": pendulum('armature="0.3"'),
    "spring": pendulum('stiffness="3"'),
    "damping": pendulum('damping="3"'),
    "dry friction": pendulum('frictionloss="2"'),
    "weight compensated": pendulum(body='gravcomp="0.5"'),
    "weight compensated by the actuator": pendulum('actuatorgravcomp="true"', body='gravcomp="0.5"'),
    "fluid": pendulum(options='<option density="1000"/>'),
    "tendon": pendulum(more=FIXED.format('stiffness="3"')),
    "dry friction of a tendon": pendulum(more=FIXED.format('frictionloss="2"')),
    "servo": pendulum(more=on('<position joint="j" kp="30" kv="2"/>')),
    "dry friction that is off": pendulum('frictionloss="3"', options=FLAGS.format("frictionloss")),
    "constraints that are off": pendulum('frictionloss="3"', options=FLAGS.format("constraint")),
    "weight that is off": pendulum(body='gravcomp="0.5"', options=FLAGS.format("gravity")),
}


@pytest.mark.parametrize("name", [*ALWAYS, *(SINCE_4 if MUJOCO_4 else ())])
def test_what_mujoco_computes_otherwise_is_said(name: str) -> None:
    text = {**ALWAYS, **SINCE_4}[name]
    robot, said = read(text)
    differs = bool(abs(effort_of(robot) - effort_by_mujoco(text)) > 1e-6)
    assert bool(said) is differs, said


@pytest.mark.parametrize(
    "name",
    [
        "damping",
        "dry friction",
        "dry friction that is off",
        "constraints that are off",
    ]
    + (["dampers that are off", "damping of an actuator", "quadratic damping"] if MUJOCO_4 else []),
)
def test_friction_that_is_taken_is_that_of_mujoco(name: str) -> None:
    text = {**ALWAYS, **SINCE_4}[name]
    robot, said = read(text, friction=True)
    differs = bool(abs(effort_of(robot) - effort_by_mujoco(text)) > 1e-9)
    assert differs is (name == "quadratic damping")
    assert bool(said) is differs, said
    assert not read(text, friction=False)[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            pendulum().replace('name="j"', 'name="j" type="free" damping="2" armature="1"'),
            ["armatures of the ball or free joints 'j'", "friction of the ball or free joints 'j'"],
        ),
        (pendulum(more=on('<motor name="m" site="s" gear="0 0 1 0 0 0"/>')), ["act on no joint .* 'm'"]),
        (
            pendulum(more=on('<motor name="m" cranksite="s" slidersite="wall" cranklength="0.3"/>')),
            ["act on no joint .* 'm'"],
        ),
        (
            pendulum(more=CABLE + on('<muscle name="m" tendon="t" lengthrange="0 1"/>')),
            ["act on no joint and no fixed tendon, 'm'", "limits of the muscles 'm'"],
        ),
        (pendulum(more=on('<muscle name="m" joint="j" lengthrange="0 1"/>')), ["limits of the muscles 'm'"]),
        (
            pendulum(more=FIXED.format("") + on('<motor name="m" tendon="t" ctrlrange="-1 1"/>')),
            ["limits of the actuators on fixed tendons 'm'"],
        ),
        (pendulum(more=FIXED.format("") + on('<position name="m" tendon="t" ctrlrange="-1 1"/>')), []),
        (pendulum(more=on('<adhesion name="m" body="a" ctrlrange="0 1"/>')), []),
    ],
)
def test_what_else_is_left_out_is_named(text: str, words: list[str]) -> None:
    _, said = read(text)
    assert len(said) == len(words)
    for line, expected in zip(said, words):
        assert re.search(expected, line), line
        assert line.endswith("do not count")


@pytest.mark.skipif(not MUJOCO_4, reason="actuators have rotors since MuJoCo 4")
def test_rotors_and_damping_of_actuators_of_a_ball() -> None:
    ball = pendulum().replace('name="j"', 'name="j" type="ball"')
    turn = '<motor joint="j" gear="1 0 0 0 0 0" {}/>'
    for figure, what in (("armature", "armatures"), ("damping", "friction")):
        _, said = read(ball.replace("</mujoco>", on(turn.format(f'{figure}="0.5"')) + "</mujoco>"))
        assert len(said) == 1 and f"{what} of the ball or free joints 'j' do not count" in said[0]
    servo = on('<orientation name="o" {} kp="3"/>' + turn.format("") + '<motor name="m" site="s"/>')
    for acts_on, named in (('joint="j"', "'m'"), ('site="s" refsite="wall"', "'o', 'm'")):
        _, said = read(ball.replace("</mujoco>", servo.format(acts_on) + "</mujoco>"))
        assert len(said) == 1 and f"no fixed tendon, {named} do not count" in said[0]


@pytest.mark.parametrize(
    ("actuator", "limit"),
    [
        ('<motor joint="j" ctrlrange="-3 3" gear="2"/>', 6.0),
        ('<motor joint="j" ctrlrange="-1 1" gear="150" forcerange="-87 87"/>', 150.0),
        ('<motor joint="j" ctrlrange="-9 9" gear="2" forcerange="-3 4"/>', 6.0),
        ('<general joint="j" dyntype="filter" dynprm="0.1" gainprm="5" ctrlrange="-3 3"/>', 15.0),
        ('<general joint="j" dyntype="integrator" gainprm="5" ctrlrange="-1 1"/>', np.inf),
        ('<position joint="j" kp="5" ctrlrange="-1 1"/>', np.inf),
        ('<plugin plugin="mujoco.pid" joint="j" ctrlrange="-1 1"/>', np.inf),
    ],
)
def test_ranges_of_controls_are_limits_where_controls_are_efforts(actuator: str, limit: float) -> None:
    options = PLUGGED if "plugin" in actuator else ""
    robot, _ = read(pendulum(more=on(actuator), options=f'{options}<compiler autolimits="true"/>'))
    assert robot.limits.effort.tolist() == [limit]


@pytest.mark.skipif(not MUJOCO_4, reason="actuators have several controls since MuJoCo 4")
def test_limits_and_gears_behind_an_actuator_with_several_controls_are_its_own() -> None:
    robot, _ = read(
        pendulum(
            more=on(
                '<pid joint="j" kp="3" ctrlrange="-1 1" forcerange="-4 4"/>'
                '<motor joint="j" gear="7" ctrlrange="-2 2" armature="1"/>'
            )
        )
    )
    assert robot.limits.effort.tolist() == [18.0]
    assert robot.drive_train is not None
    assert robot.drive_train.motor_inertia.tolist() == [49.0]


def test_a_motor_on_a_spring_has_the_rotor_and_the_damping_of_its_actuator() -> None:
    motor = '<body name="m"><joint name="turn" axis="0 1 0" damping="0.4"/><inertial pos="0 0 0" mass="1" '
    motor += 'diaginertia="0.1 0.1 0.1"/></body></worldbody>'
    tie = '<tendon><fixed name="t" stiffness="500" {}><joint joint="j" coef="-1"/>'
    tie += '<joint joint="turn" coef="0.5"/></fixed></tendon>'
    figures = 'armature="0.2" damping="0.3"' if MUJOCO_4 else ""
    text = pendulum(more=tie + on(f'<motor joint="turn" gear="3" {figures}/>'))
    text = text.replace("</worldbody>", motor)
    robot, said = read(text.format(""), friction=True)
    assert robot.drive_train is not None and not said
    (drive,) = robot.drive_train.specs
    rotor, damping = (0.1 + 9.0 * 0.2, 0.4 + 9.0 * 0.3) if MUJOCO_4 else (0.1, 0.4)
    assert drive.stiffness == 500.0
    assert drive.motor_inertia == pytest.approx(rotor / 0.25, rel=1e-12)
    assert drive.motor_friction.viscous == pytest.approx(damping / 0.25, rel=1e-12)
    for figure in ('frictionloss="1"', *(['armature="1"'] if MUJOCO_4 else [])):
        _, said = read(text.format(figure), friction=True)
        assert len(said) == 1 and "forces of tendons 't' do not count" in said[0]
