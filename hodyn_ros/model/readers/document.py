"""A YAML document that fits its schema, and errors that say where in the file something is wrong."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.errors import ModelError
from hodyn_ros.model.readers.schema import Schema
from hodyn_ros.model.readers.yaml_text import Place, YamlText, read_yaml
from hodyn_ros.model.tree import Array

if TYPE_CHECKING:
    from jsonschema import ValidationError


@dataclass(frozen=True)
class AssumedFigure:
    """A figure that a file marks as assumed."""

    place: str  # such as "joints[3] panda_joint4: drive.stiffness"
    value: Any
    source: str  # what the file says about it; may be empty


@dataclass(frozen=True)
class Document:
    """The validated content of a YAML file."""

    path: str
    text: YamlText
    assumed: list[AssumedFigure] = field(default_factory=list)  # grows as sections are read

    @property
    def root(self) -> Section:
        """The outermost mapping."""
        return Section(self, (), self.text.data)

    def error(self, place: Place, reason: str) -> ModelError:
        """Make an error that names file, line and place, in one line."""
        where = place_name(place)
        # a key may hold a line break
        said = " ".join(f"{where + ': ' if where else ''}{reason}".split())
        return ModelError(f"{self.path}:{self.text.line(place)}: {said}")

    def blame(self, error: ModelError) -> ModelError:
        """Make an error that names the file, unless it does already."""
        return error if str(error).startswith(f"{self.path}:") else ModelError(f"{self.path}: {error}")


@dataclass(frozen=True)
class Section:
    """A mapping in a document. Reads figures in either form, and notes those that are marked as assumed."""

    document: Document
    place: Place
    data: dict[str, Any]

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a plain entry, or the default where it is missing."""
        return self.data.get(key, default)

    def section(self, key: str) -> Section:
        """Return the mapping under a key."""
        section = Section(self.document, (*self.place, key), self.data[key])
        if section.get("assumed", False):
            section._note_assumed(
                {k: v for k, v in section.data.items() if k not in ("assumed", "source", "note")}
            )
        return section

    def sections(self, key: str) -> Iterator[Section]:
        """Iterate over a list of mappings; nothing where the key is missing."""
        for i, item in enumerate(self.data.get(key, ())):
            yield Section(self.document, (*self.place, key, i), item)

    def number(self, key: str, *, infinite: bool = False) -> float:
        """Return a figure; `infinite` allows .inf and the word rigid."""
        value = self._figure(key)
        if value == "rigid":
            return np.inf
        number = float(value)
        if np.isnan(number) or (np.isinf(number) and not infinite):
            raise self.error(f"{number} is not a finite number", key)
        return number

    def vector(self, key: str, default: Sequence[float] | None = None) -> Array:
        """Return three figures (3,)."""
        if key not in self.data and default is not None:
            return np.array(default, dtype=np.float64)
        vector = np.array(self._figure(key), dtype=np.float64)
        if not np.isfinite(vector).all():
            raise self.error(f"{vector.tolist()} holds a number that is not finite", key)
        return vector

    def error(self, reason: str, key: str | None = None) -> ModelError:
        """Make an error about this section, or about one of its entries."""
        return self.document.error(self.place if key is None else (*self.place, key), reason)

    def _figure(self, key: str) -> Any:
        given = self.data[key]
        if not isinstance(given, dict):
            return given
        if given.get("assumed", False):
            Section(self.document, (*self.place, key), given)._note_assumed(given["value"])
        return given["value"]

    def _note_assumed(self, value: Any) -> None:
        remark = "; ".join(self.data[key] for key in ("source", "note") if key in self.data)
        self.document.assumed.append(
            AssumedFigure(_named_place(self.document.text.data, self.place), value, remark)
        )


_TYPE_WORDS = {
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
}


def read_document(
    path: str | os.PathLike[str], choose_schema: Callable[[dict[str, Any]], Schema]
) -> Document:
    """Read a YAML file and hold it against a schema chosen by its content.

    Raises ModelError for the first thing that is wrong, in one line, and says how many more there are.
    """
    from jsonschema import Draft202012Validator  # takes a moment

    text = read_yaml(path)
    document = Document(os.fspath(path), text)
    if not isinstance(text.data, dict):
        raise document.error((), f"must hold keys and values, found {_shown(text.data)}")
    validator = Draft202012Validator(choose_schema(text.data))
    # An unknown key first: where it is a typing error, it is also why another key is missing.
    errors = sorted(
        validator.iter_errors(text.data),
        key=lambda error: (error.validator != "additionalProperties", text.line(tuple(error.absolute_path))),
    )
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise _from_schema(document, errors[0], more)
    return document


def place_name(place: Place) -> str:
    """Write a place in a document as `joints[3].drive.stiffness`."""
    name = ""
    for step in place:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name


def _named_place(data: Any, place: Place) -> str:
    for depth, step in enumerate(place):
        data = data[step]
        if isinstance(step, int) and isinstance(data, dict) and "name" in data:
            return f"{place_name(place[: depth + 1])} {data['name']}: {place_name(place[depth + 1 :])}"
    return place_name(place)


def _from_schema(document: Document, error: ValidationError, more: str) -> ModelError:
    place: Place = tuple(error.absolute_path)
    schema: Schema = dict(error.schema) if isinstance(error.schema, dict) else {}
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        instance: Any = error.instance
        unknown = next(key for key in instance if key not in known)
        place = (*place, unknown)
        near = difflib.get_close_matches(unknown, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return document.error(place, f"unknown key; {hint}{more}")
    return document.error(place, _reason(error, schema) + more)


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
        allowed = bound if error.validator == "enum" else ["a number", bound.strip("^$")]
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
