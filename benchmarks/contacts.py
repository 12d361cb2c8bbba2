"""Contacts at random with an elastic Panda in MuJoCo: how soon, and how small a force is found.

The plant has springs and friction that differ by 20 % from what all observers are told, encoders with steps,
velocities by filtered differences, and efforts with noise. Each observer has for each joint the lowest
threshold at which it stays silent for as long as nothing touches the robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.peers.external_forces import PEERS, Peer, Terms
from benchmarks.plans import panda
from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.trajectory import WaypointSpline

PERIOD = 1e-3  # [s] of a sample
_STEPS = 5  # of MuJoCo in a sample
_WARM = 4.0  # [s] in which observers come to know
_QUIET = 16.0  # [s] from then on without contacts, which thresholds are taken from
_EVERY, _LASTS = 0.4, 0.06  # [s] between contacts, and of each
_DAMPING = 2e-4  # [s] of the springs
GAINS = (25.0, 50.0, 100.0, 200.0, 400.0)  # [1/s] that all are tried with


@dataclass(frozen=True, eq=False)
class Contact:
    """What touches the robot."""

    sample: int  # at which it begins
    force: float  # [N]


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured (N, n) each, every `PERIOD`, and the contacts there were."""

    links: Array
    rates: Array
    motors: Array
    motor_rates: Array
    efforts: Array
    contacts: list[Contact]


def robot_with_friction() -> Robot:
    """Return the Panda with friction of its motors: Coulomb of 4 % of the effort limits, and as much viscous."""
    robot = panda()
    specs = [
        replace(spec, motor_friction=FrictionSpec(0.04 * limit, 0.04 * limit, 0.02))
        for spec, limit in zip(robot.require_drives().specs, robot.limits.effort.tolist())
    ]
    return robot.with_drives(specs)


def wrong(robot: Robot, stiffness: float, friction: float) -> Robot:
    """Return a robot whose springs and friction differ by these shares."""
    specs = []
    for spec in robot.require_drives().specs:
        rub = spec.motor_friction
        rubs = replace(rub, viscous=(1 + friction) * rub.viscous, coulomb=(1 + friction) * rub.coulomb)
        stiff = (1 + stiffness) * spec.stiffness
        specs.append(
            replace(spec, stiffness=stiff, motor_friction=rubs, spring_damping=_DAMPING * spec.stiffness)
        )
    return robot.with_drives(specs)


def motion(robot: Robot, duration: float, seed: int) -> WaypointSpline:
    """Return a motion through random points, a new one every 0.8 s."""
    random = np.random.default_rng(seed)
    lower, upper = robot.limits.position_lower, robot.limits.position_upper
    count = int(duration / 0.8) + 2
    shares = 0.5 + 0.16 * random.uniform(-1.0, 1.0, (count, len(lower)))
    return WaypointSpline(0.8 * np.arange(count), lower + shares * (upper - lower), order=6)


def recorded(robot: Robot, plant: Robot, contacts: int, seed: int) -> Recording:
    """Let a plant move under the feedforward and feedback of a robot, and touch it."""
    import mujoco

    random = np.random.default_rng(seed)
    quiet = round((_WARM + _QUIET) / PERIOD)
    count = quiet + round(_EVERY / PERIOD) * contacts
    path = motion(robot, count * PERIOD, seed)
    model = mujoco.MjModel.from_xml_string(mjcf(plant).text)
    model.opt.timestep, model.opt.integrator = PERIOD / _STEPS, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    joints, motors = (
        np.array([model.joint(name + end).qposadr[0] for name in robot.joint_names]) for end in ("", MOTOR)
    )
    feedforward, train = FeedforwardModel(robot, 2), robot.require_drives()
    gains = MotorGains.from_frequency(train.motor_inertia, 30.0, 1.0)
    encoder = Encoder(resolution=2.0 * np.pi / 2**20, bandwidth=500.0)
    sensors = Sensors(encoder, encoder, PERIOD, seed)
    noise = 0.002 * robot.limits.effort

    def reference(time: float) -> Reference:
        return motor_reference(FeedforwardMode.ELASTIC, train, feedforward.compute(path.sample(time, 4)))

    start = reference(0.0)
    data.qpos[joints], data.qpos[motors] = path.sample(0.0, 0)[0], start.positions[0]
    columns: list[list[Array]] = [[] for _ in range(5)]
    found, end, acting = [], -1, 0
    from hodyn_ros.control.measurement import Measurement

    for i in range(count):
        exact = Measurement(data.qpos[joints], data.qvel[joints], data.qpos[motors], data.qvel[motors])
        seen = sensors.measure(exact)
        follow = reference(i * PERIOD)
        effort = (
            follow.efforts[0]
            + gains.proportional * (follow.positions[0] - seen.motor_position)
            + gains.derivative * (follow.positions[1] - seen.motor_velocity)
        )
        for column, value in zip(columns, (*seen, effort + noise * random.standard_normal(len(noise)))):
            column.append(np.array(value))
        if i >= quiet and (i - quiet) % round(_EVERY / PERIOD) == 100:
            force = float(np.exp(random.uniform(np.log(5.0), np.log(100.0))))
            direction = random.standard_normal(3)
            acting = int(random.integers(2, 7))
            body = model.body(robot.tree.body_names[acting]).id
            lever = 0.1 * random.standard_normal(3)
            push = force * direction / np.linalg.norm(direction)
            data.xfrc_applied[body] = [*push, *np.cross(lever, push)]
            found.append(Contact(i, force))
            end = i + round(_LASTS / PERIOD)
        if i == end:
            data.xfrc_applied[:] = 0.0
        data.ctrl[:] = effort
        mujoco.mj_step(model, data, _STEPS)
    return Recording(*(np.array(column) for column in columns), found)


@dataclass(frozen=True)
class Found:
    """How well contacts are found."""

    smallest: float  # [N], median over places and postures, that is found in 10 ms
    delays: Array  # [s] of the contacts; infinite where none is found while it lasts

    def delay(self) -> float:
        """Return the median delay [s]."""
        return float(np.median(self.delays))


def judged(run: Recording, signal: Array) -> Found:
    """Judge what an observer said (N, n), by the thresholds at which it was silent without contacts."""
    first, last = round(_WARM / PERIOD), round((_WARM + _QUIET) / PERIOD)
    largest = np.abs(signal[first:last]).max(axis=0)
    ratio = (np.abs(signal) / largest).max(axis=1)
    needed, delays = [], []
    for contact in run.contacts:
        begin = contact.sample + 1  # the next sample is the first that may show it
        window = ratio[begin : begin + round(_LASTS / PERIOD)]
        needed.append(contact.force / window[: round(0.010 / PERIOD)].max())
        over = np.flatnonzero(window > 1.0)
        delays.append((over[0] + 1) * PERIOD if len(over) else np.inf)
    return Found(float(np.median(needed)), np.array(delays))


def ours(robot: Robot, run: Recording, gain: float, **settings: object) -> Array:
    """Return external efforts in deviations (N, n)."""
    config = ObserverConfig(bandwidth=gain, held_efforts=True, friction_deviation=0.2, **settings)
    observer = MomentumObserver(robot, config, Sensed(links=True, motors=True, motor_efforts=True))
    signal = np.zeros_like(run.links)
    samples = np.stack([run.links, run.rates, run.motors, run.motor_rates, run.efforts], axis=1)
    for i, sample in enumerate(samples):
        result = observer.update(i * PERIOD, sample)
        if result is not None:
            signal[i] = result.efforts / result.deviations
    return signal


def terms_of(robot: Robot, run: Recording, *, spring: bool) -> list[Terms]:
    """Return what peers take: with the torque of springs, or that of motors that move with their links."""
    train, found = robot.require_drives(), []
    for i in range(len(run.links)):
        q, v = run.links[i], run.rates[i]
        matrices = robot.dynamic_matrices(np.stack([q, v]))
        mass = matrices.mass[0]
        if spring:
            torque = train.stiffness * (run.motors[i] - q)
        else:
            mass = mass + np.diag(train.motor_inertia)
            rub = [
                d.motor_friction.torque(np.array([w]))[0] for d, w in zip(train.drives, run.motor_rates[i])
            ]
            torque = run.efforts[max(i - 1, 0)] - np.array(rub)
        found.append(Terms(mass, matrices.coriolis[0], matrices.gravity[0], torque, v))
    return found


def theirs(terms: Sequence[Terms], make: Callable[[float, float], Peer], gain: float) -> Array:
    """Return external efforts (N, n) of a peer."""
    peer = make(gain, PERIOD)
    return np.array([peer.update(at) for at in terms])


CASES = tuple((s, f) for s in (-0.2, 0.2) for f in (-0.2, 0.2))

if __name__ == "__main__":
    import sys, time

    model = robot_with_friction()
    for case in CASES[: int(sys.argv[1]) if len(sys.argv) > 1 else 4]:
        t0 = time.time()
        run = recorded(model, wrong(model, *case), 60, 1)
        print(case, "simulated", round(time.time() - t0, 1))
        for settings in ({}, {"adapt_drives": False}, {"adapt_drives": True, "smoothing": 400.0}):
            for gain in GAINS:
                f = judged(run, ours(model, run, gain, **settings))
                print("  ours", settings, gain, round(f.smallest, 1), 1e3 * f.delay(), np.isinf(f.delays).mean())
        for spring in (True, False):
            terms = terms_of(model, run, spring=spring)
            for name, make in PEERS.items():
                for gain in GAINS:
                    f = judged(run, theirs(terms, make, gain))
                    print("  ", name, "spring" if spring else "motor", gain, round(f.smallest, 1), 1e3 * f.delay(), np.isinf(f.delays).mean())
