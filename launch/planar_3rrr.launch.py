"""A planar 3-RRR with elastic drives: a motion of the tool in, torques of drives and motors out.

ros2 launch hodyn_ros planar_3rrr.launch.py
ros2 launch hodyn_ros planar_3rrr.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros planar_3rrr.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("planar_3rrr.yaml", "planar_3rrr_motion.yaml")

generate_launch_description = LAUNCH.description
