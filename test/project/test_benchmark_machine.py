"""What figures are said to be measured on: never another processor than the one that computed them."""

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from benchmarks import machine

EPYC = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
    "flags\t\t: fpu sse2 avx avx2 avx512f\n"
)
PI = (
    "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n"
)


def said(monkeypatch: pytest.MonkeyPatch, root: Path, kind: str, files: dict[str, str]) -> str:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    monkeypatch.setattr(machine.platform, "machine", lambda: kind)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "cortex-a72")
    return machine.processor(root)


REGISTER = {"sys/devices/system/cpu/cpu0/regs/identification/midr_el1": "0x00000000410fd083\n"}
BOARD = {"proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0"}


@pytest.mark.parametrize(
    "kind, files, expected",
    [
        ("x86_64", {"proc/cpuinfo": EPYC}, "AMD EPYC, family 25, model 17, avx512f"),
        (
            "aarch64",
            {"proc/cpuinfo": PI} | REGISTER | BOARD,
            "aarch64, cortex-a72 (MIDR 0x410fd083), Raspberry Pi 4 Model B Rev 1.4, asimd",
        ),
        ("aarch64", {"proc/cpuinfo": PI} | REGISTER, "aarch64, cortex-a72 (MIDR 0x410fd083), asimd"),
        # QEMU 7 shows the file of the machine below, QEMU 8 one that it makes up
        ("aarch64", {"proc/cpuinfo": EPYC}, "aarch64, emulated on AMD EPYC, family 25, model 17, avx512f"),
        ("aarch64", {"proc/cpuinfo": PI} | BOARD, "aarch64, emulated on another processor"),
    ],
    ids=["x86-64", "board", "server", "qemu 7", "qemu 8"],
)
def test_the_processor_that_computes_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, files: dict[str, str], expected: str
) -> None:
    assert said(monkeypatch, tmp_path, kind, files) == expected
