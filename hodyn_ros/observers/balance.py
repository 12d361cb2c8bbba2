"""What acts on the links between two samples, and what the motors' equations leave: means over a period.

    links:   M q'' + C q' + g + f_l(q') - Q_t = tau_ext          Q_t of the spring, or of a torque sensor
    motors:  B theta'' + f_m(theta') + Q_t - tau_m = 0           no contact is in it
    both:    M q'' + C q' + g + f_l + B theta'' + f_m - tau_m = tau_ext

The mean of the left side of the first over a period is that of `p' - tau - C^T q' + g` with the momentum
`p = M q'`, since `M' = C + C^T`: the innovation of the momentum observer, without `C^T q'` being computed.
De Luca, Albu-Schaeffer, Haddadin and Hirzinger, Collision detection and safe reaction with the DLR-III
lightweight manipulator arm (IROS 2006); Haddadin, De Luca and Albu-Schaeffer, Robot collisions: a survey
(IEEE T-RO 33(6), 2017). Everything here takes numbers or scalars of the tracer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hodyn_ros.actuation.drive_train import DriveTrain
from hodyn_ros.actuation.friction import Friction
from hodyn_ros.actuation.joint_drive import JointDrive
from hodyn_ros.errors import InputError
from hodyn_ros.observers.interpolation import BasePoint, Motion, base_between, points_between
from hodyn_ros.observers.layout import Layout

Row = list[Any]  # numbers, or scalars of the tracer
Vectors = dict[str, Row]
Torque = Literal["spring", "sensor", "motor"]  # where the torque on a link is known from


@dataclass(frozen=True)
class Sensed:
    """What is measured of all joints: positions of links, of motors, efforts of motors, joint torques.

    `rates`: whether velocities come along. Else those are used that the positions had between two samples,
    and all is of the instant between.
    """

    links: bool = True
    motors: bool = False
    motor_efforts: bool = False
    joint_torques: bool = False
    rates: bool = True

    @property
    def rows(self) -> tuple[str, ...]:
        """What is measured, in the order of the rows of a sample."""
        chosen = {
            "position": self.links,
            "velocity": self.links and self.rates,
            "motor_position": self.motors,
            "motor_velocity": self.motors and self.rates,
            "motor_effort": self.motor_efforts,
            "joint_torque": self.joint_torques,
        }
        return tuple(name for name, measured in chosen.items() if measured)


@dataclass(frozen=True)
class JointForm:
    """How the balance of one joint is drawn up, and which means it has.

    `torque`: where the torque on its link is known from. `checked`: whether the equation of its motor holds
    that against the effort of the motor. `unbent`: whether the link is placed behind its motor by the load.
    """

    drive: JointDrive
    torque: Torque
    checked: bool
    unbent: bool

    @classmethod
    def of(cls, name: str, drive: JointDrive, sensed: Sensed) -> JointForm:
        """Choose the form. Raises InputError where too little is measured."""
        if drive.transmission.n_motors > 1:
            raise InputError(f"joint {name!r} has two motors, and an observer takes one for each joint")
        if not sensed.links and not sensed.motors:
            raise InputError("an observer needs positions of links or of motors")
        elastic = not drive.rigid
        if sensed.joint_torques:
            torque: Torque = "sensor"
        elif elastic and sensed.links and sensed.motors:
            torque = "spring"
        elif sensed.motor_efforts:
            torque = "motor"
        else:
            raise InputError(
                f"nothing says what torque acts on joint {name!r}: measure the effort of its motor, a joint "
                "torque, or the positions of link and motor on both sides of its spring"
            )
        if torque == "motor" and drive.motor_friction.load > 0.0:
            raise InputError(
                f"the friction of joint {name!r} is by the load that its gear carries, which efforts of "
                "motors alone do not tell: measure joint torques, or both sides of a spring"
            )
        turned = sensed.motors or not elastic  # the motion of its motor is known
        checked = torque != "motor" and sensed.motor_efforts and turned
        return cls(drive, torque, checked, elastic and not sensed.links)

    @property
    def means(self) -> tuple[str, ...]:
        """The names of the means that this joint has besides `residual` and `needed`."""
        motor, link = self.drive.motor_friction, self.drive.link_friction
        turned = self.checked or self.torque == "motor"
        chosen = {
            "torque": self.torque != "motor",  # that the transmission hands to the link
            "error": self.checked,  # of the equation of the motor
            "viscous": turned and motor.fluid,  # friction of the motor
            "coulomb": turned and motor.dry,
            "sticking": turned and motor.dry,  # square of what of it need not act, as at rest
            "link_friction": bool(link),
            "link_sticking": link.dry,
            "load": self.unbent,  # what the motor leaves to its spring
        }
        return tuple(name for name, there in chosen.items() if there)


class Balance:
    """The equations of motion of one robot over a period.

    `base`: whether a floating base is measured, whose wrench stands first: m = n + 6, else m = n.

    Attributes:
        forms: Those of the joints.
        state: Layout of what is kept of the last sample.
    """

    def __init__(self, train: DriveTrain, sensed: Sensed, base: bool) -> None:
        self.sensed, self.base, self.n = sensed, base, train.n_joints
        self._names = train.joint_names
        self.forms = tuple(
            JointForm.of(name, drive, sensed) for name, drive in zip(train.joint_names, train.drives)
        )
        n = self.n
        raw = {} if sensed.rates else {f"raw_{name}": n for name in sensed.rows}
        motors = {"theta": n, "thetad": n} if sensed.motors else {}
        self.state = Layout(
            q=n,
            v=n,
            **motors,
            **{name: n for name in ("motor_effort", "joint_torque") if name in sensed.rows},
            **({"base": 18} if base else {}),
            **raw,
        )

    def arrive(
        self, sample: Vectors, period: Any, before: Vectors, load: Vectors, base: Row | None = None
    ) -> Vectors:
        """Return the state at a sample (rows by name) that comes a period after the one `before`.

        `load`: "load" and "load_rate" (n,), where links are placed by them; `base`: pose (3, 4) by rows and
        body-fixed twist of a floating base.
        """
        state: Vectors = {} if base is None else {"base": base}
        now = sample
        if not self.sensed.rates:
            now, raw = _between(sample, before, period)
            state.update(raw)
        if self.sensed.motors:
            state.update(theta=now["motor_position"], thetad=now["motor_velocity"])
        if self.sensed.links:
            state.update(q=now["position"], v=now["velocity"])
        else:
            places = [self._behind(j, state, load) for j in range(self.n)]
            state.update(q=[q for q, _ in places], v=[v for _, v in places])
        state.update({name: now[name] for name in ("motor_effort", "joint_torque") if name in now})
        return state

    def _behind(self, j: int, state: Vectors, load: Vectors) -> tuple[Any, Any]:
        """Return where a link is and how fast, behind the motor that its load bends it from."""
        theta, thetad, form = state["theta"][j], state["thetad"][j], self.forms[j]
        if not form.unbent:
            return theta, thetad
        torque = np.array([load["load"][j], load["load_rate"][j]], dtype=object)
        bent = form.drive.transmission.motor_positions(0.0 * torque, torque)[0]
        return theta - bent[0], thetad - bent[1]

    def joints_between(self, before: Vectors, now: Vectors, period: Any) -> list[Motion]:
        """Return the motion of the joints at the points of a period."""
        return points_between(before["q"], before["v"], now["q"], now["v"], period)

    def base_between(self, before: Vectors, now: Vectors, period: Any) -> list[BasePoint]:
        """Return that of a floating base; nothing where none is."""
        return base_between(before["base"], now["base"], period) if self.base else []

    def means(
        self, before: Vectors, now: Vectors, period: Any, efforts: Sequence[Row], newest: Any
    ) -> dict[str, dict[int, Any]]:
        """Return the means over a period by name and place: of m, or of joints that have them.

        `efforts`: what inverse dynamics returns at the points, (m,) each. `newest`: share of the newest
        efforts of the motors; zero of those that are held. "needed" is what the motion of the links needs
        without friction, "residual" what acts from outside by the model as it stands.
        """
        joints = self.joints_between(before, now, period)
        motors = joints
        if self.sensed.motors:
            motors = points_between(before["theta"], before["thetad"], now["theta"], now["thetad"], period)
        needed = [0.5 * (a + b) for a, b in zip(*efforts)]
        first = len(needed) - self.n
        means: dict[str, dict[int, Any]] = {"needed": dict(enumerate(needed))}
        means["residual"] = dict(enumerate(needed[:first]))
        spin = "thetad" if self.sensed.motors else "v"
        for j, form in enumerate(self.forms):
            motor_effort = torque = 0.0
            if self.sensed.motor_efforts:
                old, new = before["motor_effort"][j], now["motor_effort"][j]
                motor_effort = old + newest * (new - old)
            if form.torque == "sensor":
                torque = 0.5 * (before["joint_torque"][j] + now["joint_torque"][j])
            elif form.torque == "spring":
                torque = _middle([self._spring(j, *points) for points in zip(joints, motors)])
            of_motor, of_link = form.drive.motor_friction, form.drive.link_friction
            turning, moving = ([point.velocity[j] for point in points] for points in (motors, joints))
            viscous = of_motor.fluid_torque(_jet(_middle(turning)))[0]
            coulomb, sticking = _dry(of_motor, turning, torque)
            gain = (now[spin][j] - before[spin][j]) / period
            resists = form.drive.motor_inertias[0] * gain + viscous + coulomb
            values = {
                "torque": torque,
                "error": resists + torque - motor_effort,
                "viscous": viscous,
                "coulomb": coulomb,
                "sticking": sticking,
                "link_friction": _middle([of_link.torque(_jet(velocity))[0] for velocity in moving]),
                "link_sticking": _dry(of_link, moving)[1],
                "load": torque if form.torque == "sensor" else motor_effort - resists,
            }
            for name in form.means:
                means.setdefault(name, {})[j] = values[name]
            moved = motor_effort - resists if form.torque == "motor" else torque
            means["residual"][first + j] = needed[first + j] + values["link_friction"] - moved
        return means

    def _spring(self, j: int, link: Motion, motor: Motion) -> Any:
        """Return the torque of a spring; InputError names the joint whose deflection it does not have."""
        at_link = np.array([link.position[j], link.velocity[j]], dtype=object)
        at_motor = np.array([[motor.position[j], motor.velocity[j]]], dtype=object)
        try:
            return self.forms[j].drive.transmission.loads(at_link, at_motor).link[0]
        except InputError as error:
            raise InputError(f"joint {self._names[j]!r}: {error}") from error


def _dry(friction: Friction, velocities: Sequence[Any], load: Any = 0.0) -> tuple[Any, Any]:
    """Return the mean of dry friction, and of the square of what of it need not act, as at rest.

    At a speed far above that of the transition the friction is known; at rest a dry contact holds with
    anything up to it, whatever the smooth law says.
    """
    acting = [friction.dry_torque(_jet(velocity), _jet(load))[0] for velocity in velocities]
    most = friction.dry_limit(_jet(load))[0]
    return _middle(acting), most**2 - _middle([value * value for value in acting])


def _jet(value: Any) -> Any:
    return np.array([value], dtype=object)


def _middle(values: Sequence[Any]) -> Any:
    return 0.5 * (values[0] + values[1])


def _between(sample: Vectors, before: Vectors, period: Any) -> tuple[Vectors, Vectors]:
    """Return what was measured at the instant between the last two samples, and what to keep of this one."""
    now: Vectors = {}
    raw: Vectors = {}
    for name, new in sample.items():
        old = before[f"raw_{name}"]
        raw[f"raw_{name}"] = new
        now[name] = [_middle(pair) for pair in zip(old, new)]
        if name.endswith("position"):
            now[name.replace("position", "velocity")] = [(b - a) / period for a, b in zip(old, new)]
    return now, raw
