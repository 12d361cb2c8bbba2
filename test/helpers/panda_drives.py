"""Files of a Panda whose drives are not plain."""

from collections.abc import Mapping
from pathlib import Path

from hodyn_ros import share

MIXED = {
    0: "motor_friction: {viscous: 1, coulomb: 1.5, transition: 0.05}",
    1: "spring_damping: 20",
    2: "cubic_stiffness: 1e6",
    3: "link_friction: {viscous: 0.5, coulomb: 0.5, transition: 0.1}",
}
PAIR = {1: "variable_stiffness: {type: agonist_antagonist, spring: 300000}"}


def write_panda(path: Path, more: Mapping[int, str], end: str = "") -> Path:
    """Write the shipped Panda with one more line in some drives, joints counted from 0, and at the end."""
    text = Path(share.find("config", "panda.yaml")).read_text(encoding="utf-8")
    head, *drives = text.split("    drive:\n")
    for joint, drive in enumerate(drives):
        line = f"      {more[joint]}\n" if joint in more else ""
        head += "    drive:\n" + line + drive
    path.write_text(f"{head}\n{end}\n", encoding="utf-8")
    return path
