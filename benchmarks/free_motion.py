"""The fastest motion of an arm between two postures (`examples/free_motion.py`), beside crocoddyl."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

from benchmarks.examples import example
from benchmarks.peers import crocoddyl_arm
from benchmarks.stage import Stage
from benchmarks.stopwatch import Figure
from benchmarks.table import Row, Section

_SLOWER = (1.0, 1.02, 1.05, 1.1, 1.2)  # than our motion, for crocoddyl to arrive
_NEAR, _OVER = 1e-3, 1.001  # [rad, rad/s] from the goal, and share of a limit


def measure(stage: Stage) -> Section:
    """Find the fastest motion of the rigid arm; ask crocoddyl for it in that time, and in longer ones."""
    title = "free motion of a rigid arm with 7 joints, within torques and speeds"
    if missing := [name for name in ("casadi", "crocoddyl") if find_spec(name) is None]:
        return Section(title, [Row("time to solve", "crocoddyl", None, note=f"no {missing[0]}")])
    study = example("free_motion")
    robot = study.weak_panda(elastic=False)
    stage.say(f"{title}: Ipopt", 0.0)
    problem = study.FreeMotion(robot, 12 if stage.quick else 18)
    motion, stats = problem.solve(2.0)
    against = f"crocoddyl {version('crocoddyl')}, BoxFDDP"
    for k, slower in enumerate(_SLOWER):
        stage.say(f"{title}: crocoddyl", (k + 1) / (len(_SLOWER) + 1))
        theirs = crocoddyl_arm.drive(robot, study.FROM, study.TO, slower * motion.duration)
        if theirs.distance <= _NEAR and theirs.usage <= _OVER:
            break
    else:
        return Section(
            title, [Row("time to solve", against, None, note=f"does not arrive in {slower:g} × our time")]
        )
    ratio, longer = stats["seconds"] / theirs.seconds, 1.0 / slower
    rows = [
        Row(
            "time to solve, the duration sought",
            against,
            Figure.exact(ratio),
            stats["seconds"],
            theirs.seconds,
        ),
        Row("duration of the motion", f"{against}, the first to arrive", Figure.exact(longer)),
    ]
    return Section(title, rows)
