"""What `hodyn replay` does, once its arguments are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from hodyn_ros.bags.comparison.commands import warn
from hodyn_ros.bags.comparison.sources import DESIRED_MOTION, find_sources, topics_of_type
from hodyn_ros.bags.reader import Bag
from hodyn_ros.errors import InputError
from hodyn_ros.outputs import complete_and_new
from hodyn_ros.replay.observer_replay import ObserverReplay, observers_in
from hodyn_ros.replay.replay import AS_RECORDED, Changes, Replay
from hodyn_ros.ros.streams.rejections import Rejections
from hodyn_ros.tables import progress_bar, say

_Step = Callable[[Path, Path], None]  # from one bag to the next


def run_replay(
    path: Path, out: Path, changes: Changes, namespace: str | None, topic: str | None, console: Console
) -> None:
    """Write the replayed bag and say what came of it; HodynError where nothing could be answered."""
    with Bag(path) as bag:
        warn(bag.warning, console)
        observers = [] if topic is not None else observers_in(bag, namespace)
        moved = bool(topics_of_type(bag, DESIRED_MOTION))
    if not moved and observers and changes != AS_RECORDED:
        raise InputError(
            f"'{path}' has no desired motion, and what an observer_node says is computed as it was recorded: "
            "leave out --robot, --order and --floating-base"
        )
    steps: list[_Step] = [partial(_observed, settings, out, console) for settings in observers]
    if moved or not observers:
        steps.insert(0, partial(_answered, changes, namespace, topic, out, console))
    with complete_and_new(out) as part:
        for left, step in zip(reversed(range(len(steps))), steps):
            there = part.with_name(f"{part.name}.{left}") if left else part
            step(path, there)
            path = there


def _answered(
    changes: Changes,
    namespace: str | None,
    topic: str | None,
    out: Path,
    console: Console,
    path: Path,
    there: Path,
) -> None:
    """Compute the feedforward of a bag again; `out` is what becomes of it in the end."""
    with Bag(path) as bag:
        sources = find_sources(bag, namespace, topic)
        replay = Replay(bag, sources, changes, partial(say, console))
        if replay.gaps is not None:
            warn(f"'{path}' has {replay.gaps} on {sources.desired_motion}", console)
        _write(replay.write, sources.desired_motion, there, console)
    outcome = replay.outcome
    lines = [
        f"replayed {outcome.samples} samples of {sources.desired_motion}; {outcome.answers} answers in "
        f"'{out}', {outcome.matched} of the {outcome.recorded} recorded ones among them"
    ]
    if outcome.without_settings:
        lines.append(f"left out {outcome.without_settings} samples from before the first settings in the bag")
    say(console, *lines, *_rejected(replay.rejections))


def _observed(settings: str, out: Path, console: Console, path: Path, there: Path) -> None:
    """Compute what an observer_node said again, likewise."""
    with Bag(path) as bag:
        replay = ObserverReplay(bag, settings, partial(say, console))
        _write(replay.write, replay.topic, there, console)
    outcome = replay.outcome
    line = (
        f"observed {outcome.samples} samples again; {outcome.answers} messages of {replay.topic} in '{out}', "
        f"{outcome.matched} of the {outcome.recorded} recorded ones among them"
    )
    say(console, line, *_rejected(replay.rejections))


def _write(
    write: Callable[[Path, Callable[[float], object]], None], what: str, out: Path, console: Console
) -> None:
    with progress_bar(console, f"replaying {what}") as progress:
        write(out, progress)


def _rejected(rejections: Rejections) -> list[str]:
    return [f"rejected {rejections.total} samples: {rejections.reasons()}"] if rejections.total else []
