"""A palletiser with parallelograms: a motion of its axes in, torques of its elastic drives out.

ros2 launch hodyn_ros palletiser.launch.py
ros2 launch hodyn_ros palletiser.launch.py simulate:=true order:=3
ros2 launch hodyn_ros palletiser.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros palletiser.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("palletiser.yaml", "palletiser_motion.yaml", simulation=True)

generate_launch_description = LAUNCH.description
