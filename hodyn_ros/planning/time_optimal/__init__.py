"""The fastest motion along a path that keeps all limits of a robot."""

from hodyn_ros.planning.time_optimal.planner import Binding, TimeOptimal, time_optimal

__all__ = ["Binding", "TimeOptimal", "time_optimal"]
