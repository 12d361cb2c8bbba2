"""The floating aerial manipulator of Ali et al. (Table 3), inverse and forward dynamics."""

from __future__ import annotations

from benchmarks import ours, robots
from benchmarks.peers import pinocchio_tree
from benchmarks.stage import Stage
from benchmarks.table import Bound, Row, Section

_PINOCCHIO = "pinocchio.rnea"
_MUST = {"inverse": {0: 0.35, 5: 3.0}, "forward": {5: 5.0}}


def measure(stage: Stage) -> Section:
    """Time compiled code against `pinocchio.rnea` of the 7-joint arm from Python."""
    title = "floating aerial manipulator (7 bodies), inside compiled code"
    robot, orders = robots.aerial_manipulator(), (0, 5) if stage.quick else range(6)
    contenders = [pinocchio_tree.rnea_call(_PINOCCHIO, robots.panda())]
    for order in orders:
        stage.say(f"{title}: compiling order {order}", order / 6)
        contenders.append(ours.inverse_dynamics(robot, order).contender(f"inverse {order}"))
        contenders.append(ours.forward_dynamics(robot, order).contender(f"forward {order}"))
    times = stage.race(title, contenders)
    rows = []
    for what, must in _MUST.items():
        for order in orders:
            name, limit = f"{what} {order}", must.get(order)
            rows.append(
                Row(
                    work=f"{what} dynamics, r = {order}",
                    against="pinocchio.rnea, 7-joint arm, from Python",
                    result=times.ratio(name, _PINOCCHIO),
                    ours=times.seconds(name).median,
                    theirs=times.seconds(_PINOCCHIO).median,
                    must=None if limit is None else Bound(limit),
                    aim=None if limit is None else Bound(0.5 * limit),
                )
            )
    curves = {
        f"aerial manipulator, {what} dynamics": {r: times.seconds(f"{what} {r}").median for r in orders}
        for what in _MUST
    }
    return Section(title, rows, curves)
