"""Keys of what a function returns, found without calling it: from all that it can see.

What a function computes follows from its code, from its arguments, and from what its closure, its defaults
and the objects of its methods hold. All of these go into the key, by value: numbers by their bits, arrays by
their bytes, objects by their attributes. The code that it calls is that of `hodyn_ros`, which is digested
from its files once in a process; a function of other code has no key, and neither has one that sees anything
whose value cannot be told. So whoever compiles something new forgets nothing: what is not in the key cannot
be seen, or there is no key.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import struct
import sys
import time
import types
from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic, Protocol

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from hodyn_ros.codegen.object_cache import Kept
from hodyn_ros.codegen.processor import target

# Folders whose functions have keys. Imports run one way: what these see lies in them, or beside them.
FOLDERS = (
    "codegen",
    "lie",
    "model",
    "formulations",
    "engine",
    "actuation",
    "trajectory",
    "dynamics",
    "feedforward",
    "control",
    "observers",
)
_PACKAGE = Path(__file__).parents[1]
_BESIDE = {path.stem for path in _PACKAGE.glob("*.py")}
_MARGIN = 2.0  # [s] before this module was loaded, in which others of the package may have been
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "scipy"}
_NAMED = (types.BuiltinFunctionType, np.ufunc, types.ModuleType)
_PLAIN = {object, tuple, ABC, Generic, Protocol}
_NOTED_BY_PYTHON = "__slotnames__", "__warningregistry__"  # by `copy` in a class, by a warning in a module


class _NoKeyError(Exception):
    """Something that a function sees has no value that can be told."""


def key_of(function: Callable[..., Any], *arguments: Any) -> str | None:
    """Return the key of what a function returns; None where it has none.

    The function may read whatever it likes of its arguments, but nothing that changes elsewhere: no files, no
    environment, no clock. Returns None, too, where code of this process is no longer that of the files.
    """
    sources = _sources.digest()
    if sources is None:
        return None
    content = _Content()
    try:
        content.add((sources, *_versions(), *target(), function, arguments))
    except _NoKeyError:
        return None
    return hashlib.sha256(b"".join(content.parts)).hexdigest()


@functools.cache
def _versions() -> tuple[str, ...]:
    triple = llvm.get_default_triple()
    libraries = np.__version__, llvmlite.__version__, str(llvm.llvm_version_info)
    return sys.version, platform.machine(), triple, *libraries


class _Content:
    """Bytes that differ where values do.

    Each begins with its kind and says how long it is. What was met before is named by its number, so that an
    object may refer to itself.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # or another object might get the identity of one that was met

    def add(self, value: Any) -> None:
        """Add a value with all that it holds."""
        kind = type(value)
        if kind is float:
            self.parts.append(b"f" + struct.pack("<d", value))
        elif kind is int or kind is bool or value is None:
            self._bytes(b"i", repr(value).encode())
        elif kind is str:
            self._bytes(b"s", value.encode("utf-8", "surrogatepass"))
        elif kind is bytes:
            self._bytes(b"b", value)
        elif self._is_new(value):
            self._add_object(kind, value)

    def _bytes(self, mark: bytes, content: bytes) -> None:
        self.parts.append(b"%b%d:" % (mark, len(content)))
        self.parts.append(content)

    def _is_new(self, value: Any) -> bool:
        number = self._numbers.setdefault(id(value), len(self._alive))
        if number == len(self._alive):
            self._alive.append(value)
            return True
        self._bytes(b"=", str(number).encode())
        return False

    def _many(self, mark: str, values: Iterable[Any]) -> None:
        values = tuple(values)
        self._bytes(b"(", f"{mark} {len(values)}".encode())
        for value in values:
            self.add(value)

    def _add_object(self, kind: type, value: Any) -> None:
        if kind is tuple or kind is list:
            self._many(kind.__name__, value)
        elif kind is dict:
            self._many("dict", (x for pair in value.items() for x in pair))
        elif kind is range or kind is slice:
            self._many(kind.__name__, (value.start, value.stop, value.step))
        elif isinstance(value, float) and _ours(kind.__module__):
            self._many(kind.__name__, (float(value), *vars(value).values()))
        elif kind is np.ndarray or isinstance(value, np.generic):
            self._add_array(np.asarray(value))
        elif kind is types.FunctionType:
            self._add_function(value)
        elif kind is types.MethodType:
            self._many("method", (value.__func__, value.__self__))
        elif kind is functools.partial:
            self._many("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, functools._lru_cache_wrapper):
            self._many("cached", (value.__wrapped__,))
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, Enum):
            self._many("enum", (kind, value.name))
        elif kind is Kept:
            self._many("kept", ())
        elif isinstance(value, _NAMED) and _is_named(value):
            self._many("named", (kind.__name__, value.__name__, getattr(value, "__module__", None)))
        else:
            self._add_attributes(kind, value)

    def _add_array(self, value: np.ndarray[Any, Any]) -> None:
        self._bytes(b"a", f"{value.dtype.str}{value.shape}{value.strides}".encode())
        if value.dtype.hasobject:
            self._many("objects", value.ravel().tolist())
        else:
            self._bytes(b"a", value.tobytes())

    def _add_function(self, value: types.FunctionType) -> None:
        _require(_ours(value.__module__) and value.__globals__["__name__"] == value.__module__)
        self._many("function", (value.__module__, value.__qualname__, value.__defaults__))
        self._code(value.__code__)
        try:
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError as error:
            raise _NoKeyError from error
        self._many("closure", (value.__kwdefaults__, vars(value), *cells))

    def _code(self, code: types.CodeType) -> None:
        """Add which of the functions of a module it is; what others look like is known from the files."""
        self._many("code", (code.co_name, code.co_firstlineno, code.co_code, code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif isinstance(constant, (int, float, str, bytes, type(None))):
                self.add(constant)

    def _add_class(self, value: type) -> None:
        module = value.__module__
        _require(_ours(module) or module.split(".")[0] in _LIBRARIES)
        _require("<locals>" not in value.__qualname__)
        self._bytes(b"c", f"{module}:{value.__qualname__}".encode())

    def _add_attributes(self, kind: type, value: Any) -> None:
        """Add an object of the package: its class, its attributes, and its items if it is a tuple."""
        _require(_is_plain(kind))
        self._many("object", (kind, *(value if isinstance(value, tuple) else ())))
        names = _frozen_fields(kind)  # what else it holds follows from them
        if names is None:
            slots = [vars(base).get("__slots__", ()) for base in kind.__mro__]
            names = sorted({*getattr(value, "__dict__", ()), *(name for some in slots for name in some)})
        self._bytes(b"n", " ".join(names).encode())
        for name in names:
            self.add(getattr(value, name, None))


@functools.cache
def _is_plain(kind: type) -> bool:
    """Say whether what objects of a class hold are their attributes, and items where they are tuples."""
    return _ours(kind.__module__) and all(_ours(base.__module__) or base in _PLAIN for base in kind.__mro__)


@functools.cache
def _frozen_fields(kind: type) -> Sequence[str] | None:
    """Return the names of the fields of a frozen dataclass."""
    if not is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return None
    return [field.name for field in fields(kind)]


def _require(condition: bool) -> None:
    if not condition:
        raise _NoKeyError


def _ours(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package == "hodyn_ros" and (rest in _BESIDE or rest.partition(".")[0] in FOLDERS)


def _is_named(value: Any) -> bool:
    """Say whether a built-in function, a function of NumPy or a module is what its name says."""
    if isinstance(value, types.ModuleType):
        return _ours(value.__name__) or value.__name__.split(".")[0] in _LIBRARIES
    owner = getattr(value, "__self__", None)
    return owner is None or isinstance(owner, types.ModuleType)


class _Sources:
    """What the package computes by: the content of its files, as long as that is what runs here."""

    def __init__(self) -> None:
        self._began = time.time() - _MARGIN
        self._changed = False
        self._content: str | None = None
        self._n_modules = 0
        self._namespaces: dict[str, list[tuple[Mapping[str, Any], dict[str, Any]]]] = {}
        self._views: list[Iterable[Any]] = []  # names and values of all of these, as they are now
        self._noted: list[Any] | None = None  # and as they were

    def digest(self) -> str | None:
        """Return a digest of the files; None where other code runs.

        A file that was written since the process began may not be what it has read, and functions and
        constants may have been replaced since they were loaded: by a reload, by a debugger, by a test.
        """
        if len(sys.modules) != self._n_modules:
            self._look_at_modules()
        if self._changed or not (self._hold_the_same() or self._hold_equals()):
            return None
        if self._content is None:
            self._content = _digest_of_files()
        return self._content

    def _hold_the_same(self) -> bool:
        """Say whether modules hold names and values as noted, in their order: asked for each kernel."""
        try:
            return list(itertools.chain.from_iterable(self._views)) == self._noted
        except Exception:  # of arrays, whose comparison has many answers
            return False

    def _hold_equals(self) -> bool:
        """Say whether they do in any order, but for what Python notes in them."""
        try:
            same = all(_are_same(now, then) for some in self._namespaces.values() for now, then in some)
        except Exception:
            return False
        if same:
            held = [now for some in self._namespaces.values() for now, _ in some]
            self._views = [view for now in held for view in (now.keys(), now.values())]
            self._noted = list(itertools.chain.from_iterable(self._views))
        return same

    def _look_at_modules(self) -> None:
        """Note what modules hold that were loaded since the last time."""
        count = len(sys.modules)
        for name, module in list(sys.modules.items()):
            if name in self._namespaces or not _ours(name):
                continue
            if module.__spec__ is None or getattr(module.__spec__, "_initializing", False):
                count = 0  # it is being loaded: look again
                continue
            file = module.__spec__.origin
            if file is None or not _is_older(file, self._began):
                self._changed = True
            kept = [vars(one) for one in vars(module).values() if _defined_in(one, name)]
            if not hasattr(module, "__path__"):  # a folder gets its files as attributes
                kept.append(vars(module))
            self._namespaces[name] = [(namespace, dict(namespace)) for namespace in kept]
        self._n_modules, self._noted = count, None


def _are_same(now: Mapping[str, Any], then: dict[str, Any]) -> bool:
    if now == then:
        return True
    for name in _NOTED_BY_PYTHON:
        if name in now:
            then[name] = now[name]
        else:
            then.pop(name, None)
    return now == then


def _defined_in(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _is_older(file: str, moment: float) -> bool:
    """Say whether nobody has written a file since."""
    try:
        return Path(file).stat().st_ctime < moment
    except OSError:
        return False


def _digest_of_files() -> str | None:
    result = hashlib.sha256()
    folders = [next(os.walk(_PACKAGE)), *(each for name in FOLDERS for each in os.walk(_PACKAGE / name))]
    files = [f"{folder}/{name}" for folder, _, names in folders for name in names if name.endswith(".py")]
    for file in sorted(files):
        try:
            with Path(file).open("rb", buffering=0) as stream:
                content = stream.read()
        except OSError:
            return None
        result.update(f"{file[len(str(_PACKAGE)) :]} {len(content)}\n".encode() + content)
    return result.hexdigest()


_sources = _Sources()
