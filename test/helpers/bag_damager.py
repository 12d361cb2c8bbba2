"""Damage bags at random, and hand them to `hodyn replay` and `hodyn compare`.

    python test/helpers/bag_damager.py SEED CALLS FOLDER

FOLDER holds bags `whole*`. For each call a line of JSON says what was called, the exit code, what came on
standard error, how long it took, and what it has left. The memory of this process is bounded.
"""

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from hodyn_ros.cli import app as cli

MEMORY = 6 * 2**30  # [bytes] addresses; importing everything takes a third of it
PATIENCE = 60  # [s]


class TooLongError(BaseException):
    """A call does not end."""


def give_up(number: int, frame: FrameType | None) -> None:
    """End a call that does not end."""
    raise TooLongError


def damage(path: Path, chance: random.Random) -> str:
    """Damage a file; return how."""
    content = bytearray(path.read_bytes())
    how = chance.choice(["flipped", "cut", "zeroed", "long", "moved"])
    # what comes first says what all the rest means
    span = len(content) if chance.random() < 0.5 else min(len(content), 8000)
    if how == "flipped":
        for _ in range(chance.choice([1, 3, 10, 100])):
            content[chance.randrange(span)] = chance.randrange(256)
    elif how == "cut":
        del content[chance.randrange(span) :]
    elif how == "zeroed":
        begin, size = chance.randrange(span), chance.choice([4, 64, 4096, 50_000])
        content[begin : begin + size] = bytes(min(size, len(content) - begin))
    elif how == "long":
        for _ in range(chance.choice([1, 3, 10])):
            size, begin = chance.choice([2, 4, 8]), chance.randrange(span)
            number = chance.choice([2**64 - 1, 2**63 - 1, 2**31, 10**9, 10**12])
            content[begin : begin + size] = (number % 2 ** (8 * size)).to_bytes(
                size, chance.choice(["little", "big"])
            )
    else:
        begin, to, size = (
            chance.randrange(span),
            chance.randrange(len(content)),
            chance.choice([16, 500, 4096]),
        )
        content[begin : begin + size] = content[to : to + size]
    path.write_bytes(content)
    return how


def call(arguments: list[str], errors: Path) -> tuple[int | str, list[str]]:
    """Run the command line; return its exit code, or what it has raised, and the lines of its errors."""
    sys.argv = ["hodyn", *arguments]
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with errors.open("w") as file, Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(file.fileno(), 2)  # also what comes from below Python
        signal.alarm(PATIENCE)
        code: int | str = "no exit"
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        except BaseException as error:
            code = repr(error)[:500]
        finally:
            signal.alarm(0)
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
    return code, errors.read_text(errors="replace").splitlines()


def main() -> None:
    """Do what the arguments say."""
    seed, calls, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    signal.signal(signal.SIGALRM, give_up)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    whole = sorted(folder.glob("whole*"))
    # whatever is imported or compiled only once
    call(["replay", str(whole[0]), "--out", str(folder / "here" / "out")], folder / "errors")
    call(
        ["compare", str(whole[0]), str(whole[1]), "--picture", str(folder / "here" / "out.png")],
        folder / "errors",
    )
    shutil.rmtree(folder / "here")
    for number in range(calls):
        chance = random.Random(f"{seed} {number}")
        source = chance.choice(whole)
        here = folder / "here"
        bag = here / "bag"
        shutil.copytree(source, bag)
        files = sorted(bag.iterdir())
        hurt = chance.choices(files, weights=[1 if file.suffix == ".yaml" else 6 for file in files])[0]
        how = damage(hurt, chance)
        if chance.random() < 0.3:
            (bag / "metadata.yaml").unlink()
        if chance.random() < 0.5:
            arguments = ["replay", str(bag), "--out", str(here / "out")]
        else:
            pair = [str(bag), str(source)]
            arguments = ["compare", *(pair if chance.random() < 0.5 else pair[::-1])]
            arguments += chance.choice([[], ["--tolerance", "1e-9"], ["--picture", str(here / "out.png")]])
        began = time.monotonic()
        code, errors = call(arguments, folder / "errors")
        outcome = {
            "number": number,
            "how": f"{how} {hurt.name} of {source.name}",
            "command": arguments[0],
            "code": code,
            "errors": errors,
            "seconds": time.monotonic() - began,
            "left": sorted(path.name for path in here.iterdir() if path != bag),
        }
        print(json.dumps(outcome), flush=True)
        shutil.rmtree(here)


if __name__ == "__main__":
    main()
