"""A bare node in C++, for the record, where there are rclcpp, CMake and a compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parent / "rclcpp_node"


def build(folder: Path) -> tuple[Path | None, str]:
    """Build the node in a folder; return the executable, or None and why there is none."""
    cmake = shutil.which("cmake")
    if cmake is None:
        return None, "CMake is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    with log.open("w") as words:
        for command in ([cmake, "-S", str(_SOURCES), "-B", str(folder)], [cmake, "--build", str(folder)]):
            if subprocess.run(command, stdout=words, stderr=subprocess.STDOUT).returncode:
                missing = "rclcpp" in log.read_text(errors="replace") and command[1] == "-S"
                return (
                    None,
                    "rclcpp is not installed" if missing else f"it could not be built, see {log.name}",
                )
    return folder / "bare_node", ""
