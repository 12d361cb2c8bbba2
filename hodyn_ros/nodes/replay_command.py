"""What `hodyn replay` does, once its arguments are known."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from hodyn_ros.bags.reader import Bag
from hodyn_ros.bags.sources import find_sources
from hodyn_ros.nodes.replay import Changes, Replay


def run_replay(
    path: Path, out: Path, changes: Changes, namespace: str | None, topic: str | None, console: Console
) -> bool:
    """Write the replayed bag and say what came of it; return whether anything was answered."""
    with Bag(path) as bag:
        if bag.warning:
            console.print(f"warning: {bag.warning}", style="yellow", soft_wrap=True, highlight=False)
        sources = find_sources(bag, namespace, topic)
        replay = Replay(bag, sources, changes, lambda line: console.print(line, soft_wrap=True))
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(f"replaying {sources.desired_motion}", total=1.0)
            replay.write(out, lambda share_done: bar.update(task, completed=share_done))
    outcome, refused = replay.outcome, replay.refusals
    lines = [
        f"replayed {outcome.samples} samples of {sources.desired_motion}; {outcome.answers} answers in "
        f"'{out}', {outcome.matched} of the {outcome.recorded} recorded ones among them"
    ]
    if outcome.without_settings:
        lines.append(f"left out {outcome.without_settings} samples from before the first settings in the bag")
    if refused.total:
        reasons = ", ".join(f"{count} {reason.value}" for reason, count in refused.counts.items() if count)
        lines.append(f"refused {refused.total} samples: {reasons}")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    return outcome.answers > 0
