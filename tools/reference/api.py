"""The pages of the API reference, filled in by autodoc: `Robot` first, then one page a subject.

What users import is named here; internals are not on these pages.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from reference.examples import preparation

SUBJECTS = {
    "values": (
        "Base motions, wrenches, results, errors",
        "lie.motion",
        "dynamics.kinematics.forward_kinematics.Kinematics",
        "dynamics.results.DriveState",
        "dynamics.loops.looped_efforts.LoopSolution",
        "errors",
    ),
    "models": (
        "Robots: files, joints, loops, limits",
        "dynamics.read_robot",
        "model.description",
        "model.frames",
        "model.composite_joints",
        "model.loops",
        "model.limits",
        "model.tree",
        "dynamics.parallel_robot",
        "model.parallel.limb",
        "model.parallel.platform",
        "dynamics.group_robot",
        "model.joint_tree",
        "model.joint_groups",
        "dynamics.kinematics.skeleton",
    ),
    "drives": (
        "Drives",
        "model.drive_spec",
        "actuation.drive_train",
        "actuation.joint_drive",
        "dynamics.rotor_coupling",
        "actuation.compiled_motors.MotorMotion",
    ),
    "motions": ("Motions", "trajectory"),
    "planning": (
        "Limits along a motion",
        "planning.limit_set",
        "planning.check",
        "planning.retime",
        "planning.time_optimal.planner",
        "planning.time_optimal.insensitive",
        "planning.space.frame_path",
        "planning.space.joint_path",
        "planning.effort_trajectory",
        "planning.mounted",
        "planning.override",
        "planning.streams.stream_planner",
        "planning.streams.tracking_planner",
        "planning.streams.stream_config",
    ),
    "policies": ("Policies", "streaming"),
    "feedforward": (
        "Feedforward",
        "feedforward.model",
        "feedforward.config",
        "feedforward.feedforward",
        "feedforward.extrapolation",
        "feedforward.filtered_wrench",
        "feedforward.payload",
    ),
    "control": (
        "Control",
        "control.motor_pd",
        "control.standing",
        "control.late_feedback",
        "control.feedback_linearisation",
        "control.passivity_control",
        "control.predictive_control",
        "control.predictive_horizon",
        "simulation.predictive_loop",
        "control.measurement",
        "guard.command_guard",
        "guard.guard_config",
    ),
    "observers": ("Observers", "observers", "observers.payload"),
    "identification": ("Identification", "identification"),
    "learning": ("Learning over repetitions", "learning", "learning.response", "learning.begins"),
    "simulation": (
        "Simulation",
        "simulation.plant",
        "simulation.simulation",
        "simulation.gradients",
        "simulation.closed_loop",
        "simulation.sensors",
        "simulation.model_errors",
        "simulation.tracking_study",
        "demo.model_errors",
        "demo.mujoco_arm",
    ),
    "screws": (
        "Poses, twists, wrenches and their derivatives",
        "lie.se3",
        "lie.representations",
        "lie.leibniz",
        "lie.jets",
    ),
    "formulations": (
        "Published formulations",
        "formulations.spatial",
        "formulations.body_fixed",
        "formulations.hybrid",
        "formulations.closed_form",
        "formulations.limb_decomposition",
        "formulations.embedding",
        "formulations.closure_rows",
        "formulations.dynamic_matrices",
        "formulations.body_jacobians",
        "formulations.parameters",
        "formulations.state_derivatives",
    ),
    "bags": ("Recordings", "bags.reader", "bags.writer", "bags.comparison.compare"),
    "export": ("C code and MJCF", "export"),
    "interop": ("CasADi, JAX, PyTorch", "interop.casadi", "interop.jax", "interop.torch", "interop.cuda"),
    "launching": ("Launch files", "launching"),
}
"""The pages after that of `Robot`: title, then modules or single classes below hodyn_ros."""

_INDEX = """# Python API

```python
from hodyn_ros import Robot
```

[**Robot**](robot.md) has nearly all calls. Arrays have the derivative order on axis 0 and the joint on the
last axis; units are SI. The other pages, by subject:

{pages}

Modules that are not listed, such as the compiled engine, are internal and change without notice.

```{{toctree}}
:hidden:

robot
{names}
```
"""

_ROBOT = """# Robot

```{{eval-rst}}
.. currentmodule:: hodyn_ros

{tables}
```

The examples below begin with

```python
{preparation}```

```{{eval-rst}}
.. currentmodule:: hodyn_ros

.. autoclass:: Robot
   :members:
   :inherited-members: object
```
"""


def api_pages() -> dict[str, str]:
    """Return the pages by path below docs/."""
    listed = "\n".join(f"- [{title}]({name}.md)" for name, (title, *_) in SUBJECTS.items())
    pages = {
        "index": _INDEX.format(pages=listed, names="\n".join(SUBJECTS)),
        "robot": _ROBOT.format(tables="\n\n".join(robot_tables()), preparation=preparation()),
    }
    for name, (title, *parts) in SUBJECTS.items():
        pages[name] = "\n\n".join([f"# {title}", *map(_section, parts)])
    return {f"reference/api/{name}.md": text for name, text in pages.items()}


def robot_tables() -> Iterator[str]:
    """Yield a table for each kind of public names of `Robot`."""
    for title, names in robot_names().items():
        rows = "\n".join(f"   ~Robot.{name}" for name in sorted(names))
        yield f".. rubric:: {title}\n\n.. autosummary::\n   :nosignatures:\n\n{rows}"


def robot_names() -> dict[str, list[str]]:
    """Return the public names of `Robot`: what builds one, its calls, its properties."""
    from hodyn_ros import Robot

    members = {name: value for kind in Robot.__mro__[-2::-1] for name, value in vars(kind).items()}
    public = {name: v for name, v in members.items() if not name.startswith("_") and inspect.getdoc(v)}
    constructors = [name for name, value in public.items() if isinstance(value, classmethod)]
    calls = [name for name, value in public.items() if inspect.isfunction(value)]
    properties = [name for name in public if name not in (*constructors, *calls)]
    return {"To build one": constructors, "Calls": calls, "Properties": properties}


def _section(name: str) -> str:
    """Return the section on a module, or on a class of one."""
    directive = "autoclass" if name.rpartition(".")[2][0].isupper() else "automodule"
    options = "   :members:\n"
    if directive == "automodule" and "." not in name:
        options += "   :imported-members:\n"  # a package that exports the names of its modules
    return f"## {name}\n\n```{{eval-rst}}\n.. {directive}:: hodyn_ros.{name}\n{options}```\n"
