"""What was found as figures with names, units and deviations, and why the others were not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hodyn_ros.array import Array
from hodyn_ros.dynamics.robot import Robot
from hodyn_ros.identification.base_parameters import BaseParameters
from hodyn_ros.identification.least_squares.data import Data
from hodyn_ros.identification.least_squares.estimate import Estimate, load_sways
from hodyn_ros.identification.least_squares.unknowns import Unknowns
from hodyn_ros.identification.result import Figure
from hodyn_ros.identification.springs.deflection import COMPLIANCE, DELAY, ECCENTRICITY, LAG, OFFSET, RIPPLE
from hodyn_ros.identification.springs.resonance import Resonance
from hodyn_ros.identification.springs.terms import Terms, share_behind, wave_size
from hodyn_ros.identification.torque_model import Motion, TorqueModel

_CERTAIN = 2.0  # standard deviations that a figure is away from zero, to count as identified: 95 %
_LEARNT = 0.5  # share of the spread of the prior to which a recording has to bring a base parameter
_HIDDEN = "the motion hardly shows it; it stays near the file's"

_RATIO = (
    "not identifiable from this recording, because only its ratio to the inertias that load it is, and the "
    "motion hardly shows these; weigh what the joint moves, and say with --trust how well the file knows it"
)


def base_figures(
    model: TorqueModel, base: BaseParameters, parameters: Array, covariance: Array, prior_deviations: Array
) -> list[Figure]:
    """Return the base parameters; identified where the recording halves what the file leaves open."""
    values, before = base.combination @ parameters, base.combination @ model.prior
    deviations = np.sqrt(
        np.maximum(np.einsum("bi,ij,bj->b", base.combination, covariance, base.combination), 0.0)
    )
    wide = np.sqrt((base.combination**2) @ prior_deviations**2)
    figures = []
    for name, unit, value, deviation, prior, prior_spread in zip(
        base.names, base.units, values, deviations, before, wide
    ):
        learnt = deviation < _LEARNT * prior_spread
        reason = "" if learnt else _HIDDEN
        figures.append(Figure(name, unit, float(value), float(deviation), float(prior), bool(learnt), reason))
    return figures


def friction_figures(model: TorqueModel, data: Data, estimate: Estimate, unknowns: Unknowns) -> list[Figure]:
    """Return viscous and Coulomb friction and offsets of efforts of joints whose efforts were measured."""
    deviation = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
    figures = []
    for kind in range(1, model.kinds):
        for j in np.flatnonzero(data.recording.efforts.measured).tolist():
            at = model.place(kind).start + j
            if kind > 3 and not deviation[at]:
                continue
            value, width = float(unknowns.parameters[at]), float(deviation[at])
            size = abs(value) if kind == model.by_temperature else value
            sure = width > 0.0 and (kind == 3 or size > _CERTAIN * width)
            reason = "" if sure else "not above its uncertainty" if width else "held at the file's"
            before = float(model.prior[at])
            figures.append(Figure(model.names[at], model.units[at], value, width, before, bool(sure), reason))
    shares = deviation[unknowns.of_shape].reshape(2, model.n)
    for row, what, unit in ((0, "transition speed of", "rad/s"), (1, "sharpness of the friction of", "")):
        for j in np.flatnonzero(shares[row]).tolist():
            value, before = float(unknowns.friction_shape[row, j]), float(model.friction_shape[row, j])
            width = float(shares[row, j]) * (value if row == 0 else 1.0)
            sure = shares[row, j] < _LEARNT
            reason = "" if sure else "the motion hardly shows it"
            name = f"{what} {model.robot.joint_names[j]}"
            figures.append(Figure(name, unit, value, width, before, bool(sure), reason))
    return figures


def spring_figures(
    model: TorqueModel,
    data: Data,
    estimate: Estimate,
    unknowns: Unknowns,
    terms: Mapping[int, Terms],
    resonances: Mapping[int, Resonance],
    prior_deviations: Array,
) -> list[Figure]:
    """Return what is known of the springs of all joints, by their encoders or by their resonances."""
    figures = []
    sways = load_sways(model, [data], unknowns) if data.elastic else ()
    for i, (j, sway) in enumerate(zip(data.elastic, sways)):
        by_ratio = _known_by_ratio(model, estimate, unknowns, sway, prior_deviations, i)
        figures += _bent(model, data, estimate, unknowns, terms.get(j), by_ratio, i)
    names = model.robot.joint_names
    for j in sorted(set(range(model.n)) - set(data.elastic)):
        prior = model.specs[j].stiffness
        seen = resonances.get(j, Resonance(reason="held at the file's"))
        figures.append(
            Figure(
                f"stiffness of {names[j]}", "N·m/rad", seen.stiffness, seen.deviation, prior,
                not seen.reason, seen.reason,
            )
        )  # fmt: skip
        if seen.damping > _CERTAIN * seen.damping_deviation > 0.0:
            damping, width = seen.damping, seen.damping_deviation
            before = model.specs[j].spring_damping
            figures.append(Figure(f"spring damping of {names[j]}", "N·m·s/rad", damping, width, before, True))
    return figures


def in_units_of_joints(figures: Sequence[Figure], robot: Robot) -> list[Figure]:
    """Return figures as they are found of turns, with m and N where they are of slides."""
    slides = tuple(f" of {name}" for name in robot.joint_names if robot.tree.slides(name))
    return [
        replace(figure, unit=_unit_of_slide(figure), reason=_of_slide(figure.reason))
        if figure.name.endswith(slides)
        else figure
        for figure in figures
    ]


def _unit_of_slide(figure: Figure) -> str:
    if figure.name.startswith("motor inertia"):
        return "kg"
    return _of_slide(figure.unit)


def _of_slide(words: str) -> str:
    return words.replace("(N·m)", "N").replace("N·m", "N").replace("rad", "m")


def _known_by_ratio(
    model: TorqueModel,
    estimate: Estimate,
    unknowns: Unknowns,
    sway: Array,
    prior_deviations: Array,
    i: int,
) -> bool:
    """Whether of a spring and its load the ratio alone is known, and the load from the file alone.

    `sway` (bodies,) says by which share the load grows with the inertias.
    """
    at, bodies = unknowns.of_spring(COMPLIANCE, i), model.bodies
    compliance = unknowns.vector[at]
    ratio = np.r_[compliance * sway, 1.0]
    places = np.r_[:bodies, at]
    covariance = estimate.covariance[np.ix_(places, places)]
    width = np.sqrt(max(ratio @ covariance @ ratio, 0.0))
    left = np.sqrt(max(sway @ covariance[:-1, :-1] @ sway, 0.0))
    file = np.sqrt(sway**2 @ prior_deviations[:bodies] ** 2)
    guessed = left >= _LEARNT * file and _CERTAIN * file > abs(sway @ model.prior[:bodies])
    return bool(guessed and compliance > _CERTAIN * width)


def _bent(
    model: TorqueModel,
    data: Data,
    estimate: Estimate,
    unknowns: Unknowns,
    terms: Terms | None,
    by_ratio: bool,
    i: int,
) -> list[Figure]:
    """Figures of a joint with two encoders."""
    j, at = data.elastic[i], unknowns.of_spring
    deviation = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
    name, prior = model.robot.joint_names[j], model.specs[j].stiffness
    compliance, width = float(unknowns.springs[COMPLIANCE, i]), float(deviation[at(COMPLIANCE, i)])
    if terms is not None:
        width = _width_with_terms(estimate, terms, at(COMPLIANCE, i), COMPLIANCE)
    sure = compliance > _CERTAIN * width and not by_ratio
    value = 1.0 / compliance if compliance else np.inf
    reason = _RATIO if by_ratio else ""
    if not sure and not by_ratio:
        reason = _soft_reason(compliance, width, estimate.deflections[j].sigma, _carries(model, data, j))
    stiffness = Figure(f"stiffness of {name}", "N·m/rad", value, width * value**2, prior, bool(sure), reason)
    figures = [replace(stiffness, by_ratio=by_ratio)]
    for kind, what, unit in (
        (DELAY, "delay of the link encoder of", "s"),
        (OFFSET, "motor minus link without load, of", "rad"),
    ):
        value, width = float(unknowns.springs[kind, i]), float(deviation[at(kind, i)])
        if terms is not None:  # friction behind the spring is nearly a delay, as it grows with the speed
            width = max(width, _width_with_terms(estimate, terms, at(kind, i), kind))
        figures.append(Figure(f"{what} {name}", unit, value, width, 0.0, True))
    if sure and (damping := _damping(name, estimate, unknowns, i, model.specs[j].spring_damping)) is not None:
        figures.append(damping)
    return (
        figures
        if terms is None
        else figures + _term_figures(name, terms, 1.0 / compliance if sure else np.nan)
    )


def _damping(name: str, estimate: Estimate, unknowns: Unknowns, i: int, prior: float) -> Figure | None:
    """The damping D = d K^2 of a spring, where the recording shows it."""
    places = [unknowns.of_spring(LAG, i), unknowns.of_spring(COMPLIANCE, i)]
    compliance, lag = unknowns.springs[[COMPLIANCE, LAG], i]
    damping = lag / compliance**2
    slopes = np.array([1.0 / compliance**2, -2.0 * damping / compliance])
    width = float(np.sqrt(slopes @ estimate.covariance[np.ix_(places, places)] @ slopes))
    if damping <= _CERTAIN * width:
        return None
    return Figure(f"spring damping of {name}", "N·m·s/rad", float(damping), width, prior, True)


def _width_with_terms(estimate: Estimate, terms: Terms, place: int, kind: int) -> float:
    """Return the deviation of what was sought again with the load held: of both, added up."""
    p = len(estimate.unknowns.parameters)
    size = np.sqrt(np.diag(estimate.covariance)[:p])
    used = size > 0.0
    alike = estimate.covariance[:p, :p][np.ix_(used, used)] / np.outer(size[used], size[used])
    cross = estimate.covariance[:p, place][used] / size[used]
    of_load = float(cross @ np.linalg.pinv(alike, rcond=1e-10, hermitian=True) @ cross)
    ratio = terms.spring[COMPLIANCE] / estimate.unknowns.vector[place] if kind == COMPLIANCE else 1.0
    return float(np.sqrt(max(of_load, 0.0) * ratio**2 + terms.deviation[kind] ** 2))


def _term_figures(name: str, terms: Terms, stiffness: float) -> list[Figure]:
    figures, curve = [], terms.curve
    if np.isfinite(stiffness):
        if terms.friction:
            share, width = share_behind(terms)
            what = f"share of the friction behind the spring of {name}"
            figures.append(Figure(what, "", share, width, 0.0, True))
        if curve.hardness:
            cubic = curve.cubic_stiffness(stiffness)
            figures.append(Figure(f"cubic stiffness of {name}", "N·m/rad^3", cubic, np.nan, 0.0, True))
    if curve.gap:
        figures.append(Figure(f"backlash of {name}", "rad", curve.gap, terms.gap_deviation, 0.0, True))
    if terms.eccentricity:
        size, width = wave_size(terms, ECCENTRICITY)
        figures.append(Figure(f"eccentricity of {name}", "rad", size, width, 0.0, True))
    if terms.turns:
        size, width = wave_size(terms, RIPPLE)
        figures.append(
            Figure(f"ripple, {terms.turns:.5g} in a turn of {name}", "rad", size, width, 0.0, True)
        )
    return figures


def _carries(model: TorqueModel, data: Data, joint: int) -> bool:
    """Whether gravity loads a joint."""
    motion = data.motion(data.link_times, np.zeros(model.n))
    still = np.zeros_like(motion.q)
    gravity = model.regressor(Motion(motion.q, still, still, still, still)) @ model.prior[: model.bodies]
    sizes = np.abs(gravity).max(axis=0)
    return bool(sizes[joint] > 1e-3 * sizes.max())


def _soft_reason(compliance: float, width: float, residual: float, carries: bool) -> str:
    idle = "" if carries else "gravity does not load it, as its axis is vertical; "
    sign = "negative, as no spring is" if compliance < 0.0 else "not above its uncertainty"
    return (
        f"not identifiable from this recording, because {idle}its compliance comes out {sign}: "
        f"{compliance:.3g} rad/(N·m) with a deviation of {width:.2g}, beside {1e6 * residual:.3g} urad that "
        "are not explained; load this joint more (gravity, a payload, faster)"
    )


def notes(model: TorqueModel, figures: Sequence[Figure], parameters: Array) -> list[str]:
    """Return lines of what was not identified and what a robot file cannot hold."""
    unknown = [each for each in figures if not each.identified]
    hidden = [each for each in unknown if each.reason == _HIDDEN]
    lines = [_unknown_line(each) for each in unknown if each.reason != _HIDDEN]
    if hidden:
        tree = model.robot.tree
        shown = [i for i, b in enumerate(tree.body_names) if any(f"of {b}" in each.name for each in hidden)]
        bodies = ", ".join(tree.body_names[i] for i in shown)
        joints = ", ".join(tree.joint_names[tree.joint_of(i)] for i in shown)
        first = ", ".join(each.name for each in hidden[:3]) + (", ..." if len(hidden) > 3 else "")
        lines.append(
            f"{len(hidden)} combinations of the inertias of {bodies} stay near the file's ({first}): the "
            f"motion hardly shows them; move {joints} faster and over more of their range (hodyn excite)"
        )
    offsets = parameters[model.place(3)]
    if np.abs(offsets).max() > 0.0:
        lines.append("offsets of efforts are in the report only; a robot file has no place for them")
    if model.transmission is not None:
        names = model.robot.joint_names
        lines += [
            f"the motor of {names[i]} turns with {names[k]} too: what they share is in the report only; a "
            "robot file has no place for it"
            for i, k in np.argwhere(model.transmission != np.eye(model.n)).tolist()
        ]
    if any(each.name.startswith("backlash of") for each in figures):
        lines.append("backlash is in the report only; a robot file has no place for it")
    return lines


def _unknown_line(figure: Figure) -> str:
    said = figure.reason.startswith("not identifi")
    return f"{figure.name}: {'' if said else 'not identified; '}{figure.reason}"
