"""Rotors that turn with their carriers: against trees in which every rotor is a body on its own joint."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import assert_refused, refused
from sweeps import THOROUGH, some

from hodyn_ros import DriveSpec, ModelError, Robot, share
from hodyn_ros.array import Array
from hodyn_ros.dynamics.rotor_coupling import RotorCoupling
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.lie.se3 import hat
from hodyn_ros.model.drive_spec import FrictionSpec, RotorSpec
from hodyn_ros.simulation.plant import Plant
from hodyn_ros.simulation.simulation import RobotSimulation

pytestmark = pytest.mark.thorough


STIFFNESS, RATIO = (900.0, 700.0, 500.0), (20.0, 5.0, 8.0)
REFLECTED = (0.3, 0.2, 0.1)  # [kg m^2]
SPINS = np.array([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8], [0.0, -1.0, 0.0]])  # axes of rotors in their carriers
CARRIERS = (-1, 0, 1)  # the ground carries the first


def bodies() -> dict[str, Array]:
    """Three links that turn about axes of all directions, frames at the joints."""
    rng = np.random.default_rng(3)
    places = np.tile(np.eye(4), (3, 1, 1))
    places[:, :3, 3] = [[0.0, 0.0, 0.2], [0.1, 0.3, 0.4], [0.4, 0.2, 0.6]]
    axes = np.array([[0.0, 0.0, 1.0], [0.0, 0.6, 0.8], [1.0, 0.0, 0.0]])
    screws = np.array([[*e, *np.cross(y, e)] for e, y in zip(axes, places[:, :3, 3])])
    inertias = np.array([a @ a.T * 0.02 + 0.1 * np.eye(3) for a in rng.normal(size=(3, 3, 3))])
    coms = rng.uniform(-0.2, 0.2, (3, 3))
    return {"screws": screws, "placements": places, "masses": np.array([4.0, 3.0, 2.0]), "coms": coms,
            "inertias": inertias}  # fmt: skip


def rotor_inertia(i: int) -> Array:
    """A flat disc about its axis."""
    spin = np.outer(SPINS[i], SPINS[i])
    return REFLECTED[i] / RATIO[i] ** 2 * (spin + 0.55 * (np.eye(3) - spin))


MASS, PLACE = 0.4, np.array([0.05, -0.1, 0.08])  # of a rotor, where its carrier has it


def with_rotor_bodies() -> Robot:
    """The links, and behind them rotors 2 and 3 as bodies of their own."""
    links = bodies()
    for i in (1, 2):
        place = links["placements"][CARRIERS[i]].copy()
        place[:3, 3] += PLACE
        screw = [*SPINS[i], *np.cross(place[:3, 3], SPINS[i])]
        added = {"screws": screw, "placements": place, "masses": MASS, "coms": np.zeros(3)}
        links = {
            name: np.concatenate([links[name], np.asarray(value)[None]])
            for name, value in {**added, "inertias": rotor_inertia(i)}.items()
        }
    return Robot.from_screws([-1, 0, 1, 0, 1], **links)


def carrying(springs: bool = True, **others: object) -> Robot:
    """The links, their inertias with the rotors that they carry, on springs."""
    links = bodies()
    for i in (1, 2):
        body = CARRIERS[i]
        mass, com, inertia = (links[name][body].copy() for name in ("masses", "coms", "inertias"))
        total = mass + MASS
        centre = (mass * com + MASS * PLACE) / total
        moved = inertia + rotor_inertia(i)
        for share_, place in ((mass, com - centre), (MASS, PLACE - centre)):
            moved = moved - share_ * hat(place) @ hat(place)
        links["masses"][body], links["coms"][body], links["inertias"][body] = total, centre, moved
    robot = Robot.from_screws([-1, 0, 1], **links, body_names=["upper", "fore", "hand"])
    rotors = [None, RotorSpec("upper", tuple(2.0 * SPINS[1])), RotorSpec("fore", tuple(SPINS[2]))]
    stiffness = STIFFNESS if springs else (np.inf,) * 3
    return robot.with_drives(
        [
            DriveSpec(k, b, gear_ratio=n, rotor=rotor, **others)  # type: ignore[arg-type]
            for k, b, n, rotor in zip(stiffness, REFLECTED, RATIO, rotors)
        ]
    )


def motion(orders: int) -> Array:
    """A motion that any derivative keeps of one size."""
    rng = np.random.default_rng(8)
    return rng.uniform(-1.0, 1.0, (orders, 3)) * 3.0 ** np.arange(orders)[:, None]


@pytest.mark.parametrize("springs", [True, False])
@pytest.mark.parametrize("order", [2, 4])
def test_the_feedforward_moves_rotors_that_are_bodies(order: int, springs: bool) -> None:
    robot, full = carrying(springs), with_rotor_bodies()
    law = FeedforwardModel(robot, order)
    # the springs of a joint need two orders more than those of the joint before, but for the first rotor,
    # which the ground carries
    assert law.motion_orders == (order + 4 if springs else order) + 3
    q = motion(law.motion_orders)
    found = law.compute(q)
    assert law.whole_arm is not None
    again, readable = RotorCoupling(robot).feedforward(q, order)  # not compiled
    count = 3 if springs else order + 3
    # positions of the rotors as far as inverse dynamics of order 0 needs them
    extended = np.concatenate([q[:3], found.motor_positions[:3][:, 1:] * RATIO[1:]], axis=1)
    torques = full.inverse_dynamics(np.ascontiguousarray(extended))[0]
    for one, other in zip(found, (again, *readable)):
        assert (np.abs(one - other).max(axis=1) <= 1e-13 * np.abs(other).max(axis=1)).all()
    assert len(found.efforts) == order + 1 and count >= 3
    np.testing.assert_allclose(torques[:3], found.efforts[0], rtol=1e-9)
    shares = (found.motor_efforts[0] - found.efforts[0])[1:] / RATIO[1:]
    np.testing.assert_allclose(torques[3:], shares, rtol=1e-8)
    if springs:
        deflection = found.motor_positions[0] - q[0]
        np.testing.assert_allclose(np.array(STIFFNESS) * deflection, found.efforts[0], rtol=1e-9)


def test_derivatives_of_efforts_are_those_of_rotors_that_are_bodies() -> None:
    robot, full = carrying(), with_rotor_bodies()
    law = FeedforwardModel(robot, 4)
    found = law.compute(motion(law.motion_orders))
    extended = np.concatenate([motion(5), found.motor_positions[:, 1:] * RATIO[1:]], axis=1)
    torques = full.inverse_dynamics(np.ascontiguousarray(extended))  # to order 2
    np.testing.assert_allclose(torques[:, :3], found.efforts[:3], rtol=1e-8)
    shares = (found.motor_efforts - found.efforts[:3])[:, 1:] / RATIO[1:]
    np.testing.assert_allclose(torques[:, 3:], shares, rtol=1e-7)


@pytest.mark.parametrize("springs", [True, False])
def test_the_plant_accelerates_as_one_with_rotors_that_are_bodies(springs: bool) -> None:
    robot, full, rng = carrying(springs), with_rotor_bodies(), np.random.default_rng(2)
    plant = Plant(robot)
    q, qd, effort = rng.uniform(-1.0, 1.0, (3, 3))
    theta, thetad = (q + 0.01 * rng.normal(size=3), 3.0 * qd) if springs else (q, qd)
    rates = plant.rates(plant.pack(q, qd, theta, thetad), 10.0 * effort)[plant.size // 2 :]
    torque, n = np.array(STIFFNESS) * (theta - q), np.array(RATIO)
    if springs:
        state = np.array([[*q, *(n * theta)[1:]], [*qd, *(n * thetad)[1:]]])
        shares = (10.0 * effort - torque)[1:] / n[1:]
        found = full.forward_dynamics(state, np.array([[*torque, *shares]]))[0]
        expected = [*found[:3], (10.0 * effort - torque)[0] / REFLECTED[0], *found[3:] / n[1:]]
        np.testing.assert_allclose(rates, expected, rtol=1e-9)
        return
    # joints and rotors together, as the gears hold them
    gears = np.concatenate([np.eye(3), np.diag(n)[1:]])
    motion_ = np.array([gears @ q, gears @ qd, np.zeros(5)])
    mass = gears.T @ full.mass_matrix(motion_[:1])[0] @ gears
    mass[0, 0] += REFLECTED[0]
    bias = gears.T @ full.inverse_dynamics(motion_)[0]
    np.testing.assert_allclose(rates, np.linalg.solve(mass, 10.0 * effort - bias), rtol=1e-9)


def planar(ratio: float) -> Robot:
    """Two equal links in a horizontal plane, the second motor on the first link."""
    robot = Robot.from_screws(
        [-1, 0],
        [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, -0.5, 0.0]],
        [np.eye(4), np.block([[np.eye(3), np.array([[0.5], [0.0], [0.0]])], [np.zeros((1, 3)), np.eye(1)]])],
        [3.0, 2.0],
        [[0.25, 0.0, 0.0], [0.25, 0.0, 0.0]],
        [0.05 * np.eye(3), 0.03 * np.eye(3)],
        gravity=np.zeros(3),
        body_names=["upper", "fore"],
    )
    first = DriveSpec(500.0, 0.4, gear_ratio=ratio)
    return robot.with_drives([first, replace(first, rotor=RotorSpec("upper"))])


def test_the_equations_are_those_of_the_textbook() -> None:
    """Two links in a plane: De Luca & Tomei (1996), section 5.2, where S holds one number."""
    robot, ratio = planar(10.0), 10.0
    found = RotorCoupling(robot).coupling(np.array([[0.3, -0.7], [1.0, 2.0]]), np.array([3.0, -1.0]))
    np.testing.assert_allclose(found.inertia, [[0.0, 0.4 / ratio], [0.0, 0.0]], rtol=1e-15)
    assert not found.on_links.any() and not found.on_motors.any()


@pytest.mark.parametrize("joints", some([2, 3], 2))
def test_only_the_complete_feedforward_follows_the_complete_equations(joints: int) -> None:
    robot = planar(100.0) if joints == 2 else carrying()
    reduced = robot.with_drives([replace(spec, rotor=None) for spec in robot.require_drives().specs])

    def sample(time: float, order: int = 8) -> Array:
        frequency, ks = 6.0, np.arange(order + 1)
        waves = np.sin(frequency * time + 0.5 * np.pi * ks) * frequency**ks
        return np.stack([0.5 * waves, -0.8 * waves, 0.3 * waves][:joints], axis=1)

    errors = {}
    for name, model in (("complete", robot), ("reduced", reduced)):
        law = FeedforwardModel(model, 2)
        simulation = RobotSimulation(robot, sample(0.0))
        states = simulation.follow(
            lambda t, _, law=law: law.compute(sample(t, law.motion_orders - 1)).motor_efforts[0],
            0.5,
            np.linspace(0.05, 0.45, 9),
            method="DOP853",
            rtol=3e-14,
            atol=1e-16,
        )
        wanted = np.array([sample(t)[0] for t in np.linspace(0.05, 0.45, 9)])
        errors[name] = np.abs(states[:, :joints] - wanted).max()
    assert errors["complete"] < 4e-13
    assert errors["reduced"] > 2e-3


def test_without_a_carrier_the_model_is_the_reduced_one() -> None:
    panda = Robot.load(share.find("config", "panda.yaml"))
    assert RotorCoupling.of(panda) is None
    assert FeedforwardModel(panda, 2).motion_orders == 5


def test_a_robot_file_says_where_motors_sit(tmp_path: object) -> None:
    text = share.find("config", "panda.yaml").read_text(encoding="utf-8")
    head, *drives = text.split("    drive:\n")
    drives[3] = "      rotor: {body: panda_link3, axis: [0, -1, 0]}\n" + drives[3]
    path = tmp_path / "panda.yaml"  # type: ignore[operator]
    path.write_text("    drive:\n".join([head, *drives]), encoding="utf-8")
    (rotor,) = RotorCoupling(Robot.load(path)).all
    assert (rotor.joint, rotor.body, rotor.path) == (3, 2, (0, 1, 2))
    assert rotor.axis.tolist() == [0.0, -1.0, 0.0]


def test_every_link_may_carry_the_next_motor() -> None:
    """Of n joints efforts of the motors hold the motion up to its derivative 2 n + 2, and are compiled."""
    count = 7 if THOROUGH else 3
    panda = Robot.load(share.find("config", "panda.yaml"))
    links = panda.tree.body_names
    specs = [
        replace(spec, rotor=RotorSpec(links[j - 1]) if 0 < j < count else None)
        for j, spec in enumerate(panda.require_drives().specs)
    ]
    robot = panda.with_drives(specs)
    law = FeedforwardModel(robot, 2)
    assert law.whole_arm is not None and law.motion_orders == 2 * count + 2 + 1
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (law.motion_orders, 7))
    efforts, readable = RotorCoupling(robot).feedforward(q, 2)
    for one, other in zip(law.compute(q), (efforts, *readable)):
        assert (np.abs(one - other).max(axis=1) <= 1e-13 * np.abs(other).max(axis=1)).all()


def test_damping_and_friction_are_those_of_the_drive() -> None:
    rubbing = FrictionSpec(0.3, 0.5, 0.1)
    robot = carrying(motor_friction=rubbing)
    law, plain = FeedforwardModel(robot, 2), FeedforwardModel(carrying(), 2)
    q = motion(law.motion_orders)
    speeds = plain.compute(q).motor_positions[1]
    more = 0.3 * speeds + 0.5 * speeds / np.sqrt(speeds**2 + 0.01)
    found, without = law.compute(q).motor_efforts[0], plain.compute(q).motor_efforts[0]
    np.testing.assert_allclose(found, without + more, rtol=1e-12)


def test_what_is_not_flat_is_refused() -> None:
    robot = carrying()
    specs = list(robot.require_drives().specs)
    assert_refused(
        (lambda: RotorCoupling(robot.with_drives([*specs[:2], replace(specs[2], rotor=RotorSpec("hand"))])),
         "moves the body that carries it", ModelError),
        (lambda: RotorCoupling(robot).feedforward(motion(5), 2), "motion up to its derivative 8"),
        (lambda: FeedforwardModel(robot, 2, wrench_bodies=["hand"]), "measured wrenches"),
        (lambda: RotorSpec("hand", (0.0, 0.0, 0.0)), "has no direction", ModelError),
    )  # fmt: skip
    leg = Robot.load(share.find("config", "delta.yaml"))
    driven = [DriveSpec(500.0, 0.1, rotor=RotorSpec("base"))] * 3
    refused(lambda: RotorCoupling(leg.with_drives(driven)), "for trees on the ground", ModelError)
