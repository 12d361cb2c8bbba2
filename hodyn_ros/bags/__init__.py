"""Recordings in the format of rosbag2: read (also when cut off), write, compare. Needs no ROS."""
