"""Write the table and the picture of docs/safety.md: python test/helpers/fault_table.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from fault_bench import CONTROLLER, EFFORTS, FAULT_AT, REFERENCES, Bench, Consumer, Outcome, outcome, silence
from fault_cases import ASKEW, CASES, Case
from places import ROOT

DOCS = ROOT / "docs"
BEGIN, END = "<!-- faults: written by test/helpers/fault_table.py -->", "<!-- end of faults -->"
CONSUMERS = (CONTROLLER, EFFORTS, REFERENCES)


def last_command(found: Outcome) -> str:
    bench = found.bench
    if bench.held is None:
        return "brakes" if bench.guard.ended or bench.last is None else "let go"
    if bench.kind == "efforts" and not np.any(bench.held):
        return "zero"
    return "holds" if bench.guard.state.value == "stopped" else bench.guard.state.value


def cell(consumer: Consumer, case: Case) -> str:
    found = outcome(consumer, case.make(), case.lasts, case.begins, case.off, case.silent)
    record = found.bench.record
    if all(command is None for command in record.commands):
        return "nothing is commanded"
    still = record.standstill(0) if case.fault_for(consumer) else None
    figures = f"{record.step:.2f}, {record.share:.2f}" + (f", {still:.2f} s" if still is not None else "")
    return f"{figures}, {last_command(found)}"


def table() -> str:
    lines = ["| fault | " + " | ".join(consumer.name for consumer in CONSUMERS) + " | stopped by |"]
    lines.append("| --- " * (len(CONSUMERS) + 2) + "|")
    for case in CASES:
        cells = [cell(consumer, case) for consumer in CONSUMERS]
        faults = [case.fault_for(consumer) for consumer in CONSUMERS]
        reasons = list(dict.fromkeys(fault.value if fault else "-" for fault in faults))
        lines.append("| " + " | ".join([case.name, *cells, " / ".join(reasons)]) + " |")
    return "\n".join(lines)


def picture(path: Path) -> None:
    def stops(bench: Bench, moment) -> None:
        if moment.k >= FAULT_AT:
            silence(moment)

    runs = {
        "the stream stops at 1 s": Bench(CONTROLLER).run(1900, stops),
        "joined 0.049 rad off": Bench(CONTROLLER, 0.049 * ASKEW).run(1100),
    }
    figure, axes = plt.subplots(3, 2, figsize=(9, 6.5), sharex="col", constrained_layout=True)
    for column, (name, bench) in zip(axes.T, runs.items()):
        record = bench.record
        times = 1e-3 * np.arange(bench.k)
        column[0].set_title(name)
        column[0].plot(times, record.efforts)
        column[1].plot(times, record.shares)
        column[2].plot(times, record.errors)
        column[2].set_xlabel("time [s]")
    for axis, label in zip(axes[:, 0], ("effort [N·m]", "speed / limit", "from the motion [rad]")):
        axis.set_ylabel(label)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    picture(DOCS / "pictures" / "safety.png")
    page = DOCS / "safety.md"
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}", encoding="utf-8")
