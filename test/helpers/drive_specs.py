"""Drives of every kind, two or three of each."""

import numpy as np

from hodyn_ros.model.drive_spec import DriveSpec, FrictionSpec, VariableStiffnessSpec

DRY = {"motor_friction": FrictionSpec(0.4, 1.5, 0.1, load=0.06), "link_friction": FrictionSpec(0.7, 0.8, 0.2)}
DEFLECTIONS = np.linspace(-0.2, 0.2, 41)
TABLE = (tuple((2000.0 * DEFLECTIONS + 9e4 * DEFLECTIONS**3).tolist()), tuple(DEFLECTIONS.tolist()))
TABULATED = DriveSpec(2000.0, 0.2, spring_table=TABLE)
PAIR = DriveSpec(500.0, 0.1, variable_stiffness=VariableStiffnessSpec("agonist_antagonist", 90.0))
SPECS: dict[str, list[DriveSpec]] = {
    "rigid": [DriveSpec(np.inf, 0.5), DriveSpec(np.inf, 0.3, **DRY), DriveSpec(np.inf, 0.0)],
    "linear": [DriveSpec(900.0, 0.4), DriveSpec(700.0, 0.2, **DRY)],
    "damped": [DriveSpec(700.0, 0.3, spring_damping=6.0), DriveSpec(500.0, 0.1, spring_damping=2.0, **DRY)],
    "hardening": [
        DriveSpec(800.0, 0.2, cubic_stiffness=5e3),
        DriveSpec(80.0, 0.2, cubic_stiffness=5e6, **DRY),
    ],
    "tabulated": [TABULATED, DriveSpec(2000.0, 0.1, spring_table=TABLE, **DRY)],
    "two motors": [
        PAIR,
        DriveSpec(600.0, 0.1, variable_stiffness=VariableStiffnessSpec("cam", 800.0, 0.7, 0.02), **DRY),
    ],
}
SPECS["mixed"] = [spec for specs in SPECS.values() for spec in specs]
