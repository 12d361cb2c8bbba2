"""Two simulated Pandas in namespaces of their own, with the same names of joints and topics.

ros2 launch hodyn_ros two_pandas.launch.py
ros2 launch hodyn_ros two_pandas.launch.py left:=one right:=two rate:=200 record:=true
"""

from launch import LaunchDescription
from launch.substitutions import LaunchConfiguration

from hodyn_ros.launching import argument, different_namespaces, included


def generate_launch_description() -> LaunchDescription:
    """Start panda.launch.py twice; what is given beside `left` and `right` holds for both."""
    return LaunchDescription(
        [
            argument("left", "left", "Namespace of one robot."),
            argument("right", "right", "Namespace of the other."),
            different_namespaces("left", "right"),
            *(included("panda.launch.py", namespace=LaunchConfiguration(side)) for side in ("left", "right")),
        ]
    )
