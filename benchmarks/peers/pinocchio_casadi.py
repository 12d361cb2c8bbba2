"""Torques of the 7-joint arm as `pinocchio.casadi` has them: its expression, of which CasADi makes C code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import casadi as ca

_FILE = Path(__file__).parents[1] / "data" / "pinocchio_casadi_panda.json"
_STEPS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "sin": ca.sin,
    "cos": ca.cos,
}
GRAVITY = 9.81  # [m/s^2] that Pinocchio takes by itself


def torques() -> Any:
    """Return a CasADi function of q (7, 3) that gives the torques (7, 1), step by step as Pinocchio does."""
    recorded = json.loads(_FILE.read_text("utf-8"))
    motion, values = ca.SX.sym("q", 7, 3), []
    for operation, *operands in recorded["steps"]:
        if operation == "q":
            values.append(motion[operands[0]])
        elif operands:
            values.append(_STEPS[operation](*(values[operand] for operand in operands)))
        else:
            values.append(ca.SX(operation))
    return ca.Function("torques", [motion], [ca.vertcat(*(values[k] for k in recorded["outputs"]))])
