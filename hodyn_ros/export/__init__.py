"""The compiled recursion as source code for controllers that cannot wait for Python."""

from hodyn_ros.export.c_source import CSource, c_source
from hodyn_ros.export.files import export_c

__all__ = ["CSource", "c_source", "export_c"]
