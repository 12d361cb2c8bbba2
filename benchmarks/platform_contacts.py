"""Collisions and clampings of a planar 3-RRR in MuJoCo, found by its encoders and motor currents alone.

Mohammad, Piosik, Lehmann, Seel and Schappler, Fast contact detection via fusion of joint and inertial sensors
for parallel robots in human-robot collaboration (IEEE RA-L 2025, arXiv 2505.08334) find collisions and
clampings of such a robot within 3 to 39 ms, with an inertial sensor on its platform; with encoders and motor
currents alone the same group needs 9 to 58 ms at 0.4 to 0.9 m/s, with gearless drives of little friction
(ICRA 2023, arXiv 2308.09633). Forces and thresholds are not in what is open of both. Here obstacles are as
stiff as parts of the body in ISO/TS 15066, speeds are those of 2308.09633, and thresholds the lowest at which
an observer is silent without contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.contacts import CASES, PERIOD, QUIET, WARM, Contact, Recording, judged
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure
from benchmarks.table import Bound, Row, Section
from hodyn_ros import BaseMotion, Robot, share
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.trajectory import WaypointSpline

_CONTACTS = 12
_EVERY, _LASTS = 0.6, 0.1  # [s] between contacts, and of each at most
_SPEEDS = (0.4, 0.9)  # [m/s] of what is hit, 2308.09633
_STIFFNESS = (10e3, 75e3)  # [N/m] of an abdomen and of a hand, ISO/TS 15066, Table A.3
_STEPS = 5  # of MuJoCo in a sample
_DAMPING = 2e-4  # [s] of the springs
_LARGEST = 0.1  # [N.m] of noise, before an observer is told it
_NOISE = 0.01  # [N.m] of efforts, half a percent of the largest
_LEAST, _MOST = 0.5, 10.0  # [N] of forces that act from one moment on
_BANDWIDTH = 200.0  # [1/s]


def robots() -> dict[str, Robot]:
    """Return the robot with gearless drives, as those of the publications, and with springs."""
    shipped = Robot.load(share.find("config", "planar_3rrr.yaml"))
    rub = FrictionSpec(0.01, 0.03, 0.05)  # little: 1 % of what the drives do
    specs = [replace(spec, motor_friction=rub) for spec in shipped.require_drives().specs]
    gearless = [DriveSpec(np.inf, spec.motor_inertia, motor_friction=rub) for spec in specs]
    return {
        "gearless drives": shipped.with_drives(gearless),
        "drives with springs": shipped.with_drives(specs),
    }


def wrong(robot: Robot, stiffness: float, friction: float) -> Robot:
    """Return a robot whose springs and friction differ by these shares."""
    specs = []
    for spec in robot.require_drives().specs:
        rub = spec.motor_friction
        rubs = replace(rub, viscous=(1 + friction) * rub.viscous, coulomb=(1 + friction) * rub.coulomb)
        if np.isfinite(spec.stiffness):
            spec = replace(
                spec, stiffness=(1 + stiffness) * spec.stiffness, spring_damping=_DAMPING * spec.stiffness
            )
        specs.append(replace(spec, motor_friction=rubs))
    return robot.with_drives(specs)


Points = tuple[tuple[int, Array], ...]  # bodies, and places in their frames


@dataclass(frozen=True, eq=False)
class Touch:
    """A force on the robot: what it is on, and how large at a state of MuJoCo.

    `points`: bodies with places in their frames. One is held up by an obstacle behind which it was when the
    contact began, along `normal`; two are kept from coming nearer than they were. Without a `stiffness` the
    force acts from one moment on, along `normal`.
    """

    points: Points
    start: Array  # (points, 3) places in the world [m]
    normal: Array  # (3,) of length one
    stiffness: float = 0.0  # [N/m]
    force: float = 0.0  # [N]

    def apply(self, data: Any) -> float:
        """Let it act; return the force [N]."""
        data.xfrc_applied[:] = 0.0
        now = places(data, self.points)
        if len(now) == 2:
            across, before = now[1] - now[0], self.start[1] - self.start[0]
            size = self.stiffness * max(0.0, float(np.linalg.norm(before) - np.linalg.norm(across)))
            along = across / np.linalg.norm(across)
            pushes = [-size * along, size * along]
        else:
            depth = float(self.normal @ (now[0] - self.start[0]))
            size = self.force + self.stiffness * max(0.0, depth)
            pushes = [-size * self.normal]
        for (body, _), place, push in zip(self.points, now, pushes):
            data.xfrc_applied[body] = [*push, *np.cross(place - data.xipos[body], push)]
        return size


def places(data: Any, points: Points) -> Array:
    """Return where places of bodies are in the world (points, 3) [m]."""
    return np.array([data.xpos[body] + data.xmat[body].reshape(3, 3) @ place for body, place in points])


def velocities(model: Any, data: Any, points: Points) -> Array:
    """Return how fast they are (points, 3) [m/s]."""
    import mujoco

    found = []
    for (body, _), place in zip(points, places(data, points)):
        translation = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, translation, None, place, body)
        found.append(translation @ data.qvel)
    return np.array(found)


def path_of(duration: float, seed: int) -> WaypointSpline:
    """Return a motion of the tool in x and y through random places, a new one every 0.25 s."""
    random = np.random.default_rng(seed)
    times = 0.25 * np.arange(int(duration / 0.25) + 2, dtype=np.float64)
    places = random.uniform(-0.09, 0.09, (len(times), 2))
    places[0] = 0.0  # where the robot starts
    return WaypointSpline(times, places, order=4)


def references(robot: Robot, contacts: int, seed: int = 1) -> list[Reference]:
    """Return what the motors follow at each sample, while the tool moves through random places.

    For as long as so many contacts of both kinds take.
    """
    count = round((WARM + QUIET + 2.5 * contacts * _EVERY) / PERIOD)
    feedforward, path = FeedforwardModel(robot, 2), path_of(count * PERIOD, seed)
    found, train = [], robot.require_drives()
    for row in path.sample(PERIOD * np.arange(count), 4):
        pose, twists = np.eye(4), np.zeros((4, 6))
        pose[:2, 3], twists[:, 3:5] = row[0], row[1:]
        motion = feedforward.compute(np.zeros((5, 0)), BaseMotion(pose, twists, representation="body_fixed"))
        found.append(motor_reference(FeedforwardMode.ELASTIC, train, motion))
    return found


def recorded(plant: Robot, follow: Sequence[Reference], contacts: int, seed: int = 1) -> Recording:
    """Let a plant follow references, and touch it from `WARM + QUIET` on.

    So many contacts are with obstacles and between links, as many forces at the tool that act from one moment
    on follow.
    """
    import mujoco

    random = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(mjcf(plant).text)
    model.opt.timestep = PERIOD / _STEPS
    data, train = mujoco.MjData(model), plant.require_drives()
    elastic = bool(train.elastic.any())
    names = plant.driven_joints
    links = np.array([model.joint(name).qposadr[0] for name in names])
    rates = np.array([model.joint(name).dofadr[0] for name in names])
    motors, spins = links, rates
    if elastic:
        motors = np.array([model.joint(name + MOTOR).qposadr[0] for name in names])
        spins = np.array([model.joint(name + MOTOR).dofadr[0] for name in names])
    mujoco.mj_resetDataKeyframe(model, data, 0)
    gains = MotorGains.from_frequency(train.motor_inertia, 100.0, 1.0)
    encoder = Encoder(resolution=2.0 * np.pi / 2**20, bandwidth=500.0)
    sensors = Sensors(encoder, encoder, PERIOD, seed)
    quiet, free, lasts = (round(time / PERIOD) for time in (WARM + QUIET, _EVERY - _LASTS, _LASTS))
    rows, found = list[list[Array]](), list[Contact]()
    touch: Touch | None = None
    armed, begin, end, largest = False, 0, 0, 0.0
    for i, reference in enumerate(follow):
        exact = Measurement(data.qpos[links], data.qvel[rates], data.qpos[motors], data.qvel[spins])
        seen = sensors.measure(exact)
        effort = (
            reference.efforts[0]
            + gains.proportional * (reference.positions[0] - seen.motor_position)
            + gains.derivative * (reference.positions[1] - seen.motor_velocity)
        )
        rows.append([*map(np.array, seen), effort + _NOISE * random.standard_normal(len(names))])
        armed = armed or (i >= quiet and i >= end + free)
        if armed and touch is None:
            touch = touched(model, data, names, random, len(found) >= contacts)
            armed = touch is None
            if touch is not None:
                begin, end, largest = i, i + lasts, 0.0
        data.ctrl[:] = effort
        for _ in range(_STEPS):
            if touch is not None:
                largest = max(largest, touch.apply(data))
            mujoco.mj_step(model, data)
        if touch is not None and i + 1 == end:
            touch, data.xfrc_applied[:] = None, 0.0
            found.append(Contact(begin, largest))
            if len(found) == 2 * contacts:
                break
    links_seen, rates_seen, motors_seen, spins_seen, efforts = (np.array(column) for column in zip(*rows))
    return Recording(links_seen, rates_seen, motors_seen, spins_seen, efforts, found)


def touched(model: Any, data: Any, names: tuple[str, ...], random: Any, small: bool) -> Touch | None:
    """Return a contact that may begin now; None where nothing moves as fast as it should."""
    limbs = [name.removesuffix("_shoulder") for name in names]
    limb, kind, stiffness = (
        limbs[random.integers(3)],
        random.integers(3),
        np.exp(random.uniform(*np.log(_STIFFNESS))),
    )
    upper, lower, tool = (model.body(name).id for name in (f"{limb}_body1", f"{limb}_body2", "tool"))
    if small:
        force = float(np.exp(random.uniform(np.log(_LEAST), np.log(_MOST))))
        angle = random.uniform(0.0, 2.0 * np.pi)
        points: Points = ((tool, np.zeros(3)),)
        normal = np.array([np.cos(angle), np.sin(angle), 0.0])
        return Touch(points, places(data, points), normal, force=force)
    reach = random.uniform(0.1, 0.25)
    if kind == 2:  # what is between the links of a limb
        points = ((upper, np.array([0.4 - reach, 0.0, 0.0])), (lower, np.array([reach, 0.0, 0.0])))
    else:
        points = ((tool, np.zeros(3)),) if kind == 0 else ((lower, np.array([0.4 - reach, 0.0, 0.0])),)
    start = places(data, points)
    speeds = velocities(model, data, points)
    velocity = speeds[0] - speeds[-1] if kind == 2 else speeds[0]
    normal = (start[1] - start[0]) / np.linalg.norm(start[1] - start[0]) if kind == 2 else velocity
    speed = float(velocity @ normal) if kind == 2 else float(np.linalg.norm(velocity))
    if not _SPEEDS[0] <= speed <= _SPEEDS[1]:
        return None
    return Touch(points, start, normal / np.linalg.norm(normal), stiffness)


def sensed(robot: Robot) -> Sensed:
    """Return what is measured: encoders at links, and at motors behind springs, and efforts of motors."""
    return Sensed(links=True, motors=bool(robot.require_drives().elastic.any()), motor_efforts=True)


def observed(robot: Robot, run: Recording) -> Array:
    """Return external efforts in deviations (N, n), as of an observer that was told the noise it is in."""
    columns = {
        "position": run.links, "velocity": run.rates, "motor_position": run.motors,
        "motor_velocity": run.motor_rates, "motor_effort": run.efforts,
    }  # fmt: skip
    config = ObserverConfig(
        bandwidth=_BANDWIDTH, smoothing=400.0, held_efforts=True, effort_noise=(_LARGEST,)
    )
    observer = MomentumObserver(robot, config, sensed(robot))
    samples = np.stack([columns[name] for name in observer.rows], axis=1)
    times, quiet = PERIOD * np.arange(len(samples)), round((WARM + QUIET) / PERIOD)
    noise = observer.noise_of(times[: quiet // 2], samples[: quiet // 2])
    observer.config = replace(config, effort_noise=noise)
    signal = np.zeros_like(run.links)
    for i, sample in enumerate(samples):
        result = observer.update(times[i], sample)
        if result is not None:
            signal[i] = result.efforts / result.deviations
    return signal


def measure(stage: Stage) -> Section:
    """Find contacts with both kinds of drives."""
    contacts, cases = (6, CASES[:1]) if stage.quick else (_CONTACTS, CASES)
    kinds = {
        "collisions and clampings": slice(0, contacts),
        "forces of 0.5 to 10 N": slice(contacts, None),
    }
    rows = []
    for k, (name, robot) in enumerate(robots().items()):
        delays: dict[str, list[Array]] = {kind: [] for kind in kinds}
        smallest = []
        stage.say(f"{name}: simulated", 0.5 * k)
        follow = references(robot, contacts)
        for i, case in enumerate(cases):
            stage.say(f"{name}: observed", 0.5 * (k + i / len(cases)))
            run = recorded(wrong(robot, *case), follow, contacts)
            signal = observed(robot, run)
            for kind, chosen in kinds.items():
                found = judged(replace(run, contacts=run.contacts[chosen]), signal, _LASTS)
                delays[kind].append(found.delays)
            smallest.append(found.smallest)
        for kind, parts in delays.items():
            all_delays = np.concatenate(parts)
            found_of_all = int(np.isfinite(all_delays).sum())
            spread = Figure(
                *(1e3 * float(np.quantile(all_delays, q, method="lower")) for q in (0.5, 0.1, 0.9))
            )
            rows.append(Row(f"{name}: median delay", kind, spread, must=Bound(39.0), unit="ms"))
            rows.append(
                Row(f"{name}: found in 0.1 s", kind, Figure.exact(found_of_all), unit=f"of {len(all_delays)}")
            )
        low, high = min(smallest), max(smallest)
        rows.append(
            Row(
                f"{name}: smallest force at the tool that is found in 10 ms",
                "",
                Figure(high, low, high),
                unit="N",
            )
        )
    each = contacts * len(cases)
    title = f"{each} contacts of each kind with a planar 3-RRR in MuJoCo, springs and friction 20 % off"
    return Section(title, rows)
