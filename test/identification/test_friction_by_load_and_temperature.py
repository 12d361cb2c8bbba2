"""Friction that grows with the load and falls with the temperature, of an arm that is written here."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from measured_plants import ElasticPlant
from refusals import assert_refused, refused

from hodyn_ros import Robot
from hodyn_ros.array import Array
from hodyn_ros.identification import Channel, Identified, JointRecording, Options, identify
from hodyn_ros.identification.robot_file import robot_text
from hodyn_ros.identification.validation import validate
from hodyn_ros.model.drive_spec import FrictionSpec

pytestmark = pytest.mark.thorough

VISCOUS, COULOMB = np.array([5.0, 3.0]), np.array([6.0, 4.0])  # at 30 °C
BY_LOAD, FALLS = np.array([0.05, 0.12]), np.array([0.02, 0.03])  # [1/K]
STEP, RATE, LASTS = 2e-4, 250.0, 4.0


def links(t: Array) -> Array:
    """Return positions of the links with four derivatives (5, N, 2)."""
    k = 1.1 * np.arange(1, 5)
    waves = np.random.default_rng(4).uniform(-0.25, 0.25, (4, 2, 2)) @ [1.0, 1.0j]
    rows = [np.real(np.exp(1j * np.outer(t, k)) @ ((1j * k[:, None]) ** order * waves)) for order in range(5)]
    rows[0] += [0.6, 0.4]
    return np.stack(rows)


def gears(t: Array) -> tuple[Array, Array, Array]:
    """Return positions, loads and motor positions (N, 2) of a planar arm: its links move as they say."""
    q, v, a = links(t)[:3]
    (_, m1, (c1, *_), (_, i1, _)), (_, m2, (c2, *_), (_, i2, _)) = ElasticPlant.bodies
    b, h = m2 * 0.5 * c2 * np.cos(q[:, 1]), -m2 * 0.5 * c2 * np.sin(q[:, 1])
    d, second = i2 + m2 * c2**2, 9.81 * m2 * c2 * np.cos(q.sum(axis=1))
    first = i1 + m1 * c1**2 + m2 * 0.25 + d + 2.0 * b
    lift = first * a[:, 0] + (d + b) * a[:, 1] + h * (2.0 * v[:, 0] + v[:, 1]) * v[:, 1]
    bend = (d + b) * a[:, 0] + d * a[:, 1] - h * v[:, 0] ** 2
    loads = np.stack([lift + 9.81 * (m1 * c1 + m2 * 0.5) * np.cos(q[:, 0]) + second, bend + second], axis=1)
    return q, loads, q + loads / ElasticPlant.stiffness


def recording(temperatures: tuple[float, float], seed: int, source: str = "run") -> JointRecording:
    """Return what sensors see while the gears get from one temperature [°C] to another."""
    t = STEP * np.arange(round(LASTS / STEP))
    q, loads, motors = gears(t)
    speeds = np.gradient(motors, STEP, axis=0, edge_order=2)
    warmth = np.linspace(*temperatures, len(t))[:, None] * np.ones(2)
    friction = VISCOUS * np.exp(-FALLS * (warmth - 30.0)) * speeds
    friction += (COULOMB + BY_LOAD * (np.hypot(loads, 1.0) - 1.0)) * speeds / np.hypot(speeds, 0.01)
    inertia = ElasticPlant.drives.inertia * np.gradient(speeds, STEP, axis=0, edge_order=2)
    every, random = round(1.0 / RATE / STEP), np.random.default_rng(seed)
    chosen = slice(50, -50, every)
    times = t[chosen]

    def seen(values: Array, noise: float) -> Channel:
        return Channel(times, values[chosen] + noise * random.standard_normal(values[chosen].shape))

    efforts = seen(inertia + loads + friction, 0.1)
    return JointRecording(
        source, ElasticPlant.names, efforts, seen(motors, 5e-6), seen(q, 5e-6),
        temperatures=Channel(times, warmth[chosen]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    return ElasticPlant().robot(tmp_path_factory.mktemp("arm"))


@pytest.fixture(scope="module")
def found(robot: Robot) -> Identified:
    runs = [recording((20.0, 22.0), 1, "cold"), recording((38.0, 41.0), 2, "warm")]
    return identify(robot, runs, Options(bandwidth=12.0, friction=("load", "temperature")))


def test_both_come_out_as_they_are(found: Identified) -> None:
    assert found.temperatures is not None
    at = np.exp(-FALLS * (found.temperatures - 30.0))
    for j, name in enumerate(ElasticPlant.names):
        for what, true in (
            ("Coulomb friction by load of", BY_LOAD[j]),
            ("viscous friction by temperature of", -FALLS[j] * at[j] * VISCOUS[j]),
            ("viscous friction of", at[j] * VISCOUS[j]),
        ):
            figure = found.figure(f"{what} {name}")
            assert figure.identified
            assert abs(figure.value - true) < 4.0 * figure.deviation + 0.01 * abs(true), figure
            assert figure.deviation < 0.1 * abs(true), figure


def test_the_file_has_them_and_feedforward_uses_them(found: Identified, tmp_path: Path) -> None:
    """At another temperature than those of the recordings, against efforts of the plant itself."""
    text = robot_text(found)
    drive = yaml.safe_load(text)["joints"][0]["drive"]
    assert drive["motor_friction"]["load"]["value"] == pytest.approx(BY_LOAD[0], rel=0.1)
    data = yaml.safe_load(text)
    for joint in data["joints"]:
        joint["drive"]["temperature"] = 55.0
    (tmp_path / "hot.yaml").write_text(yaml.safe_dump(data))
    (tmp_path / "asis.yaml").write_text(text)
    t = 1.0 + STEP * np.arange(20_000)
    _, loads, motors = gears(t)
    speeds = np.gradient(motors, STEP, axis=0, edge_order=2)
    falls = np.exp(-FALLS * 25.0)
    true = ElasticPlant.drives.inertia * np.gradient(speeds, STEP, axis=0, edge_order=2) + loads
    true += VISCOUS * falls * speeds + (COULOMB + BY_LOAD * (np.hypot(loads, 1.0) - 1.0)) * speeds / np.hypot(
        speeds, 0.01
    )
    left = {}
    for name in ("hot", "asis"):
        model = Robot.load(tmp_path / f"{name}.yaml")
        jets = np.ascontiguousarray(links(t)[:, 10:-10:20].swapaxes(0, 1))
        efforts = model.require_drives().feedforward(jets, model.inverse_dynamics(jets)).effort[:, 0]
        left[name] = np.sqrt(np.mean((efforts - true[10:-10:20]) ** 2))
    assert left["hot"] < 0.15 < 0.5 * left["asis"]


def test_another_recording_is_predicted(found: Identified, robot: Robot) -> None:
    for fit in validate(found, robot, recording((52.0, 55.0), 3, "hot"))[0]:
        assert fit.rms < 0.15  # of which 0.1 are noise; 20 K of viscous friction alone are more


def test_what_tells_nothing_is_refused(robot: Robot) -> None:
    run = recording((30.0, 30.5), 1)
    bare = JointRecording("bare", run.joint_names, run.efforts, run.motors, run.links)
    assert_refused(
        (lambda: identify(robot, run, Options(friction=("temperature",))), "within 0.5 K"),
        (lambda: identify(robot, bare, Options(friction=("temperature",))), "bare has no temperatures"),
    )


def test_friction_of_the_file_that_is_not_sought_would_count_twice(robot: Robot) -> None:
    specs = [
        replace(spec, motor_friction=FrictionSpec(5.0, 6.0, load=0.05))
        for spec in robot.require_drives().specs
    ]
    drives = robot.with_drives(specs)
    refused(
        lambda: identify(drives, recording((30.0, 30.5), 1)), "has load, ... ask for it (--friction load)"
    )
