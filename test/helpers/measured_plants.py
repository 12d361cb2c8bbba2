"""Three arms in closed loop that are simulated apart from the package, and what their sensors see.

The equations of the first and the third are those of a textbook, integrated by Runge and Kutta's method of
order 4; the second is MuJoCo's, with spring tendons and friction that sticks. Controllers hold their efforts
from sample to sample, encoders count in steps, stamps jitter, and efforts and links are stamped late.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np

from hodyn_ros import Robot
from hodyn_ros.identification import Channel, Identified, JointRecording
from hodyn_ros.identification.torque_model import TorqueModel
from hodyn_ros.lie.jets import Array

GRAVITY = 9.81
STEP = 1e-4  # [s] of all integrations
BEGIN = 0.25  # [s] from which on is recorded
JITTER = 1e-4  # [s] of stamps
TOGETHER = 20  # recordings that are simulated at once
DRIFT = 0.9994  # of the nominal period: sensors are not sampled in step with the controller


@dataclass(frozen=True, eq=False)
class Drives:
    """Figures of n drives, reflected to the links."""

    inertia: Array
    viscous: Array
    coulomb: Array
    stiffness: Array | None = None  # none where gears are rigid
    damping: Array | None = None
    link_delay: Array | None = None
    offset: Array | float = 0.0
    effort_delay: float = 1.2e-3


class Plant(ABC):
    """An arm with n joints: its file, its figures, and how it moves."""

    names: tuple[str, ...]
    bodies: tuple[
        tuple[str, float, tuple[float, ...], tuple[float, ...]], ...
    ]  # mass, centre, inertia about it
    origins: tuple[tuple[float, ...], ...]
    axes: tuple[tuple[int, ...], ...]
    drives: Drives
    rate: float  # [Hz]
    duration: float  # [s]
    count: float  # [rad] of the encoders
    effort_noise: float  # [N·m]
    ahead: float = 0.0  # [steps] of the integration, by which an effort acts before the first step with it

    @abstractmethod
    def simulate(self, seeds: Sequence[int]) -> Array:
        """Return efforts, motors and links (seeds, N, 3, n) at every step."""

    def desired(self, seed: int) -> tuple[Array, Array]:
        """Return desired positions and velocities (N, n) at every step."""
        n = len(self.names)
        sine, cosine = np.random.default_rng(1000 + seed).uniform(-0.3, 0.3, (2, 4, n))
        k = 0.9 * np.arange(1, 5)
        t = STEP * np.arange(round((self.duration + 0.5) / STEP))
        s, c = np.sin(np.outer(t, k)), np.cos(np.outer(t, k))
        return s @ sine + c @ cosine + self.middle, (c * k) @ sine - (s * k) @ cosine

    @property
    def middle(self) -> Array:
        """Return the pose that the motion is about (n,)."""
        return np.linspace(0.6, 0.4, len(self.names))

    @cached_property
    def text(self) -> str:
        """The robot file, with its true figures but for friction and offsets, which it lacks."""
        rows = ["name: plant", "bodies:"]
        for name, mass, com, (xx, yy, zz) in self.bodies:
            about = f"{{about: com, ixx: {xx}, ixy: 0, ixz: 0, iyy: {yy}, iyz: 0, izz: {zz}}}"
            rows.append(f"  - {{name: {name}, mass: {mass}, com: {list(com)}, inertia: {about}}}")
        rows.append("joints:")
        for i, (name, origin, axis) in enumerate(zip(self.names, self.origins, self.axes)):
            parent = self.bodies[i - 1][0] if i else "world"
            stiffness = self.drives.stiffness
            spring = "rigid" if stiffness is None else f"{stiffness[i]}"
            rows.append(
                f"  - {{name: {name}, type: revolute, parent: {parent}, child: {self.bodies[i][0]}, "
                f"origin: {{xyz: {list(origin)}}}, axis: {list(axis)}, "
                "limits: {lower: -3, upper: 3, velocity: 5, effort: 400, effort_rate: 9000}, "
                f"drive: {{motor_inertia: {self.drives.inertia[i]}, gear_ratio: 100, stiffness: {spring}}}}}"
            )
        return "\n".join(rows) + "\n"

    def robot(self, folder: Path) -> Robot:
        """Write the file and read it."""
        path = folder / "plant.yaml"
        path.write_text(self.text)
        return Robot.load(path)

    def recordings(self, seeds: Iterable[int]) -> Iterator[JointRecording]:
        """Yield what sensors see; some are simulated at once, as they take hardly longer than one."""
        left = list(seeds)
        while left:
            now, left = left[:TOGETHER], left[TOGETHER:]
            for seed, plant in zip(now, self.simulate(now)):
                yield self._recording(seed, plant)

    def _recording(self, seed: int, plant: Array) -> JointRecording:
        drives, n = self.drives, len(self.names)
        random = np.random.default_rng(seed)
        count = round((STEP * len(plant) - 2.0 * BEGIN) * self.rate)
        # clocks of recorder and controller start apart by another part of a period each time
        begin = BEGIN + np.random.default_rng([seed, 1]).uniform() / self.rate
        times = begin + np.arange(count) * DRIFT / self.rate + random.uniform(-JITTER, JITTER, count)
        fine = STEP * np.arange(len(plant))
        held = plant[np.floor((times - drives.effort_delay) / STEP + self.ahead + 1e-9).astype(int), 0]
        efforts = held + self.effort_noise * random.standard_normal((count, n))

        def encoder(what: int, late: Array) -> Channel:
            seen = [np.interp(times - late[j], fine, plant[:, what, j]) for j in range(n)]
            return Channel(times, np.round(np.stack(seen, 1) / self.count) * self.count)

        links = None if drives.link_delay is None else encoder(2, drives.link_delay)
        return JointRecording("a plant", self.names, Channel(times, efforts), encoder(1, np.zeros(n)), links)

    def truth(self, robot: Robot, found: Identified) -> dict[str, float]:
        """Return the true figures by name; `robot` is the one of the file."""
        true = dict(zip(found.base.names, found.base.combination @ TorqueModel(robot).prior))
        drives = self.drives
        of_joints = {"viscous friction of": drives.viscous, "Coulomb friction of": drives.coulomb}
        of_joints["offset of the effort of"] = np.broadcast_to(drives.offset, len(self.names))
        if drives.stiffness is not None and drives.damping is not None and drives.link_delay is not None:
            of_joints |= {"stiffness of": drives.stiffness, "spring damping of": drives.damping}
            of_joints["delay of the link encoder of"] = drives.link_delay
        for what, values in of_joints.items():
            true |= {f"{what} {name}": float(value) for name, value in zip(self.names, values)}
        return true | {"delay of the efforts": drives.effort_delay}


class PlanarPlant(Plant):
    """Two links in a vertical plane, by the equations of a textbook."""

    names = ("lift", "bend")
    bodies = (
        ("upper", 6.0, (0.24, 0, 0), (0.01, 0.14, 0.14)),
        ("fore", 4.0, (0.21, 0, 0), (0.01, 0.08, 0.08)),
    )
    origins = ((0, 0, 0), (0.5, 0, 0))
    axes = ((0, -1, 0), (0, -1, 0))

    def gravity(self, q: Array) -> Array:
        """Return what holds the arm (2, seeds)."""
        (_, m1, (c1, *_), _), (_, m2, (c2, *_), _) = self.bodies
        second = GRAVITY * m2 * c2 * np.cos(q[0] + q[1])
        return np.array([GRAVITY * (m1 * c1 + m2 * 0.5) * np.cos(q[0]) + second, second])

    def accelerations(self, q: Array, v: Array, torque: Array, rotors: Sequence[float] = (0.0, 0.0)) -> Array:
        """Return those (2, seeds) of the links under torques beside gravity (2, seeds).

        By the mass matrix, with rotors that turn with the links, and centrifugal and Coriolis torques.
        """
        (_, m1, (c1, *_), (_, i1, _)), (_, m2, (c2, *_), (_, i2, _)) = self.bodies
        a, d = i1 + m1 * c1**2 + m2 * 0.25, i2 + m2 * c2**2
        b, h = m2 * 0.5 * c2 * np.cos(q[1]), -m2 * 0.5 * c2 * np.sin(q[1])
        first, both, second = a + d + 2.0 * b + rotors[0], d + b, d + rotors[1]
        left = torque - self.gravity(q) - np.array([h * (2.0 * v[0] + v[1]) * v[1], -h * v[0] ** 2])
        return np.array([second * left[0] - both * left[1], first * left[1] - both * left[0]]) / (
            first * second - both**2
        )

    @abstractmethod
    def rates(self, state: Array, effort: Array) -> Array:
        """Return the derivative of the state (rows, seeds)."""

    @abstractmethod
    def start(self, q: Array, v: Array) -> Array:
        """Return the state from positions and velocities of the links."""

    @abstractmethod
    def seen(self, state: Array) -> tuple[Array, Array]:
        """Return positions of motors and links."""

    def simulate(self, seeds: Sequence[int]) -> Array:
        """Return efforts, motors and links (seeds, N, 3, 2) at every step."""
        wanted, speeds = (np.stack(each, axis=-1) for each in zip(*map(self.desired, seeds)))
        period = round(1.0 / (self.rate * STEP))
        state = self.start(wanted[0], speeds[0])
        result = np.empty((len(wanted), 3, 2, len(seeds)))
        effort, last, speed = np.zeros(wanted[0].shape), self.seen(state)[0], speeds[0]
        for i in range(len(wanted)):
            motors, links = self.seen(state)
            if i % period == 0:
                counted = np.round(motors / self.count) * self.count
                speed = speed + 0.3 * ((counted - last) * self.rate - speed) if i else speed
                last = counted
                effort = 3000.0 * (wanted[i] - counted) + 90.0 * (speeds[i] - speed) + self.gravity(wanted[i])
            result[i] = effort, motors, links
            first = self.rates(state, effort)
            second = self.rates(state + 0.5 * STEP * first, effort)
            third = self.rates(state + 0.5 * STEP * second, effort)
            last_one = self.rates(state + STEP * third, effort)
            state = state + STEP / 6.0 * (first + 2.0 * (second + third) + last_one)
        return np.moveaxis(result, -1, 0)


class ElasticPlant(PlanarPlant):
    """Springs with damping, friction `c tanh(v / s)`, encoders on both sides, 1 kHz."""

    stiffness, damping = np.array([9000.0, 5000.0]), np.array([4.0, 2.0])
    rate, duration, count, effort_noise = 1000.0, 12.0, 20e-6, 0.15
    drives = Drives(
        np.array([0.9, 0.5]), np.array([5.0, 3.0]), np.array([6.0, 4.0]), stiffness, damping,
        np.array([1.5e-3, 2e-3]), np.array([0.4, -0.3]),
    )  # fmt: skip

    def start(self, q: Array, v: Array) -> Array:
        return np.concatenate([q, v, q + self.gravity(q) / _column(self.stiffness), v])

    def seen(self, state: Array) -> tuple[Array, Array]:
        return state[4:6], state[:2]

    def rates(self, state: Array, effort: Array) -> Array:
        q, v, motor, speed = np.split(state, 4)
        drives = self.drives
        spring = _column(self.stiffness) * (motor - q) + _column(self.damping) * (speed - v)
        friction = _column(drives.viscous) * speed + _column(drives.coulomb) * np.tanh(speed / 0.02)
        left = effort - spring - friction - _column(drives.offset)
        return np.concatenate([v, self.accelerations(q, v, spring), speed, left / _column(drives.inertia)])


class RigidPlant(PlanarPlant):
    """Rigid gears, friction that turns over as a ramp does, motor encoders alone, 500 Hz."""

    rate, duration, count, effort_noise = 500.0, 14.0, 50e-6, 0.3
    drives = Drives(
        np.array([0.9, 0.5]), np.array([4.0, 2.0]), np.array([5.0, 3.0]), offset=np.array([0.2, 0.5])
    )

    def start(self, q: Array, v: Array) -> Array:
        return np.concatenate([q, v])

    def seen(self, state: Array) -> tuple[Array, Array]:
        return state[:2], state[:2]

    def rates(self, state: Array, effort: Array) -> Array:
        q, v = np.split(state, 2)
        drives = self.drives
        friction = _column(drives.viscous) * v + _column(drives.coulomb) * np.clip(v / 0.01, -1.0, 1.0)
        left = effort - friction - _column(drives.offset)
        return np.concatenate([v, self.accelerations(q, v, left, drives.inertia.tolist())])


class StickingPlant(Plant):
    """MuJoCo's: three joints, rotors apart, spring tendons, friction loss that sticks, 500 Hz.

    With velocities v_k+1 = v_k + h a(q_k, u_k) and positions q_k+1 = q_k + h v_k+1, the acceleration under
    the effort of step k is (q_k+1 - 2 q_k + q_k-1) / h^2: that effort acts about the instant of q_k, from
    half a step before it on. By exact steps under a held effort, motion follows half a step later. Damping is
    explicit: implicit steps count it as an inertia, h times that of drive and spring on either side, 0.1 % of
    the first joint's and half of its deviation.
    """

    ahead = 0.5
    names = ("turn", "lift", "bend")
    bodies = (
        ("post", 8.0, (0.01, 0, 0.1), (0.1, 0.09, 0.05)),
        ("upper", 5.0, (0.22, 0, 0.02), (0.02, 0.12, 0.12)),
        ("fore", 3.0, (0.18, 0.01, 0), (0.01, 0.06, 0.06)),
    )
    origins = ((0, 0, 0), (0.05, 0, 0.25), (0.42, 0, 0))
    axes = ((0, 0, 1), (0, -1, 0), (0, -1, 0))
    rate, duration, count, effort_noise = 500.0, 14.0, 20e-6, 0.2
    stiffness, damping = np.array([12000.0, 9000.0, 4000.0]), np.array([6.0, 4.0, 2.0])
    drives = Drives(
        np.array([1.2, 0.9, 0.4]), np.array([6.0, 5.0, 2.0]), np.array([7.0, 6.0, 3.0]),
        stiffness, damping, np.array([1e-3, 1.6e-3, 2.2e-3]),
    )  # fmt: skip

    @cached_property
    def model(self) -> mujoco.MjModel:
        """The model, with every rotor on the ground: it turns about its own axis alone."""
        drives, vector = self.drives, lambda values: " ".join(map(str, values))
        arm = (
            "".join(
                f'<body name="{name}" pos="{vector(origin)}"><inertial mass="{mass}" pos="{vector(com)}" '
                f'diaginertia="{vector(inertia)}"/><joint name="{joint}" axis="{vector(axis)}"/>'
                for (name, mass, com, inertia), origin, axis, joint in zip(
                    self.bodies, self.origins, self.axes, self.names
                )
            )
            + len(self.names) * "</body>"
        )
        # damping d is of velocities half a step older than accelerations, and so d h / 2 less inertia
        inertias = drives.inertia + 0.5 * STEP * drives.viscous
        rotors = springs = motors = ""
        for i, name in enumerate(self.names):
            rotors += (
                f'<body pos="0 {i + 1} 0"><inertial mass="0.01" pos="0 0 0" diaginertia="'
                f'{vector([inertias[i]] * 3)}"/><joint name="motor_{name}" axis="0 0 1" '
                f'damping="{drives.viscous[i]}" frictionloss="{drives.coulomb[i]}"/></body>'
            )
            springs += (
                f'<fixed stiffness="{self.stiffness[i]}" damping="{self.damping[i]}" springlength="0">'
                f'<joint joint="motor_{name}" coef="1"/><joint joint="{name}" coef="-1"/></fixed>'
            )
            motors += f'<motor joint="motor_{name}"/>'
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{STEP}" integrator="Euler" gravity="0 0 -{GRAVITY}">'
            '<flag eulerdamp="disable"/></option>'
            f"<worldbody>{arm}{rotors}</worldbody><tendon>{springs}</tendon><actuator>{motors}</actuator></mujoco>"
        )

    @property
    def middle(self) -> Array:
        return np.array([0.0, 0.5, 0.4])

    def simulate(self, seeds: Sequence[int]) -> Array:
        return np.stack(list(map(self._simulate, seeds)))

    def _simulate(self, seed: int) -> Array:
        wanted, speeds = self.desired(seed)
        model, data = self.model, mujoco.MjData(self.model)
        links, motors = (
            [model.joint(start + name).qposadr[0] for name in self.names] for start in ("", "motor_")
        )
        for places in (links, motors):
            data.qpos[places], data.qvel[places] = wanted[0], speeds[0]
        mujoco.mj_forward(model, data)
        period = round(1.0 / (self.rate * STEP))
        result = np.empty((len(wanted), 3, len(self.names)))
        last, speed = data.qpos[motors].copy(), speeds[0]
        gains = np.array([6000.0, 5000.0, 2000.0]), np.array([150.0, 120.0, 50.0])
        for i in range(len(wanted)):
            if i % period == 0:
                counted = np.round(data.qpos[motors] / self.count) * self.count
                speed = speed + 0.4 * ((counted - last) * self.rate - speed) if i else speed
                last = counted
                data.ctrl[:] = gains[0] * (wanted[i] - counted) + gains[1] * (speeds[i] - speed)
                data.ctrl[:] += data.qfrc_bias[links]
            result[i] = data.ctrl, data.qpos[motors], data.qpos[links]
            mujoco.mj_step(model, data)
        return result


def _column(figures: Array | float) -> Array:
    """Return figures of joints (n,) beside those of all seeds."""
    return np.asarray(figures)[..., None]


PLANTS: tuple[type[Plant], ...] = (ElasticPlant, StickingPlant, RigidPlant)


def wrong(robot: Robot) -> Robot:
    """Return the robot as a file has it before anything was measured: inertias 15 % off, springs 25 %."""
    random = np.random.default_rng(5)
    tree, train = robot.tree, robot.drive_train
    assert train is not None
    masses = 1.0 + 0.15 * random.uniform(-1.0, 1.0, tree.n_bodies)
    coms = tree.coms * (1.0 + 0.1 * random.uniform(-1.0, 1.0, tree.coms.shape))
    other = tree.with_inertias(tree.masses * masses, coms, tree.inertias * masses[:, None, None])
    specs = [
        replace(spec, stiffness=1.25 * spec.stiffness, motor_inertia=0.85 * spec.motor_inertia)
        for spec in train.specs
    ]
    return robot.with_tree(other).with_drives(tuple(specs))
