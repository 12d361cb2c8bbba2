"""The keys of files, each described once, and what follows from that: the JSON Schema and the reference.

A mapping in a file is a dataclass, its keys are the fields: `mass: Annotated[float, Key("[kg]", minimum=0)]`.
Types and `Key`s make the schema (Draft 2020-12) that files are held against, and the dataclass is what
`readers.document` returns. Every mapping takes `source`, `note` and `assumed` as well, and every number or
vector may be a mapping with its `value` and these.

Keywords of JSON Schema apply to the type they are made for and pass over others. That is how a figure is a
number or a mapping without `anyOf`, whose errors nobody can read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from hodyn_ros.errors import ModelError

Schema = dict[str, Any]
Place = tuple[str | int, ...]

_TEXT: Schema = {"type": "string", "minLength": 1}
REMARKS: Schema = {"source": _TEXT, "note": _TEXT, "assumed": {"type": "boolean"}}
_PLAIN: Mapping[Any, Schema] = {
    float: {"type": "number"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    str: _TEXT,
}


class Key:
    """What a key means, with its unit, and what it may be, in keywords of JSON Schema.

    `needed`: a file has to hold it, though the dataclass has a default. `words` stand for numbers. `name`:
    the key, where it is not the name of the field.
    """

    def __init__(
        self,
        description: str = "",
        *,
        needed: bool = False,
        words: Mapping[str, float] | None = None,
        name: str = "",
        **keywords: Any,
    ) -> None:
        self.needed, self.words, self.name = needed, words or {}, name
        self.keywords = {"description": description, **keywords} if description else keywords


class _Text(Protocol):
    def error(self, place: Place, reason: str) -> ModelError: ...


@dataclass(frozen=True)
class _Origin:
    text: _Text
    place: Place
    given: frozenset[str]


class Entry:
    """A mapping of a file: a dataclass of this kind knows where it stands and which keys are given."""

    _origin: _Origin | None = None

    @classmethod
    def check_keys(cls, given: Collection[str]) -> None:
        """Refuse keys that a file cannot give together; ModelError says which."""

    @property
    def given(self) -> frozenset[str]:
        """The keys that the file holds; none where there is no file."""
        return frozenset() if self._origin is None else self._origin.given

    def error(self, reason: str, key: str | None = None) -> ModelError:
        """Make an error about this mapping, or about one of its keys."""
        if self._origin is None:
            return ModelError(reason)
        place = self._origin.place
        return self._origin.text.error(place if key is None else (*place, key), reason)

    def set_origin(self, text: _Text, place: Place, given: Mapping[str, Any]) -> None:
        """Say where it stands."""
        object.__setattr__(self, "_origin", _Origin(text, place, frozenset(given)))


@dataclass(frozen=True)
class Field:
    """A key of a mapping: what it may hold, and what counts where it is left out."""

    attribute: str
    kind: Any  # a plain type, Literal, tuple, Mapping or dataclass, or a union of text and one of these
    key: Key
    default: Any = field(default=MISSING)

    @property
    def is_figure(self) -> bool:
        """Whether it is a number, or a list of numbers."""
        return self.kind is float or (get_origin(self.kind) is tuple and get_args(self.kind)[0] is float)


@cache
def fields_of(kind: type) -> dict[str, Field]:
    """Return the keys of a mapping, which is a dataclass or named tuple; a field of type None is none."""
    known: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if known and (name not in known or get_origin(hint) is ClassVar or not known[name].init):
            continue
        plain, key = without_options(hint)
        if plain is NoneType:
            continue
        default = known[name].default if known else getattr(kind, "_field_defaults", {}).get(name, MISSING)
        if default is MISSING and known and known[name].default_factory is not MISSING:
            default = known[name].default_factory()
        found[key.name or name] = Field(name, plain, key, default)
    return found


def is_mapping(kind: Any) -> bool:
    """Say whether a type is a mapping with keys that are known."""
    return is_dataclass(kind) or hasattr(kind, "_fields")


def without_options(hint: Any) -> tuple[Any, Key]:
    """Return a type without None among its options, and what is said of it."""
    key = Key()
    if get_origin(hint) is Annotated:
        hint, key = get_args(hint)[:2]
    if get_origin(hint) in (Union, UnionType):
        options = tuple(option for option in get_args(hint) if option is not NoneType)
        hint = Union[options]  # noqa: UP007, made at run time
    return hint, key


@cache
def schema_of(kind: Any) -> Schema:
    """Return the schema of a type."""
    plain, key = without_options(kind)
    return {**_schema_of_plain(plain), **key.keywords}


def _schema_of_plain(kind: Any) -> Schema:
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
    if origin is Union:  # of text and a mapping
        text, mapping = map(schema_of, inner)
        return {**text, **mapping, "type": [text["type"], mapping["type"]]}
    return _mapping(kind) if is_mapping(kind) else dict(_PLAIN.get(kind, {}))


def _mapping(kind: type) -> Schema:
    properties = {}
    for key, one in fields_of(kind).items():
        schema = {**_schema_of_plain(one.kind), **one.key.keywords}
        properties[key] = _figure(schema, one.key) if one.is_figure else schema
    needed = [key for key, one in fields_of(kind).items() if one.key.needed or one.default is MISSING]
    line = (kind.__doc__ or "").partition("\n")[0].removesuffix(".")
    closed = not getattr(kind, "open", False)
    return {**_object(properties, needed, closed), "description": line[:1].lower() + line[1:]}


def _figure(plain: Schema, key: Key) -> Schema:
    """Accept a plain figure, or `{value: figure, source: text, note: text, assumed: true}`."""
    types = [plain["type"], *(["string"] if key.words else [])]
    words = {"pattern": f"^({'|'.join(key.words)})$"} if key.words else {}
    value = {**plain, **words, "type": types if words else plain["type"]}
    return {**value, **_object({"value": value}, ["value"]), "type": [*types, "object"]}


def _object(properties: Schema, needed: Sequence[str] = (), closed: bool = True) -> Schema:
    return {
        "type": "object",
        "properties": {**properties, **REMARKS},
        "required": list(needed),
        "additionalProperties": not closed,
    }
