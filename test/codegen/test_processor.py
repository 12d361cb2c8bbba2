"""The processor that code is made for: what can be named, what is refused, and that code is kept apart."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from oracles.cases import make_case, relative_errors
from refusals import refused
from sweeps import some

from hodyn_ros import InputError, Robot
from hodyn_ros.codegen import llvm as code
from hodyn_ros.codegen import processor
from hodyn_ros.codegen.processor import NATIVE, VARIABLE, WITHOUT_FMA, lanes, target

X86 = "fma" in dict(llvm.get_host_cpu_features())
HERE = [name for name, has in dict(llvm.get_host_cpu_features()).items() if has]


@pytest.fixture(autouse=True)
def not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def old_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let LLVM say that this machine has nothing beyond the level x86-64-v2."""
    features = dict.fromkeys(["sse2", "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"], True)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features | {"fma": False, "avx512f": False})
    processor._target.cache_clear()
    yield
    processor._target.cache_clear()


def named(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[str, set[str]]:
    monkeypatch.setenv(VARIABLE, name)
    cpu, features = target()
    return cpu, set(features.split(","))


def test_without_a_name_it_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    given = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    assert target() == given
    for name in ("", NATIVE):
        monkeypatch.setenv(VARIABLE, name)
        assert target() == given


@pytest.mark.skipif(not X86, reason="these are names of x86-64")
class TestNames:
    def test_levels_use_what_they_bring(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "none")
        with pytest.raises(InputError) as refused:
            target()
        possible = str(refused.value).partition("possible on this machine: ")[2].split()
        assert possible[:2] == [NATIVE, "x86-64-v2"]
        fused = {name: "+fma" in named(monkeypatch, name)[1] for name in possible}
        assert not any(has for name, has in fused.items() if name.endswith(WITHOUT_FMA) or "v2" in name)
        assert all(has for name, has in fused.items() if re.fullmatch(r"x86-64-v[34]|znver\d", name))
        for name in possible:
            cpu, features = named(monkeypatch, name)
            assert cpu == (llvm.get_host_cpu_name() if name.startswith(NATIVE) else name.split(",")[0])
            assert {each[1:] for each in features if each.startswith("+")} <= set(HERE)
            assert lanes() == (8 if "+avx512f" in features else 4)

    def test_nothing_that_rests_on_fma_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _, features = named(monkeypatch, NATIVE + WITHOUT_FMA)
        assert "-fma" in features
        assert not [each for each in features if each.startswith(("+fma", "+avx512", "+avx10"))]

    def test_an_unknown_name_is_told_the_possible_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "x86-64-v9")
        wanted = "HODYN_PROCESSOR=x86-64-v9: ... no processor known here; possible ... : native x86-64-v2"
        refused(lambda: make_robot().compile(1), wanted)

    @pytest.mark.usefixtures("old_machine")
    @pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4", "znver1", "znver4", "x86-64-v3,-fma"])
    def test_what_this_machine_cannot_run_is_refused(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, name)
        said = str(refused(target, "this machine lacks avx, avx2, bmi"))
        assert said.endswith("native x86-64-v2 native,-fma x86-64-v2,-fma")


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Python and LLVM say that this machine is one of aarch64."""
    features = {"neon": True, "fp-armv8": True, "crc": True, "lse": True, "aes": False, "sve": False}
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(llvm, "get_host_cpu_name", lambda: "cortex-a78ae")
    processor._target.cache_clear()
    yield
    processor._target.cache_clear()


@pytest.mark.usefixtures("board")
class TestNamesOfArm:
    def test_code_of_one_board_may_be_that_of_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        native = {"+neon", "+fp-armv8", "+crc", "+lse", "-aes", "-sve"}
        assert named(monkeypatch, NATIVE) == ("cortex-a78ae", native)
        assert named(monkeypatch, "armv8-a") == ("generic", {"-aes", "-sve"})
        assert lanes() == 4

    @pytest.mark.parametrize("name", ["x86-64-v2", "native,-fma", "armv8-a,-fma", "cortex-a72"])
    def test_what_it_cannot_run_or_leave_out_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.setenv(VARIABLE, name)
        refused(target, "possible on this machine: native armv8-a")


ARM = ("neoverse-v2", "+sve,+sve2"), ("cortex-a78ae", ""), ("apple-m1", "")


def operations_of_arm(text: str, cpu: str, features: str) -> Counter[str]:
    """Count the instructions on numbers that LLVM writes for a processor of aarch64, fused ones together."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    of = llvm.Target.from_triple("aarch64-linux-gnu")
    machine = of.create_target_machine(cpu=cpu, features=features, opt=2, jit=True)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    kinds = r"^\tfn?(add|sub|div|sqrt|mul|m(?:add|sub|la|ls|ad|sb))\t"  # with n the result is negative
    found = Counter(re.findall(kinds, machine.emit_assembly(module), re.MULTILINE))
    fused = sum(found.pop(name, 0) for name in ("madd", "msub", "mla", "mls", "mad", "msb"))
    return found + Counter(fused=fused)


def test_processors_of_arm_round_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever they have beyond armv8-a: they fuse the same products and sums."""
    texts, ours = [], code._object_code

    def noted(text: str, machine: llvm.TargetMachine) -> bytes:
        texts.append(text)
        return ours(text, machine)

    monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(code, "_object_code", noted)
    robot = make_robot()
    robot.compile(1)(CASE.q[:4])
    robot.compile_batch(1)(np.repeat(CASE.q[None, :4], 9, 0))
    for text in texts:
        plain = operations_of_arm(text, "generic", "")
        for cpu, features in some(ARM, ARM[0]):
            assert operations_of_arm(text, cpu, features) == plain, cpu
    assert max(operations_of_arm(text, "generic", "")["fused"] for text in texts) > 100


def make_robot() -> Robot:
    return Robot.from_screws(**CASE.tree.arguments())


CASE = make_case(72, 4, 2)


@pytest.mark.skipif(not X86, reason="these are names of x86-64")
def test_code_of_processors_is_kept_apart_and_differs_by_rounding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HODYN_CACHE_DIR", str(tmp_path))
    exact, found, kept = CASE.exact_efforts(), {}, 0
    for name in (NATIVE, NATIVE + WITHOUT_FMA, "x86-64-v2"):
        monkeypatch.setenv(VARIABLE, name)
        robot = make_robot()
        found[name] = robot.compile(2)(CASE.q)
        batch = robot.compile_batch(2)(np.repeat(CASE.q[None], 9, 0))
        assert (batch == found[name]).all()
        assert relative_errors(found[name], exact).max() < 1e-14
        assert len(list(tmp_path.iterdir())) > kept
        kept = len(list(tmp_path.iterdir()))
    assert (found["x86-64-v2"] == found[NATIVE + WITHOUT_FMA]).all()
    if "fma" in HERE:
        assert (found["x86-64-v2"] != found[NATIVE]).any()
