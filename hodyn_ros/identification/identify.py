"""From a recording to a robot: inertias, friction, motors, springs and delays, and what stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.errors import InputError
from hodyn_ros.identification.bandwidth import best_data
from hodyn_ros.identification.base_parameters import BaseParameters, base_parameters
from hodyn_ros.identification.consistency import nearest_bodies
from hodyn_ros.identification.figures import (
    base_figures,
    friction_figures,
    in_units_of_joints,
    notes,
    spring_figures,
)
from hodyn_ros.identification.interruptions import without_interruptions
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.estimate import Estimate, estimate, refitted_springs
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.leftovers import missing_terms, stretches_apart, unexplained_efforts
from hodyn_ros.identification.plausibility import check_friction, check_plausible
from hodyn_ros.identification.recording import JointRecording
from hodyn_ros.identification.result import Figure, Fit, Identified, without_mean
from hodyn_ros.identification.springs.deflection import COMPLIANCE, DELAY, KINDS, LAG, coefficients
from hodyn_ros.identification.springs.resonance import Resonance, resonances
from hodyn_ros.identification.springs.terms import Terms, share_behind, spring_terms
from hodyn_ros.identification.torque_model import SpringFigures, TorqueModel, file_transition
from hodyn_ros.model.keys import said_in_file

_LEAST_WARMING = 2.0  # [K] between which temperatures friction is told apart
# Friction that is always sought, and what needs no search: at which load, and how it changes when warm.
_SOUGHT = {"viscous", "coulomb", "transition", "load_transition", "temperature", "viscous_by_temperature"}
_CONTRADICT = 4.0  # standard deviations that figures of two recordings differ by


@dataclass(frozen=True)
class Options:
    """How to identify."""

    only: Literal["all", "payload"] = "all"
    bandwidth: float | None = None  # [Hz] of the motion; by cross-validation where none is given
    trust: float = 1.0  # deviation of the file's inertias, as a share of mass, mass times length, ...
    friction: tuple[Literal["load", "temperature"], ...] = ()  # what friction is sought to depend on as well


def identify(
    robot: Robot,
    recordings: JointRecording | Sequence[JointRecording],
    options: Options | None = None,
    progress: Callable[[float], None] | None = None,
) -> Identified:
    """Identify a robot that is a tree on the ground from recordings of its joints.

    Each recording has its own noise, and where encoders on both sides of a gear count from. Figures that two
    of them contradict are named. With `only="payload"` the inertia of the last body alone is sought, and
    offsets of efforts. Raises InputError where a recording cannot be one of this robot, in one line that
    names the joint.
    """
    options = options or Options()
    if not robot.is_arm:
        raise InputError(
            f"robot {robot.name!r} has loops, couplings or a moving base; arms on the ground are identified"
        )
    train = robot.drive_train
    for name, spec in zip(robot.joint_names, () if train is None else train.specs):
        if spec.variable_stiffness is not None or spec.rotor is not None:
            what = "a rotor that turns with a link" if spec.rotor is not None else "variable stiffness"
            raise InputError(f"the drive of joint {name!r} has {what}, which is not identified yet")
    recordings = [recordings] if isinstance(recordings, JointRecording) else recordings
    several = len(recordings) > 1
    recordings, left_out = _unbroken([_in_order(each, robot) for each in recordings])
    _check_alike(recordings)
    model = _model(robot, recordings, options)
    runs, doubts = [], []
    for recording in recordings:
        data = Data(recording, options.bandwidth)
        doubts += check_plausible(model, data)
        if options.bandwidth is None:
            data = best_data(model, recording, lambda each: _spreads(model, [each], options))
        runs.append(data)
    spreads = _spreads(model, runs, options)
    estimated = estimate(model, runs, spreads, progress)
    check_friction(model, runs[0], estimated)
    missing, wider = missing_terms(model, runs, estimated, spreads)
    parameters, unknowns = _possible(model, runs, estimated, spreads)
    terms = spring_terms(model, runs, parameters, unknowns, _touched(model, runs, parameters, unknowns))
    for i, j in enumerate(runs[0].elastic):
        if j in terms:
            unknowns.springs[:, i] = terms[j].spring
    heard = _resonances(model, runs, parameters, unknowns) if options.only == "all" else {}
    estimated = replace(estimated, covariance=wider)
    result = _result(model, runs, estimated, parameters, unknowns, terms, heard, spreads)
    notes = [f"to be looked at: {doubt}" for doubt in dict.fromkeys(doubts)]
    notes += [f"{each.recording.source}: {each.held.line}" for each in runs if each.held is not None]
    notes += _contradictions(model, runs, result, spreads) if several else []
    for source, (efforts, _) in ((runs[0].recording.source, (result.efforts, ())), *result.further):
        notes += unexplained_efforts(source, efforts)
    return replace(result, notes=(*left_out, *notes, *missing, *result.notes))


def _model(robot: Robot, recordings: Sequence[JointRecording], options: Options) -> TorqueModel:
    """Return the model of efforts, with the friction that is sought. Raises InputError."""
    first = recordings[0]
    if options.friction and (first.transmission is not None or not first.at_motor):
        raise InputError(
            "friction by load and temperature is identified from efforts of motors that turn one joint each"
        )
    temperatures = None
    if "temperature" in options.friction:
        for each in recordings:
            if each.temperatures is None or not each.temperatures.measured.any():
                raise InputError(f"{each.source} has no temperatures; friction by temperature needs them")
        known = [each.temperatures.values for each in recordings if each.temperatures is not None]
        means = [values.mean(axis=0) for values in known]
        spans = np.ptp(np.concatenate(known), axis=0)
        if (spans < _LEAST_WARMING).any():
            j = int(np.nanargmin(spans))
            raise InputError(
                f"joint {robot.joint_names[j]!r} was within {spans[j]:.2g} K all along; friction by "
                f"temperature needs recordings that differ by {_LEAST_WARMING:g} K at least, such as one "
                "before and one after the robot got warm"
            )
        temperatures = np.mean(means, axis=0)
    _check_friction(robot, options)
    return TorqueModel(robot, first.transmission, "load" in options.friction, temperatures)


def _check_friction(robot: Robot, options: Options) -> None:
    """Raise InputError for friction in the file that is not sought, as it would count twice."""
    train = robot.drive_train
    for name, spec in zip(robot.joint_names, () if train is None else train.specs):
        for friction in (spec.motor_friction, spec.link_friction):
            left = set(said_in_file(friction)) - _SOUGHT - set(options.friction)
            if left:
                key = min(left)
                mend = "ask for it (--friction load)" if key == "load" else "leave it out of the file"
                raise InputError(
                    f"the friction of joint {name!r} has {key}, which is not sought here and would count "
                    f"twice, as the efforts that it causes are taken for other friction; {mend}"
                )


def _check_alike(recordings: Sequence[JointRecording]) -> None:
    """Raise InputError where recordings are not of the same channels."""
    first = recordings[0]
    for other in recordings[1:]:
        alike = (
            np.array_equal(first.both_sides, other.both_sides)
            and np.array_equal(first.efforts.measured, other.efforts.measured)
            and first.at_motor == other.at_motor
            and (first.transmission is None) == (other.transmission is None)
        )
        if not alike:
            raise InputError(
                f"{other.source} has other channels than {first.source}; recordings that are identified "
                "together need efforts and encoders of the same joints"
            )


def _touched(
    model: TorqueModel, runs: Sequence[Data], parameters: Array, unknowns: Unknowns
) -> list[dict[str, list[tuple[float, float]]]]:
    """Return stretches [s] of each run in which efforts are not as elsewhere, by joint."""
    if not len(runs[0].elastic):
        return [{} for _ in runs]
    return [
        {fit.joint: stretches_apart(fit) for fit in fits(model, data, parameters, unknowns)[0]}
        for data in runs
    ]


def _resonances(
    model: TorqueModel, runs: Sequence[Data], parameters: Array, unknowns: Unknowns
) -> dict[int, Resonance]:
    """Return what each joint with one encoder says of its spring, in the run that says it best."""
    best: dict[int, Resonance] = {}
    for data in runs:
        for joint, heard in resonances(model, data, parameters, unknowns).items():
            if joint not in best or _uncertainty(heard) < _uncertainty(best[joint]):
                best[joint] = heard
    return best


def _uncertainty(heard: Resonance) -> float:
    return np.inf if heard.reason else heard.deviation / heard.stiffness


def _contradictions(
    model: TorqueModel, runs: Sequence[Data], result: Identified, spreads: Array
) -> list[str]:
    """Return what two runs, each by itself, say differently of a figure."""
    by_name: dict[str, list[tuple[Figure, str]]] = {}
    for data in runs:
        alone = estimate(model, [data], spreads)
        covariance = alone.covariance[: len(spreads), : len(spreads)]
        figures = base_figures(model, result.base, alone.unknowns.parameters, covariance, spreads)
        figures += friction_figures(model, data, alone, alone.unknowns)
        figures += spring_figures(model, data, alone, alone.unknowns, {}, {}, spreads)
        for figure in in_units_of_joints(figures, model.robot):
            if figure.identified and "without load" not in figure.name:
                by_name.setdefault(figure.name, []).append((figure, data.recording.source))
    lines = []
    for name, pairs in by_name.items():
        (low, one), (high, other) = (f(pairs, key=lambda pair: pair[0].value) for f in (min, max))
        if high.value - low.value > _CONTRADICT * np.hypot(low.deviation, high.deviation):
            lines.append(
                f"{name}: {low.value:.4g} ± {low.deviation:.2g} {low.unit} by {one}, {high.value:.4g} ± "
                f"{high.deviation:.2g} by {other}; was the robot the same (payload, temperature)?"
            )
    return lines


def _unbroken(recordings: Sequence[JointRecording]) -> tuple[list[JointRecording], list[str]]:
    """Return the pieces of recordings between interruptions, and what was left out."""
    pairs = [without_interruptions(each) for each in recordings]
    return [piece for pieces, _ in pairs for piece in pieces], [line for _, lines in pairs for line in lines]


def _in_order(recording: JointRecording, robot: Robot) -> JointRecording:
    if recording.joint_names == robot.joint_names:
        return recording
    missing = [name for name in robot.joint_names if name not in recording.joint_names]
    if missing:
        raise InputError(
            f"joint {missing[0]!r} is missing from {recording.source}, which has "
            f"{list(recording.joint_names)}"
        )
    return recording.of_joints(robot.joint_names)


def _spreads(model: TorqueModel, runs: Sequence[Data], options: Options) -> Array:
    """Return the spreads of parameters about the prior (P,), 0 where they are held."""
    data = runs[0]
    sizes = np.max([_sizes(model, each) for each in runs], axis=0)
    spreads = model.scales(sizes[0], sizes[1], sizes[2], options.trust)
    unmeasured = ~data.recording.efforts.measured
    for kind in range(model.kinds):
        spreads[model.place(kind)][unmeasured] = 0.0
    if not data.recording.at_motor:
        spreads[model.place(0)] = 0.0
    if options.only == "payload":
        sought = np.zeros(len(spreads), dtype=bool)
        sought[model.bodies - 10 : model.bodies] = True
        sought[model.place(3)] = True
        spreads[~sought] = 0.0
    return spreads


def _sizes(model: TorqueModel, data: Data) -> tuple[Array, Array, Array]:
    """Return how large efforts, velocities and accelerations are (n,)."""
    motion = data.motion(data.effort_times, np.zeros(model.n))
    size = np.nanstd(data.efforts, axis=0)
    effort = 3.0 * np.where(size > 0.0, size, np.nanmax(size)) + np.abs(np.nanmean(data.efforts, axis=0))
    effort = np.where(np.isfinite(effort), effort, np.nanmax(effort))
    speed = np.maximum(np.std(motion.motor_velocity, axis=0), 1e-9)
    acceleration = np.maximum(np.std(motion.motor_acceleration, axis=0), 1e-9)
    return effort, speed, acceleration


def _possible(
    model: TorqueModel, runs: Sequence[Data], estimated: Estimate, spreads: Array
) -> tuple[Array, Unknowns]:
    """Return the parameters nearest to the estimate that a robot can have, and what follows for the rest."""
    p, free = len(spreads), spreads > 0.0
    lower = np.full(p, -np.inf)
    lower[model.bodies :] = 0.0
    lower[model.place(3)] = -np.inf
    if model.by_temperature is not None:
        lower[model.place(model.by_temperature)] = -np.inf
    scale = np.where(free, spreads, 1.0)
    information = estimated.information + np.diag(np.where(free, 1.0, 0.0) / scale**2)
    information[~free] = information[:, ~free] = 0.0
    best = estimated.unknowns.parameters
    possible = nearest_bodies(best, information, model.prior, lower, model.bodies)
    if np.array_equal(possible, best):
        return best, estimated.unknowns
    covariance = estimated.covariance
    inner = covariance[:p, :p] / np.outer(scale, scale)
    moved = np.linalg.pinv(inner, rcond=1e-12, hermitian=True) @ ((possible - best) / scale)
    step = covariance[:, :p] @ (moved / scale)
    step[:p] = possible - best
    nearest = estimated.unknowns.moved(step)
    if not estimated.elastic:
        return possible, nearest
    before, after = (
        refitted_springs(model, runs, each, estimated.noise).springs for each in (estimated.unknowns, nearest)
    )
    return possible, replace(nearest, springs=estimated.unknowns.springs + after - before)


def _result(
    model: TorqueModel,
    runs: Sequence[Data],
    estimated: Estimate,
    parameters: Array,
    unknowns: Unknowns,
    terms: Mapping[int, Terms],
    heard: Mapping[int, Resonance],
    spreads: Array,
) -> Identified:
    p, data = len(spreads), runs[0]
    covariance = estimated.covariance
    base = _base(model, data, spreads)
    figures = base_figures(model, base, parameters, covariance[:p, :p], spreads)
    figures += friction_figures(model, data, estimated, unknowns)
    figures += spring_figures(model, data, estimated, unknowns, terms, heard, spreads)
    figures = in_units_of_joints(figures, model.robot)
    delay = float(np.sqrt(covariance[-1, -1]))
    effort_delay = Figure("delay of the efforts", "s", unknowns.effort_delay, delay, 0.0, True)
    springs = _springs(model, figures, terms)
    drives = model.with_drives(parameters, springs, _transitions(model, figures, unknowns))
    robot = model.with_links(parameters).with_drives(drives)
    predicted = [fits(model, each, parameters, unknowns) for each in runs]
    efforts, deflections = predicted[0]
    further = tuple(
        (each.recording.source, (of_efforts, tuple(map(without_mean, bent))))
        for each, (of_efforts, bent) in zip(runs[1:], predicted[1:])
    )
    return Identified(
        robot,
        ", ".join(each.recording.source for each in runs),
        parameters,
        estimated.unknowns.parameters,
        covariance[:p, :p],
        model.prior,
        model.names,
        base,
        tuple(figures),
        effort_delay,
        _condition(estimated.information, base),
        estimated.bandwidths,
        efforts,
        deflections,
        further,
        unknowns,
        tuple(data.elastic),
        data.ripples,
        dict(data.curves),
        tuple(notes(model, figures, parameters)),
        model.by_load is not None,
        model.temperatures,
    )


def _base(model: TorqueModel, data: Data, spreads: Array) -> BaseParameters:
    """Base parameters of the bodies and motors, from motion of any kind within the recorded range."""
    motion = data.motion(data.effort_times, np.zeros(model.n))
    random = np.random.default_rng(0)
    picks = random.integers(len(motion.q), size=60)
    shape = (60, model.n)
    sizes = [np.std(values, axis=0) for values in (motion.qd, motion.qdd)]
    rates = [size * random.standard_normal(shape) for size in sizes]
    somewhere = type(motion)(motion.q[picks], rates[0], rates[1], rates[0], rates[1])
    columns = model.columns(somewhere, data.recording.at_motor)[:, data.recording.efforts.measured]
    rows = columns / np.maximum(np.nanstd(data.efforts, axis=0), 1e-12)[data.recording.efforts.measured, None]
    scales = spreads.copy()
    scales[model.bodies + model.n :] = 0.0
    if not scales.any():
        return BaseParameters(np.zeros((0, len(scales))), (), ())
    return base_parameters(rows.reshape(-1, len(scales)), scales, model.names, model.units)


def _springs(
    model: TorqueModel, figures: Sequence[Figure], terms: Mapping[int, Terms]
) -> dict[int, SpringFigures]:
    """Return what robot files say of the springs that were identified, by themselves or beside their load."""
    known = {each.name: each for each in figures if each.identified or each.by_ratio}
    springs = {}
    for j, name in enumerate(model.robot.joint_names):
        stiffness = known.get(f"stiffness of {name}")
        if stiffness is None:
            continue
        damping = known.get(f"spring damping of {name}")
        extra = terms.get(j)
        share = float(np.clip(share_behind(extra)[0], 0.0, 1.0)) if extra and extra.friction else None
        cubic = extra.curve.cubic_stiffness(stiffness.value) if extra else 0.0
        table = extra.curve.table if extra else None
        springs[j] = SpringFigures(stiffness.value, damping.value if damping else 0.0, cubic, table, share)
    return springs


def _transitions(model: TorqueModel, figures: Sequence[Figure], unknowns: Unknowns) -> dict[int, float]:
    """Return the transition speeds that belong to the Coulomb friction, where the motion shows both.

    A file keeps its own one where friction was not found, or sticks too much to show how it turns over.
    """
    known = {each.name for each in figures if each.identified}
    return {
        j: file_transition(*unknowns.friction_shape[:, j].tolist())
        for j, name in enumerate(model.robot.joint_names)
        if {f"Coulomb friction of {name}", f"transition speed of {name}"} <= known
    }


def fits(
    model: TorqueModel, data: Data, parameters: Array, unknowns: Unknowns
) -> tuple[tuple[Fit, ...], tuple[Fit, ...]]:
    """Return how efforts and deflections of a recording are predicted by parameters.

    Beside them what the figures of the file say, with its friction and springs. Delays and offsets are those
    of the recording in both.
    """
    names = model.robot.joint_names
    motion = data.fast_motion(data.acted(unknowns.effort_delay), data.late(unknowns))
    rubs = model.of_friction

    def effort(figures: Array, friction_shape: Array) -> Array:
        """What accelerations give is known below the bandwidth, friction as fast as it turns over."""
        columns = model.columns(motion, data.recording.at_motor, friction_shape, figures)
        return data.slow_effort(columns[..., ~rubs] @ figures[~rubs]) + columns[..., rubs] @ figures[rubs]

    predicted = effort(parameters, unknowns.friction_shape)
    before = effort(model.prior, model.friction_shape)
    efforts = [
        Fit(names[j], data.effort_times, data.efforts[:, j], predicted[:, j], before[:, j])
        for j in np.flatnonzero(data.recording.efforts.measured)
    ]
    if not len(data.elastic):
        return tuple(efforts), ()
    deflections = []
    for i, (j, part) in enumerate(zip(data.elastic, data.springs(model, unknowns))):
        deflection = part @ coefficients(model, parameters, unknowns.springs[:, i], j)
        if j in data.curves:
            load = part[:, : model.bodies] @ parameters[: model.bodies]
            compliance = unknowns.springs[COMPLIANCE, i]
            deflection = deflection + data.curves[j].beyond(load, compliance)
        spec, spring = model.specs[j], np.zeros(KINDS)
        spring[COMPLIANCE], spring[LAG] = 1.0 / spec.stiffness, spec.spring_damping / spec.stiffness**2
        spring[DELAY:LAG] = unknowns.springs[DELAY:LAG, i]  # of the recording
        file = part @ coefficients(model, model.prior, spring, j)
        file = np.full_like(file, np.nan) if np.isinf(spec.stiffness) else file
        deflections.append(Fit(names[j], data.link_times, data.deflections[:, j], deflection, file))
    return tuple(efforts), tuple(deflections)


def _condition(information: Array, base: BaseParameters) -> float:
    """Condition number of the weighted rows of the base parameters, whose columns are made equally long."""
    if not base.names:
        return float("nan")
    chosen = np.array([int(np.flatnonzero(row == 1.0)[0]) for row in base.combination])
    part = information[np.ix_(chosen, chosen)]
    length = np.sqrt(np.maximum(np.diag(part), 1e-300))
    values = np.linalg.eigvalsh(part / np.outer(length, length))
    return float(np.sqrt(values[-1] / values[0])) if values[0] > 0.0 else float("inf")
