"""From the text of an LLVM module to machine code, through llvmlite."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from hodyn_ros.codegen.keys import key_of
from hodyn_ros.codegen.object_cache import ObjectCache
from hodyn_ros.codegen.processor import target

# Straight-line code comes in an order that keeps few numbers alive; schedulers, before and after registers
# are allocated, only lengthen their lives. It comes in blocks, which the preparation of code would join.
_AS_WRITTEN = ("-enable-misched=false", "-disable-post-ra=true", "-disable-cgp=true")
_ORDINARY = ("-enable-misched=true", "-disable-post-ra=false", "-disable-cgp=false")

# Lines of text from which on LLVM only translates, without looking for faster code: 400,000 operations take
# it a second then, where 110,000 take three otherwise, and are called in 0.5 ns each instead of 0.25.
_LONG = 120_000


@dataclass(frozen=True)
class MachineCode:
    """A compiled function; it lives as long as this object."""

    address: int
    _engine: Any

    def beside(self, name: str) -> int:
        """Return the address of another function, or of data, of its module."""
        return int(self._engine.get_function_address(name))


Facts = tuple[int, ...]


class Module:
    """An LLVM module that a function writes, `write(*arguments) -> (text, facts)`, where it has to.

    `facts` are whole numbers that a caller has to know beside the code. They are on disk with the name of the
    code, under the key of all that the function can see: where the same was compiled before, it is not
    called. A function that changes something of what it sees is called every time.
    """

    def __init__(self, write: Callable[..., tuple[str, Facts]], *arguments: Any) -> None:
        self._write, self._cache = partial(write, *arguments), ObjectCache.default()
        key = key_of(write, *arguments) if self._cache else None
        known = self._cache.get(key) if self._cache and key else None
        if known is not None:
            self._text = None
            self._name, *facts = known.decode().split()
            self.facts: Facts = tuple(map(int, facts))
            return
        self._text, self.facts = self._written_anew()
        self._name = _name(self._text)
        if self._cache and key and key == key_of(write, *arguments):
            self._cache.put(key, " ".join(map(str, (self._name, *self.facts))).encode())

    def compile(self, function: str) -> MachineCode:
        """Return the machine code of one of its functions."""
        return _compiled(self._name, function, self._cache, self._written)

    def _written(self) -> str:
        if self._text is None:
            self._text, _ = self._written_anew()
        return self._text

    def _written_anew(self) -> tuple[str, Facts]:
        with _no_collection():
            return self._write()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no garbage: what is traced lives until it is written. Looking takes a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def compile_text(ir: str, name: str, cache: ObjectCache | None) -> MachineCode:
    """Compile function `name` of an LLVM module; what is traced goes through `Module` instead."""
    return _compiled(_name(ir), name, cache, lambda: ir)


def _name(ir: str) -> str:
    """Return the name of the machine code of a module."""
    versions = llvmlite.__version__, str(llvm.llvm_version_info), llvm.get_default_triple()
    return hashlib.sha256("\n".join([ir, *versions, *target()]).encode()).hexdigest()


def _compiled(name: str, function: str, cache: ObjectCache | None, text: Callable[[], str]) -> MachineCode:
    code = cache.get(name) if cache else None
    if code is None:
        ir = text()
        code = _object_code(ir, _target_machine(long=ir.count("\n") > _LONG, jit=True))
        if cache:
            cache.put(name, code)
    return _loaded(code, function)


def _loaded(code: bytes, function: str) -> MachineCode:
    """Place object code in memory.

    Asking for an address finalises what has been loaded. `finalize_object` would compile the empty module of
    the engine besides, which takes longer than all the rest; so would a machine that knows its processor.
    """
    _initialize()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    return MachineCode(engine.get_function_address(function), engine)


def _object_code(ir: str, machine: Any) -> bytes:
    module = llvm.parse_assembly(ir)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    _set(_AS_WRITTEN)
    code: bytes = machine.emit_object(module)
    _set(_ORDINARY)
    return code


def _set(options: Sequence[str]) -> None:
    for option in options:
        llvm.set_option("", option)


def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(*, long: bool, **how: Any) -> Any:
    _initialize()
    cpu, features = target()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=0 if long else 2, **how
    )


def relocatable(ir: str) -> bytes:
    """Return the object code of an LLVM module for this processor, position-independent, to be linked."""
    long = ir.count("\n") > _LONG
    return _object_code(ir, _target_machine(long=long, reloc="pic", codemodel="small"))
