"""The time that a linkage takes as a transmission, for docs/linkages.md: `python -m benchmarks.linkage`.

A program in C++ goes along a slow motion: positions, velocities and efforts, to the actuators and back.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hodyn_ros import share
from hodyn_ros.dynamics.robot_choice import RobotChoice
from hodyn_ros.export import export_linkage

_PROGRAM = r"""
#include <chrono>
#include <cstdio>
#include "core/linkage.hpp"
int main(int, char ** given)
{
  hodyn_ros::Linkage linkage(given[1]);
  const std::size_t n = linkage.size();
  std::vector<double> q(n), v(n, 0.3), u(n, 50.0), a(n), x(n), y(n);
  double seconds[2] = {0.0, 0.0}, sum = 0.0;
  const int calls = 200000;
  for (int k = 0; k < calls; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      q[i] = 0.15 * std::sin(1e-3 * k * static_cast<double>(i + 1));
    }
    const auto begin = std::chrono::steady_clock::now();
    bool right = linkage.to_actuators(q.data(), a.data());
    linkage.actuator_velocities(v.data(), x.data());
    linkage.actuator_efforts(u.data(), y.data());
    const auto between = std::chrono::steady_clock::now();
    right = linkage.to_joints(a.data(), q.data()) && right;
    linkage.joint_velocities(x.data(), v.data());
    linkage.joint_efforts(y.data(), u.data());
    const auto end = std::chrono::steady_clock::now();
    seconds[0] += std::chrono::duration<double>(between - begin).count();
    seconds[1] += std::chrono::duration<double>(end - between).count();
    sum += right ? y[0] : 1e300;
  }
  std::printf("%.2f | %.2f\n", 1e6 * seconds[0] / calls, 1e6 * seconds[1] / calls);
  return sum < 1e200 ? 0 : 1;
}
"""


def main() -> None:
    """Print the table."""
    headers = Path(__file__).parents[1]
    folders = (f"-I{headers / 'ros2_control'}", f"-I{headers / 'hodyn_ros' / 'export'}")
    print("| linkage | joints to actuators [us] | actuators to joints [us] |")
    print("| --- | --- | --- |")
    for name, points in (("ankle_linkage", 3),):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "main.cpp").write_text(_PROGRAM)
            robot = share.find("config", f"{name}.yaml")
            _, (_, library) = export_linkage(
                RobotChoice(str(robot)), folder, "linkage", shared=True, points=points
            )
            command = [
                "c++",
                "-std=c++17",
                "-O2",
                *folders,
                str(folder / "main.cpp"),
                "-o",
                str(folder / "main"),
            ]
            subprocess.run([*command, "-ldl"], check=True)
            found = subprocess.run(
                [folder / "main", library], check=True, capture_output=True, text=True, timeout=120
            )
            print(f"| {name} | {found.stdout.strip()} |", flush=True)


if __name__ == "__main__":
    main()
