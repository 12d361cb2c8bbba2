"""The step-by-step simulation of drives of any kind, against an integrator at its tightest."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from case_robots import panda
from refusals import misshapen, refused

from hodyn_ros import InputError, Robot
from hodyn_ros.codegen import keys
from hodyn_ros.codegen.keys import key_of
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, VariableStiffnessSpec
from hodyn_ros.simulation.plant import Plant
from hodyn_ros.simulation.simulation import RobotSimulation

pytestmark = pytest.mark.thorough


START = np.array([0.1, -0.3, 0.2, -1.9, 0.1, 1.7, 0.3])
FRICTION = FrictionSpec(1.0, 1.5, 0.05)
TABLE = tuple(np.linspace(-80.0, 80.0, 9)), tuple(np.linspace(-80.0, 80.0, 9) / 8000.0)
PAIR = VariableStiffnessSpec("agonist_antagonist", 2e5)
CAM = VariableStiffnessSpec("cam", 900.0, 0.8, 0.05)
FIGURES: dict[str, dict[str, object]] = {
    "friction": {"motor_friction": FRICTION, "link_friction": FRICTION},
    "damped": {"spring_damping": 30.0},
    "stiff": {"spring_damping": 4000.0},
    "hardening": {"cubic_stiffness": 1e6},
    "table": {"spring_table": TABLE},
    "pair": {"variable_stiffness": PAIR},
    "cam": {"variable_stiffness": CAM},
}


def mixed(figures: dict[str, object], joints: slice = slice(0, 4, 2)) -> Robot:
    """Return the Panda with other drives at some joints, a rigid one and linear springs at the rest."""
    robot = panda()
    specs = list(robot.drive_train.specs)
    specs[joints] = [replace(spec, **figures) for spec in specs[joints]]  # type: ignore[arg-type]
    specs[6] = DriveSpec(np.inf, specs[6].motor_inertia, motor_friction=FRICTION)
    return robot.with_drives(specs)


@pytest.mark.parametrize("name", FIGURES)
def test_it_moves_as_the_equations_say(name: str) -> None:
    robot = mixed(FIGURES[name])
    simulation = RobotSimulation(robot, START, damping=1.0)
    effort = simulation.gravity_effort() + 2.0
    at_rest = np.zeros((5, 7))
    at_rest[0] = START
    exact = RobotSimulation(robot, at_rest, damping=1.0)
    np.testing.assert_array_equal(simulation.motor_position, exact.motor_position)
    exact.follow(effort, 0.03, rtol=1e-11, atol=1e-13, max_step=1e-3)
    for _ in range(30):
        simulation.advance(0.001, effort)
    expected = exact.measurement
    assert np.abs(expected.position - START).max() > 1e-4
    np.testing.assert_allclose(simulation.position, expected.position, rtol=0.0, atol=2e-7)
    np.testing.assert_allclose(simulation.motor_position, expected.motor_position, rtol=0.0, atol=2e-7)
    np.testing.assert_allclose(simulation.velocity, expected.velocity, rtol=0.0, atol=2e-5)
    np.testing.assert_allclose(simulation.motor_velocity, expected.motor_velocity, rtol=0.0, atol=2e-5)
    assert simulation.link_effort[6] == effort[-1]  # rigid


def test_compiled_steps_are_found_again_by_all_figures_of_their_drives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys._sources, "_changed", False)  # files that were just written are those that run
    figures = FIGURES | {"heavier motors": {"motor_inertia": 0.7}, "as filed": {}}
    found = {name: key_of(Plant(mixed(each), 1.0).traced) for name, each in figures.items()}
    found["less damped beside"] = key_of(Plant(mixed({}), 0.5).traced)
    found["a table at other joints"] = key_of(Plant(mixed(FIGURES["table"], slice(1, 4)), 1.0).traced)
    assert None not in found.values()
    assert len(set(found.values())) == len(found)
    assert key_of(Plant(mixed(FIGURES["table"]), 1.0).traced) == found["table"]


@pytest.mark.parametrize("name", FIGURES)
def test_it_stands_still_in_equilibrium(name: str) -> None:
    simulation = RobotSimulation(mixed(FIGURES[name]), START, damping=1.0)
    springs = simulation.link_effort
    for _ in range(20):
        simulation.advance(0.001, simulation.gravity_effort())
    np.testing.assert_allclose(simulation.position, START, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(simulation.link_effort, springs, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("name", FIGURES)
def test_damping_beside_the_springs_takes_power_and_keeps_forces_in_balance(name: str) -> None:
    robot = mixed(FIGURES[name])
    bare, damped = Plant(robot), Plant(robot, 20.0)
    at_rest = np.zeros((5, 7))
    at_rest[0] = START
    state = bare.unpack(bare.consistent_state(at_rest))
    rng = np.random.default_rng(4)
    qd, thetad = rng.normal(size=7), rng.normal(size=bare.train.n_motors)
    x = bare.pack(state.position, qd, state.motor_position, thetad)
    effort = np.zeros(bare.train.n_motors)
    on_links = damped.link_torque(damped.unpack(x), effort) - bare.link_torque(bare.unpack(x), effort)
    moving = bare.train.elastic[list(bare.train.motor_joints)]
    change = damped.rates(x, effort)[-moving.sum() :] - bare.rates(x, effort)[-moving.sum() :]
    on_motors = -change * bare.train.motor_inertia[moving]
    assert on_motors.sum() == pytest.approx(on_links.sum(), rel=1e-9)
    own = name in ("damped", "stiff")
    assert (on_links[[0, 2]] == 0.0).all() == own  # the file's own damping is not doubled
    assert (on_links[[1, 3]] != 0.0).all() and on_links[6] == 0.0
    elastic = np.flatnonzero(bare.train.elastic)
    facing = np.zeros((7, len(moving)))
    for motor, joint in enumerate(bare.train.motor_joints):
        facing[joint, motor] = 0.5 if name == "pair" and joint in (0, 2) else 1.0
    if name == "cam":
        facing[[0, 2], [1, 4]] = 0.0  # the motors that lift the springs
    rates = facing[elastic] @ thetad - qd[elastic]
    taken = on_motors @ thetad[moving] - on_links @ qd
    counted = np.ones(len(elastic)) if not own else np.where(np.isin(elastic, [0, 2]), 0.0, 1.0)
    assert taken == pytest.approx(20.0 * counted @ rates**2, rel=1e-9)


def test_steps_are_short_without_springs_as_well() -> None:
    """Rigid joints with friction, over a long time at once."""
    robot = panda()
    specs = [
        DriveSpec(np.inf, spec.motor_inertia, motor_friction=FRICTION) for spec in robot.drive_train.specs
    ]
    rigid = robot.with_drives(specs)
    simulation = RobotSimulation(rigid, START)
    effort = simulation.gravity_effort() + 0.5
    exact = RobotSimulation(rigid, START)
    exact.follow(effort, 0.5, rtol=1e-11, atol=1e-13)
    simulation.advance(0.5, effort)
    assert np.abs(exact.measurement.position - START).max() > 1e-3
    np.testing.assert_allclose(simulation.position, exact.measurement.position, rtol=0.0, atol=1e-7)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    simulation = RobotSimulation(mixed(FIGURES["pair"]), START)
    assert simulation.motor_position.shape == (9,)
    for duration, effort, words in (
        (0.001, np.zeros(7), misshapen("motor_effort", (7,), "(9,)")),
        (0.001, np.full(9, np.nan), "motor_effort"),
        (-0.001, np.zeros(9), "duration"),
        (np.nan, np.zeros(9), "duration"),
    ):
        refused(partial(simulation.advance, duration, effort), words)
    np.testing.assert_array_equal(simulation.position, START)
    refused(lambda: RobotSimulation(mixed(FIGURES["pair"]), START, damping=-1.0), "damping beside springs")
    table = RobotSimulation(mixed(FIGURES["table"]), START)
    with pytest.raises(InputError, match="beyond the spring table"):
        for _ in range(200):
            table.advance(0.001, np.full(7, 500.0))
