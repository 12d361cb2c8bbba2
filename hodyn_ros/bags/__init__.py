"""Recordings in the format of rosbag2: read (also when cut off), write, compare. Needs an extra, no ROS."""

from importlib import import_module

from hodyn_ros.extras import missing_extra

for _module in ("rosbags", "mcap", "zstandard", "lz4"):
    try:
        import_module(_module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing_extra(error) or str(error), name=error.name) from None
