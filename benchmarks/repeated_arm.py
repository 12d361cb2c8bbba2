"""An elastic arm in MuJoCo that repeats one motion: rotors apart, spring tendons, friction that sticks.

Its model is written here by hand, apart from the package's simulator. What a robot file says of it knows
nothing of 1 kg at its tip and of any friction, and its springs are as stiff as the file says but for a share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, motor_reference
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.trajectory import WaypointSpline
from hodyn_ros.trajectory.base import Trajectory

NAMES = ("turn", "lift", "bend")
BODIES = (  # mass [kg], centre [m], inertia about it [kg m^2]
    ("post", 7.0, (0.0, 0.01, 0.12), (0.08, 0.08, 0.04)),
    ("upper", 5.5, (0.2, 0.0, 0.03), (0.02, 0.11, 0.11)),
    ("fore", 2.8, (0.19, 0.0, 0.01), (0.01, 0.05, 0.05)),
)
ORIGINS = ((0.0, 0.0, 0.0), (0.04, 0.0, 0.28), (0.4, 0.0, 0.0))
AXES = ((0, 0, 1), (0, -1, 0), (0, -1, 0))
TIP = (0.36, 0.0, 0.0)  # [m] in the last body
ROTORS = np.array([1.1, 0.9, 0.4])  # reflected to the links [kg m^2]
STIFFNESS = np.array([11000.0, 9000.0, 4500.0])  # [N·m/rad], as the file says
LIMITS = np.array([250.0, 250.0, 120.0])  # [N·m]
VISCOUS = np.array([6.0, 5.0, 2.0])  # [N·m·s/rad]
COULOMB = np.array([7.0, 6.0, 3.0])  # [N·m]
COUNT = 2.0 * np.pi / 2**19  # [rad] of the encoders
PERIOD, STEPS = 1e-3, 5
SETTLING = 0.6  # [s] of standing before each repetition
WAYPOINTS = ((0.0, 0.5, 0.5), (0.9, 1.1, -0.2), (-0.2, 0.2, 0.9), (0.5, 0.9, 0.2), (0.0, 0.5, 0.5))
TIMES = (0.0, 0.8, 1.6, 2.3, 3.0)


@dataclass(frozen=True)
class Plant:
    """What the arm has that its file does not know."""

    stiffness: float = 1.2  # share of what the file says
    payload: float = 1.0  # [kg]
    friction: float = 1.0  # share of VISCOUS and COULOMB

    @cached_property
    def model(self) -> Any:
        """The model of MuJoCo: rotors on the ground, each of which turns about its own axis alone."""
        import mujoco

        def words(values: object) -> str:
            return " ".join(map(str, np.atleast_1d(np.asarray(values))))

        arm = "".join(
            f'<body name="{name}" pos="{words(origin)}"><inertial mass="{mass}" pos="{words(com)}" '
            f'diaginertia="{words(inertia)}"/><joint name="{joint}" axis="{words(axis)}"/>'
            for (name, mass, com, inertia), origin, axis, joint in zip(BODIES, ORIGINS, AXES, NAMES)
        )
        if self.payload:
            arm += f'<body pos="{words(TIP)}"><inertial mass="{self.payload}" pos="0 0 0" '
            arm += 'diaginertia="1e-3 1e-3 1e-3"/></body>'
        arm += len(NAMES) * "</body>"
        rotors = springs = motors = ""
        for i, name in enumerate(NAMES):
            stiff = self.stiffness * STIFFNESS[i]
            rotors += (
                f'<body pos="0 {i + 1} 0"><inertial mass="0.01" pos="0 0 0" '
                f'diaginertia="{words([ROTORS[i]] * 3)}"/>'
                f'<joint name="motor_{name}" axis="0 0 1" damping="{self.friction * VISCOUS[i]}" '
                f'frictionloss="{self.friction * COULOMB[i]}"/></body>'
            )
            springs += (
                f'<fixed stiffness="{stiff}" damping="{5e-4 * stiff}" springlength="0">'
                f'<joint joint="motor_{name}" coef="1"/><joint joint="{name}" coef="-1"/></fixed>'
            )
            motors += f'<motor joint="motor_{name}"/>'
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{PERIOD / STEPS}" integrator="implicitfast" gravity="0 0 -9.81"/>'
            f"<worldbody>{arm}{rotors}</worldbody><tendon>{springs}</tendon><actuator>{motors}</actuator></mujoco>"
        )


def robot() -> Robot:
    """Return the arm as its file describes it."""
    rows = ["name: repeated_arm", "bodies:"]
    for name, mass, com, (xx, yy, zz) in BODIES:
        about = f"{{about: com, ixx: {xx}, ixy: 0, ixz: 0, iyy: {yy}, iyz: 0, izz: {zz}}}"
        rows.append(f"  - {{name: {name}, mass: {mass}, com: {list(com)}, inertia: {about}}}")
    rows.append("joints:")
    for i, (name, origin, axis) in enumerate(zip(NAMES, ORIGINS, AXES)):
        parent = BODIES[i - 1][0] if i else "world"
        rows.append(
            f"  - {{name: {name}, type: revolute, parent: {parent}, child: {BODIES[i][0]}, "
            f"origin: {{xyz: {list(origin)}}}, axis: {list(axis)}, "
            f"limits: {{lower: -3, upper: 3, velocity: 5, effort: {LIMITS[i]}, effort_rate: 9000}}, "
            f"drive: {{motor_inertia: {ROTORS[i]}, gear_ratio: 100, stiffness: {STIFFNESS[i]}}}}}"
        )
    with TemporaryDirectory() as folder:
        path = Path(folder, "arm.yaml")
        path.write_text("\n".join(rows) + "\n")
        return Robot.load(path)


def motion(speed: float = 1.0) -> WaypointSpline:
    """Return the motion that is repeated, at a share of its speed: from rest to rest and back."""
    return WaypointSpline(np.array(TIMES) / speed, np.array(WAYPOINTS), order=6, joint_names=NAMES)


def gains(model: Robot, frequency: float = 30.0) -> MotorGains:
    """Return those of the feedback of the motors."""
    return MotorGains.of_drives(model.require_drives(), frequency, 1.0)


@dataclass(frozen=True, eq=False)
class Run:
    """One repetition (N, n), by the time of the motion (N,), from its start to its end."""

    times: Array
    links: Array  # as they were [rad]
    motors: Array  # as encoders count
    seen_links: Array  # likewise
    efforts: Array  # as motors gave them

    def errors(self, wanted: Trajectory) -> Array:
        """Return what the links were off (N, n)."""
        return self.links - wanted.sample(self.times, 0)[:, 0]


class Arm:
    """The arm, which goes on from where its last repetition has ended."""

    def __init__(self, plant: Plant, model: Robot, frequency: float = 30.0) -> None:
        import mujoco

        self._mujoco, self._plant = mujoco, plant.model
        self._data = mujoco.MjData(self._plant)
        self._links, self._motors = (
            np.array([self._plant.joint(start + name).qposadr[0] for name in NAMES])
            for start in ("", "motor_")
        )
        self._model, self._gains = FeedforwardModel(model, 2), gains(model, frequency)
        self._started = False

    def repeat(
        self,
        wanted: Trajectory,
        added: Callable[[float], Array] | None = None,
        touched: Callable[[float], Array] | None = None,
    ) -> Run:
        """Follow a motion with an effort added (n,) at each time [s]; `touched` pushes joints [N·m]."""
        data, train = self._data, self._model.robot.require_drives()
        count = round((SETTLING + wanted.duration) / PERIOD)
        times = PERIOD * np.arange(count + 1) - SETTLING
        rows, last, speed = [], np.zeros(3), np.zeros(3)
        samples = wanted.sample(np.clip(times, 0.0, wanted.duration), 4)
        for i, time in enumerate(times.tolist()):
            feedforward = self._model.compute(np.ascontiguousarray(samples[i]))
            follow = motor_reference(FeedforwardMode.ELASTIC, train, feedforward)
            if not self._started:
                data.qpos[self._links], data.qpos[self._motors] = samples[i, 0], follow.positions[0]
                self._started = True
            counted = np.round(data.qpos[self._motors] / COUNT) * COUNT
            if i:
                speed = speed + 0.4 * ((counted - last) / PERIOD - speed)
            last = counted
            effort = (
                follow.efforts[0]
                + self._gains.proportional * (follow.positions[0] - counted)
                + self._gains.derivative * (follow.positions[1] - speed)
            )
            if added is not None:  # fades in as the guard lets a stream join
                effort = effort + min(1.0, (time + SETTLING) / 0.3) * added(time)
            effort = np.clip(effort, -LIMITS, LIMITS)
            rows.append((data.qpos[self._links].copy(), counted, effort))
            data.ctrl[:] = effort
            data.qfrc_applied[self._links] = 0.0 if touched is None else touched(time)
            self._mujoco.mj_step(self._plant, data, STEPS)
        links, motors, efforts = np.array(rows).transpose(1, 0, 2)
        chosen = times >= -0.5 * PERIOD
        links = links[chosen]
        return Run(
            np.asarray(times[chosen], dtype=np.float64),
            links,
            motors[chosen],
            np.round(links / COUNT) * COUNT,
            efforts[chosen],
        )
