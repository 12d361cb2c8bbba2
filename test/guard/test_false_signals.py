"""What has once driven a simulated arm beyond its limits, or into a step, by name; see docs/safety.md."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from fault_campaign import (
    CONTROLLER,
    EFFORTS,
    LOOSE,
    REFERENCES,
    Case,
    Consumer,
    Lie,
    run,
    run_up,
    verdict,
)
from sweeps import THOROUGH, some

from hodyn_ros.guard.reasons import Fault, State

ALL = tuple(range(7))
SPIKE = Lie("measured velocity", "offset", (1,), 5.0, 0, 1)
FROZEN = Lie("measured motion", "freezes", ALL)
BLIND = {Fault.FROZEN, Fault.CONTRADICTION, Fault.NO_MEASUREMENT}
DISAGREE = BLIND | {Fault.MISMATCH, Fault.TRACKING}
NO_FAULT: set[Fault] = set()


class Row(NamedTuple):
    """A fault as it was found; `faults`: what it may be named as, empty where nothing has to stop."""

    name: str
    consumer: Consumer
    moment: str
    lies: tuple[Lie, ...]
    faults: set[Fault]
    joint: str = ""  # that has to be named

    @property
    def case(self) -> Case:
        return Case(self.consumer.name, self.moment, self.lies)


def rows() -> list[Row]:
    found = [
        Row(f"one velocity of 1e308, {moment}", CONTROLLER, moment, (bad,), NO_FAULT)
        for moment, bad in (
            ("at full speed", Lie("measured velocity", "not a number", (1,), 1e308, 0, 1)),
            ("at rest", Lie("measured velocity", "not a number", ALL, 1e308, 0, 1)),
        )
    ]
    found += [
        Row("one false velocity at rest", CONTROLLER, "at rest", (SPIKE,), NO_FAULT),
        Row("one false velocity in motion", CONTROLLER, "at full speed", (SPIKE,), NO_FAULT),
        Row("measurements freeze while it stops", CONTROLLER, "stopping", (FROZEN,), NO_FAULT),
        Row("measurements freeze when it stands", CONTROLLER, "stopped", (FROZEN,), NO_FAULT),
        Row(
            "told to end, and measurements freeze",
            CONTROLLER,
            "at full speed",
            (Lie("request", "stop"), FROZEN),
            {Fault.SHUTDOWN},
        ),
        Row("all freezes", CONTROLLER, "at full speed", (FROZEN,), DISAGREE),
    ]
    found += [
        Row(
            f"the encoder of joint {joint + 1} freezes, {moment}",
            CONTROLLER,
            moment,
            (Lie("measured position", "freezes", (joint,)),),
            BLIND,
            f"panda_joint{joint + 1}",
        )
        for joint in ALL
        for moment in ("at full speed", "speeding up")
    ]
    found += [
        Row(
            f"the clock steps by {by:g} s, {moment}", consumer, moment, (Lie("clock", "set", (), by),), faults
        )
        for consumer in (CONTROLLER, LOOSE, REFERENCES)
        for moment, faults in (("stopping", NO_FAULT), ("at full speed", {Fault.CLOCK}))
        for by in (0.2, -0.2, 60.0)
    ]
    found += [
        Row(
            f"the clock steps by {by:g} s in the fade",
            LOOSE,
            "fading to zero",
            (Lie("clock", "set", (), by),),
            NO_FAULT,
        )
        for by in (0.2, -0.2)
    ]
    found += [
        Row(
            f"one acceleration of {size:g}",
            consumer,
            "at full speed",
            (Lie("feedforward acceleration", "offset", (1,), size, 0, 1),),
            NO_FAULT,
        )
        for consumer in (CONTROLLER, LOOSE, REFERENCES)
        for size in (1e3, 3e3, 1e4)
    ]
    for consumer in (CONTROLLER, LOOSE):
        found += [
            Row(name, consumer, "at full speed", (lie,), DISAGREE)
            for name, lie in (
                ("all velocities read zero", Lie("measured velocity", "zero", ALL)),
                ("velocities are turned", Lie("measured velocity", "turned about zero", ALL)),
                ("joints 1 and 2 are swapped", Lie("measured motion", "swapped", (0, 1))),
            )
        ]
    # they stand and move alike, so that feedback alone shows it
    alike = Lie("measured motion", "swapped", (0, 4))
    found.append(Row("joints 1 and 5 are swapped", CONTROLLER, "from the start", (alike,), DISAGREE))
    found += [
        Row(
            f"the motor of joint {joint + 1} is turned, {moment}",
            CONTROLLER,
            moment,
            (Lie("robot", "turned", (joint,)),),
            DISAGREE | {Fault.EFFORT_STEP, Fault.SATURATION, Fault.VELOCITY},
        )
        for joint in ALL
        for moment in ("at full speed", "from the start")
    ]
    found += [
        Row(
            f"joint {joint + 1} gives no more than 5 N.m",
            CONTROLLER,
            "at full speed",
            (Lie("robot", "weak", (joint,), 5.0),),
            DISAGREE | {Fault.VELOCITY},
        )
        for joint in (1, 3)
    ]
    found += [
        Row(
            f"false efforts of {size:g} N.m",
            EFFORTS,
            "at full speed",
            (Lie("feedforward effort", "offset", (1,), size),),
            {Fault.EFFORT_STEP, Fault.MISMATCH, Fault.TRACKING},
        )
        for size in (50.0, 80.0, -80.0)
    ]
    found += [
        Row(
            "a payload of 10 kg is set by mistake",
            consumer,
            "at full speed",
            (Lie("model", "payload", (), 10.0),),
            {Fault.EFFORT_STEP, Fault.MISMATCH, Fault.TRACKING},
        )
        for consumer in (CONTROLLER, EFFORTS, REFERENCES)
    ]
    found += [
        Row(
            f"held up for {lasts:g} ms",
            consumer,
            "at full speed",
            (Lie("process", kind, (), lasts),),
            {Fault.HELD_UP},
        )
        for consumer in (CONTROLLER, EFFORTS, REFERENCES)
        for kind in ("held up", "held up, keeps the last")
        for lasts in (140.0, 900.0)
    ]
    return found


ROWS = {f"{row.name}: {row.consumer.name}": row for row in rows()}
# One of each kind that fails by itself.
FEW = (
    "one velocity of 1e308, at full speed: controller",
    "one false velocity at rest: controller",
    "told to end, and measurements freeze: controller",
    "the encoder of joint 2 freezes, at full speed: controller",
    "the clock steps by 0.2 s, stopping: motor references",
    "one acceleration of 10000: motor references",
    "velocities are turned: controller",
    "joints 1 and 2 are swapped: controller",
    "the motor of joint 4 is turned, at full speed: controller",
    "false efforts of 80 N.m: forward efforts",
    "held up for 140 ms: motor references",
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", some(ROWS, *FEW))
def test_what_was_seen_once_is_seen_by_the_guard(name: str) -> None:
    row = ROWS[name]
    bench, failed = run(row.case, None if THOROUGH else 300)
    found = verdict(row.case, bench, failed)
    assert not found.beyond, str(found)
    reasons = [change.reason for change in bench.record.transitions if change.reason.fault is not None]
    if row.faults:
        seen = [reason for reason in reasons if reason.fault in row.faults]  # efforts may disagree before
        assert seen and (not row.joint or {reason.joint for reason in reasons} == {row.joint}), str(found)
        assert bench.guard.state in (State.STOPPING, State.STOPPED)  # and does not go on by itself


@pytest.mark.parametrize("by", [3.0, -3.0, 1e308])
def test_a_false_velocity_drives_no_resting_arm(by: float) -> None:
    bench, failed = run(Case("controller", "at rest", (replace(SPIKE, amount=by),)), lasts=300)
    moved = bench.simulation.position - run_up(CONTROLLER, "at rest").simulation.position
    assert not failed
    assert np.abs(moved).max() < 0.002
