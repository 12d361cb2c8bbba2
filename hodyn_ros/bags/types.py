"""Definitions of messages, as the library rosbags wants them; no ROS is needed to read or write a bag.

The messages of ROS are known to the library, those of this package come from its .msg files, and those of any
other package from the .msg files that it has installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rosbags.interfaces import MessageDefinitionFormat, Nodetype
from rosbags.interfaces.typing import FieldDesc, Typesdict
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from hodyn_ros import share
from hodyn_ros.bags.messages import Topic
from hodyn_ros.errors import InputError


def ros_types() -> Typestore:
    """Return a store of the messages of ROS 2."""
    return get_typestore(Stores.ROS2_JAZZY)


def learn(store: Typestore, name: str) -> None:
    """Make a store know a message, such as "hodyn_ros/msg/DesiredMotion", and all that it is made of.

    Raises InputError where its .msg file is not found.
    """
    if name in store.fielddefs:
        return
    package, _, kind = name.split("/")
    found = get_types_from_msg(_msg_file(package, kind).read_text(encoding="utf-8"), name)
    for part in _parts(found):
        if part not in found:
            learn(store, part)
    store.register(found)


def recorded_types(topics: Iterable[Topic]) -> Typestore:
    """Return a store of the messages of a bag, as they were when it was recorded.

    A bag of an older rosbag2 carries no definitions; then today's hold.
    """
    store = get_typestore(Stores.EMPTY)
    today = ros_types()
    for topic in topics:
        if topic.type in store.fielddefs:
            continue
        if topic.format == MessageDefinitionFormat.IDL:
            found = get_types_from_idl(topic.definition)
        elif topic.definition:
            found = get_types_from_msg(topic.definition, topic.type)
        else:
            learn(today, topic.type)
            found = _with_parts(today, topic.type)
        store.register({name: fields for name, fields in found.items() if name not in store.fielddefs})
    return store


def type_hash(topic: Topic) -> str:
    """Return the type hash of a topic, from its definition where the bag does not say it."""
    return topic.hash or recorded_types([topic]).hash_rihs01(topic.type)


def todays_hash(name: str) -> str:
    """Return the type hash of a message as it is installed here."""
    store = ros_types()
    learn(store, name)
    return store.hash_rihs01(name)


def _with_parts(store: Typestore, name: str) -> Typesdict:
    found = {name: store.fielddefs[name]}
    for part in _parts(found):
        found |= _with_parts(store, part)
    return found


def _parts(types: Typesdict) -> Iterator[str]:
    """Yield the names of the messages that are fields of others."""
    for _, fields in types.values():
        for _, description in fields:
            part = _part(description)
            if part is not None:
                yield part


def _part(description: FieldDesc) -> str | None:
    kind, value = description
    if kind == Nodetype.NAME:
        return str(value)
    if kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        return _part(value[0])  # type: ignore[arg-type, index]  # the kind says what the value is
    return None


def _msg_file(package: str, kind: str) -> Path:
    if package == share.PACKAGE:
        return share.find("msg", f"{kind}.msg")
    prefixes = [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]
    files = [Path(prefix, "share", package, "msg", f"{kind}.msg") for prefix in prefixes]
    for file in files:
        if file.is_file():
            return file
    raise InputError(
        f"the definition of {package}/msg/{kind} is not found; install the package {package}, which has "
        f"share/{package}/msg/{kind}.msg"
    )
