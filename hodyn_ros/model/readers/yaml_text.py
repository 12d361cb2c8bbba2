"""Read YAML strictly: plain data, every key once, numbers as in YAML 1.2, and the line of each entry.

PyYAML does the parsing. Its own construction of values is not used: it lets a repeated key win silently,
reads `1e4` as text, `010` as eight and `on` as true, after YAML 1.1.

What a file may hold is bounded: its size, how deep it is nested, and how many entries its aliases stand for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, ClassVar

import yaml

from hodyn_ros.errors import ModelError
from hodyn_ros.model.keys import Place
from hodyn_ros.model.readers.files import MEGABYTE, read_file

MOST_BYTES = 4 * MEGABYTE
MOST_ENTRIES = 200_000
MOST_DEPTH = 50

_SCALARS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"~|null|Null|NULL|"), lambda _: None),
    (re.compile(r"true|True|TRUE|false|False|FALSE"), lambda word: word.lower() == "true"),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), lambda word: float(word.replace(".", ""))),
)
_PLAIN_TAGS = {
    yaml.ScalarNode: "tag:yaml.org,2002:str",
    yaml.SequenceNode: "tag:yaml.org,2002:seq",
    yaml.MappingNode: "tag:yaml.org,2002:map",
}


@dataclass(frozen=True)
class YamlText:
    """The data of a YAML file, and where its entries stand."""

    path: str
    data: Any  # dict, list, str, float, bool or None
    lines: dict[Place, int]  # line of each entry, counted from 1

    def line(self, place: Place) -> int:
        """Return the line of an entry, or of the nearest one around it."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def at(self, place: Place) -> Any:
        """Return the data at a place."""
        return reduce(lambda data, step: data[step], place, self.data)

    def error(self, place: Place, reason: str) -> ModelError:
        """Make an error that names file, line and place, in one line."""
        where = place_name(place)
        # a key may hold a line break
        said = " ".join(f"{where + ': ' if where else ''}{reason}".split())
        return ModelError(f"{self.path}:{self.line(place)}: {said}")


def place_name(place: Place) -> str:
    """Write a place in a document as `joints[3].drive.stiffness`."""
    name = ""
    for step in place:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name


class _Loader(yaml.SafeLoader):
    # No implicit types: every plain scalar arrives as text, and is read by the rules of YAML 1.2 below.
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _nested_deeply(self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def read_yaml(path: str | os.PathLike[str]) -> YamlText:
    """Read one YAML document. Raises ModelError with file and line."""
    return parse_yaml(read_file(path, MOST_BYTES), os.fspath(path))


def parse_yaml(content: bytes | str, name: str) -> YamlText:
    """Read one YAML document from its text; `name` is what errors call it. Raises ModelError with line."""
    try:
        node = _composed(content)
        if node is None:
            raise ModelError(f"{name}: the file is empty")
        lines: dict[Place, int] = {}
        return YamlText(name, _plain(node, (), lines), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        raise ModelError(f"{name}{line}: not readable as YAML: {reason}") from error
    except yaml.YAMLError as error:
        raise ModelError(f"{name}: not readable as YAML: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=2)  # the file of a robot is read for its kind, for its text, and for what it says
def _composed(content: bytes | str) -> yaml.Node | None:
    loader = _Loader(content)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _plain(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    """Return the data of a node; an alias is the same node at another place, and becomes data of its own."""
    if len(place) > MOST_DEPTH:  # by an alias inside of what it stands for
        raise _nested_deeply(node.start_mark)
    if len(lines) >= MOST_ENTRIES:
        raise _error(node, f"holds more than {MOST_ENTRIES} entries, those that aliases stand for counted in")
    lines[place] = node.start_mark.line + 1
    if node.tag not in (_PLAIN_TAGS[type(node)], "!"):
        raise _error(node, f"the tag {node.tag!r} is not supported; write plain values")
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*place, i), lines) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, place, lines)
    quoted = isinstance(node, yaml.ScalarNode) and node.style is not None
    readers = (read for pattern, read in _SCALARS if not quoted and pattern.fullmatch(node.value))
    return next(readers, str)(node.value)


def _mapping(node: yaml.MappingNode, place: Place, lines: dict[Place, int]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _error(key_node, "a key must be text")
        key = key_node.value
        entry: Place = (*place, key)
        if key in result:
            raise _error(key_node, f"the key {key!r} is given twice (first in line {lines[entry]})")
        result[key] = _plain(value_node, entry, lines)
        lines[entry] = key_node.start_mark.line + 1
    return result


def _nested_deeply(mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=f"nested more than {MOST_DEPTH} deep", problem_mark=mark)


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
