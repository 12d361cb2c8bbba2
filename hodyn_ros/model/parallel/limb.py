"""One limb of a parallel robot: a serial chain of joints from the ground to the platform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.lie.se3 import Ad, Array, exp_screw, inverse, log
from hodyn_ros.model.arrays import frozen_array, known_fields, unique_names
from hodyn_ros.model.composite_joints import has_composite, unfold_arrays
from hodyn_ros.model.loops import named
from hodyn_ros.model.parallel.platform import Platform
from hodyn_ros.model.tree import TreeArrays, TreeModel

_CLOSED = 1e-9  # [rad], and of the size of the robot: how far a limb may end from the platform


@dataclass(frozen=True, eq=False)
class Limb:
    """A limb as its arrays describe it, at the home pose.

    `screws` (k, 6): unit joint screws in the world frame, from the ground to the platform. The last of the k
    bodies is the platform; the others are described as in `Robot.from_screws`: `placements` (k-1, 4, 4) body
    frames in the world [m], `masses` (k-1,) [kg], `coms` (k-1, 3) in the body frame [m], `inertias` (k-1, 3,
    3) about the centre of mass in body axes [kg m^2]. Rows may also be given for the platform; they must be
    without mass there, as the platform counts once, and end in its placement. Joints of
    `hodyn_ros.model.composite_joints` may stand among the screws, for one body each. `driven`: indices or
    names of the driven joints, of such ones by their single names.
    """

    screws: Any
    placements: Any
    masses: Any
    coms: Any
    inertias: Any
    driven: Any
    name: str = ""
    joint_names: Sequence[str] | None = None

    @classmethod
    def of(cls, described: Limb | Mapping[str, Any], number: int) -> Limb:
        """Return a limb, built from a mapping with the names of its fields if need be."""
        if isinstance(described, Limb):
            return described
        return cls(**known_fields(f"limb {number}", cls, described))


@dataclass(frozen=True, eq=False)
class LimbModel:
    """A validated limb.

    `chain` is the whole limb with the platform as its last body, whose inertia there is a stand-in; `cut` is
    the limb without the platform and without the massless bodies of the joint at the platform, or None where
    nothing has mass. `driven` are indices of joints.
    """

    name: str
    chain: TreeModel
    cut: TreeModel | None
    driven: tuple[int, ...]

    @property
    def n_joints(self) -> int:
        """Number N of joints."""
        return self.chain.n_joints

    @property
    def n_moving(self) -> int:
        """Number n of joints that move mass while the limb is cut from the platform."""
        return 0 if self.cut is None else self.cut.n_joints

    def jacobian(self, positions: Array) -> Array:
        """Return the body-fixed Jacobian (6, N) of the platform at joint positions (N,).

        `J_p`, Mueller et al., eqs. 21 and 22.
        """
        motion, screws = np.eye(4), []
        for screw, position in zip(self.chain.screws, positions):
            screws.append(Ad(motion) @ screw)
            motion = motion @ exp_screw(screw, position)
        jacobian: Array = Ad(inverse(motion @ self.chain.placements[-1])) @ np.stack(screws, axis=1)
        return jacobian

    def pose(self, positions: Array) -> Array:
        """Return the pose (4, 4) that joint positions (N,) give the platform; Mueller et al., eq. 21."""
        motion = np.eye(4)
        for screw, position in zip(self.chain.screws, positions):
            motion = motion @ exp_screw(screw, position)
        pose: Array = motion @ self.chain.placements[-1]
        return pose


def limb_model(limb: Limb, platform: Platform, gravity: Array, number: int, size: float) -> LimbModel:
    """Validate a limb; `size` is the size of the robot [m]. Raises ModelError naming the limb."""
    name = str(limb.name) or f"limb{number + 1}"
    screws = frozen_array(f"limb {name!r}: screws", limb.screws, None)
    if screws.ndim != 2 or screws.shape[1] != 6 or not len(screws):
        raise ModelError(f"limb {name!r}: screws must have shape (joints, 6), found {screws.shape}")
    k = len(screws)
    if k > 6:
        raise ModelError(
            f"limb {name!r} has {k} joints: one with more than six moves while the platform stands still, "
            "which the pose of the platform does not determine; leave out a joint"
        )
    placements, masses, coms, inertias = _bodies(limb, name, k, platform, size)
    joints = _joint_names(limb, name, k)
    try:
        arrays = TreeArrays(
            range(-1, k - 1),
            screws,
            [*placements, platform.placement],
            [*masses, 1.0],
            [*coms, np.zeros(3)],
            [*inertias, np.eye(3)],
            joints,
            [*(f"body{i + 1}" for i in range(k - 1)), platform.name],
        )
        # whether each motion moves mass is seen when the loops are closed
        chain = TreeModel.build(arrays, gravity, name=name, any_rank=True)
    except ModelError as error:
        raise ModelError(f"limb {name!r}: {error}") from None
    heavy = [i for i in range(k - 1) if masses[i] > 0.0 or np.any(inertias[i])]
    n = heavy[-1] + 1 if heavy else 0
    cut = None
    if n:
        arrays = TreeArrays(
            range(-1, n - 1),
            chain.screws[:n],
            chain.placements[:n],
            chain.masses[:n],
            chain.coms[:n],
            chain.inertias[:n],
            joints[:n],
        )
        cut = TreeModel.build(arrays, gravity, name=name, any_rank=True)
    return LimbModel(name, chain, cut, _driven(limb, name, joints))


def unfolded(limb: Limb, number: int, platform: Platform) -> Limb:
    """Return a limb whose joints of several degrees of freedom are rows of single ones."""
    screws, name = limb.screws, str(limb.name) or f"limb{number + 1}"
    if not has_composite(screws):
        return limb
    k = len(screws)
    joints = _joint_names(limb, name, k)
    driven = limb.driven if isinstance(limb.driven, (list, tuple)) else [limb.driven]
    own = {"placements": platform.placement, "masses": 0.0, "coms": np.zeros(3), "inertias": np.zeros((3, 3))}
    rows: dict[str, Any] = {}
    for what, of_platform in own.items():
        array = frozen_array(f"limb {name!r}: {what}", getattr(limb, what), None)
        rows[what] = [*array, of_platform] if array.ndim and len(array) == k - 1 else array
    names = [f"body{i + 1}" for i in range(k)]
    try:
        tree, couplings = unfold_arrays(TreeArrays(range(-1, k - 1), screws, **rows), joints, names)
    except ModelError as error:
        raise ModelError(f"limb {name!r}: {error}") from None
    if couplings:
        raise ModelError(f"limb {name!r}: joint {couplings[0].joint!r} follows another; limbs have none")
    unfolded_rows = {what: getattr(tree, what) for what in ("screws", "joint_names", *rows)}
    return replace(limb, **unfolded_rows, driven=[named(joints, joint) for joint in driven])


def _bodies(
    limb: Limb, name: str, k: int, platform: Platform, size: float
) -> tuple[list[Array], list[float], list[Array], list[Array]]:
    def rows(what: str, values: Any, shape: tuple[int, ...]) -> Array:
        array = frozen_array(f"limb {name!r}: {what}", values, None)
        if array.shape not in ((k - 1, *shape), (k, *shape)) and not (k == 1 and array.size == 0):
            expected = (k - 1, *shape)
            raise ModelError(
                f"limb {name!r}: {what} must have shape {expected}, a row for every body but the platform, "
                f"found {array.shape}"
            )
        return array

    placements = rows("placements", limb.placements, (4, 4))
    masses = rows("masses", limb.masses, ())
    coms = rows("coms", limb.coms, (3,))
    inertias = rows("inertias", limb.inertias, (3, 3))
    for what, array in (("mass", masses), ("inertia", inertias)):
        if len(array) == k and np.any(array[-1]):
            raise ModelError(
                f"limb {name!r}: the platform is counted twice: its last body has {what} of its own; the "
                "last body of a limb is the platform, which is described once, in `platform`"
            )
    if len(placements) == k:
        apart = log(inverse(np.asarray(platform.placement)) @ placements[-1])
        angle, distance = float(np.linalg.norm(apart[:3])), float(np.linalg.norm(apart[3:]))
        if angle > _CLOSED or distance > _CLOSED * size:
            raise ModelError(
                f"limb {name!r} does not close at the reference pose: it ends {distance:.3g} m and "
                f"{angle:.3g} rad from the platform"
            )
    last = k - 1
    return list(placements[:last]), masses[:last].tolist(), list(coms[:last]), list(inertias[:last])


def _joint_names(limb: Limb, name: str, k: int) -> list[str]:
    return [*unique_names(f"limb {name!r}: joint_names", limb.joint_names, k, f"{name}_joint")]


def _driven(limb: Limb, name: str, joints: list[str]) -> tuple[int, ...]:
    driven = [limb.driven] if isinstance(limb.driven, (int, np.integer, str)) else limb.driven
    if not isinstance(driven, Iterable):
        raise ModelError(f"limb {name!r}: driven must be a list of joints, found {type(driven).__name__}")
    places: dict[Any, int] = {joint: i for i, joint in enumerate(joints)}
    places |= {i: i for i in range(len(joints))}
    items = [item.item() if isinstance(item, np.generic) else item for item in driven]
    for item in items:
        if type(item) not in (int, str) or item not in places:  # True is no index, though it equals 1
            raise ModelError(
                f"limb {name!r}: there is no joint {item!r} to be driven; its joints are 0 to "
                f"{len(joints) - 1}, {joints}"
            )
    result = tuple(places[item] for item in items)
    if len(set(result)) < len(result):
        raise ModelError(f"limb {name!r}: driven holds a joint twice: {items}")
    return result
