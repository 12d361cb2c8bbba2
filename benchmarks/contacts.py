"""Contacts at random with an elastic Panda in MuJoCo: how soon, and how small a force is found.

The plant has springs and friction that differ by 20 % from what all observers are told, dry friction where
they know a smooth law, encoders with steps, velocities by filtered differences, and efforts with noise. Each
observer has for each joint the lowest threshold at which it stays silent for as long as nothing touches the
robot, and of all gains the one that suits it best.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compiled_loop import compiled_call
from benchmarks.peers.external_forces import PEERS, Peer, Terms
from benchmarks.plans import panda
from benchmarks.stage import Stage
from benchmarks.stopwatch import Array, Figure, python_call
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot
from hodyn_ros.codegen.kernel import Kernel
from hodyn_ros.control.measurement import Measurement
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.engine.kernels import inverse_dynamics
from hodyn_ros.export.mjcf import MOTOR, mjcf
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.effort_check import EffortCheck
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer
from hodyn_ros.guard.measured_motion import MeasuredMotion
from hodyn_ros.model.drive_spec import FrictionSpec
from hodyn_ros.observers import MomentumObserver, ObserverConfig, Sensed
from hodyn_ros.simulation.sensors import Encoder, Sensors
from hodyn_ros.trajectory import WaypointSpline

PERIOD = 1e-3  # [s] of a sample
CASES = tuple((stiffness, friction) for stiffness in (-0.2, 0.2) for friction in (-0.2, 0.2))
WARM, QUIET = 4.0, 16.0  # [s] in which observers come to know, and from then on without contacts
_CONTACTS = 60
_STEPS = 5  # of MuJoCo in a sample
_EVERY, _LASTS = 0.4, 0.06  # [s] between contacts, and of each
DAMPING = 2e-4  # [s] of the springs
_GAINS = (50.0, 200.0, 400.0)  # [1/s]
_WITHIN = 0.010  # [s]
_PANDA = "panda_exciting_trajectory.db3"
_COARSE = GuardConfig(measurement_timeout=0.5, resolution=0.05)  # as of nodes that take joint_states
_MEASURED = Sensed(links=True, motors=True, motor_efforts=True)


@dataclass(frozen=True)
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
    """Return the Panda with friction of its motors: Coulomb of 4 % of the effort limits, viscous alike."""
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
        stiff, damping = (1 + stiffness) * spec.stiffness, DAMPING * spec.stiffness
        specs.append(replace(spec, stiffness=stiff, motor_friction=rubs, spring_damping=damping))
    return robot.with_drives(specs)


def motion(robot: Robot, duration: float, seed: int) -> WaypointSpline:
    """Return a motion through random points, a new one every 0.8 s."""
    random = np.random.default_rng(seed)
    lower, upper = robot.limits.position_lower, robot.limits.position_upper
    times = 0.8 * np.arange(int(duration / 0.8) + 2, dtype=np.float64)
    shares = 0.5 + 0.1 * random.uniform(-1.0, 1.0, (len(times), len(lower)))
    path = WaypointSpline(times, lower + shares * (upper - lower), order=6)
    positions = path.sample(np.arange(0.0, duration, 0.01), 0)[:, 0]
    margin = 0.05 * (upper - lower)
    if (positions < lower + margin).any() or (positions > upper - margin).any():
        raise ValueError(f"the motion of seed {seed} comes near the ends of joints, whose stops are contacts")
    return path


def recorded(
    robot: Robot,
    plant: Robot,
    contacts: int = _CONTACTS,
    seed: int = 1,
    lasts: float = WARM + QUIET,
    *,
    explicit: bool = False,
) -> Recording:
    """Let a plant move under the feedforward and feedback of a robot for a time [s], and then touch it.

    `explicit`: by Runge and Kutta's method. The implicit one, which is faster, adds half of what the damping
    of a spring gives in a step to the inertia of its joint, 1e-4 kg m^2.
    """
    import mujoco

    random = np.random.default_rng(seed)
    quiet, every = round(lasts / PERIOD), round(_EVERY / PERIOD)
    count = quiet + every * contacts
    path = motion(robot, count * PERIOD, seed)
    model = mujoco.MjModel.from_xml_string(mjcf(plant).text)
    methods, steps = mujoco.mjtIntegrator, 2 if explicit else _STEPS
    model.opt.timestep = PERIOD / steps
    model.opt.integrator = methods.mjINT_RK4 if explicit else methods.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    joints, motors = (
        np.array([model.joint(name + end).qposadr[0] for name in robot.joint_names]) for end in ("", MOTOR)
    )
    feedforward, train = FeedforwardModel(robot, 2), robot.require_drives()
    gains = MotorGains.from_frequency(train.motor_inertia, 30.0, 1.0)
    encoder = Encoder(resolution=2.0 * np.pi / 2**20, bandwidth=500.0)
    sensors = Sensors(encoder, encoder, PERIOD, seed)
    limit = robot.limits.effort
    noise = 0.002 * limit

    wanted = path.sample(PERIOD * np.arange(count), 4)

    def reference(i: int) -> Reference:
        return motor_reference(FeedforwardMode.ELASTIC, train, feedforward.compute(wanted[i]))

    data.qpos[joints], data.qpos[motors] = wanted[0, 0], reference(0).positions[0]
    rows, found, end = [], [], -1
    for i in range(count):
        exact = Measurement(data.qpos[joints], data.qvel[joints], data.qpos[motors], data.qvel[motors])
        seen, follow = sensors.measure(exact), reference(i)
        effort = (
            follow.efforts[0]
            + gains.proportional * (follow.positions[0] - seen.motor_position)
            + gains.derivative * (follow.positions[1] - seen.motor_velocity)
        )
        effort = np.clip(effort, -limit, limit)
        rows.append([*map(np.array, seen), effort + noise * random.standard_normal(len(noise))])
        if i >= quiet and (i - quiet) % every == 100:
            force = float(np.exp(random.uniform(np.log(5.0), np.log(100.0))))
            direction, lever = random.standard_normal(3), 0.1 * random.standard_normal(3)
            body = model.body(robot.tree.body_names[int(random.integers(2, 7))]).id
            push = force * direction / np.linalg.norm(direction)
            data.xfrc_applied[body] = [*push, *np.cross(lever, push)]
            found.append(Contact(i, force))
            end = i + round(_LASTS / PERIOD)
        if i == end:
            data.xfrc_applied[:] = 0.0
        data.ctrl[:] = effort
        mujoco.mj_step(model, data, steps)
    links, rates, motor_positions, motor_rates, efforts = (np.array(column) for column in zip(*rows))
    return Recording(links, rates, motor_positions, motor_rates, efforts, found)


@dataclass(frozen=True)
class Found:
    """How well contacts are found."""

    smallest: float  # [N], median over places and postures, that is found in 10 ms
    delays: Array  # [s] of the contacts; infinite where none is found while it lasts

    @property
    def delay(self) -> float:
        """The median delay [s]."""
        return float(np.median(self.delays))

    @property
    def missed(self) -> float:
        """The share of contacts that are not found while they last."""
        return float(np.isinf(self.delays).mean())


def ratios(signal: Array) -> Array:
    """Return the largest ratio (N,) of external efforts (N, n) to what they come to without a contact."""
    first, last = round(WARM / PERIOD), round((WARM + QUIET) / PERIOD)
    largest: Array = (np.abs(signal) / np.abs(signal[first:last]).max(axis=0)).max(axis=1)
    return largest


def judged(run: Recording, signal: Array, lasts: float = _LASTS) -> Found:
    """Judge what an observer said (N, n), by the thresholds at which it was silent without contacts.

    `lasts`: time [s] in which contacts are to be found.
    """
    ratio, needed, delays = ratios(signal), [], []
    for contact in run.contacts:
        begin = contact.sample + 1  # the first sample that can show it
        window = ratio[begin : begin + round(lasts / PERIOD)]
        silent = bool(ratio[begin - 1] <= 1.0)  # else what it says then is of the contact before
        needed.append(contact.force / window[: round(_WITHIN / PERIOD)].max() if silent else np.inf)
        over = np.flatnonzero(window > 1.0)
        delays.append((over[0] + 1) * PERIOD if silent and len(over) else np.inf)
    return Found(float(np.median(needed)), np.array(delays))


def samples_of(run: Recording) -> Array:
    """Return the samples (N, rows, n) of an observer."""
    return np.stack([run.links, run.rates, run.motors, run.motor_rates, run.efforts], axis=1)


def ours(robot: Robot, run: Recording, gain: float, **settings: Any) -> Array:
    """Return external efforts in deviations (N, n)."""
    config = ObserverConfig(bandwidth=gain, held_efforts=True, **settings)
    observer = MomentumObserver(robot, config, _MEASURED)
    signal = np.zeros_like(run.links)
    for i, sample in enumerate(samples_of(run)):
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
            pairs = zip(train.drives, run.motor_rates[i])
            rub = [drive.motor_friction.torque(np.array([rate]))[0] for drive, rate in pairs]
            torque = run.efforts[max(i - 1, 0)] - np.array(rub)
        found.append(Terms(mass, matrices.coriolis[0], matrices.gravity[0], torque, v))
    return found


def theirs(terms: Sequence[Terms], make: Callable[[float, float], Peer], gain: float) -> Array:
    """Return external efforts (N, n) of a peer."""
    peer = make(gain, PERIOD)
    return np.array([peer.update(at) for at in terms])


def best(run: Recording, signal: Callable[[float], Array], gains: Sequence[float]) -> Found:
    """Return what is found with the best of all gains."""
    return min((judged(run, signal(gain)) for gain in gains), key=lambda found: found.smallest)


def measure(stage: Stage) -> Section:
    """Compare what is found by whom, and what an update costs."""
    robot = robot_with_friction()
    cases, gains = (CASES[:1], _GAINS[1:2]) if stage.quick else (CASES, _GAINS)
    smallest: dict[str, list[float]] = {name: [] for name in PEERS}
    sooner: list[float] = []
    forces, missed = [], []
    for i, case in enumerate(cases):
        stage.say("contacts: simulated", i / len(cases))
        run = recorded(robot, wrong(robot, *case), 20 if stage.quick else _CONTACTS)
        stage.say("contacts: observed", (i + 0.3) / len(cases))
        us = best(run, lambda gain, run=run: ours(robot, run, gain, smoothing=400.0), gains)  # type: ignore[misc]
        forces.append(us.smallest)
        missed.append(us.missed)
        torques = [terms_of(robot, run, spring=spring) for spring in (True, False)]
        delays = []
        for name, make in PEERS.items():
            them = min(
                (best(run, lambda gain, t=t, m=make: theirs(t, m, gain), gains) for t in torques),  # type: ignore[misc]
                key=lambda found: found.smallest,
            )
            smallest[name].append(us.smallest / them.smallest)
            delays.append(float(np.mean(np.minimum(them.delays, _LASTS))))
        sooner.append(float(np.mean(np.minimum(us.delays, _LASTS))) / min(delays))
    rows = [
        Row("smallest force found in 10 ms, worst case", name, _spread(found), must=Bound(0.5))
        for name, found in smallest.items()
    ]
    rows += [
        Row("mean delay, what is missed counts as 60 ms", "the best of these", _spread(sooner)),
        Row("smallest force found in 10 ms, median place", "", _spread(forces), unit="N"),
        Row("contacts of 5 to 100 N that are missed", "", _spread([100.0 * one for one in missed]), unit="%"),
    ]
    title = f"contacts with an elastic Panda in MuJoCo, springs and friction 20 % off, {len(cases)} cases"
    return Section(title, [*rows, *_alarms(), *_times(stage)])


def _spread(values: Sequence[float]) -> Figure:
    """Return the worst of all, and the range."""
    return Figure(max(values), min(values), max(values))


def _alarms() -> list[Row]:
    """Return how near a recording without contacts comes to an alarm of the observer, and to a stop.

    24 s of a real Panda by another laboratory at 30 Hz, with its torque sensors, a bag of
    github.com/unisa-acg/inverse-dynamics-solver (Apache-2.0), where the variable RECORDINGS names a folder
    with it. By the shipped panda.yaml, which knows no friction. The guard believes no velocities, and takes
    those between samples; some of these repeat the one before under a new stamp, which no robot in motion
    does.
    """
    path = Path(os.environ.get("RECORDINGS", "")) / _PANDA
    if not path.is_file():
        return [Row("a recorded Panda without contacts", "", None, note=f"RECORDINGS has no {_PANDA}")]
    times, samples = _recorded_panda(path)
    robot = panda()
    measured = Sensed(links=True, joint_torques=True)
    observer = MomentumObserver(robot, ObserverConfig(longest_gap=0.1), measured)
    ratios = [found.largest for found in map(observer.update, times.tolist(), samples) if found is not None]
    repeated = np.array([False, *(samples[1:, :2] == samples[:-1, :2]).all(axis=(1, 2))])
    as_recorded, sound = (
        _share_of_a_stop(robot, times[chosen], samples[chosen]) for chosen in (slice(None), ~repeated)
    )
    return [
        Row("a recorded Panda without contacts: largest effort, in deviations", "", Figure.exact(max(ratios)),
            must=Bound(observer.config.threshold)),
        Row("the same to the guard, as a share of what stops it", "", Figure.exact(sound), must=Bound(1.0)),
        Row(f"the same with {int(repeated.sum())} samples that repeat the one before", "",
            Figure.exact(as_recorded)),
    ]  # fmt: skip


def _share_of_a_stop(robot: Robot, times: Array, samples: Array) -> float:
    """Return the largest effort that acts besides, as a share of what the guard stops a robot for."""
    names, stops = robot.joint_names, []
    model = effort_model(robot, names, motor=False)
    assert model is not None
    observer = effort_observer(robot, names, model.links, motor=False, at_links=True)
    check = EffortCheck(observer, robot.limits.velocity)
    motion = MeasuredMotion(names, _COARSE, robot.limits.velocity)
    for time, (position, velocity, torque) in zip(times.tolist(), samples):
        now = 1 + round(1e9 * time)
        motion.take(now, now, position, velocity)
        check.update(now, motion.position, motion.rate, torque)
        stops.append(float((np.abs(check.value) / check.allowed).max()))
    return max(stops)


def _recorded_panda(path: Path) -> tuple[Array, Array]:
    """Return times (N,) [s], and positions, velocities and joint torques (N, 3, n) of a bag."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    with sqlite3.connect(path) as bag:
        found = bag.execute("SELECT timestamp, data FROM messages ORDER BY timestamp").fetchall()
    said = [store.deserialize_cdr(data, "sensor_msgs/msg/JointState") for _, data in found]
    times = 1e-9 * np.array([time for time, _ in found], dtype=np.float64)
    return times, np.array([[one.position, one.velocity, one.effort] for one in said])  # type: ignore[attr-defined]


def _times(stage: Stage) -> list[Row]:
    """Return what an update costs, from Python and in compiled code."""
    rows = []
    for kind, robot in (("no friction", panda()), ("friction", robot_with_friction())):
        observer = MomentumObserver(robot, ObserverConfig(), _MEASURED)
        q = np.zeros((3, 7))
        q[0] = 0.5 * (robot.limits.position_lower + robot.limits.position_upper)
        sample = observer.sample(
            position=q[0], velocity=q[1], motor_position=q[0], motor_velocity=q[1], motor_effort=q[1]
        )
        robot.inverse_dynamics(q)  # compiles
        clock = count(PERIOD, PERIOD)
        spaces = {"robot": robot, "q": q, "observer": observer, "sample": sample, "clock": clock}
        kernel, dynamics = Kernel(*observer.trace()), inverse_dynamics(robot.tree, 0)
        memory, figures = observer._memory, observer._figures
        period = np.full((1, 1), PERIOD)
        arguments = [sample, period, memory, figures]
        contenders = [
            python_call("update", "observer.update(next(clock), sample)", spaces),
            python_call("inverse dynamics", "robot.inverse_dynamics(q)", spaces),
            _compiled("update in C", kernel, arguments),
            _compiled("inverse dynamics in C", dynamics, [q]),
        ]
        times = stage.race(f"observer, {kind}", contenders)
        for here, place in (("", "from Python"), (" in C", "in compiled code")):
            rows.append(
                Row(
                    f"an update {place}, drives with {kind}",
                    "the robot's inverse dynamics",
                    times.ratio(f"update{here}", f"inverse dynamics{here}"),
                    ours=times.seconds(f"update{here}").median,
                    theirs=times.seconds(f"inverse dynamics{here}").median,
                    must=None if here else Bound(3.0),
                )
            )
    return rows


def _compiled(name: str, kernel: Any, arguments: Sequence[Array]) -> Any:
    stacks = [np.ascontiguousarray(np.broadcast_to(array, (64, *array.shape))) for array in arguments]
    return compiled_call(name, [kernel.code.address], stacks, np.zeros((64, *kernel.result)), kernel)


def draw(path: Path, case: tuple[float, float] = (-0.2, 0.2)) -> None:
    """Draw what observers say of some contacts, in shares of their thresholds."""
    from matplotlib.figure import Figure as Picture

    from hodyn_ros.pictures import legend_below, plain, save_picture

    robot = robot_with_friction()
    run = recorded(robot, wrong(robot, *case), 12)
    found = {"this observer": ratios(ours(robot, run, 200.0, smoothing=400.0))}
    for name, kind in (("momentum, motor torque", False), ("momentum, spring torque", True)):
        terms = terms_of(robot, run, spring=kind)
        found[name] = ratios(theirs(terms, PEERS["ext_observer, momentum"], 200.0))
    picture = Picture(figsize=(10.5, 5.0), layout="constrained")
    above, ax = picture.subplots(2, 1, sharex=True, height_ratios=(1, 4))
    begin, end = run.contacts[0].sample - 200, run.contacts[8].sample - 100
    times, force = PERIOD * np.arange(end - begin), np.zeros(len(run.links))
    for contact in run.contacts:
        force[contact.sample : contact.sample + round(_LASTS / PERIOD)] = contact.force
    above.fill_between(times, force[begin:end], color="black", alpha=0.25, linewidth=0.0)
    above.set_ylabel("force [N]")
    lines = []
    for ratio, colour in zip(found.values(), ("#0077BB", "#EE7733", "#CC3311"), strict=True):
        lines += ax.semilogy(times, ratio[begin:end], color=colour, linewidth=1.2)
    lines.append(ax.axhline(1.0, color="black", linewidth=0.8))
    ax.set_ylim(0.05, 300.0)
    ax.set_ylabel("largest effort over its threshold")
    ax.set_xlabel("time [s]")
    for axes in (above, ax):
        plain(axes)
    legend_below(picture, lines, [*found, "what it comes to in 16 s without contact"])
    picture.suptitle("Contacts with a Panda, springs 20 % softer and friction 20 % higher than known")
    save_picture(picture, path)


if __name__ == "__main__":
    draw(Path("docs/pictures/contacts.png"))
