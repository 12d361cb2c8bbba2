"""What metadata.yaml says about a bag."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import yaml

NAME = "metadata.yaml"
_LONGEST = 4 * 2**20  # [bytes] thousands of topics
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Metadata:
    """What is known of a bag from beside its messages."""

    trouble: str = ""  # why nothing is known
    files: tuple[str, ...] = ()  # names of the files with the messages, in the order of recording
    count: int | None = None  # messages that the recorder has written; None where it has not said


def read_metadata(bag: Path) -> Metadata:
    """Read metadata.yaml of the folder `bag`.

    The count of `ros2 bag reindex` is none of the recorder: it says what was left when it looked. What it
    writes is told by its empty list of files.
    """
    path = bag / NAME
    if not path.is_file():
        return Metadata(f"it has no {NAME}")
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    try:
        if len(content) > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST} bytes")
        data = yaml.load(content, _Loader)["rosbag2_bagfile_information"]
        names = tuple(PurePath(name).name for name in data["relative_file_paths"])
        count, reindexed = data["message_count"], int(data["version"]) >= 5 and not data["files"]
    except (yaml.YAMLError, LookupError, TypeError, ValueError, RecursionError):
        return Metadata(f"its {NAME} cannot be read")
    return Metadata("", names, None if reindexed or not isinstance(count, int) else count)
