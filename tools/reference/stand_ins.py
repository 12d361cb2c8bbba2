"""Modules that may not be installed, replaced while others that import them are."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


class _Finder(MetaPathFinder, Loader):
    def __init__(self, packages: Collection[str], replaced: Mapping[str, Mapping[str, Any]]) -> None:
        self.packages, self.replaced = packages, replaced

    def find_spec(self, name: str, *rest: Any) -> ModuleSpec | None:
        wanted = name.partition(".")[0] in self.packages
        return ModuleSpec(name, self, is_package=True) if wanted else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return MagicMock(name=spec.name, **self.replaced.get(spec.name, {}))

    def exec_module(self, module: ModuleType) -> None:
        """Leave the mock as it is."""


@contextmanager
def stand_ins(
    *packages: str, replaced: Mapping[str, Mapping[str, Any]] | None = None, forget: str | None = None
) -> Iterator[None]:
    """Let mocks stand in for packages, also where these are there.

    `replaced` says by module what its names are instead of mocks; modules whose names begin with `forget`
    are imported anew inside, and again by those who need them outside.
    """

    def pop() -> dict[str, ModuleType]:
        names = [
            name
            for name in sys.modules
            if name.partition(".")[0] in packages or (forget is not None and name.startswith(forget))
        ]
        return {name: sys.modules.pop(name) for name in names}

    real, finder = pop(), _Finder(packages, replaced or {})
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        pop()
        sys.modules.update(real)
