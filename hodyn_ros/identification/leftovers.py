"""What is left of efforts that the model should explain: for a while, as of a contact, or all along.

What lasts may hang on what no figure of the model stands for: other friction at low or at high speed, a
ripple along the way, a base that is not level, a torque constant that is wrong. Columns c of such terms,
over the noise by frequency that the fit itself found, and without what its unknowns explain of them, are
held against the residuals e: where the model lacks nothing, `(c^T e)^2 / c^T c` is chi-squared of one degree
(the score test; C. R. Rao, Proc. Cambridge Phil. Soc. 44, 1948), of as many as a term has columns. What is
found moves all figures by what they take for it, and their deviations count that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from hodyn_ros.array import Array
from hodyn_ros.identification.least_squares.data import Data, white_part
from hodyn_ros.identification.least_squares.estimate import Estimate, by_unknowns
from hodyn_ros.identification.least_squares.residuals import Key, linearised
from hodyn_ros.identification.result import Fit
from hodyn_ros.identification.springs.deflection import COMPLIANCE
from hodyn_ros.identification.torque_model import Motion, TorqueModel, coulomb

_WINDOW = 0.2  # [s] over which residuals are looked at
_FAR = 6.0  # times what is left in the median of all windows ...
_LARGE = 0.3  # ... and share of the effort's own size, from which on a window is not as the others
_SHARE = 0.1  # of the effort, and times its white noise, that is left where the model lacks something
_LOUD = 3.0
_FALSE = 0.01  # chance that something is said to be missing of a recording whose model lacks nothing
_SPEEDS = 0.02, 0.05, 0.1, 0.2, 0.5  # of the fastest, by which friction differs from its law
_RIPPLES = 120  # in a turn, up to which they are looked for
_MOST = 12  # terms that are found one after the other
_SEEN = 0.1  # share of the square of what falls with the speed that samples show which are used, at least
_HIDDEN = 1e-6  # share of a term that unknowns leave, at least


def stretches_apart(fit: Fit) -> list[tuple[float, float]]:
    """Return begin and end [s] of stretches in which an effort is not as elsewhere, as in a contact."""
    odd, _ = _apart(fit)
    return [(float(fit.times[first]), float(fit.times[last - 1])) for first, last in _stretches(odd)]


def unexplained_efforts(source: str, fits: Sequence[Fit]) -> list[str]:
    """Return in which stretches efforts are not as elsewhere, and of which joints much is left all along."""
    lines = []
    for fit in fits:
        left = fit.measured - fit.predicted
        odd, usual = _apart(fit)
        for first, last in _stretches(odd):
            peak = float(np.abs(left[first:last]).max())
            lines.append(
                f"to be looked at: {source}: efforts of joint {fit.joint!r} from {fit.times[first]:.4g} to "
                f"{fit.times[last - 1]:.4g} s are up to {peak:.3g} from the model, {usual:.2g} elsewhere; "
                "a contact, a drive at its limit? Such samples count little; leave them out to be sure"
            )
        size = max(float(np.std(fit.measured)), 1e-300)
        share, noise = float(np.std(left[~odd])) / size, white_part(left) / size
        if share > max(_SHARE, _LOUD * noise):
            lines.append(
                f"to be looked at: {source}: the model leaves {100.0 * share:.2g} % of the efforts of joint "
                f"{fit.joint!r}, where noise is {100.0 * noise:.1g} %; wrong units, or something that "
                "no figure here stands for? Deviations do not know of it"
            )
    return lines


def _apart(fit: Fit) -> tuple[NDArray[np.bool_], float]:
    """Return which samples are about residuals unlike the others, and the usual size of these."""
    left = fit.measured - fit.predicted
    count = max(1, round(_WINDOW / float(np.median(np.diff(fit.times)))))
    local = np.sqrt(np.convolve(left**2, np.full(count, 1.0 / count), mode="same"))
    usual = float(np.median(local))
    return local > max(_FAR * usual, _LARGE * float(np.std(fit.measured))), usual


class _Term(NamedTuple):
    """What efforts may hang on, and the model does not know."""

    said: str  # with places for its size and the deviation of that
    columns: dict[Key, Array]  # (m, k) by rows, over the noise
    rivals: int  # how many of its kind are tried
    gravity: Array | None = None  # (k, 3) by which columns turn gravity [m/s^2]


def missing_terms(
    model: TorqueModel, runs: Sequence[Data], estimated: Estimate, prior_deviations: Array
) -> tuple[list[str], Array]:
    """Return lines of what efforts hang on beside the model, and the covariance that counts it.

    `prior_deviations` (P,) are as in `estimate`. Where the model lacks nothing, lines come with a chance of
    `_FALSE`.
    """
    fitted = _Fitted(model, runs, estimated, prior_deviations)
    terms = [*_tilts(model, runs, estimated, fitted), *_by_joint(model, runs, estimated, fitted)]
    missing: list[_Term] = []
    axes, left = fitted.axes, fitted.left
    while len(missing) < _MOST and terms:
        chances = [fitted.chance(term, axes, left) * 2 * term.rivals for term in terms]
        best = int(np.argmin(chances))
        if chances[best] > _FALSE:
            break
        missing.append(terms[best])
        columns = fitted.columns([terms[best]])
        own, sizes, _ = np.linalg.svd(columns - axes @ (axes.T @ columns), full_matrices=False)
        axes = np.column_stack([axes, own[:, sizes > _HIDDEN**0.5 * np.linalg.norm(columns)]])
        left = fitted.left - axes @ (axes.T @ fitted.left)
    covariance, lines = estimated.covariance, []
    deviations = np.sqrt(np.diag(covariance))
    for term, size, width, moved in fitted.explained(missing):
        covariance = covariance + np.outer(moved, moved)
        known = deviations > 0.0
        most = float(np.abs(moved[known] / deviations[known]).max())
        lines.append(
            f"to be looked at: {_said(model, term, size, width)}; what that moves figures by, up to "
            f"{most:.2g} deviations, is in their intervals now"
        )
    return lines, covariance


def _said(model: TorqueModel, term: _Term, size: Array, width: Array) -> str:
    if term.gravity is None:
        return term.said.format(float(np.linalg.norm(size)) if len(size) > 1 else size[0], width[0])
    gravity = model.robot.tree.gravity
    turned = gravity + size @ term.gravity
    turned *= np.linalg.norm(gravity) / np.linalg.norm(turned)
    angle, doubt = np.degrees([np.linalg.norm(size), np.linalg.norm(width)])
    return term.said.format(angle, doubt) + f" gravity: {np.round(turned, 3).tolist()}"


class _Fitted:
    """Rows of a fit, over the noise: what all unknowns explain, and what they leave.

    Attributes:
        rows: By whose they are.
        axes: (m, k) orthogonal, of what unknowns explain; the rows of the prior come last.
        left: (m,) what is not explained.
    """

    def __init__(
        self, model: TorqueModel, runs: Sequence[Data], estimated: Estimate, prior_deviations: Array
    ) -> None:
        now, p, free = estimated.unknowns, len(prior_deviations), prior_deviations > 0.0
        self.rows, systems = linearised(model, runs, now, estimated.noise, whole=True)
        self._moving = np.diag(estimated.covariance) > 0.0
        blocks, left, self._places, end = [], [], dict[Key, slice](), 0
        for key, of_one in systems:
            blocks.append(by_unknowns(model, key, of_one, now))
            left.append(self.over_noise(key, self.rows[key].without_outliers - self.rows[key].predicted))
            self._places[key] = slice(end, end := end + len(of_one))
        pull = np.zeros(len(now.vector))
        pull[:p][free] = 1.0 / prior_deviations[free]
        beyond = np.zeros(len(pull))
        beyond[:p] = model.prior - now.parameters
        pull[now.of_shape] = 1.0
        system = np.concatenate([*blocks, np.diag(pull)])[:, self._moving]
        self._size = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
        self.axes, self._triangle = np.linalg.qr(system / self._size)
        whole = np.concatenate([*left, pull * beyond])
        self.left = whole - self.axes @ (self.axes.T @ whole)

    def over_noise(self, key: Key, samples: Array) -> Array:
        """Return amplitudes of samples (N, ...) as those of residuals are."""
        amplitudes = self.rows[key].low_pass.spectrum(samples)
        return np.asarray((amplitudes.T / self.rows[key].noise.deviations).T)

    def columns(self, terms: Sequence[_Term]) -> Array:
        """Return the columns of terms in all rows (m, k)."""
        parts = []
        for term in terms:
            part = np.zeros((len(self.axes), next(iter(term.columns.values())).shape[1]))
            for key, own in term.columns.items():
                part[self._places[key]] = own
            parts.append(part)
        return np.concatenate(parts, axis=1)

    def chance(self, term: _Term, axes: Array, left: Array) -> float:
        """Return how likely a model that lacks nothing leaves as much of a term in `left`, beside `axes`."""
        squares, coupled, known = (
            sum(part)
            for part in zip(
                *(
                    (own.T @ own, own.T @ left[self._places[key]], axes[self._places[key]].T @ own)
                    for key, own in term.columns.items()
                )
            )
        )
        size = np.sqrt(np.maximum(np.diag(squares), 1e-200))
        shown, ways = np.linalg.eigh((squares - known.T @ known) / np.outer(size, size))
        along = (ways.T @ (coupled / size))[shown > _HIDDEN]
        if not len(along):
            return 1.0
        return float(chdtrc(len(along), (along**2 / shown[shown > _HIDDEN]).sum()))

    def explained(self, terms: Sequence[_Term]) -> Iterator[tuple[_Term, Array, Array, Array]]:
        """Yield terms, how large and how sure they are (k,), and by what they move the unknowns."""
        if not terms:
            return
        columns = self.columns(terms)
        known = self.axes.T @ columns
        beside = columns - self.axes @ known
        inverse = np.linalg.pinv(beside.T @ beside, rcond=_HIDDEN, hermitian=True)
        sizes = inverse @ (beside.T @ self.left)
        place = 0
        for term in terms:
            own = slice(place, place := place + next(iter(term.columns.values())).shape[1])
            moved = np.zeros(len(self._moving))
            by_size = np.linalg.lstsq(self._triangle, known[:, own] @ sizes[own], rcond=1e-13)[0]
            moved[self._moving] = -by_size / self._size
            yield term, sizes[own], np.sqrt(np.diag(inverse)[own]), moved


def _tilts(model: TorqueModel, runs: Sequence[Data], estimated: Estimate, fitted: _Fitted) -> Iterator[_Term]:
    """Yield what a base that is not level does to efforts, and to the springs that carry them."""
    gravity, now = model.robot.tree.gravity, estimated.unknowns
    size = float(np.linalg.norm(gravity))
    if not size:
        return
    across = size * np.linalg.svd(gravity[None])[2][1:]  # (2, 3) horizontal, for a radian
    turned = [
        TorqueModel(model.robot.with_tree(model.robot.tree.with_gravity(each)))
        for each in (np.zeros(3), *across)
    ]

    def weights(motion: Motion) -> Array:
        still = np.zeros_like(motion.q)
        of_pose = Motion(motion.q, still, still, still, still)
        none, *each = (one.regressor(of_pose) @ now.parameters[: model.bodies] for one in turned)
        return np.stack(each, axis=-1) - none[..., None]

    columns: dict[Key, Array] = {}
    for run, data in enumerate(runs):
        late = data.late(now)
        of_efforts = weights(data.fast_motion(data.acted(now.effort_delay), late))
        of_springs = weights(data.fast_motion(data.link_times, late)) if len(data.link_times) else of_efforts
        for key in fitted.rows:
            if key.run == run and key.spring is None:
                columns[key] = fitted.over_noise(key, of_efforts[:, key.joint])
            elif key.run == run:
                bent = now.springs[COMPLIANCE, key.spring] * of_springs[:, key.joint]
                columns[key] = fitted.over_noise(key, bent)
    yield _Term("gravity seems to be {:.2g} ± {:.1g} degrees off: is the base level? Try", columns, 1, across)


def _by_joint(
    model: TorqueModel, runs: Sequence[Data], estimated: Estimate, fitted: _Fitted
) -> Iterator[_Term]:
    """Yield efforts of each joint as a share of what they are, its other friction, ripples along its way."""
    now, names = estimated.unknowns, model.robot.joint_names
    motions = [data.fast_motion(data.acted(now.effort_delay), data.late(now)) for data in runs]
    speeds = [model.rubbing(of, data.recording.at_motor)[0] for of, data in zip(motions, runs)]
    turns = np.arange(1, _RIPPLES + 1)
    efforts = [
        model.columns(of, data.recording.at_motor, now.friction_shape, now.parameters) @ now.parameters
        for of, data in zip(motions, runs)
    ]
    for j in np.flatnonzero(runs[0].recording.efforts.measured).tolist():
        fastest = float(np.max([np.abs(each[:, j]).max() for each in speeds]))
        friction, ripples, whole = {}, {}, {}
        of_all_samples, of_used = np.zeros((2, len(_SPEEDS) + 2))
        for run, (motion, of_all) in enumerate(zip(motions, speeds)):
            key, v, wave = Key(run, j), of_all[:, j], np.outer(motion.q[:, j], turns)
            dry = coulomb(of_all, now.friction_shape)[0][:, j]
            laws = [dry * np.exp(-((v / (share * fastest)) ** 2)) for share in _SPEEDS]
            rubs = np.column_stack([*laws, v * np.abs(v), np.abs(v)])
            of_all_samples += (rubs**2).sum(axis=0)
            of_used += (rubs[fitted.rows[key].low_pass.used] ** 2).sum(axis=0)
            friction[key] = fitted.over_noise(key, rubs)
            whole[key] = fitted.over_noise(key, efforts[run][:, [j]])
            ripples[key] = fitted.over_noise(key, np.concatenate([np.cos(wave), np.sin(wave)], axis=1))
        of = f"efforts of joint {names[j]!r} have "
        text = (
            f"efforts of joint {names[j]!r} seem to be off by {{:+.2%}} ± {{:.1%}} beside those of others; "
            "are torque constant and gear ratio right? Mend effort_scale"
        )
        yield _Term(text, whole, model.n)
        said = [
            of + f"friction by the speed that no figure here stands for, {{:.3g}} ± {{:.1g}} N·m or N below "
            f"{share * fastest:.2g} rad/s or m/s beside what is found"
            for share in _SPEEDS
        ]
        said += [of + "friction by the square of the speed, {:.3g} ± {:.1g} SI units"]
        said += [of + "viscous friction that is larger one way, by twice {:.3g} ± {:.1g} SI units"]
        for i, text in enumerate(said):
            if of_used[i] > _SEEN * of_all_samples[i]:  # else it is about reversals that are left out
                columns = {key: own[:, [i]] for key, own in friction.items()}
                yield _Term(text, columns, 1 + model.n * len(said))
        for i, k in enumerate(turns.tolist()):
            columns = {key: own[:, [i, i + _RIPPLES]] for key, own in ripples.items()}
            text = (
                of + f"a part by the way, {k} times in a turn (2 pi of its position), {{:.3g}} ± {{:.1g}} N·m"
            )
            yield _Term(text, columns, model.n * _RIPPLES)


def _stretches(odd: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[0, odd.astype(np.int8), 0]))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist())
