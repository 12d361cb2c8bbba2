"""figaroh (PyPI): figures of a rigid robot from positions and efforts, by the recipe of its examples.

A median and a Butterworth filter, gradients, every tenth sample of regressor and efforts alike, QR, weighted
least squares with friction, offsets and inertias of motors. Standard parameters are those nearest to the
file's.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.pinocchio_tree import build
from benchmarks.stopwatch import Array
from hodyn_ros import Robot
from hodyn_ros.model.tree import TreeModel

_CONFIG = """
robot: {{name: robot, properties: {{joints: {{active_joints: [{joints}]}}}}}}
tasks:
  identification:
    enabled: true
    problem:
      include_external_forces: false
      use_joint_torques: true
      model_components: {{friction: true, joint_offset: true, actuator_inertia: true}}
    signal_processing:
      {{sampling_frequency: {rate}, cutoff_frequency: {cutoff}, filter_type: butterworth, filter_order: 4}}
    reconstruction: {{enabled: true}}
"""
_BODY = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")  # its names, mass first
_EVERY = 10  # samples of which one is taken, after a filter of its own


@dataclass(frozen=True, eq=False)
class Figaroh:
    """What it has found."""

    solved: Any
    bodies: int  # whose inertia is that of a body that can be
    shift: Array  # (3,) from the frame of the last body to the one here [m]

    def predict(self, times: Array, positions: Array) -> Array:
        """Return the efforts (N, n) of a motion (N, n) [N.m or N], sampled as the one it was found from."""
        return self._predicted(self._regressor(times, positions)).reshape(-1, len(times)).T

    def load(self, times: Array, positions: Array, efforts: Array) -> Array:
        """Return mass and centre (4,) of a load, from a motion with it (N, n), sampled as the one without.

        What the efforts differ from those of the arm as identified, by least squares with the ten columns of
        the last body, each joint weighted by what the arm without the load was off.
        """
        whole = self._regressor(times, positions)
        names = list(self.solved.standard_parameter)
        last = list(self.solved.robot.model.names)[-1]
        own = [i for i, name in enumerate(names) if name.endswith(f"_{last}")]
        columns = {name: [i for i in own if names[i].startswith(f"{name}_")] for name in _BODY}
        chosen = [i for found in columns.values() for i in found]
        rest = efforts.T.ravel() - self._predicted(whole)
        weights = np.repeat(1.0 / np.std(rest.reshape(-1, len(times)), axis=1), len(times))
        kept = np.arange(len(rest)) % _EVERY == 0
        scaled = (weights[:, None] * whole[:, chosen])[kept]
        mass, *moment = np.linalg.lstsq(scaled, (weights * rest)[kept], rcond=None)[0][:4]
        return np.array([mass, *(np.array(moment) / mass + self.shift)])

    def _regressor(self, times: Array, positions: Array) -> Array:
        from figaroh.tools.regressor import build_regressor_basic

        run = self.solved
        run.raw_data = {"timestamps": times, "positions": positions}
        run.process_kinematics_data(run.filter_config)
        motion = (run.processed_data[name] for name in ("positions", "velocities", "accelerations"))
        return np.asarray(build_regressor_basic(run.robot, *motion, run.identif_config))

    def _predicted(self, whole: Array) -> Array:
        from figaroh.tools.regressor import build_regressor_reduced

        run = self.solved
        base = build_regressor_reduced(whole, run._idx_eliminated)[:, run._base_indices]
        return np.asarray(base @ run.phi_base)


def load() -> Any:
    """Return its class of identifications. Raises ImportError where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its converters, which are registered twice
        from figaroh.identification.base_identification import BaseIdentification
    return BaseIdentification


def identified(robot: Robot, times: Array, positions: Array, efforts: Array, cutoff: float) -> Figaroh:
    """Identify an arm from positions and efforts (N, n), of motions below a frequency [Hz].

    Raises ImportError where figaroh is not installed.
    """
    import pinocchio as pin

    base = load()
    from figaroh.identification.physical_consistency import is_feasible_link, p10_by_joint_from_param_dict

    class Run(base):  # type: ignore[valid-type,misc]  # it has no types
        def load_trajectory_data(self, data_source: str | None = None) -> dict[str, Any]:
            return {"timestamps": times, "positions": positions, "torques": efforts}

    tree, shifts = _on_axes(robot.tree)
    wrapper = pin.RobotWrapper(build(tree))
    joints = list(wrapper.model.names)[1:]
    rate = (len(times) - 1) / float(times[-1] - times[0])
    logging.getLogger("figaroh").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        config = Path(folder) / "config.yaml"
        config.write_text(_CONFIG.format(joints=", ".join(joints), rate=rate, cutoff=cutoff))
        run = Run(wrapper, str(config))
        places = list(range(len(joints)))
        run.identif_config |= {"act_idxq": places, "act_idxv": places}
        run.initialize()
        run.solve(decimate=True, decimation_factor=_EVERY, plotting=False, wls=True)
    values = {**run.standard_parameter, **run.result["reconstruction"]["theta_r_dict"]}
    found = p10_by_joint_from_param_dict(parameter_dict=values, joint_names=joints)
    bodies = sum(is_feasible_link(p10).min_eig > 0.0 for p10 in found.values())
    return Figaroh(run, bodies, shifts[-1])


def _on_axes(tree: TreeModel) -> tuple[TreeModel, Array]:
    """Return a robot with the frames of its bodies on the axes of their joints, as Pinocchio wants them.

    With the shifts of these, in the frames of the bodies.
    """
    axes, moments = tree.screws[:, :3], tree.screws[:, 3:]
    placements = tree.placements.copy()
    origins = placements[:, :3, 3].copy()
    along = np.einsum("ij,ij->i", axes, origins)[:, None] * axes
    turns = np.any(axes != 0.0, axis=1, keepdims=True)
    shifts = np.where(turns, np.cross(axes, moments) + along - origins, 0.0)
    placements[:, :3, 3] += shifts
    inside = np.einsum("ikj,ik->ij", placements[:, :3, :3], shifts)
    return replace(tree, placements=placements, coms=tree.coms - inside), inside
