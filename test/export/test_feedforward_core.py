"""`hodyn export --shared` and the ROS-free core of the ros2_control controller, against what the nodes do."""

import ctypes
import re
import shutil
from functools import cache
from pathlib import Path

import explained_study
import numpy as np
import pytest
from exported_code import CC, CXX, CXX_WARNINGS, compiled_by, needs_cxx
from places import ROOT
from refusals import assert_refused, refused
from sweeps import some

from hodyn_ros import InputError, Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import export_shared
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import Fault, FirstEffort, GuardConfig, Rejoin, State
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.trajectory.rest import through_points

pytestmark = needs_cxx

MS = 1_000_000  # [ns]
EPOCH = 1_700_000_000 * 1000 * MS
STATES = list(State)
PANDA = share.find("config", "panda.yaml")
TWO_LINK = ROOT / "test" / "helpers" / "data" / "two_link.urdf"
HOME = np.array([-0.7, -0.6, -0.6, -2.4, -0.7, 1.0, -0.6])
MOVE = np.array([0.3, 0.2, -0.25, 0.3, 0.2, -0.3, 0.4])
FEEDFORWARD, ZERO, FOUND = range(3)
Array = np.ndarray


@pytest.fixture(scope="module")
def panda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_shared(RobotChoice(str(PANDA)), 2, tmp_path_factory.mktemp("panda"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("core") / "core.so"
    folders = (f"-I{ROOT / 'ros2_control'}", f"-I{ROOT / 'hodyn_ros' / 'export'}")
    source = ROOT / "test" / "helpers" / "core_in_c.cpp"
    flags = ("-std=c++17", *CXX_WARNINGS, "-O0", "-fPIC", "-shared", "-Wl,-Bsymbolic", *folders)
    compiled_by(CXX, flags, [source], path, "-ldl")
    loaded = ctypes.CDLL(str(path))
    for name in ("core_new", "core_said", "core_event", "core_rejected_for"):
        getattr(loaded, name).restype = ctypes.c_void_p if name == "core_new" else ctypes.c_char_p
    loaded.core_update.restype = loaded.core_rejected.restype = ctypes.c_long
    return loaded


def pointer(numbers: Array | None) -> ctypes.Array[ctypes.c_double] | None:
    flat = None if numbers is None else np.asarray(numbers, dtype=np.float64).ravel()
    return None if flat is None else (ctypes.c_double * len(flat))(*flat)


class Core:
    def __init__(
        self,
        library: ctypes.CDLL,
        path: Path,
        hash_: str = "",
        gains: MotorGains | None = None,
        first: int = FOUND,
        *,
        link: bool = False,
        zero: bool = True,
        rejoin: Rejoin = Rejoin.GAP,
        timeout: float = 0.05,
    ) -> None:
        rows = None if gains is None else np.stack([gains.proportional, gains.derivative])
        chosen = int(link), first, int(zero), list(Rejoin).index(rejoin), ctypes.c_double(timeout)
        made = library.core_new(str(path).encode(), hash_.encode(), pointer(rows), *chosen)
        if not made:
            raise RuntimeError(library.core_said().decode())
        self._c, self._core = library, ctypes.c_void_p(made)

    def __del__(self) -> None:
        if hasattr(self, "_core"):
            self._c.core_delete(self._core)

    def activate(self, position: Array, effort: Array) -> None:
        self._c.core_activate(self._core, pointer(position), pointer(effort))

    def desire(self, stamp: int, q: Array) -> None:
        self._c.core_desire(self._core, ctypes.c_int64(stamp), pointer(q))

    def update(
        self, now: int, q: Array, v: Array, chained: Array | None = None, elapsed: float = np.nan
    ) -> tuple[Array, State]:
        numbers = (ctypes.c_double(elapsed), pointer(q), pointer(v), pointer(chained))
        assert self._c.core_update(self._core, ctypes.c_int64(now), *numbers) == 0  # allocations
        return self.command()

    def command(self) -> tuple[Array, State]:
        command = (ctypes.c_double * 21)()
        state = self._c.core_command(self._core, command)
        return np.array(command).reshape(3, 7), STATES[state]

    def stop(self) -> None:
        self._c.core_stop(self._core)

    def start(self) -> None:
        self._c.core_start(self._core)

    @property
    def has_stopped(self) -> bool:
        return bool(self._c.core_has_stopped(self._core))

    def deactivate(self) -> bool:
        return bool(self._c.core_deactivate(self._core))

    def resume(self) -> bool:
        return bool(self._c.core_resume(self._core))

    @property
    def rejected(self) -> int:
        return int(self._c.core_rejected(self._core))

    @property
    def rejected_for(self) -> str:
        return self._c.core_rejected_for(self._core).decode()

    def events(self) -> list[str]:
        found = []
        while (line := self._c.core_event(self._core)) is not None:
            found.append(line.decode())
        return found


MOTION = through_points(np.array([0.0, 1.0]), np.stack([HOME, HOME + MOVE]))


@cache
def desired(k: int) -> Array:
    """The motion of the links k [ms] after the beginning, (5, 7); it sets off after 300 ms."""
    return np.asarray(MOTION.sample(min(max(1e-3 * (k - 300), 0.0), 1.0), 4))


@pytest.mark.parametrize("link", [False, True])
def test_core_does_what_the_nodes_do(library: ctypes.CDLL, panda: Path, link: bool) -> None:
    """DesiredMotion at 100 Hz, commands at 1 kHz; the stream stops at last."""
    robot = Robot.load(PANDA)
    names, train = robot.joint_names, robot.require_drives()
    gains = None if link else MotorGains.from_frequency(train.motor_inertia, 30.0, 1.0)
    core = Core(library, panda, gains=gains, first=ZERO, link=link)
    core.activate(HOME, np.zeros(7))
    config = GuardConfig(measured=gains is not None, first_effort=FirstEffort.ZERO, efforts_act=True)
    limits, stiff = guard_limits(robot, names, motor=not link), effort_model(robot, names, motor=not link)
    observer = effort_observer(robot, names, stiff.links, motor=not link, at_links=link)
    guard = CommandGuard(names, config, limits, gains, stiff, observer)
    model = FeedforwardModel(robot, 2)
    seen = set()
    for k in range(1100):
        now, q = EPOCH + k * MS, desired(k)
        feedforward = model.compute(q)
        motors = motor_reference(FeedforwardMode.ELASTIC, train, feedforward)
        reference = Reference(q[:3], feedforward.efforts) if link else motors
        if k % 10 == 0 and k < 700:
            core.desire(now, q)
            guard.follow(now, now, reference, feedforward.status)
        position, velocity = reference.positions[0] + 1e-3 * np.cos(k), reference.positions[1]
        guard.measure(now, now, position, velocity)
        elapsed = None if k % 3 else 1e-3
        expected = guard.command(now, elapsed)
        found, state = core.update(now, position, velocity, elapsed=np.nan if elapsed is None else elapsed)
        assert state is guard.state
        seen.add(state)
        if expected is not None:
            scale = np.abs(np.stack(expected[:3])).max(axis=1, keepdims=True) + 1.0
            assert (np.abs(found - np.stack(expected[:3])) <= 1e-9 * scale).all(), k
    assert seen == set(State)
    lines = core.events()
    assert len(lines) == len(guard.transitions)
    assert lines[2] == "following -> stopping: no feedforward: none for 0.05 s"


@pytest.mark.parametrize("link", [False, True])
def test_core_sees_a_push_as_the_nodes_do(library: ctypes.CDLL, panda: Path, link: bool) -> None:
    """A joint speeds up by 30 rad/s^2 that no effort explains."""
    robot = Robot.load(PANDA)
    names, train, model = robot.joint_names, robot.require_drives(), FeedforwardModel(robot, 2)
    core = Core(library, panda, first=ZERO, link=link)
    core.activate(HOME, np.zeros(7))
    config = GuardConfig(first_effort=FirstEffort.ZERO, efforts_act=True)
    limits, stiff = guard_limits(robot, names, motor=not link), effort_model(robot, names, motor=not link)
    observer = effort_observer(robot, names, stiff.links, motor=not link, at_links=link)
    guard = CommandGuard(names, config, limits, None, stiff, observer)
    for k in range(900, 1750):  # after the end of the motion, at rest
        now, q = EPOCH + k * MS, desired(1400)
        feedforward = model.compute(q)
        motors = motor_reference(FeedforwardMode.ELASTIC, train, feedforward)
        reference = Reference(q[:3], feedforward.efforts) if link else motors
        late = max(1e-3 * (k - 1700), 0.0)
        push = np.outer([15.0 * late**2, 30.0 * late], np.eye(7)[1])
        position, velocity = reference.positions[:2] + push + 1e-7 * (k % 2) * np.eye(2, 1)
        core.desire(now, q)
        guard.follow(now, now, reference, feedforward.status)
        guard.measure(now, now, position, velocity)
        guard.command(now)
        found, state = core.update(now, position, velocity)
        assert state is guard.state, k
    lines = [f"{one.before.value} -> {one.after.value}: {one.reason}" for one in guard.transitions]
    assert core.events() == lines
    assert guard.faults[Fault.MISMATCH] == 2 and "'panda_joint2' moves as if" in lines[2], lines


def test_core_follows_the_fastest_motion_of_an_elastic_arm(library: ctypes.CDLL, panda: Path) -> None:
    """What springs add to its efforts is explained, as links and motors are known apart."""
    motion = explained_study.plan(Robot.load(PANDA), 0)[:4000]
    core = Core(library, panda, rejoin=Rejoin.NEVER)
    core.activate(motion[0, 0], np.zeros(7))
    for k in range(-700, len(motion)):
        now, q = EPOCH + k * MS, motion[max(k, 0)]
        core.desire(now, q)
        _, state = core.update(now, *q[:2])
    assert state is State.FOLLOWING and core.rejected == 0, core.events()


def run_chained(core: Core, until: int, spoil: object = None) -> tuple[Array, list[State]]:
    """Follow references for positions to accelerations from another controller."""
    core.activate(HOME, np.full(7, np.nan))
    commands, states = [], []
    for k in range(until):
        chained = np.full((5, 7), np.nan)
        chained[:3] = desired(k)[:3]
        measured = np.stack([*desired(k)[:2]])
        if callable(spoil):
            spoil(k, chained, measured)
        command, state = core.update(EPOCH + k * MS, *measured, chained)
        commands.append(command)
        states.append(state)
    return np.array(commands), states


def test_chained_references_are_followed_without_higher_derivatives(
    library: ctypes.CDLL, panda: Path
) -> None:
    commands, states = run_chained(Core(library, panda, first=FEEDFORWARD), 1000)
    assert states[-1] is State.FOLLOWING
    q = np.concatenate([desired(999)[:3], np.zeros((2, 7))])
    robot = Robot.load(PANDA)
    motors = robot.require_drives().feedforward(q, robot.inverse_dynamics(q))
    assert np.allclose(commands[-1, 0], motors.position[0], rtol=1e-12)
    assert np.allclose(commands[-1, 2], motors.effort[0], rtol=1e-12)


@pytest.mark.parametrize("row", [0, 1])
def test_lost_references_and_measurements_end_at_rest(library: ctypes.CDLL, panda: Path, row: int) -> None:
    gains = MotorGains(np.full(7, 100.0), np.full(7, 10.0))
    core = Core(library, panda, gains=gains, first=FEEDFORWARD)
    off = np.zeros(7)  # of the robot from what is commanded

    def spoil(k: int, chained: Array, measured: Array) -> None:
        position, velocity, _ = core.command()[0]
        if k <= 800:
            off[:] = measured[0] - position - 1e-3 * velocity
            return
        measured[:] = position + 1e-3 * velocity + off, velocity
        (chained, measured)[row][0, 3] = np.nan

    commands, states = run_chained(core, 1800, spoil)
    assert np.isfinite(commands).all()
    assert State.FOLLOWING in states and states[-1] is State.STOPPED
    assert not commands[-1, 1].any()
    steps = np.abs(np.diff(commands[800:, 2], axis=0)).max()
    assert steps <= 2.0 + 1e-9  # [N.m] in a millisecond
    why = ("no feedforward", "no measurement")[row]
    assert any(f"following -> stopping: {why}" in line for line in core.events())
    if row == 0:
        assert core.rejected == 1800 - 801
        assert core.rejected_for.startswith("its numbers are none")


def test_a_stop_whose_efforts_cannot_be_computed_keeps_the_last_ones(
    library: ctypes.CDLL, panda: Path, tmp_path: Path
) -> None:
    """As where loops do not close; the model does not know of a load of 1 N.m at each motor."""
    shutil.copytree(panda.parent, tmp_path / "fails")
    table = tmp_path / "fails" / "panda_table.c"
    head, body = table.read_text().split("static int motion_effort", 1)
    head = head.replace("  return code;", "  for (i = 0; i < 7; i++) motor_effort[i] += 1.0;\n  return code;")
    body = body.replace("  (void)theta;\n", "  (void)theta;\n  if (fails) return HODYN_FAILED;\n", 1)
    table.write_text(f"{head}int fails = 0;\nstatic int motion_effort{body}")
    flags = ["-std=c99", "-O0", "-fPIC", "-shared"]
    path = compiled_by(CC, flags, sorted(table.parent.glob("*.c")), table.parent / "robot.so", "-lm")
    failing = ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "fails")
    core, begun = Core(library, path, first=FEEDFORWARD), []

    def spoil(k: int, chained: Array, measured: Array) -> None:
        if k > 800:
            chained[0, 3] = np.nan
            position, velocity, _ = core.command()[0]
            measured[:] = position + 1e-3 * velocity, velocity
            begun.append(core.command()[1] is State.STOPPING)
            failing.value = sum(begun) > 20

    commands, states = run_chained(core, 1200, spoil)
    assert State.STOPPING in states and failing.value
    first = states.index(State.STOPPING)
    assert np.abs(commands[first + 20 :, 2] - commands[first + 20, 2]).max() < 2.0, core.events()


def test_core_says_why_a_motion_is_not_followed(library: ctypes.CDLL, panda: Path) -> None:
    core, q = Core(library, panda), np.zeros((5, 7))
    q[0] = Robot.load(PANDA).home[0]
    core.activate(q[0], np.zeros(7))
    assert core.rejected_for == "it was taken"
    for rejected, (stamp, off, why) in enumerate(
        [(-1000 * MS, 0.0, "its stamp is further from the clock"), (3 * MS, 0.1, "it does not continue")], 1
    ):
        core.desire(EPOCH + rejected * MS, q)
        core.update(EPOCH + rejected * MS, q[0], q[1])
        core.desire(EPOCH + rejected * MS + stamp, q + off * (np.arange(5) == 0)[:, None])
        core.update(EPOCH + (rejected + 1) * MS, q[0], q[1])
        assert core.rejected == rejected and core.rejected_for.startswith(why), core.rejected_for


@pytest.mark.parametrize("unseen", [None, 3])
def test_what_is_left_after_an_end_does_not_drive_a_robot_away(
    library: ctypes.CDLL, panda: Path, unseen: int | None
) -> None:
    """Held efforts let joint 2 drift off; where it is too fast, they go, and the robot may start again."""
    gains = MotorGains(np.full(7, 100.0), np.full(7, 10.0))
    core = Core(library, panda, gains=gains)
    fastest = 1.1 * Robot.load(PANDA).limits.velocity[1]
    stood = np.zeros(7)

    def spoil(k: int, chained: Array, measured: Array) -> None:
        if 800 < k <= 860:
            measured[:] = np.nan
        elif k > 860:
            since = 1e-3 * max(k - 1200, 0)
            measured[:] = stood, np.zeros(7)
            measured[:, 1] += 2.0 * since**2, 4.0 * since  # [rad], [rad/s]
        else:
            stood[:] = measured[0]
        if unseen is not None and k > 860:
            measured[0, unseen] = np.nan

    commands, states = run_chained(core, 2000, spoil)
    away = 1200 + round(250.0 * fastest)  # [ms]
    assert states[1190] is State.STOPPED and commands[1190, 2].any()
    assert (commands[1190 : away - 1, 2] == commands[1190, 2]).all()
    assert not commands[away + 10 :, 2].any()
    ended = [line for line in core.events() if line.startswith("stopped -> stopped")]
    assert len(ended) == 1 and "velocity violation, so the motors let go: joint 'panda_joint2'" in ended[0]


def test_activation_holds_what_is_there_until_a_motion_is_joined(library: ctypes.CDLL, panda: Path) -> None:
    core, efforts = Core(library, panda), np.linspace(-8.0, 7.0, 7)
    core.activate(HOME, efforts)
    for k in range(200):  # nothing comes
        command, state = core.update(EPOCH + k * MS, HOME, np.zeros(7))
        assert state is State.WAITING
        assert np.array_equal(command, np.stack([HOME, np.zeros(7), efforts]))
    last = efforts
    for k in range(200, 1000):  # a motion; efforts go over without a step
        core.desire(EPOCH + k * MS, desired(0))
        command, state = core.update(EPOCH + k * MS, HOME, np.zeros(7))
        assert np.abs(command[2] - last).max() <= 2.0 + 1e-9
        last = command[2]
    assert state is State.FOLLOWING
    core.activate(HOME, np.full(7, np.nan))  # again: what was desired before does not count
    command, state = core.update(EPOCH + 1001 * MS, HOME, np.zeros(7))
    assert state is State.WAITING and not command[2].any()


@pytest.mark.parametrize("again", [False, True])
def test_efforts_found_at_an_activation_do_not_drive_a_robot_away(
    library: ctypes.CDLL, panda: Path, again: bool
) -> None:
    """Those of another controller that was switched off in motion; nothing holds against them."""
    core, efforts = Core(library, panda), np.linspace(-8.0, 7.0, 7)
    if again:
        core.activate(HOME, np.zeros(7))
    core.activate(HOME, efforts)
    fastest = 1.1 * Robot.load(PANDA).limits.velocity[1]
    away = round(250.0 * fastest)  # [ms]
    for k in range(away + 200):
        measured = np.stack([HOME, np.zeros(7)])
        measured[:, 1] += 2.0 * (1e-3 * k) ** 2, 4e-3 * k  # [rad], [rad/s]
        command, state = core.update(EPOCH + k * MS, *measured)
        left = efforts if k < away else np.zeros(7)
        assert np.array_equal(command, [HOME, np.zeros(7), left]) or away <= k < away + 10
    assert state is State.STOPPED and core.has_stopped
    (said,) = [line for line in core.events() if "velocity violation" in line]
    assert said.startswith("waiting -> stopped: velocity violation, so the motors let go")


def test_a_core_that_was_never_off_has_nothing_to_go_on_with(library: ctypes.CDLL, panda: Path) -> None:
    """As after a deactivation, a cleanup and a new configuration within a moment."""
    core = Core(library, panda, zero=False)
    core.activate(HOME, np.full(7, 5.0))
    before, _ = core.command()
    assert not core.resume()
    assert np.array_equal(core.command()[0], before)
    core.deactivate()
    assert core.resume() and not core.resume()
    assert np.array_equal(core.command()[0], before)


def test_motion_is_joined_again_from_the_last_efforts(library: ctypes.CDLL, panda: Path) -> None:
    gains = MotorGains(np.full(7, 100.0), np.full(7, 10.0))
    core = Core(library, panda, gains=gains)
    core.activate(HOME, np.full(7, 10.0))
    steps, states, last = [], [], np.full(7, 10.0)
    for k in range(3000):
        if k == 2200:
            core.start()
        core.desire(EPOCH + k * MS, desired(0))
        measured = HOME if not 1000 < k < 2000 else np.full(7, np.nan)
        command, state = core.update(EPOCH + k * MS, measured, np.zeros(7))
        steps.append(np.abs(command[2] - last).max())
        states.append(state)
        last = command[2]
        assert core.has_stopped == (1000 < k < 2200 and state in (State.STOPPING, State.STOPPED))
    assert states[1900] is states[2199] is State.STOPPED and states[-1] is State.FOLLOWING
    assert max(steps) <= 2.0 + 1e-9  # [N.m] in a millisecond


@pytest.mark.parametrize("zero", [True, False])
def test_deactivation_says_whether_it_is_a_step(library: ctypes.CDLL, panda: Path, zero: bool) -> None:
    core = Core(library, panda, first=FEEDFORWARD, zero=zero)
    commands, states = run_chained(core, 800)
    assert states[-1] is State.FOLLOWING
    assert core.deactivate()
    found, _ = core.command()
    assert np.array_equal(found[0], commands[-1, 0]) and not found[1].any()
    assert np.array_equal(found[2], np.zeros(7) if zero else commands[-1, 2])
    commands, states = run_chained(core, 600)
    core.stop()
    for k in range(600, 800):
        command, state = core.update(EPOCH + k * MS, *desired(600)[:2])
    assert state is State.STOPPED
    assert not core.deactivate()


def test_a_robot_that_was_asked_to_stop_is_still_held(library: ctypes.CDLL, panda: Path) -> None:
    """`~/stop` may come long before a deactivation: until then feedback goes on, as it does after a fault."""
    gains = MotorGains(np.full(7, 100.0), np.full(7, 10.0))
    core = Core(library, panda, gains=gains, first=FEEDFORWARD)
    run_chained(core, 300)
    core.stop()
    for k in range(300, 1000):
        stands, state = core.update(EPOCH + k * MS, HOME, np.zeros(7))
    assert state is State.STOPPED
    for k in range(1000, 1020):
        pushed, _ = core.update(EPOCH + k * MS, HOME + 1e-3, np.zeros(7))
    assert np.allclose(pushed[2] - stands[2], -1e-3 * gains.proportional, rtol=0.0, atol=1e-9)
    core.start()
    assert core.update(EPOCH + 1020 * MS, HOME, np.zeros(7))[1] is State.STOPPED  # for good
    assert not core.deactivate()


def test_why_nothing_is_joined_is_said_once_it_has_lasted_for_a_second(
    library: ctypes.CDLL, panda: Path
) -> None:
    core = Core(library, panda)
    core.activate(HOME, np.zeros(7))
    elsewhere = desired(0).copy()
    for k in range(4500):
        if k >= 1500:
            elsewhere[0, 0] = HOME[0] + (0.3 if k < 3000 else 30.0)
            core.desire(EPOCH + k * MS, elsewhere)
        core.update(EPOCH + k * MS, HOME, np.zeros(7))
    assert core.events() == [
        "waiting -> waiting: no feedforward: none for 0.05 s",
        "waiting -> waiting: start pose invalid: joint 'panda_joint1' stands 0.3 rad or m from the motion, "
        "more than join_within (0.05); begin where the robot stands",
        "waiting -> waiting: feedforward beyond limits: the feedforward has the status "
        "POSITION_LIMIT_EXCEEDED",
    ]


def test_a_change_of_the_chained_mode_ends_in_braking(library: ctypes.CDLL, panda: Path) -> None:
    """ros2_control deactivates and activates at once as the leading controller goes: no step, a stop."""
    core = Core(library, panda, first=FEEDFORWARD)
    commands, _ = run_chained(core, 800)
    core.deactivate()
    core.resume()
    found, state = core.command()
    assert state is State.FOLLOWING and np.array_equal(found, commands[-1])
    last, states = found, []
    for k in range(800, 1200):
        command, state = core.update(EPOCH + k * MS, *desired(800)[:2])
        assert np.abs(command[2] - last[2]).max() <= 2.0 + 1e-9  # [N.m] in a millisecond
        last = command
        states.append(state)
    assert State.STOPPING in states and states[-1] is State.STOPPED
    assert not last[1].any() and last[2, 3] > 5.0  # it stands, and is carried


@pytest.mark.parametrize("zero", [True, False])
def test_nothing_more_is_commanded_after_a_hold_up(library: ctypes.CDLL, panda: Path, zero: bool) -> None:
    """Drives have gone on alone: what is left is what a deactivation leaves; a shorter one is no matter."""
    core = Core(library, panda, first=FEEDFORWARD, zero=zero, rejoin=Rejoin.ALWAYS)
    run_chained(core, 800)
    at, last = EPOCH + 799 * MS, core.command()[0]
    for held_up in (40, 200):  # [ms]
        at += held_up * MS
        k = (at - EPOCH) // MS
        command, state = core.update(at, *desired(k)[:2], desired(k), elapsed=1e-3 * held_up)
        assert state is (State.FOLLOWING if held_up == 40 else State.STOPPED)
        last = command if held_up == 40 else last
    assert np.array_equal(command, [last[0], np.zeros(7), np.zeros(7) if zero else last[2]])
    assert core.events()[-1].startswith("following -> stopped: held up: 0.2 s passed")


def test_a_clock_that_is_set_ends_in_braking(library: ctypes.CDLL, panda: Path) -> None:
    core = Core(library, panda, first=FEEDFORWARD)
    run_chained(core, 800)
    _, state = core.update(EPOCH + 60_800 * MS, *desired(800)[:2], desired(800), elapsed=1e-3)
    assert state is State.STOPPING
    assert core.events()[-1].startswith("following -> stopping: the clock has jumped: it went on by 60 s")


def test_a_figure_out_of_its_range_is_refused(library: ctypes.CDLL, panda: Path) -> None:
    refused(lambda: Core(library, panda, timeout=50.0), "timeout must be within 0.001 and 1", RuntimeError)


def test_the_table_says_how_far_efforts_and_motion_may_disagree(panda: Path) -> None:
    text, robot = (panda.parent / "panda_table.c").read_text(), Robot.load(PANDA)
    for name, motor in (("mismatch", False), ("motor_mismatch", True)):
        found = re.search(rf"limit_{name}\[7\] = {{(.*)}};", text)
        assert found is not None
        expected = np.asarray(guard_limits(robot, robot.joint_names, motor=motor).mismatch)
        assert np.array_equal([float(number) for number in found[1].split(",")], expected)
        assert np.isfinite(expected).all()


def test_far_motion_and_limits_are_not_followed(library: ctypes.CDLL, panda: Path) -> None:
    def far(k: int, chained: Array, measured: Array) -> None:
        chained[0, 2] += 0.2

    assert set(run_chained(Core(library, panda), 500, far)[1]) == {State.WAITING}

    def beyond(k: int, chained: Array, measured: Array) -> None:
        chained[0, 3] = measured[0, 3] = 0.5  # above the upper limit of joint 4

    assert set(run_chained(Core(library, panda), 500, beyond)[1]) == {State.WAITING}


@pytest.mark.parametrize("robot", some([TWO_LINK, "palletiser.yaml", "panda_hand.yaml"], TWO_LINK), ids=str)
def test_robots_without_drives_and_with_loops_load(
    library: ctypes.CDLL, tmp_path: Path, robot: str | Path
) -> None:
    Core(library, export_shared(RobotChoice(str(robot)), 2, tmp_path))  # which runs the self-tests


def test_wrong_libraries_are_rejected(library: ctypes.CDLL, panda: Path, tmp_path: Path) -> None:
    refused(lambda: Core(library, tmp_path / "missing.so"), "cannot be loaded ... export", RuntimeError)
    refused(lambda: Core(library, panda, "beef"), "SHA-256 ... , and 'robot_hash' is beef", RuntimeError)
    right = export_shared(RobotChoice(str(TWO_LINK)), 2, tmp_path / "right").parent

    def spoiled(name: str, old: str, new: str, file: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(right, folder)
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        flags = ["-std=c99", "-O0", "-fPIC", "-shared"]
        return compiled_by(CC, flags, sorted(folder.glob("*.c")), folder / "robot.so", "-lm")

    assert_refused(
        (lambda: Core(library, spoiled("abi", "ROBOT_ABI 6", "ROBOT_ABI 7", "robot_table.h")),
         "another version of hodyn_ros (interface 7, this is 6", RuntimeError),
        (lambda: Core(library, spoiled("no", "hodyn_robot_table", "table_of", "two_link_table.c")),
         "is no robot", RuntimeError),
        (lambda: Core(library, spoiled("off", "tau[0] = ", "tau[0] = 1.0001 * ", "two_link.c")),
         "self-test of ... is off by", RuntimeError),
    )  # fmt: skip


def test_what_cannot_be_commanded_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refused(
        (lambda: export_shared(RobotChoice("gough_stewart_6ups.yaml"), 2, tmp_path),
         "moves a base or a platform"),
        (lambda: export_shared(RobotChoice(str(PANDA)), 1, tmp_path), "no feedforward for the motors"),
    )  # fmt: skip
    monkeypatch.setenv("CC", "false")
    with pytest.raises(InputError, match="^false .* failed"):  # and what the compiler says below
        export_shared(RobotChoice(str(TWO_LINK)), 0, tmp_path)


@cache
def panda_robot() -> Robot:
    return Robot.load(PANDA)


@cache
def motors(at: float) -> Array:
    """Positions and velocities of the motors at an instant [s], (2, 7); the motion sets off after 0.3 s."""
    robot = panda_robot()
    q = np.asarray(MOTION.sample(max(at - 0.3, 0.0), 4))
    return np.asarray(robot.require_drives().feedforward(q, robot.inverse_dynamics(q)).position[:2])


@pytest.mark.parametrize(
    ("before", "held_up"),
    [
        *((before, (long,)) for before in ("states", "reference", "update") for long in (0.003, 0.02)),
        ("update", (0.02, 0.002)),  # one after the other
        *((before, (0.014, 0.012, 0.02)) for before in ("states", "reference", "update")),
        ("states", (0.035, 0.03)),  # they make no gap of the measurements
    ],
)
def test_a_loop_that_catches_up_goes_on(
    library: ctypes.CDLL, panda: Path, before: str, held_up: tuple[float, ...]
) -> None:
    """Held up before the states, before the leading controller or after it; updates 10 us apart follow.

    The robot goes on along the motion; what was taken before the hold-up is old when it comes.
    """
    gains = MotorGains.from_frequency(panda_robot().require_drives().motor_inertia, 30.0, 1.0)
    core = Core(library, panda, gains=gains, first=FEEDFORWARD)
    core.activate(HOME, np.full(7, np.nan))
    at, efforts = -1e-3, []
    for k in range(900):
        held = dict(enumerate(held_up, 750)).get(k, 0.0)
        states = max(1e-3 * k, at + 1e-5) + held * (before == "states")
        reference = states + held * (before == "reference")
        last, at = at, reference + held * (before == "update")
        chained = np.full((5, 7), np.nan)
        chained[:3] = MOTION.sample(max(reference - 0.3, 0.0), 2)
        now = EPOCH + round(1e9 * at)
        command, state = core.update(now, *motors(round(states, 5)), chained, elapsed=at - last)
        efforts.append(command[2])
    assert state is State.FOLLOWING, core.events()
    allowed = 0.2 if len(held_up) == 1 else 2.0  # [N.m]
    assert np.abs(np.diff(efforts[740:], axis=0)).max() <= allowed
