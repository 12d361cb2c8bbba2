"""The reference of robot and trajectory files, from what says which keys they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hodyn_ros.model.keys import schema_of
from hodyn_ros.model.readers.robot_entries import InlineFile, LimbsFile, MjcfFile, UrdfFile
from hodyn_ros.planning.space.frame_path_file import FramePathFile
from hodyn_ros.trajectory.files.entries import TRAJECTORIES, PoseFile
from reference.tables import code, plain, table

Schema = Mapping[str, Any]

_REMARKS = ("source", "note", "assumed")
_PLAIN = {"object": "mapping", "string": "text", "number": "number", "integer": "whole number"}

FORMS: Mapping[str, type] = {
    "A robot in one file": InlineFile,
    "A robot with a URDF": UrdfFile,
    "A robot with an MJCF": MjcfFile,
    "A platform on limbs": LimbsFile,
    **{f"A trajectory of type {name}": kind for name, kind in TRAJECTORIES.items()},
    "A trajectory of type pose": PoseFile,
    "A path in space, of type frame_path": FramePathFile,
}


def schema_page() -> str:
    """Return the page on all forms of files."""
    parts = [
        "# Keys of robot and trajectory files",
        "Generated from what files are checked with. What the keys mean together is told in [Robot "
        "files](config.md). Every mapping also takes `source`, `note` and `assumed`. A *figure* is a plain "
        "value, or `{value: 10000, source: data sheet, assumed: true}`.",
    ]
    for title, form in FORMS.items():
        parts.append(f"## {title}")
        for path, mapping in mappings("", schema_of(form)):
            description = plain(mapping.get("description", "")) if path else ""
            parts.append(f"**{code(path)}** {description}".rstrip() if path else "At the top of the file:")
            parts.append(table(["key", "value", "needed", "meaning"], rows(mapping)))
    return "\n\n".join(parts) + "\n"


def rows(mapping: Schema) -> Iterator[list[str]]:
    """Yield a row for each key of a mapping."""
    for key, schema in mapping["properties"].items():
        if key in _REMARKS:
            continue
        needed = "yes" if key in mapping["required"] else ""
        yield [code(key), kind(schema), needed, plain(schema.get("description", ""))]


def kind(schema: Schema) -> str:
    """Say in words what values a schema takes."""
    if "enum" in schema:
        return " or ".join(code(value) for value in schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if is_figure(schema):
        return f"figure: {kind(schema['properties']['value'])}"
    if len(types) > 1:
        return " or ".join(kind({**schema, "type": name}) for name in types)
    (name,) = types
    if name == "array":
        count = f"{schema['minItems']} " if schema.get("minItems") == schema.get("maxItems", -1) else ""
        items = kind(schema["items"])
        return f"list of {count}{items}s" if items in _PLAIN.values() else f"list of {count}{items}"
    if name == "number":
        bounds = {"minimum": "≥", "exclusiveMinimum": ">"}
        limits = [f"{sign} {schema[key]}" for key, sign in bounds.items() if key in schema]
        return " ".join(["number", *limits])
    if name == "string" and "pattern" in schema:
        return code(schema["pattern"].strip("^()$"))
    return "`true` or `false`" if name == "boolean" else _PLAIN[name]


def mappings(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield a mapping and those inside it, each with its place, such as `joints[].drive`."""
    yield path, schema
    own = {key: inner for key, inner in schema["properties"].items() if key not in _REMARKS}
    alike = len(own) > 1 and len({id(inner) for inner in own.values()}) == 1
    for key, inner in [("*", next(iter(own.values())))] if alike else own.items():
        place = f"{path}.{key}" if path else key
        while inner.get("type") == "array":
            inner, place = inner["items"], f"{place}[]"
        # not a mapping with keys of the user's own, such as names of joints
        if "properties" in inner and not is_figure(inner):
            yield from mappings(place, inner)


def is_figure(schema: Schema) -> bool:
    """Say whether a value may also be a mapping with its source."""
    return "value" in schema.get("properties", {})
