"""The time and the memory that a guard takes, for docs/microcontrollers.md: `python -m benchmarks.guard`.

On this machine the guard of the Panda in Python, the one in C++ called from Python by its functions of C, and
the same called from C++; on the Cortex-M7 that QEMU emulates the feedforward of order 2, without and with the
guard. Each takes a measurement and a feedforward, and gives a command, in every cycle of a motion.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from time import thread_time

import numpy as np

from benchmarks.cortex_m7.emulated import COMPILER, FLAGS, build, instructions, measuring_main, missing, run
from hodyn_ros import Robot, share
from hodyn_ros.control.motor_pd import FeedforwardMode, MotorGains, Reference, motor_reference
from hodyn_ros.export.shared import shared_sources
from hodyn_ros.feedforward.model import FeedforwardModel
from hodyn_ros.guard.command_guard import CommandGuard
from hodyn_ros.guard.guard_config import GuardConfig
from hodyn_ros.guard.guarded_robot import effort_model, effort_observer, guard_limits
from hodyn_ros.guard.reasons import State
from hodyn_ros.trajectory.rest import through_points

_ROOT = Path(__file__).parents[1]
_MS = 1_000_000  # [ns]
_HOME, _WAY = np.array([[-0.7, -0.6, -0.6, -2.4, -0.7, 1.0, -0.6], [0.3, 0.2, -0.25, 0.3, 0.2, -0.3, 0.4]])
_GAINS = np.array(
    [[600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0], [50.0, 50.0, 50.0, 20.0, 20.0, 20.0, 10.0]]
)
_SETTLED, _CYCLES = 600, 2000
_ORDER = 2
_INCLUDE = (
    *(f"-I{_ROOT / 'ros2_control'}", f"-I{_ROOT / 'examples' / 'zephyr' / 'src'}"),
    *("-DHODYN_GUARD_JOINTS=7", "-DHODYN_GUARD_ROWS=3"),
)
Array = np.ndarray

# A cycle of the firmware, of a robot that is where it should be.
_CYCLE = """
#include "core/guarded_feedforward.hpp"
#include "motion.hpp"
#include "robot.hpp"  // with the memory that the robot keeps

using namespace hodyn_ros;

namespace
{{
struct Placed : GuardedFeedforward
{{
  using GuardedFeedforward::GuardedFeedforward;
  static void * operator new(size_t, void * place) noexcept {{ return place; }}
}};
constexpr double kGains[2][JOINTS] = {gains};
alignas(8) unsigned char place[sizeof(Placed)], memory[kMemory], stop_memory[kMemory];
GuardedFeedforward * commands;
int64_t now = 1'000'000'000;
double q[ROWS * JOINTS], joint[3 * JOINTS], effort[3 * JOINTS], motor[3 * JOINTS], motor_effort[3 * JOINTS];
}}

extern "C" void feedforward(void)
{{
  motion_at(1e-9 * static_cast<double>(now - 1'500'000'000), q);
  hodyn_robot_table()->feedforward(memory, q, joint, effort, motor, motor_effort);
}}

extern "C" void cycle(void)
{{
  now += 1'000'000;
  feedforward();
  commands->measure(now, now, motor, motor + JOINTS);
  commands->follow(now, now, q);
  commands->command(now, 1e-3);
}}

extern "C" void begin(void)
{{
  CommandConfig config;
  config.gains = {{{{kGains[0], kGains[0] + JOINTS}}, {{kGains[1], kGains[1] + JOINTS}}}};
  config.guard.measured = config.guard.efforts_act = true;
  commands = new (place) Placed(*hodyn_robot_table(), config, memory, stop_memory, kMemory);
  for (int k = 0; k < {settled}; ++k) {{
    cycle();
  }}
}}

extern "C" unsigned state_now(void) {{ return static_cast<unsigned>(commands->guard().state); }}
extern "C" unsigned guard_size(void) {{ return sizeof(guard::CommandGuard); }}
extern "C" unsigned all_size(void) {{ return sizeof(GuardedFeedforward); }}
"""
_DECLARED = """
void begin(void), feedforward(void), cycle(void);
unsigned state_now(void), guard_size(void), all_size(void);
"""
_MODEL = """
#include "robot_table.h"
static double memory[192], joints[7];
void model(const double *links, const double *motors, double *effort)
{
  hodyn_robot_table()->motion_effort(memory, links, motors, joints, effort);
}
void start(void *none, const double *sample)
{
  (void)none;
  hodyn_robot_table()->motor_observer.start(memory, sample);
}
_Bool step(void *none, const double *sample, double period, double *efforts, double *deviations)
{
  (void)none;
  const hodyn_observer *own = &hodyn_robot_table()->motor_observer;
  return own->step(memory, sample, period, efforts, deviations) != HODYN_FAILED;
}
"""


def main() -> None:
    """Print the tables."""
    robot = Robot.load(share.find("config", "panda.yaml"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in shared_sources(robot, _ORDER, None, "panda.yaml", "0" * 64).items():
            (folder / file).write_text(text)
        gains = "{" + ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in _GAINS.tolist()) + "}"
        (folder / "cycle.cpp").write_text(_CYCLE.format(gains=gains, settled=_SETTLED))
        _print_here(robot, folder)
        if absent := missing():
            print(f"not installed: {absent} (Debian: gcc-arm-none-eabi qemu-system-arm)")
        else:
            _print_board(folder)


def _print_here(robot: Robot, folder: Path) -> None:
    streams = list(_streams(robot))
    ours, by_c = _python(robot, streams), _by_c(robot, folder, streams)
    in_c = _in_c(folder)
    print("| a cycle of the guard of the Panda, order 2 | [us] | of that in Python |")
    print("| --- | --- | --- |")
    for what, seconds in (
        ("Python", ours),
        ("C++, called from Python", by_c),
        ("C++, called from C++", in_c),
    ):
        print(f"| {what} | {1e6 * seconds:.1f} | {seconds / ours:.3f} |")


def _streams(robot: Robot) -> Iterator[tuple[int, Reference]]:
    """Yield instants [ns] and motor references about them, of a motion there and back from rest."""
    model, train, times = FeedforwardModel(robot, _ORDER), robot.require_drives(), np.arange(4.0)
    points = np.array([_HOME, _HOME + _WAY, _HOME, _HOME + _WAY])
    motion = through_points(times, points)
    for k in range(_SETTLED + _CYCLES):
        found = model.compute(np.asarray(motion.sample(max(1e-3 * (k - 200), 0.0), _ORDER + 2)))
        yield 1_000_000_000 + k * _MS, motor_reference(FeedforwardMode.ELASTIC, train, found)


def _python(robot: Robot, streams: Sequence[tuple[int, Reference]]) -> float:
    names = robot.joint_names
    model = effort_model(robot, names, motor=True)
    assert model is not None
    guard = CommandGuard(
        names,
        _config(),
        guard_limits(robot, names, motor=True),
        MotorGains(*_GAINS),
        model,
        effort_observer(robot, names, model.links, motor=True),
    )
    begin = 0.0
    for k, (now, reference) in enumerate(streams):
        if k == _SETTLED:
            begin = thread_time()
        guard.measure(now, now, reference.positions[0], reference.positions[1])
        guard.follow(now, now, reference)
        guard.command(now, 1e-3)
    seconds = thread_time() - begin
    assert guard.state is State.FOLLOWING, guard.reason
    return seconds / _CYCLES


def _by_c(robot: Robot, folder: Path, streams: Sequence[tuple[int, Reference]]) -> float:
    """The same by ctypes, with the functions of C that the tests of the guard call."""
    (folder / "model.c").write_text(_MODEL)
    core = _ROOT / "ros2_control" / "guard"
    include = (f"-I{folder}", f"-I{core}")
    library = folder / "guard.so"
    sources = [core / "guard.cpp", _ROOT / "test" / "helpers" / "guard_in_c.cpp", folder / "model.c"]
    sources += folder.glob("panda*.c")
    objects = [_object(source, folder, *include) for source in sources]
    subprocess.run(["c++", "-shared", *objects, "-o", library, "-lm"], check=True)
    c = ctypes.CDLL(str(library))
    c.guard_new.restype = ctypes.c_void_p
    config, limits = _config(), guard_limits(robot, robot.joint_names, motor=True)
    names = [one.name for one in fields(config) if isinstance(getattr(config, one.name), float)]
    numbers = [getattr(config, name) for name in names]
    numbers += [1.0, 1.0, float(config.stop_on)]  # measured, efforts_act
    numbers += [float(list(type(one)).index(one)) for one in (config.end, config.first_effort, config.rejoin)]
    of_limits = np.stack(
        [
            np.broadcast_to(x, (7,))
            for x in (limits.velocity, limits.effort, limits.effort_rate, limits.mismatch)
        ]
    )
    arrays = [_pointer(each) for each in (np.array(numbers), of_limits, _GAINS)]
    guard = ctypes.c_void_p(c.guard_new(7, *arrays, c.model, c.start, c.step))
    given = [
        (
            ctypes.c_int64(now),
            *map(_pointer, (one.positions[0], one.positions[1], *one)),
        )
        for now, one in streams
    ]
    command, told = (ctypes.c_double * 21)(), (ctypes.c_double * 64)()
    period, begin = ctypes.c_double(1e-3), 0.0
    for k, (now, position, velocity, positions, efforts, bent) in enumerate(given):
        if k == _SETTLED:
            begin = thread_time()
        c.guard_measure(guard, now, now, position, velocity)
        c.guard_follow(guard, now, now, positions, 3, efforts, _ORDER + 1, bent, 0)
        c.guard_command(guard, now, period, command, told)
    seconds = thread_time() - begin
    assert list(State)[int(told[0])] is State.FOLLOWING
    return seconds / _CYCLES


def _in_c(folder: Path) -> float:
    """The same in C++, without the feedforward."""
    main = """
    #include <stdio.h>
    #include <time.h>
    DECLARED
    int main(void) {
      double seconds[2];
      begin();
      for (int with = 0; with < 2; ++with) {
        const clock_t from = clock();
        for (int k = 0; k < 100000; ++k) { if (with) cycle(); else feedforward(); }
        seconds[with] = (double)(clock() - from) / CLOCKS_PER_SEC / 100000;
      }
      printf("%g", state_now() == 2 ? seconds[1] - seconds[0] : -1.0);
      return 0;
    }
    """
    (folder / "here.c").write_text(main.replace("DECLARED", _DECLARED))
    sources = [folder / "here.c", folder / "cycle.cpp", *folder.glob("panda*.c")]
    objects = [_object(source, folder, *_INCLUDE, f"-I{folder}") for source in sources]
    subprocess.run(["c++", *objects, "-o", folder / "here", "-lm"], check=True)
    said = subprocess.run([folder / "here"], check=True, capture_output=True, text=True, timeout=120)
    seconds = float(said.stdout)
    assert seconds > 0.0, "the guard has to follow the motion"
    return seconds


def _object(source: Path, folder: Path, *flags: str) -> Path:
    compiler = ("c++", "-std=c++17") if source.suffix == ".cpp" else ("cc", "-std=c99")
    target = folder / f"{source.stem}.o"
    subprocess.run([*compiler, "-O2", "-fPIC", *flags, "-c", source, "-o", target], check=True, timeout=120)
    return target


def _print_board(folder: Path) -> None:
    calls = {"feedforward": "feedforward()", "cycle": "cycle()"}
    text = measuring_main([], calls, _DECLARED, []).replace(
        "int main(void) {", "int main(void) {\n  begin();"
    )
    more = "".join(f'  report("{name}", {name}());\n' for name in ("state_now", "guard_size", "all_size"))
    (folder / "main.c").write_text(text.replace("  return 0;", more + "  return 0;"))
    flags = (*FLAGS, *_INCLUDE, f"-I{folder}")
    bare = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-nostdinc++")
    cycle = folder / "cycle_board.o"
    compiler = COMPILER.replace("gcc", "g++")
    subprocess.run(
        [compiler, *bare, *flags, "-c", folder / "cycle.cpp", "-o", cycle], check=True, timeout=120
    )
    size = subprocess.run(
        [COMPILER.replace("gcc", "size"), cycle], check=True, capture_output=True, text=True
    )
    found = run(build([folder / "main.c", *sorted(folder.glob("panda*.c")), cycle], folder, flags))
    assert found["state_now"] == 2, "the guard has to follow the motion"
    both, alone = (instructions(found[f"{name}_ticks"]) for name in ("cycle", "feedforward"))
    print()
    print("| on a Cortex-M7, in double | instructions | stack [bytes] |")
    print("| --- | --- | --- |")
    print(f"| motion and feedforward of the Panda, order 2 | {alone:.0f} | {found['feedforward_stack']} |")
    print(f"| with the guard | {both:.0f} | {found['cycle_stack']} |")
    print()
    print(
        f"guard: {found['guard_size']} bytes of RAM, with the feedforward {found['all_size']}; "
        f"code {size.stdout.split()[6]} bytes"
    )


def _config() -> GuardConfig:
    return GuardConfig(measured=True, efforts_act=True)


def _pointer(numbers: Sequence[float] | Array) -> ctypes.Array[ctypes.c_double]:
    flat = np.ascontiguousarray(numbers, dtype=np.float64).ravel()
    return (ctypes.c_double * len(flat))(*flat)


if __name__ == "__main__":
    main()
