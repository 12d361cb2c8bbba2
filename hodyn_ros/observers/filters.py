"""From means over a period to external efforts with their deviations; traced.

All means pass the same poles. A Kalman filter for each joint whose motor is checked estimates by how much
spring, viscous and Coulomb friction differ from the file, x = (k, d, c) in shares: the equation of its motor

    -(B theta'' + f_m + Q_t - tau_m) = k Q_t + d f_viscous + c f_coulomb

holds no contact, so a contact does not move x. The external effort is that of the links with the torque so
corrected, `r - k Q_t`. Where x is not remembered, this is the mean of the two forms by spring and by motor
torque, weighted by their covariances; where it is, the deviations fall with what the motion has shown.

Where the effort of the motor is all that says what acts on a link, contacts are in its equation,

    -r = d f_viscous + c f_coulomb + o

and o, which takes whatever lasts and does not turn over with the velocity, keeps them off d and c as long as
the joint moves both ways. Errors of masses last as well: samples count as the same for `friction_time`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any, NamedTuple

from hodyn_ros.array import Array
from hodyn_ros.observers.balance import Balance, Vectors
from hodyn_ros.observers.config import ObserverConfig
from hodyn_ros.observers.layout import Layout, upper_places

Row = list[Any]
Means = dict[str, dict[int, Any]]

CORRECTED = ("torque", "viscous", "coulomb")  # what x is a share of
_LASTING = "lasting"  # o, an effort
_LARGEST = 10.0  # deviation of that, in deviations of the noise
_NONE = 1e-30  # a variance or time that is none, but may stand in a denominator
_SMOOTH = "smooth_"
_FAR = 9.0  # square of the deviations beyond which an error of a motor's equation counts as none of its drive


class Lasting(NamedTuple):
    """An error that is the same all the time: an unknown share of an effort, with its mean and variance."""

    effort: Any
    mean: Any
    variance: Any


class JointErrors(NamedTuple):
    """What acts on a joint from outside by the model as it stands, and by how much that is unsure.

    What really is outside is `residual` less the shares of `lasting`. Where the motor is checked, its
    equation says besides that `error` is minus the shares of `motor`; the first one is that of `lasting`.
    """

    residual: Any
    needed: Any  # by the motion of the links
    noise: Any  # a variance
    lasting: list[Lasting]
    error: Any = 0.0
    error_noise: Any = 0.0  # a variance; large for what is far from all that the drive may be
    motor: Sequence[Lasting] = ()


class Filters:
    """The filters of one robot behind a `Balance`.

    `smooth`: whether with a second pole; `rubbing`: whether friction is corrected where contacts are in the
    same equation; `bounds`: whether deviations add up, as of errors that may all be as large at once, instead
    of their squares.

    Attributes:
        size: Number m of the external efforts.
        state: Layout of what is kept from sample to sample.
        figures: Layout of what may change while it runs: `ObserverConfig` as numbers.
        result: Layout of what comes out.
        corrected: By joint whose motor is checked, or whose friction is corrected, what x is of.
    """

    def __init__(
        self, balance: Balance, smooth: bool, rubbing: bool = False, *, bounds: bool = False
    ) -> None:
        self._balance, self._bounds, n = balance, bounds, balance.n
        self.size = m = n + (6 if balance.base else 0)
        self._first = m - n
        places: dict[str, list[int]] = {"residual": list(range(m)), "needed": list(range(m))}
        for j, form in enumerate(balance.forms):
            for name in form.means:
                places.setdefault(name, []).append(j)
        self._places, self._prefix = places, _SMOOTH if smooth else ""
        self.corrected = {
            j: tuple(name for name in CORRECTED if name in form.means)
            for j, form in enumerate(balance.forms)
            if form.checked
        }
        if rubbing:
            for j, form in enumerate(balance.forms):
                names = tuple(name for name in CORRECTED[1:] if name in form.means)
                if form.torque == "motor" and names:
                    self.corrected[j] = (*names, _LASTING)
        sizes = {name: len(owners) for name, owners in places.items()}
        self.state = Layout(
            **sizes,
            **({f"{_SMOOTH}{name}": size for name, size in sizes.items()} if smooth else {}),
            load_rate=len(places.get("load", ())),
            contact=1,
            **{f"x{j}": len(names) for j, names in self.corrected.items()},
            **{f"p{j}": len(upper_places(len(names))) for j, names in self.corrected.items()},
        )
        self.figures = Layout(
            bandwidth=1,
            smoothing_time=1,
            newest=1,
            drift_time=1,
            friction_time=1,
            correction_limit=1,
            threshold=1,
            release=1,
            stiffness_variance=1,
            friction_variance=1,
            inertia_variance=1,
            noise_variance=m,
            model_variance=m,
        )
        self.result = Layout(efforts=m, deviations=m, largest=1, contact=1)

    def numbers(self, config: ObserverConfig, noise: Array, unsure_inertia: bool = True) -> Row:
        """Return the figures as numbers; `noise` (m,) is that of the external efforts.

        `unsure_inertia`: whether masses are as unsure as the configuration says.
        """
        m = self.size
        return self.figures.pack(
            {
                "bandwidth": [config.bandwidth],
                "smoothing_time": [1.0 / config.smoothing if config.smoothing else 0.0],
                "newest": [0.0 if config.held_efforts else 0.5],
                "drift_time": [config.drift_time if config.adapt_drives else _NONE],
                "friction_time": [config.friction_time],
                "correction_limit": [config.correction_limit],
                "threshold": [config.threshold],
                "release": [config.threshold * config.release],
                "stiffness_variance": [config.stiffness_deviation**2 + _NONE],
                "friction_variance": [config.friction_deviation**2 + _NONE],
                "inertia_variance": [config.inertia_deviation**2 if unsure_inertia else 0.0],
                "noise_variance": (noise**2).tolist(),
                "model_variance": [0.0] * m,
            }
        )

    def start(self, figures: Row) -> Row:
        """Return the state before the first period."""
        numbers = self.figures.unpack(figures)
        state = self.state.unpack([0.0] * self.state.size)
        for j, names in self.corrected.items():
            state[f"p{j}"] = self._prior(j, names, numbers)
        return self.state.pack(state)

    def loads(self, state: Vectors) -> Vectors:
        """Return what `Balance.arrive` takes: loads that links are placed by, and their rates, by joint."""
        loads: Vectors = {}
        for name in ("load", "load_rate"):
            loads[name] = [0.0] * self._balance.n
            for j, value in zip(self._places.get("load", ()), state.get(name, ())):
                loads[name][j] = value
        return loads

    def joint_errors(self, j: int, state: Vectors, figures: Vectors) -> JointErrors:
        """Return what is outside of a joint of a robot on the ground, and what that is unsure by, at a state.

        What lasts are shares of the spring or of the gain of a torque sensor, of friction, and of what masses
        need, where no covariance of these is given. Noise includes dry friction near standstill.
        """
        seen = {
            name: state[self._prefix + name][owners.index(j)]
            for name, owners in self._places.items()
            if j in owners
        }
        dry = ("link_sticking",) if "torque" in seen else ("link_sticking", "sticking")
        noise = figures["noise_variance"][j] + figures["model_variance"][j]
        noise = noise + sum(seen[name] for name in dry if name in seen)
        spring, friction = figures["stiffness_variance"][0], figures["friction_variance"][0]
        variances = {"torque": spring, "viscous": friction, "coulomb": friction}
        names = self.corrected.get(j, ())
        x, p = state.get(f"x{j}", ()), state.get(f"p{j}", ())
        spreads = [value for value, (a, b) in zip(p, upper_places(len(names))) if a == b]
        checked = self._balance.forms[j].checked
        lasting, motor, far = [], [], 0.0
        if checked:
            missing = seen["error"] + sum(value * seen[name] for name, value in zip(names, x))
            known = sum(value * (seen[name] * seen[name]) for name, value in zip(names, spreads))
            motor = [Lasting(seen[name], 0.0, variances[name]) for name in names]
            error_noise = figures["noise_variance"][j] + seen.get("sticking", 0.0)
            far = missing * missing * error_noise / (_FAR * (known + error_noise))
            lasting.append(motor[0])
        elif "torque" in seen:
            lasting.append(Lasting(seen["torque"], 0.0, spring))
        else:
            learnt = {name: (value, own) for name, value, own in zip(names, x, spreads)}
            for name in ("viscous", "coulomb"):
                if name in seen:
                    lasting.append(Lasting(0.0 - seen[name], *learnt.get(name, (0.0, friction))))
        if "link_friction" in seen:
            lasting.append(Lasting(seen["link_friction"], 0.0, friction))
        lasting.append(Lasting(seen["needed"], 0.0, figures["inertia_variance"][0] + _NONE))
        if not checked:
            return JointErrors(seen["residual"], seen["needed"], noise, lasting)
        return JointErrors(
            seen["residual"], seen["needed"], noise, lasting, seen["error"], error_noise + far, motor
        )

    def update(
        self,
        means: Means,
        period: Any,
        state: Vectors,
        figures: Vectors,
        moving: Sequence[Row] | None = None,
    ) -> tuple[Vectors, Vectors]:
        """Return the state after a period, and the result.

        `moving` (n, n) takes efforts of redundant drives to their part that moves the robot.
        """
        if moving is not None:
            means = {**means, "residual": dict(enumerate(_times(moving, list(means["residual"].values()))))}
        x = figures["bandwidth"][0] * period
        # exp(-x), by its Pade approximant of second order, which stays within (0, 1)
        even = 1.0 + x * x * (1.0 / 12.0)
        blend = x / (even + 0.5 * x)
        faded = figures["smoothing_time"][0] / (figures["smoothing_time"][0] + period)
        now: Vectors = {}
        seen: Means = {}
        for name, owners in self._places.items():
            values = means[name]
            now[name] = [a + blend * (values[place] - a) for place, a in zip(owners, state[name])]
            if self._prefix:
                smooth = self._prefix + name
                now[smooth] = [b + faded * (a - b) for a, b in zip(state[smooth], now[name])]
            seen[name] = dict(zip(owners, now[self._prefix + name]))
        if "load" in now:
            now["load_rate"] = [(a - b) / period for a, b in zip(now["load"], state["load"])]
        else:
            now["load_rate"] = []
        for j, names in self.corrected.items():
            now[f"x{j}"], now[f"p{j}"] = self._corrected(j, names, seen, period, state, figures)
        result = self._result(seen, now, figures, moving)
        threshold, release = figures["threshold"][0], figures["release"][0]
        limit = threshold + state["contact"][0] * (release - threshold)
        above = result["largest"][0] - limit
        # one where it is above its limit, else zero
        now["contact"] = [1.0 * floor(0.5 * (1.0 + above / (abs(above) + _NONE)))]
        return now, {**result, "contact": now["contact"]}

    def _prior(self, j: int, names: tuple[str, ...], figures: Vectors) -> Row:
        """Return the upper triangle of the covariance of x by the file alone."""
        known = {
            "torque": figures["stiffness_variance"][0],
            _LASTING: _LARGEST**2 * figures["noise_variance"][self._first + j],
        }
        variances = [known.get(name, figures["friction_variance"][0]) for name in names]
        return [variances[a] if a == b else 0.0 for a, b in upper_places(len(names))]

    def _corrected(
        self, j: int, names: tuple[str, ...], seen: Means, period: Any, state: Vectors, figures: Vectors
    ) -> tuple[Row, Row]:
        """Return x of a joint, and the upper triangle of its covariance."""
        size, pairs, place = len(names), upper_places(len(names)), self._first + j
        prior = self._prior(j, names, figures)
        drift, lasts = figures["drift_time"][0], figures["friction_time"][0]
        times = [lasts if name == _LASTING else drift for name in names]
        fading = [time / (time + period) for time in times]
        x = [share * value for share, value in zip(fading, state[f"x{j}"])]
        p = [b + fading[m] * fading[k] * (a - b) for (m, k), a, b in zip(pairs, state[f"p{j}"], prior)]
        h = [1.0 if name == _LASTING else seen[name][j] for name in names]
        covariance = dict(zip(pairs, p))
        ph = [sum(covariance[min(a, b), max(a, b)] * h[b] for b in range(size)) for a in range(size)]
        known, expected = sum(a * b for a, b in zip(h, ph)), sum(a * b for a, b in zip(h, x))
        noise, sticking = figures["noise_variance"][place], seen.get("sticking", {}).get(j, 0.0)
        # `alike`: samples that close say the same. What is far beyond its deviation, as of a contact
        # or of a drive that saturates, counts the less the further it is.
        if names[-1] == _LASTING:
            needed = seen["needed"][place]
            noise = noise + figures["model_variance"][place]
            noise = noise + figures["inertia_variance"][0] * (needed * needed) + sticking
            missing = 0.0 - seen["residual"][place] - expected
            alike = 1.0 + 2.0 * lasts / period
            far = 1.0 + missing * missing / (_FAR * (known + noise))
            information = 1.0 / (known + alike * noise * far)
        else:
            missing = 0.0 - seen["error"][j] - expected
            alike = 1.0 + 2.0 * drift / (period * (drift * figures["bandwidth"][0] + 1.0))
            noise = alike * (noise + sticking)
            whole = _FAR * (known + noise)
            information = whole / (whole * (known + noise) + noise * (missing * missing))
        step, limit = information * missing, figures["correction_limit"][0]
        moved = [
            _within(value + gain * step, limit * prior[pairs.index((a, a))] ** 0.5)
            for a, (value, gain) in enumerate(zip(x, ph))
        ]
        return moved, [value - ph[a] * ph[b] * information for value, (a, b) in zip(p, pairs)]

    def _result(self, seen: Means, now: Vectors, figures: Vectors, moving: Sequence[Row] | None) -> Vectors:
        """Return external efforts, their deviations, and the largest of their ratios."""
        inertia, first = figures["inertia_variance"][0], self._first
        drives = [self._of_drive(j, seen, now, figures) for j in range(self._balance.n)]
        shifts, variances = [list(column) for column in zip(*drives)]
        if moving is not None:
            shifts = _times(moving, shifts)
            squares = [[a * a for a in row] for row in moving]
            variances = [[value] for value in _times(squares, [sum(parts) for parts in variances])]
        efforts, deviations, ratios = [], [], []
        for place, residual in seen["residual"].items():
            needed = seen["needed"][place]
            parts = [
                figures["noise_variance"][place] + figures["model_variance"][place],
                inertia * (needed * needed),
            ]
            if place >= first:
                residual = residual - shifts[place - first]
                parts += variances[place - first]
            # by rounding, what need not act may be less than nothing
            deviation = sum(abs(part) ** 0.5 for part in parts) if self._bounds else sum(parts) ** 0.5
            ratios.append(abs(residual) / deviation)
            efforts.append(residual)
            deviations.append(deviation)
        return {"efforts": efforts, "deviations": deviations, "largest": [_largest(ratios)]}

    def _of_drive(self, j: int, seen: Means, now: Vectors, figures: Vectors) -> tuple[Any, list[Any]]:
        """Return by how much the drive of a joint is corrected, and the variances that it leaves."""
        friction = figures["friction_variance"][0]
        there = {name: values[j] for name, values in seen.items() if j in values}
        shift, variances = 0.0, [there[name] for name in ("link_sticking",) if name in there]
        unsure = ["link_friction"]
        if "torque" not in there:
            variances += [there[name] for name in ("sticking",) if name in there]
            names = self.corrected.get(j, ())[:-1]  # without what lasts
            for a, name in enumerate(names):
                shift = shift - now[f"x{j}"][a] * there[name]
                for b in range(a, len(names)):
                    both = now[f"p{j}"][upper_places(len(names) + 1).index((a, b))] * (
                        there[name] * there[names[b]]
                    )
                    variances.append(both if a == b else 2.0 * both)
            unsure += [name for name in ("viscous", "coulomb") if name not in names]
        elif j in self.corrected:
            shift = now[f"x{j}"][0] * there["torque"]
            variances.append(now[f"p{j}"][0] * (there["torque"] * there["torque"]))
        else:
            variances.append(figures["stiffness_variance"][0] * (there["torque"] * there["torque"]))
        variances += [friction * (there[name] * there[name]) for name in unsure if name in there]
        return shift, variances


def _largest(values: Row) -> Any:
    """Return the largest, by pairs: one after the other, each would wait for the one before."""
    while len(values) > 1:
        pairs = list(zip(values[::2], values[1::2]))
        values = [0.5 * (a + b + abs(a - b)) for a, b in pairs] + values[2 * len(pairs) :]
    return values[0]


def _within(value: Any, bound: Any) -> Any:
    """Return a value held within `-bound` and `bound`."""
    return 0.5 * (abs(value + bound) - abs(value - bound))


def _times(matrix: Sequence[Row], values: Row) -> Row:
    return [sum(a * b for a, b in zip(row, values)) for row in matrix]
