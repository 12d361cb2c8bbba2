"""Feedforward torques and their time derivatives for robots with elastic joints, of any order."""

from pkgutil import extend_path

# A ROS build puts the generated `hodyn_ros.msg` beside an installed copy of this package; a clone on the path before
# it must still find it there.
__path__ = extend_path(__path__, __name__)
