"""What a recorder has written of a bag while it goes on."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ros_talk import Talk

from hodyn_ros.bags.messages import Message, stamp_of
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError

LOOK_INTO_BAG = 0.2  # [s]; each look reads all of it


def so_far(bag: Path) -> dict[str, list[Message]]:
    """Return by topic what has been written of a bag whose recording goes on."""
    found: dict[str, list[Message]] = {}
    # nothing is written yet, or it is being written just now
    with suppress(InputError, FileNotFoundError), Bag(bag) as begun:
        for message in begun.messages():
            found.setdefault(message.topic, []).append(message)
    return found


def wait_for_bag(
    talk: Talk, bag: Path, condition: Callable[[dict[str, list[Message]]], bool], what: str
) -> None:
    """Wait until a condition holds of what has been written."""
    next_look = 0.0

    def written() -> bool:
        nonlocal next_look
        if time.monotonic() < next_look:
            return False
        found = condition(so_far(bag))
        next_look = time.monotonic() + LOOK_INTO_BAG
        return found

    talk.wait_until(written, what)


def wait_for_stamp(talk: Talk, bag: Path, topic: str, stamp: int) -> None:
    """Wait until a message with a stamp [ns], or one after it, has been written."""

    def there(found: dict[str, list[Message]]) -> bool:
        return any(stamp_of(message.data) >= stamp for message in found.get(topic, [])[-50:])

    wait_for_bag(talk, bag, there, f"the message of {stamp} ns on {topic}")
