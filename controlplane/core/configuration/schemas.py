"""Building blocks of the JSON Schemas of configuration files, for editors.

They use draft 7, which YAML editors know best. Keys without a value (null) are allowed, as in the
loader, which treats them as missing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"
NULL = {"type": "null"}

Schema = dict[str, Any]


def text(most: int | None = None, help: str = "", *, pattern: str = "", least: int = 0) -> Schema:
    found: Schema = {"type": "string"}
    if most is not None:
        found["maxLength"] = most
    if least:
        found["minLength"] = least
    if pattern:
        found["pattern"] = pattern
    return described(found, help)


def web_url(most: int, help: str = "") -> Schema:
    return text(most, help, pattern="^(https?://.*)?$")


def whole(least: float | None = None, most: float | None = None, help: str = "") -> Schema:
    return described({"type": "integer", **_limits(least, most)}, help)


def number(least: float | None = None, most: float | None = None, help: str = "") -> Schema:
    return described({"type": "number", **_limits(least, most)}, help)


def choice(values: Sequence[str], help: str = "") -> Schema:
    return described({"enum": list(values)}, help)


def flag(help: str = "") -> Schema:
    return described({"type": "boolean"}, help)


def list_of(item: Schema, most: int | None = None, help: str = "", *, least: int = 0) -> Schema:
    found: Schema = {"type": "array", "items": item}
    if most is not None:
        found["maxItems"] = most
    if least:
        found["minItems"] = least
    return described(found, help)


def fields(
    properties: Mapping[str, Schema], required: Sequence[str] = (), help: str = ""
) -> Schema:
    """Return the schema of a mapping with these keys; others are refused."""
    found: Schema = {
        "type": "object",
        "properties": {
            name: one if name in required else nullable(one) for name, one in properties.items()
        },
        "additionalProperties": False,
    }
    if required:
        found["required"] = list(required)
    return described(found, help)


def entries(entry: Schema, name_pattern: str = "", help: str = "") -> Schema:
    """Return the schema of a mapping of names to entries."""
    found: Schema = {"type": "object", "additionalProperties": entry}
    if name_pattern:
        found |= {"patternProperties": {name_pattern: entry}, "additionalProperties": False}
    return described(found, help)


def nullable(schema: Schema) -> Schema:
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, NULL]}


def described(schema: Schema, help: str) -> Schema:
    return {**schema, "description": help} if help else schema


def file_schema(title: str, properties: Mapping[str, Schema], help: str = "") -> Schema:
    """Return the schema of a configuration file with these top-level keys."""
    return {"$schema": DRAFT, "title": title, **fields(properties, (), help)}


def _limits(least: float | None, most: float | None) -> Schema:
    found: Schema = {}
    if least is not None:
        found["minimum"] = least
    if most is not None:
        found["maximum"] = int(most) if most == int(most) else most
    return found
