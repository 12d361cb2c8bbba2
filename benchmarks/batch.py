"""Many samples at once: throughput of a batch on one core and on two."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import ours, robots, vector_gain
from benchmarks.agreement import check
from benchmarks.compiled_loop import compiled_call
from benchmarks.peers import libraries
from benchmarks.stage import Stage
from benchmarks.stopwatch import CLOCK, Array, Contender, Figure, Times
from benchmarks.table import Bound, Row, Section
from hodyn_ros import Robot, share
from hodyn_ros.codegen.kernel import Function
from hodyn_ros.codegen.processor import lanes
from hodyn_ros.codegen.sample_loop import SampleLoop
from hodyn_ros.dynamics.loops.coordinate_motion import LoopedInputs
from hodyn_ros.dynamics.loops.looped import LoopedDynamics
from hodyn_ros.engine.kernel_spec import KernelSpec
from hodyn_ros.trajectory import read_motion

_SAMPLES = 100_000
_ARM = "100 000 samples, 7-joint arm, r = 2"
_ORDER = 2
_PEERS = 10_000
_FEWER = 1000  # of other calls: what most of them write stays in the cache of a core
_TIMES = 3.0  # the throughput of single calls
_OF_GAIN = 0.5  # and of what vectors of this processor gain at all, where that is less
# What single calls compute in lanes as well, their sines and cosines, or what is hardly more than written.
_HARDLY_COMPUTED = (
    *(f"kinematics of all bodies, r = {r}" for r in (0, 2)),
    "Jacobian of the last body, r = 2",
)


def measure(stage: Stage) -> Section:
    """Time 100 000 samples of the 7-joint arm at order 2, each pass over all of them, and fewer of others."""
    title = "batches"
    copies = [robots.panda() for _ in range(ours.COPIES)]
    compiled = ours.inverse_dynamics(copies[0], _ORDER)
    stage.say(f"{title}: preparing", 0.0)
    motions = np.random.default_rng(7).uniform(-1.0, 1.0, size=(_SAMPLES, _ORDER + 3, copies[0].n_joints))
    torques = np.empty((_SAMPLES, _ORDER + 1, copies[0].n_joints))
    addresses = [kernel.code.address for kernel in compiled.kernels]
    singles = compiled_call("loop", addresses, [motions], torques, keep=compiled)
    singles.runs[0](_SAMPLES)
    for robot in copies:
        found = np.asarray(robot.inverse_dynamics(motions))
        check("the batch", found.reshape(_SAMPLES, -1), torques.reshape(_SAMPLES, -1))

    contenders = [
        Contender("loop", [partial(_passes, run) for run in singles.runs]),
        Contender("batch", [partial(_batch, robot, motions, 1, time.process_time) for robot in copies]),
    ]
    for n in (1, 2):
        runs = [partial(_batch, robot, motions, n, time.perf_counter) for robot in copies]
        contenders += [Contender(_on(n), runs)] if n <= _available() else []
    peers = {library: _beside(library) for library in libraries.BATCHES}
    contenders += [contender for peer in peers.values() if peer for contender in peer[1:]]
    others = _others(copies[0]) | _with_loops()
    contenders += [contender for pair in others.values() for contender in pair]
    contenders += vector_gain.contenders()
    times = stage.race(title, contenders, rounds=14 if stage.quick else 70)
    gain = times.speedup(vector_gain.VECTORS, vector_gain.SINGLE)
    least = Bound(min(_TIMES, round(_OF_GAIN * gain.median, 2)), at_least=True)
    rows = [
        Row(f"vectors of {lanes()}: times the fused products and sums", "single numbers", gain),
        Row(
            work=f"{_ARM}, one core: times the throughput",
            against="single calls in a compiled loop",
            result=times.speedup("batch", "loop"),
            ours=times.seconds("batch").median,
            theirs=times.seconds("loop").median,
            must=least,
            aim=Bound(5.0, at_least=True),
        ),
        _two_cores(times),
        *(_peer_row(times, library, peer) for library, peer in peers.items()),
    ]
    for work, (batch, loop) in others.items():
        rows.append(
            Row(
                work=f"{_FEWER} samples, {work}, one core: times the throughput",
                against="single calls in a compiled loop",
                result=times.speedup(batch.name, loop.name),
                ours=times.seconds(batch.name).median,
                theirs=times.seconds(loop.name).median,
                must=None if work in _HARDLY_COMPUTED else least,
            )
        )
    return Section(title, rows)


def _beside(library: str) -> tuple[str, Contender, Contender] | None:
    """Return a library's name, torques of order 0 of a batch by ours, and by it; both on one core."""
    urdf = Path(share.find("config", "panda.urdf"))
    robot = Robot(Robot.from_urdf(urdf).model.with_gravity((0.0, 0.0, -libraries.GRAVITY)))
    motions = np.random.default_rng(9).uniform(-1.0, 1.0, size=(_PEERS, 3, robot.n_coordinates))
    found = libraries.BATCHES[library](urdf, motions)
    if found is None:
        return None
    name, theirs = found
    ours, out = robot.compile_batch(0), np.empty((_PEERS, 1, robot.n_coordinates))
    check(name, np.asarray(theirs()), ours(motions, out=out)[:, 0])

    def timed(call: Callable[[], object], passes: int) -> float:
        with _cores(1):
            start = time.process_time()
            for _ in range(passes):
                call()
            return time.process_time() - start

    return (
        name,
        Contender(f"torques beside {library}", [partial(timed, lambda: ours(motions, out=out, threads=1))]),
        Contender(f"torques, {library}", [partial(timed, theirs)]),
    )


def _peer_row(times: Times, library: str, peer: tuple[str, Contender, Contender] | None) -> Row:
    work = f"{_PEERS} samples, 7-joint arm, r = 0, one core: times the throughput"
    if peer is None:
        return Row(work, library, None, note="not installed")
    name, ours, theirs = peer
    return Row(
        work=work,
        against=name,
        result=times.speedup(ours.name, theirs.name),
        ours=times.seconds(ours.name).median,
        theirs=times.seconds(theirs.name).median,
    )


def _others(robot: Robot) -> dict[str, tuple[Contender, Contender]]:
    """Return batches of other calls, each beside its kernel in a compiled loop."""
    names, tree = robot.model.body_names, robot._need_tree("this")
    kernels: dict[str, Function | None] = {
        "forward dynamics": tree.kernel("forward_dynamics", 0, KernelSpec()),
        "partials of inverse dynamics, r = 0": tree.traced_kernel("inverse_dynamics_derivatives", 0),
        "partials of forward dynamics, r = 0": tree.traced_kernel("forward_dynamics_derivatives", 0),
        "kinematics of the last body, r = 2": tree.traced_kernel(
            "forward_kinematics", 2, names[-1:], "body_fixed"
        ),
        **{
            f"kinematics of all bodies, r = {r}": tree.traced_kernel(
                "forward_kinematics", r, names, "spatial"
            )
            for r in (0, 2, 4)
        },
        "Jacobian of the last body, r = 2": tree.traced_kernel("jacobian", 2, names[-1], "spatial"),
        **{
            f"{what.replace('_', ' ')}, r = {r}": tree.traced_kernel(what, r)
            for what in ("mass_matrix", "coriolis_matrix", "gravity_torque", "regressor")
            for r in (0, 2)
        },
    }
    rng, found = np.random.default_rng(8), {}
    for work, kernel in kernels.items():
        assert kernel is not None
        arrays = [rng.uniform(-1.0, 1.0, size=(_FEWER, *shape)) for _, shape in kernel.arguments]
        right, out = np.empty((_FEWER, *kernel.result)), np.empty((_FEWER, *kernel.result))
        single = compiled_call(work, [kernel.code.address], arrays, right, keep=kernel)
        single.runs[0](_FEWER)
        kernel.batch(*arrays, out=out, threads=1)
        check(work, out.reshape(_FEWER, -1), right.reshape(_FEWER, -1))

        loop = Contender(f"{work}, loop", [partial(_samples, single.runs[0])])
        batch = partial(kernel.batch, *arrays, out=out, threads=1)
        found[work] = Contender(work, [partial(_timed, batch)]), loop
    return found


def _with_loops() -> dict[str, tuple[Contender, Contender]]:
    """Return batches of robots with loops in lanes, each beside the same samples in a compiled loop."""
    found = {}
    for file, name in (("delta", "Delta with parallelograms"), ("palletiser", "palletiser")):
        robot = Robot.load(share.find("config", f"{file}.yaml"))
        path = read_motion(share.find("config", f"{file}_motion.yaml")).for_joints(robot.joint_names)
        times = 0.3 + 1e-3 * np.arange(_FEWER)
        q = np.array([path.sample(float(t), _ORDER + 2).joints for t in times])
        looped = robot._need_loops("this")
        torques = np.array(robot.inverse_dynamics(q))[:, :1]
        looped.accelerations(LoopedInputs(q[:, :2]), torques)  # which compiles, as the others do
        robot.inverse_dynamics(q[0])
        run, joint_motion = partial(_run, looped, looped.memory.copy()), looped.joint_call(_ORDER)
        made = {
            "efforts, r = 2": (looped.effort_call(_ORDER).samples(), [q]),
            "accelerations, r = 0": (looped.forward_call(0).samples(), [q[:, :2], torques]),
            "joint motion, r = 2": (joint_motion.samples(), [q[:, : _ORDER + 1]]),
            "mass matrix, r = 0": (looped.product_call("mass_matrix", 0).samples(), [q[:, :1]]),
        }
        for work, (loop, arrays) in made.items():
            assert isinstance(loop, SampleLoop) and loop.call.in_lanes is not None
            one_by_one = SampleLoop(loop.call)
            one_by_one.__dict__["_in_lanes"] = None
            stacks = [np.ascontiguousarray(array) for array in arrays]
            right, batch = run(one_by_one, stacks), run(loop, stacks)
            check(f"{name}: {work}", batch.reshape(1, -1), right.reshape(1, -1))

            found[f"{name}: {work}"] = (
                Contender(f"{name}: {work}", [partial(_timed, partial(run, loop, stacks))]),
                Contender(f"{name}: {work}, loop", [partial(_timed, partial(run, one_by_one, stacks))]),
            )
    return found


def _run(looped: LoopedDynamics, start: Array, loop: SampleLoop, arrays: list[Array]) -> Array:
    """Compute all samples from one place; none may need more than compiled code."""

    def failed(sample: int) -> Array:
        raise AssertionError(f"sample {sample}")

    looped.memory[:] = start
    return loop.run(_FEWER, arrays, looped.memory, failed)


def _timed(call: Callable[[], object], passes: int) -> float:
    start = CLOCK()
    for _ in range(passes):
        call()
    return CLOCK() - start


def _samples(run: Callable[[int], float], passes: int) -> float:
    return run(passes * _FEWER)


def _passes(run: Callable[[int], float], passes: int) -> float:
    return run(passes * _SAMPLES)


def _batch(robot: Robot, motions: Array, cores: int, clock: Callable[[], float], passes: int) -> float:
    with _cores(cores):
        start = clock()
        for _ in range(passes):
            robot.inverse_dynamics(motions)
        return clock() - start


def _on(cores: int) -> str:
    return f"batch on {cores} cores"


def _two_cores(times: Times) -> Row:
    """Compare by the clock on the wall, which only undisturbed rounds read right: the fastest of each."""
    work, against = f"{_ARM}, two cores: times the throughput", "batch on one core"
    if _available() < 2:
        return Row(work, against, None, note="this machine has one core")
    one, two = (float(times.rounds(_on(n)).min()) for n in (1, 2))
    spread = times.speedup(_on(2), _on(1))
    return Row(
        work=work,
        against=against,
        result=Figure(one / two, spread.low, spread.high),
        ours=two,
        theirs=one,
        must=Bound(1.8, at_least=True),
    )


def _available() -> int:
    return len(os.sched_getaffinity(0))


@contextmanager
def _cores(count: int) -> Iterator[None]:
    """Keep this thread to that many cores: a batch wakes no more threads than its caller has cores."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(everywhere)[:count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)
