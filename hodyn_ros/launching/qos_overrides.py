"""With which quality of service `ros2 bag record` hears the streams of this package.

By itself it keeps ten messages of a topic until it takes them: at 1 kHz a hold-up of 10 ms costs some. The
file `config/rosbag2_qos.yaml` is what `overrides` returns for nodes without a namespace.
"""

from __future__ import annotations

import yaml

STREAMS = (
    "desired_motion",
    "feedforward_torque",
    "joint_states",
    "motor_states",
    "effort_commands",
    "external_efforts",
    "position_commands",
    "velocity_commands",
    "motor_references",
)
DEPTH = 5000  # messages; five seconds at 1 kHz


def overrides(namespace: str = "") -> str:
    """Return the text of a file for `--qos-profile-overrides-path`, for topics of a namespace.

    Reliability and durability are the best that all publishers offer, as without the file.
    """
    folder = f"/{namespace.strip('/')}".rstrip("/")
    profile = {
        "history": "keep_last",
        "depth": DEPTH,
        "reliability": "best_available",
        "durability": "best_available",
    }
    return yaml.safe_dump({f"{folder}/{name}": dict(profile) for name in STREAMS}, sort_keys=False)
