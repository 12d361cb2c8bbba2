"""Recordings in the format of rosbag2: read (also when cut off), write, compare. Needs an extra, no ROS."""

from hodyn_ros.extras import needed

for _module in ("rosbags", "mcap", "zstandard", "lz4"):
    needed(_module)
