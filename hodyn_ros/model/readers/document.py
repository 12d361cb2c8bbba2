"""A YAML file as the dataclasses of its keys, and errors that say where in the file something is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from hodyn_ros.errors import ModelError, nearest
from hodyn_ros.model.keys import REMARKS, Place, Schema, is_entry, keys_of, schema_of
from hodyn_ros.model.readers.yaml_text import YamlText, place_name, read_yaml

if TYPE_CHECKING:
    from jsonschema import ValidationError

_Root = TypeVar("_Root")
_Root_co = TypeVar("_Root_co", covariant=True)


@dataclass(frozen=True)
class AssumedFigure:
    """A figure that a file marks as assumed."""

    place: str  # such as "joints[3] panda_joint4: drive.stiffness"
    value: Any
    source: str  # what the file says about it; may be empty


@dataclass(frozen=True)
class Document(Generic[_Root_co]):
    """What a file holds."""

    text: YamlText
    root: _Root_co
    assumed: tuple[AssumedFigure, ...]

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.text.path)

    @property
    def data(self) -> dict[str, Any]:
        """The data as they are written."""
        data: dict[str, Any] = self.text.data
        return data

    def part(self, choose: Callable[[dict[str, Any]], type[_Root]], key: str) -> _Root:
        """Return a mapping whose kind its own content says. Raises ModelError as `read_document`."""
        return _Builder(self.text).checked(choose(self.data[key]), (key,))


def read_document(
    path: str | os.PathLike[str], choose: Callable[[dict[str, Any]], type[_Root]]
) -> Document[_Root]:
    """Read a YAML file as the dataclass that is chosen by its content; `model.keys` says how it is described.

    Raises ModelError for the first thing that is wrong, in one line, and says how many more there are.
    """
    return document_of(read_yaml(path), choose)


def document_of(text: YamlText, choose: Callable[[dict[str, Any]], type[_Root]]) -> Document[_Root]:
    """Read data as `read_document` reads those of a file."""
    if not isinstance(text.data, dict):
        raise text.error((), f"must hold keys and values, found {_shown(text.data)}")
    builder = _Builder(text)
    root = builder.checked(choose(text.data), ())
    return Document(text, root, tuple(builder.assumed))


@dataclass(frozen=True)
class _Builder:
    """From data that fit a schema to what it stands for."""

    text: YamlText
    assumed: list[AssumedFigure] = field(default_factory=list)

    def checked(self, kind: Any, place: Place) -> Any:
        """Return what a place holds, once that fits the schema."""
        from jsonschema import Draft202012Validator  # takes a moment

        data, text = self.text.at(place), self.text
        # An unknown key first: where it is a typing error, it is also why another key is missing.
        errors = sorted(
            Draft202012Validator(schema_of(kind)).iter_errors(data),
            key=lambda error: (error.validator != "additionalProperties", text.line((*place, *error.path))),
        )
        if errors:
            others = len(errors) - 1
            more = f" (and {others} more mistake{'s' if others > 1 else ''})" if others else ""
            wrong, reason = _from_schema(place, errors[0])
            raise text.error(wrong, self._owner(wrong) + reason + more)
        return self.mapping(kind, data, place)

    def mapping(self, kind: Any, data: Mapping[str, Any], place: Place) -> Any:
        """Return an entry, whose own checks are errors at its place."""
        keys = keys_of(kind)
        values: dict[str, Any] = {}
        plain = {name: value for name, value in data.items() if name not in REMARKS}
        self._note(data, place, plain)
        for name, value in plain.items():
            one, here = keys[name], (*place, name)
            if one.is_figure and isinstance(value, dict):
                self._note(value, here, value["value"])
                value = value["value"]
            value = one.words.get(value, value) if isinstance(value, str) else value
            values[one.attribute] = self._value(one.kind, value, here, one.default in (math.inf, -math.inf))
        try:
            kind.check_keys(values)
            entry = kind(**values)
        except ModelError as error:
            raise self.text.error(place, f"{self._owner(place)}{error}") from error
        entry.set_origin(self.text.error, place, plain)
        return entry

    def _value(self, kind: Any, data: Any, place: Place, infinite: bool) -> Any:
        origin, inner = get_origin(kind), get_args(kind)
        if kind is float:
            if math.isnan(data) or (math.isinf(data) and not infinite):
                raise self.text.error(place, f"{data} is not a finite number")
            return data
        if origin is Literal:
            return next(choice for choice in inner if choice == data)  # 5, where YAML says 5.0
        if origin is tuple:
            return tuple(self._value(inner[0], each, (*place, i), infinite) for i, each in enumerate(data))
        if origin is Mapping:
            own = {name: each for name, each in data.items() if inner[0] is str or name not in REMARKS}
            return {name: self._value(inner[1], each, (*place, name), infinite) for name, each in own.items()}
        if origin in (Union, UnionType):  # of text and a mapping
            return data if isinstance(data, str) else self.mapping(inner[1], data, place)
        if is_entry(kind):
            return self.mapping(kind, data, place)
        return int(data) if kind is int else data

    def _note(self, data: Mapping[str, Any], place: Place, value: Any) -> None:
        if data.get("assumed", False):
            depth = self._item(place, range(1, len(place) + 1))
            name = f"{place_name(place[:depth])} {self.text.at(place[:depth])['name']}: " if depth else ""
            remark = "; ".join(data[key] for key in ("source", "note") if key in data)
            self.assumed.append(AssumedFigure(name + place_name(place[depth:]), value, remark))

    def _owner(self, place: Place) -> str:
        """Return what a place belongs to, before a message: "joint 'elbow': "."""
        depth = self._item(place, range(len(place), 0, -1))
        return f"{_one_of(place[depth - 2])} {self.text.at(place[:depth])['name']!r}: " if depth else ""

    def _item(self, place: Place, depths: range) -> int:
        """Return the first depth at which a place is in an item of a list with a name; 0: none."""
        for depth in depths:
            item = self.text.at(place[:depth])
            if isinstance(place[depth - 1], int) and isinstance(item, dict) and "name" in item:
                return depth
        return 0


def _one_of(items: str | int) -> str:
    word = str(items).replace("_", " ").removesuffix("s")
    return "body" if word == "bodie" else word


_TYPE_WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}


def _from_schema(around: Place, error: ValidationError) -> tuple[Place, str]:
    """Return which place is wrong, and why."""
    place = (*around, *error.path)
    schema: Schema = dict(error.schema) if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        instance: Any = error.instance
        unknown = next(key for key in instance if key not in known)
        return (*place, unknown), f"unknown key; {nearest(unknown, known)}"
    return place, _reason(error, schema)


def _reason(error: ValidationError, schema: Schema) -> str:
    described = _in_words(schema)
    shown = _shown(error.instance)
    bound: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        missing = next(key for key in bound if key not in instance)
        return f"the key {missing!r} is missing" + _in_words(schema["properties"].get(missing, {}))
    if error.validator == "type":
        types = [bound] if isinstance(bound, str) else [kind for kind in bound if kind != "object"]
        return f"must be {' or '.join(_TYPE_WORDS[kind] for kind in types)}{described}, found {shown}"
    if error.validator in ("enum", "pattern"):
        # The schema's patterns are single words, beside which a number is allowed.
        allowed = list(map(str, bound)) if error.validator == "enum" else ["a number", bound.strip("^()$")]
        near = get_close_matches(instance, allowed, n=1) if isinstance(instance, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"must be {' or '.join(allowed)}{described}, found {shown}{hint}"
    if error.validator in ("minItems", "maxItems"):
        return f"must hold {bound} numbers{described}, found {len(instance)}"
    if error.validator == "minLength":
        return "must not be empty"
    limit = {"minimum": "at least", "exclusiveMinimum": "greater than"}.get(str(error.validator))
    return (
        f"must be {limit} {bound:g}{described}, found {shown}" if limit else " ".join(error.message.split())
    )


def _in_words(schema: Schema) -> str:
    description = schema.get("description", "")
    if not description:
        return ""
    return f" {description}" if description.startswith("[") else f" ({description})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else f"the text {value!r}"
    return text if len(text) <= 60 else text[:57] + "..."
