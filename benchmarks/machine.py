"""What the figures were measured on, without naming the machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

from benchmarks.peers import c_code


def description() -> dict[str, str]:
    """Return processor, cores, versions and date."""
    said = _basics()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "llvmlite", "pin", "casadi"))
    return said | {"versions": versions, "compiler": _compiler(), "date": date()}


def ros_description() -> dict[str, str]:
    """Return processor, cores, ROS and its middleware, and date."""
    from rclpy.utilities import get_rmw_implementation_identifier

    ros = os.environ.get("ROS_DISTRO") or f"rclpy {version('ros-rclpy')} from PyPI"
    return _basics() | {"ROS 2": f"{ros}, {get_rmw_implementation_identifier()}", "date": date()}


def _basics() -> dict[str, str]:
    return {
        "processor": processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def date() -> str:
    """Return the day, as ISO 8601 has it."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()


def processor(root: Path = Path("/")) -> str:
    """Return the model of the processor with family and instruction set, which its name may leave open.

    `root`: where /proc and /sys are. Of code for ARM it says what runs it in truth.
    """
    text = (root / "proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text, flags=re.MULTILINE))
    if platform.machine() == "aarch64":
        return _of_arm(root, fields)
    return _of_x86(fields, platform.machine())


def _of_x86(fields: dict[str, str], otherwise: str) -> str:
    widest = next(
        (name for name in ("avx512f", "avx2", "avx") if name in fields.get("flags", "").split()), ""
    )
    name = fields.get("model name", otherwise)
    family = f"family {fields['cpu family']}, model {fields['model']}" if "cpu family" in fields else ""
    return ", ".join(part for part in (name, family, widest) if part)


def _of_arm(root: Path, fields: dict[str, str]) -> str:
    """Name core, board and instruction set, by the register that identifies an ARM processor.

    Linux shows that register on ARM alone. An emulator of single programs, such as qemu-aarch64, has the /sys
    of the machine below it, whatever it makes of /proc/cpuinfo; without the register it counts as one.
    """
    register = root / "sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
    if not register.exists():
        return f"aarch64, emulated on {_of_x86(fields, 'another processor')}"
    board = root / "proc/device-tree/model"
    model = board.read_text(encoding="utf-8").rstrip("\0") if board.exists() else ""
    features = fields.get("Features", "").split()
    widest = next((name for name in ("sve2", "sve", "asimd") if name in features), "")
    core = f"{llvm.get_host_cpu_name()} (MIDR {int(register.read_text(encoding='ascii'), 16):#010x})"
    return ", ".join(part for part in ("aarch64", core, model, widest) if part)


def _compiler() -> str:
    command = c_code.compiler()
    if command is None:
        return "none"
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    return f"{said.splitlines()[0]}, {' '.join(c_code.FLAGS[:2])}"
