"""A limb from a URDF chain, whose last link is the platform."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import JointLimit
from hodyn_ros.model.readers.assembly import Assembly
from hodyn_ros.model.readers.files import read_file
from hodyn_ros.model.readers.urdf import MOST_BYTES, read_urdf_assembly

_STAND_IN = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def read_urdf_limb(path: Path, platform: str) -> tuple[Assembly, dict[str, JointLimit]]:
    """Read a limb and the limits of its joints by name from a URDF whose last link is called `platform`.

    That link must have no inertia there, as the platform counts once; it stands in with some, which nothing
    uses. Raises ModelError naming the file.
    """
    try:
        root = ElementTree.fromstring(read_file(path, MOST_BYTES, "the URDF"))
    except ElementTree.ParseError as error:
        raise ModelError(f"cannot read the URDF {str(path)!r}: {error}") from error
    for link in root.iter("link"):
        if link.get("name") == platform:
            if link.find("inertial") is not None:
                raise ModelError(
                    f"URDF {path}: the platform is counted twice: link {platform!r} has an inertia here, and "
                    "the platform has its own"
                )
            link.append(ElementTree.fromstring(_STAND_IN))
    try:
        assembly, limits = read_urdf_assembly(ElementTree.tostring(root, encoding="unicode"))
    except ModelError as error:
        raise ModelError(f"URDF {path}: {error}") from error
    names = assembly.model.joint_names
    return assembly, {name: limits.row(i) for i, name in enumerate(names)}
