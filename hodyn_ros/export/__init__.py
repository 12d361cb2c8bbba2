"""Robots for others: their recursions as C for controllers that cannot wait for Python, and as MJCF."""

from hodyn_ros.export.c_source import CSource, c_source
from hodyn_ros.export.files import export_c, export_linkage, export_mjcf, export_python, export_shared
from hodyn_ros.export.mjcf import Mjcf, mjcf
from hodyn_ros.export.request import ExportRequest

__all__ = [
    "CSource",
    "ExportRequest",
    "Mjcf",
    "c_source",
    "export_c",
    "export_linkage",
    "export_mjcf",
    "export_python",
    "export_shared",
    "mjcf",
]
