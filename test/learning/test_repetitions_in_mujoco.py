"""An arm in MuJoCo learns: 1 kg and all of its friction unknown, springs 20 % off; the bars of issue 30."""

from functools import cache

import numpy as np
import pytest
import sweeps

pytest.importorskip("mujoco", reason="MuJoCo is not installed")

from benchmarks import repeated_arm
from benchmarks.repeated_arm import Arm, Plant
from benchmarks.repetitions import FEEDBACK, STIFFNESS, lesson, played, recording, rms
from hodyn_ros.learning import Learner

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        not sweeps.THOROUGH, reason="seconds; test_model_errors.py repeats, test_learning.py has no arm"
    ),
]
CASES = [(FEEDBACK[0], STIFFNESS[1]), (FEEDBACK[0], STIFFNESS[0]), *((FEEDBACK[1], s) for s in STIFFNESS)]


@cache
def learner(frequency: float) -> Learner:
    model = repeated_arm.robot()
    return Learner(model, repeated_arm.motion(), repeated_arm.gains(model, frequency))


@pytest.mark.parametrize(("links", "left"), [(False, 0.25), (True, 0.05)])
@pytest.mark.parametrize(("frequency", "stiffness"), CASES)
def test_five_repetitions(frequency: float, stiffness: float, links: bool, left: float) -> None:
    found = lesson(Plant(stiffness), learner(frequency), frequency, links, 5)
    assert found.left <= left
    assert found.worse <= 3.0
    assert found.slower <= 0.5
    assert found.learned.contraction <= 0.7 and found.learned.notes == ()
    assert bool(found.learned.seen) is not links
    if not links:  # the kilogram, and where it is
        np.testing.assert_allclose(found.learned.load, [1.0, 0.36, 0.0, 0.0], atol=0.15)


def test_a_contact_in_one_repetition_is_not_learnt() -> None:
    """Somebody leans on an arm that has learnt: what it does next is as good as without."""
    frequency, motion = FEEDBACK[0], repeated_arm.motion()
    one, model = learner(frequency), learner(frequency).robot
    arm, learned = Arm(Plant(), model, frequency), None
    for i in range(4):
        pushed = i == 2

        def touched(time: float, pushed: bool = pushed) -> np.ndarray:
            return np.array([0.0, 60.0 * (pushed and 1.4 < time < 1.6), 0.0])

        run = arm.repeat(motion, played(learned), touched)
        learned = one.learn([recording(run, True, f"run{i}")], learned)
        assert bool(learned.notes) is pushed
        if pushed:
            assert "not as the repetition before says at 1.4" in learned.notes[0]
    errors = [step.rms for step in learned.history]
    assert learned.history[2].verdict == "learnt" and errors[3] < 0.5 * errors[1]
    assert rms(arm.repeat(motion, played(learned)), motion) < errors[3]
