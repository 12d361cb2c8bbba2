"""Linkages between drives and joints as transmissions: for ros2_control, and arrays for learning."""
