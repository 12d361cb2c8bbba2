"""A Delta with parallelograms: a motion of its platform in, torques of its three arms out.

ros2 launch hodyn_ros delta.launch.py
ros2 launch hodyn_ros delta.launch.py simulate:=true order:=3
ros2 launch hodyn_ros delta.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros delta.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("delta.yaml", "delta_motion.yaml", simulation=True)

generate_launch_description = LAUNCH.description
