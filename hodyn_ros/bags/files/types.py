"""Definitions of messages, as the library rosbags wants them; no ROS is needed to read or write a bag.

The messages of ROS are known to the library, those of this package come from its .msg files, and those of any
other package from the .msg files that it has installed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.interfaces.typing import FieldDesc, Typesdict
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from hodyn_ros import share
from hodyn_ros.bags.messages import IDL, MSG, UNKNOWN, DamagedError, Message, Topic
from hodyn_ros.errors import InputError

_TYPE = re.compile(r"[A-Za-z]\w*(/(msg|srv|action))?/[A-Za-z]\w*", re.ASCII)
_LONGEST_DEFINITION = 500_000  # characters; the longest of ROS have a tenth of it
_LONGEST_ARRAY = 10_000  # elements of a fixed number; each may cost a line of code


def ros_types() -> Typestore:
    """Return a store of the messages of ROS 2."""
    return get_typestore(Stores.ROS2_JAZZY)


def learn(store: Typestore, name: str) -> None:
    """Make a store know a message, such as "hodyn_ros/msg/DesiredMotion", and all that it is made of.

    Raises InputError where its .msg file is not found.
    """
    if name in store.fielddefs:
        return
    if not _TYPE.fullmatch(name) or name.count("/") != 2:
        raise InputError(f"{name!r} is no name of a message")
    package, _, kind = name.split("/")
    types = get_types_from_msg(_msg_file(package, kind).read_text(encoding="utf-8"), name)
    for part in _parts(types):
        if part not in types:
            learn(store, part)
    store.register(types)


def recorded_types(topics: Iterable[Topic]) -> Typestore:
    """Return a store of the messages of a bag, as they were when it was recorded.

    A bag of an older rosbag2 carries no definitions; then today's hold. Raises InputError for a type that is
    not known, and for a definition that is none.
    """
    store = get_typestore(Stores.EMPTY)
    today = ros_types()
    for topic in topics:
        if topic.type in store.fielddefs:
            continue
        types = _recorded_type(topic, today)
        store.register({name: fields for name, fields in types.items() if name not in store.fielddefs})
    return store


def _recorded_type(topic: Topic, today: Typestore) -> Typesdict:
    # Code is made of these names and texts, so they are looked at first.
    if not _TYPE.fullmatch(topic.type):
        raise InputError(f"{topic.name} is of the type {topic.type!r}, which is no name of a type")
    if topic.encoding == UNKNOWN or not topic.definition:
        learn(today, topic.type)
        return _with_parts(today, topic.type)
    if len(topic.definition) > _LONGEST_DEFINITION:
        raise InputError(f"the definition of {topic.type} is longer than {_LONGEST_DEFINITION} characters")
    try:
        if topic.encoding == IDL:
            types = get_types_from_idl(topic.definition)
        else:
            types = get_types_from_msg(topic.definition, topic.type)
    except Exception as error:  # the library has no root for what broken texts lead to
        line = str(error).partition("\n")[0]
        raise InputError(f"the definition of {topic.type} in the bag cannot be read: {line}") from error
    if topic.type not in types:
        raise InputError(f"the definition of {topic.type} in the bag defines something else")
    if any(
        _length(description) > _LONGEST_ARRAY for _, fields in types.values() for _, description in fields
    ):
        raise InputError(f"the definition of {topic.type} in the bag holds an array of unlikely length")
    return types


def described(topic: Topic) -> Topic:
    """Return a topic with the definition and the hash of today where it carries none.

    Where nothing defines the type here either, the topic stays as it is, as in a bag of rosbag2.
    """
    if topic.definition or topic.encoding:
        return topic
    store = ros_types()
    try:
        learn(store, topic.type)
    except InputError:
        return replace(topic, encoding=UNKNOWN)
    definition, _ = store.generate_msgdef(topic.type, ros_version=2)
    return replace(topic, definition=definition, encoding=MSG, hash=store.hash_rihs01(topic.type))


def type_hash(topic: Topic) -> str:
    """Return the type hash of a topic, from its definition where the bag does not say it."""
    return topic.hash or recorded_types([topic]).hash_rihs01(topic.type)


def todays_hash(name: str) -> str:
    """Return the type hash of a message as it is installed here."""
    store = ros_types()
    learn(store, name)
    return store.hash_rihs01(name)


def _with_parts(store: Typestore, name: str) -> Typesdict:
    types = {name: store.fielddefs[name]}
    for part in list(_parts(types)):
        types |= _with_parts(store, part)
    return types


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


def _length(description: FieldDesc) -> int:
    """Return how many elements a field always has."""
    kind, value = description
    return int(value[1]) if kind == Nodetype.ARRAY else 1  # type: ignore[arg-type]  # as above


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


_HEADER = ("header", (Nodetype.NAME, "std_msgs/msg/Header"))


class Decoder:
    """Reads the messages of a topic, by the definition under which they were recorded.

    `fields` are the names of their fields; `stamped` says whether they begin with a header. Raises InputError
    for a topic whose type is not known.
    """

    def __init__(self, topic: Topic) -> None:
        if topic.serialization != "cdr":
            raise InputError(f"{topic.name} is written as {topic.serialization!r}; 'cdr' can be read")
        self._type = topic.type
        self._store = recorded_types([topic])
        fields = self._store.fielddefs[topic.type][1]
        self.fields = frozenset(name for name, _ in fields)
        self.stamped = fields[:1] == [_HEADER]

    def __call__(self, message: Message) -> Any:
        """Return a message with its fields; raises DamagedError where its bytes are something else.

        What a middleware has left behind the last field is passed over.
        """
        data = message.data
        try:
            if data[:2] not in (b"\x00\x00", b"\x00\x01"):
                raise ValueError("it does not begin as a message does")
            definition = self._store.get_msgdef(self._type)
            read = definition.deserialize_cdr_le if data[1] else definition.deserialize_cdr_be
            return read(data[4:], 0, definition.cls, self._store)[0]
        except Exception as error:  # the library has no root for what broken bytes lead to
            raise DamagedError(
                f"a message on {message.topic}, recorded at {message.time * 1e-9:.6f} s, is damaged: "
                f"{str(error) or type(error).__name__}"
            ) from error
