"""A hexarotor with two arms: its flight in, the wrench of the propellers and the torques of the joints out.

ros2 launch hodyn_ros aerial_manipulator.launch.py
ros2 launch hodyn_ros aerial_manipulator.launch.py order:=5 rate:=200 record:=true namespace:=left
ros2 launch hodyn_ros aerial_manipulator.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("aerial_manipulator.yaml", "aerial_manipulator_motion.yaml")

generate_launch_description = LAUNCH.description
