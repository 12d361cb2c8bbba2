"""A Gough-Stewart platform: a motion of the platform in, forces of its six legs with their derivatives out.

ros2 launch hodyn_ros gough_stewart.launch.py
ros2 launch hodyn_ros gough_stewart.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros gough_stewart.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("gough_stewart_6ups.yaml", "gough_stewart_motion.yaml")

generate_launch_description = LAUNCH.description
