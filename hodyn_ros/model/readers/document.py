"""A YAML file as the dataclasses of its keys, and errors that say where in the file something is wrong."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from hodyn_ros.errors import ModelError
from hodyn_ros.model.keys import (
    REMARKS,
    Entry,
    Field,
    Key,
    Place,
    Schema,
    fields_of,
    is_mapping,
    schema_of,
    without_options,
)
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
    text = read_yaml(path)
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
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise _from_schema(text, place, errors[0], more)
        return self.mapping(kind, data, place)

    def mapping(self, kind: Any, data: Mapping[str, Any], place: Place) -> Any:
        """Return a dataclass or named tuple, whose own checks are errors at its place."""
        self._note(data, place, lambda: {key: value for key, value in data.items() if key not in REMARKS})
        known = fields_of(kind)
        given = {
            known[key].attribute: self._entry(known[key], value, (*place, key))
            for key, value in data.items()
            if key in known
        }
        try:
            if issubclass(kind, Entry):
                kind.check_keys(given)
            built = kind(**given)
        except ModelError as error:
            raise self.text.error(place, f"{self._owner(place)}{error}") from error
        if isinstance(built, Entry):
            built.set_origin(self.text, place, data)
        return built

    def _entry(self, one: Field, data: Any, place: Place) -> Any:
        if one.is_figure and isinstance(data, dict):
            self._note(data, place, lambda: data["value"])
            data = data["value"]
        infinite = isinstance(one.default, float) and math.isinf(one.default)
        return self._value(one.kind, one.key, data, place, infinite)

    def _value(self, kind: Any, key: Key, data: Any, place: Place, infinite: bool = False) -> Any:
        origin, inner = get_origin(kind), get_args(kind)
        if kind is float:
            number = float(key.words[data] if isinstance(data, str) else data)
            if math.isnan(number) or (math.isinf(number) and not infinite):
                raise self.text.error(place, f"{number} is not a finite number")
            return number
        if origin is Literal:
            return next(choice for choice in inner if choice == data)  # 5, where YAML says 5.0
        if origin is tuple:
            plain, item = without_options(inner[0])
            return tuple(self._value(plain, item, each, (*place, i), infinite) for i, each in enumerate(data))
        if origin is Mapping:
            plain, item = without_options(inner[1])
            return {
                name: self._value(plain, item, each, (*place, name))
                for name, each in data.items()
                if not get_args(inner[0]) or name not in REMARKS
            }
        if origin is Union:  # of text and a mapping
            return data if isinstance(data, str) else self._value(inner[1], key, data, place)
        if is_mapping(kind):
            return self.mapping(kind, data, place)
        return int(data) if kind is int else data

    def _note(self, data: Mapping[str, Any], place: Place, value: Callable[[], Any]) -> None:
        if data.get("assumed", False):
            remark = "; ".join(data[key] for key in ("source", "note") if key in data)
            self.assumed.append(AssumedFigure(self._named_place(place), value(), remark))

    def _owner(self, place: Place) -> str:
        """Name the item of a list that a place is in, such as "joint 'elbow': "."""
        for depth in range(len(place), 1, -1):
            item = self.text.at(place[:depth])
            if isinstance(place[depth - 1], int) and isinstance(item, dict) and "name" in item:
                word = str(place[depth - 2]).replace("_", " ").removesuffix("s")
                return f"{'body' if word == 'bodie' else word} {item['name']!r}: "
        return ""

    def _named_place(self, place: Place) -> str:
        for depth in range(1, len(place) + 1):
            item = self.text.at(place[:depth])
            if isinstance(place[depth - 1], int) and isinstance(item, dict) and "name" in item:
                return f"{place_name(place[:depth])} {item['name']}: {place_name(place[depth:])}"
        return place_name(place)


_TYPE_WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}


def _from_schema(text: YamlText, around: Place, error: ValidationError, more: str) -> ModelError:
    place = (*around, *error.path)
    schema: Schema = dict(error.schema) if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        instance: Any = error.instance
        unknown = next(key for key in instance if key not in known)
        return text.error((*place, unknown), f"unknown key; {nearest(unknown, known)}{more}")
    return text.error(place, _reason(error, schema) + more)


def nearest(unknown: str, known: Sequence[str]) -> str:
    """Return the word that may be meant, or all there are."""
    near = difflib.get_close_matches(unknown, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"


def _reason(error: ValidationError, schema: Schema) -> str:
    described = _in_words(schema)
    found = _shown(error.instance)
    bound: Any = error.validator_value
    instance: Any = error.instance
    if error.validator == "required":
        missing = next(key for key in bound if key not in instance)
        return f"the key {missing!r} is missing" + _in_words(schema["properties"].get(missing, {}))
    if error.validator == "type":
        types = [bound] if isinstance(bound, str) else [kind for kind in bound if kind != "object"]
        return f"must be {' or '.join(_TYPE_WORDS[kind] for kind in types)}{described}, found {found}"
    if error.validator in ("enum", "pattern"):
        # The schema's patterns are single words, beside which a number is allowed.
        allowed = list(map(str, bound)) if error.validator == "enum" else ["a number", bound.strip("^()$")]
        near = difflib.get_close_matches(instance, allowed, n=1) if isinstance(instance, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"must be {' or '.join(allowed)}{described}, found {found}{hint}"
    if error.validator in ("minItems", "maxItems"):
        return f"must hold {bound} numbers{described}, found {len(instance)}"
    if error.validator == "minLength":
        return "must not be empty"
    limit = {"minimum": "at least", "exclusiveMinimum": "greater than"}.get(str(error.validator))
    return (
        f"must be {limit} {bound:g}{described}, found {found}" if limit else " ".join(error.message.split())
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
