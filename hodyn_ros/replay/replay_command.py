"""What `hodyn replay` does, once its arguments are known."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from hodyn_ros.bags.comparison.commands import warn
from hodyn_ros.bags.comparison.sources import find_sources
from hodyn_ros.bags.reader import Bag
from hodyn_ros.replay.replay import Changes, Replay


def run_replay(
    path: Path, out: Path, changes: Changes, namespace: str | None, topic: str | None, console: Console
) -> None:
    """Write the replayed bag and say what came of it; HodynError where nothing could be answered."""
    with Bag(path) as bag:
        warn(bag.warning, console)
        sources = find_sources(bag, namespace, topic)

        def log(line: str) -> None:
            console.print(line, soft_wrap=True, markup=False)

        replay = Replay(bag, sources, changes, log)
        if replay.gaps is not None:
            warn(f"'{path}' has {replay.gaps} on {sources.desired_motion}", console)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(f"replaying {sources.desired_motion}", total=1.0)
            replay.write(out, lambda share_done: bar.update(task, completed=share_done))
    outcome, rejected = replay.outcome, replay.rejections
    lines = [
        f"replayed {outcome.samples} samples of {sources.desired_motion}; {outcome.answers} answers in "
        f"'{out}', {outcome.matched} of the {outcome.recorded} recorded ones among them"
    ]
    if outcome.without_settings:
        lines.append(f"left out {outcome.without_settings} samples from before the first settings in the bag")
    if rejected.total:
        lines.append(f"rejected {rejected.total} samples: {rejected.reasons()}")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
