"""A Panda with its hand, whose second finger mimics the first: a motion in, torques out.

ros2 launch hodyn_ros panda_hand.launch.py
ros2 launch hodyn_ros panda_hand.launch.py simulate:=true order:=3
ros2 launch hodyn_ros panda_hand.launch.py order:=4 rate:=500 record:=true namespace:=left
ros2 launch hodyn_ros panda_hand.launch.py trajectory:=none  # motions come from somebody else
"""

from hodyn_ros.launching import motion_to_efforts

LAUNCH = motion_to_efforts("panda_hand.yaml", "panda_hand_motion.yaml", simulation=True)

generate_launch_description = LAUNCH.description
