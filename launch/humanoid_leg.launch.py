"""A humanoid leg: motion of base, knee and ankle in, efforts of the drives of their linkages out.

ros2 launch hodyn_ros humanoid_leg.launch.py
ros2 launch hodyn_ros humanoid_leg.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros humanoid_leg.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("humanoid_leg.yaml", "humanoid_leg_motion.yaml")

generate_launch_description = LAUNCH.description
