"""Several robots in one process: a dynamics_node for each, in namespaces arm0, arm1, ..., on one executor.

python -m benchmarks.ros.arms_node COUNT --ros-args -p robot_config:=panda.yaml
"""

from __future__ import annotations

import sys

from hodyn_ros.nodes.dynamics_node import DynamicsNode
from hodyn_ros.ros.process import run


def main() -> int:
    """Run the process; how many robots there are is its first argument."""
    names = [f"arm{k}" for k in range(int(sys.argv[1]))]
    return run(lambda: [DynamicsNode(namespace=name) for name in names])


if __name__ == "__main__":
    sys.exit(main())
