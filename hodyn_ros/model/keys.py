"""The keys of files, each described once, and what follows from that: the JSON Schema and the reference.

A mapping in a file is an `Entry`, whose fields are its keys: `mass: float = key("[kg]", least=0)`. They make
the schema (Draft 2020-12) that files are held against, and an entry is what `readers.document` returns. Every
mapping takes `source`, `note` and `assumed` besides, and every number or vector may be a mapping with its
`value` and these.

Keywords of JSON Schema apply to the type they are made for and pass over others. That is how a figure is a
number or a mapping without `anyOf`, whose errors nobody can read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from hodyn_ros.errors import ModelError, RangeError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from typing_extensions import dataclass_transform
else:  # of typing from Python 3.11 on

    def dataclass_transform(**_: Any) -> Any:  # noqa: D103
        return lambda cls: cls


Schema = dict[str, Any]
Place = tuple[str | int, ...]

_TEXT: Schema = {"type": "string", "minLength": 1}
REMARKS: Schema = {"source": _TEXT, "note": _TEXT, "assumed": {"type": "boolean"}}
_PLAIN: dict[type, Schema] = {
    float: {"type": "number"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    str: _TEXT,
}


def key(
    meaning: str = "",
    *,
    default: Any = MISSING,
    least: float | None = None,
    above: float | None = None,
    within: tuple[float | None, float | None] = (None, None),
    needed: bool = False,
    words: Mapping[str, float] | None = None,
    name: str = "",
    **keywords: Any,
) -> Any:
    """Say what a key means, with its unit, and what it may be.

    A number is `least` or `above` another, or `within` two. `needed`: a file has to hold it, though there is
    a default. `words` stand for numbers. `name`: the key, where it is not the name of the field. Other
    `keywords` are of JSON Schema.
    """
    low, high = within if least is None else (least, None)
    bounds = {"minimum": low, "maximum": high, "exclusiveMinimum": above}
    known = {"description": meaning or None, **bounds, **keywords}
    schema = {word: value for word, value in known.items() if value is not None}
    said = {"needed": needed, "words": words or {}, "name": name, "schema": schema}
    return field(default=default, metadata=said)


def said_of(one: Field[Any]) -> Schema:
    """Return what is said of a field, in keywords of JSON Schema."""
    said: Schema = one.metadata.get("schema", {})
    return said


def check_ranges(config: DataclassInstance) -> None:
    """Raise InputError for the first number of a configuration that is not where its key has it."""
    for one in fields(config):
        said, value = said_of(one), getattr(config, one.name)
        if "minimum" in said:
            low, high = said["minimum"], said.get("maximum", math.inf)
            if not (low <= value <= high and math.isfinite(value)):
                raise RangeError(one.name, value, low, high)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key,))
class Entry:
    """A mapping of a file: a frozen dataclass that knows where it stands and which keys are given."""

    closed: ClassVar[bool] = True  # whether its keys are all there are
    keys_present: ClassVar[Collection[str]] = ()  # the keys that the file holds; none where there is no file
    _error: ClassVar[Callable[..., ModelError] | None] = None

    def __init_subclass__(cls, kw_only: bool = True) -> None:
        dataclass(frozen=True, kw_only=kw_only)(cls)

    @classmethod
    def check_keys(cls, present: Collection[str]) -> None:
        """Reject keys that a file cannot give together; ModelError says which."""

    def set_origin(
        self, error: Callable[[Place, str], ModelError], place: Place, present: Collection[str]
    ) -> None:
        """Say where it stands, and how to make errors of that."""
        self.__dict__.update(keys_present=present, _error=error, _place=place)

    def error(self, reason: str, key: str | None = None) -> ModelError:
        """Make an error about this mapping, or about one of its keys."""
        if self._error is None:
            return ModelError(reason)
        place: Place = self.__dict__["_place"]
        return self._error(place if key is None else (*place, key), reason)


class Key(NamedTuple):
    """A key of a mapping: its field, and what it may hold."""

    attribute: str
    kind: Any  # a plain type, Literal, tuple, Mapping or Entry, or a union of text and one of these
    default: Any
    needed: bool
    words: Mapping[str, float]
    schema: Schema

    @property
    def is_figure(self) -> bool:
        """Whether it is a number, or a list of numbers."""
        return self.kind is float or (get_origin(self.kind) is tuple and get_args(self.kind)[0] is float)


@cache
def keys_of(kind: type[Any]) -> dict[str, Key]:
    """Return the keys of an entry; a field of type None is none."""
    hints = get_type_hints(kind)
    keys = {}
    for one in fields(kind):
        said, hint = one.metadata, hints[one.name]
        if get_origin(hint) in (Union, UnionType):
            hint = Union[tuple(option for option in get_args(hint) if option is not NoneType)]  # noqa: UP007
        needed = said.get("needed", False) or one.default is MISSING
        if hint is not NoneType:
            words = said.get("words", {})
            keys[said.get("name") or one.name] = Key(one.name, hint, one.default, needed, words, said_of(one))
    return keys


def said_in_file(entry: Entry) -> dict[str, Any]:
    """Return what a file has to say to be read as an entry: the keys with other values than by default."""
    said, kind = {}, cast(Any, type(entry))
    for name, one in keys_of(kind).items():
        value = getattr(entry, one.attribute)
        if one.needed or value != one.default:
            words = {number: word for word, number in one.words.items()}
            said[name] = words[value] if words and value in words else _plain(value)
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, Entry):
        return said_in_file(value)
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return float(value) if isinstance(value, float) else value  # figures may be NumPy's


def is_entry(kind: Any) -> bool:
    """Say whether a type is a mapping with keys that are known."""
    return isinstance(kind, type) and issubclass(kind, Entry)


@cache
def schema_of(kind: Any) -> Schema:
    """Return the schema of a type."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple:
        schema: Schema = {"type": "array", "items": schema_of(inner[0])}
        return schema if inner[-1] is Ellipsis else {**schema, "minItems": len(inner), "maxItems": len(inner)}
    if origin is Mapping:  # with keys of the user's own, or with any of a few that mean the same
        own, value = get_args(inner[0]), schema_of(inner[1])
        return (
            _object(dict.fromkeys(own, value)) if own else {"type": "object", "additionalProperties": value}
        )
    if origin in (Union, UnionType):  # of text and a mapping
        text, mapping = map(schema_of, inner)
        return {**text, **mapping, "type": [text["type"], mapping["type"]]}
    return _of_entry(kind) if is_entry(kind) else _PLAIN.get(kind, {})


def _of_entry(kind: Any) -> Schema:
    known = keys_of(kind)
    needed = [key for key, one in known.items() if one.needed]
    line = (kind.__doc__ or "").partition("\n")[0].removesuffix(".")
    description = {"description": line[:1].lower() + line[1:]}
    return _object({key: _of_key(one) for key, one in known.items()}, needed, kind.closed) | description


def _of_key(one: Key) -> Schema:
    """Return the schema of a key; of a figure also as `{value: figure, source: text, assumed: true}`."""
    schema = {**schema_of(one.kind), **one.schema}
    if isinstance(values := schema.get("additionalProperties"), dict):
        _, bracket, unit = str(schema.get("description", "")).rpartition("[")
        unit_of_values = {"description": bracket + unit} if bracket else {}
        return {**schema, "additionalProperties": {**values, **unit_of_values}}
    if not one.is_figure:
        return schema
    types = [schema["type"]]
    if one.words:
        types.append("string")
        schema |= {"type": types, "pattern": f"^({'|'.join(one.words)})$"}
    return {**schema, **_object({"value": schema}, ["value"]), "type": [*types, "object"]}


def _object(properties: Schema, needed: Sequence[str] = (), closed: bool = True) -> Schema:
    return {
        "type": "object",
        "properties": {**properties, **REMARKS},
        "required": list(needed),
        "additionalProperties": not closed,
    }
