"""The OpenAPI document as the plain values that the reference pages show."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.text import slugify

METHODS = ("get", "post", "put", "patch", "delete")
MAX_DEPTH = 3
"""Levels of nested objects whose fields are listed; deeper ones are named as objects."""
BODILESS_STATUSES = ("204", "304")

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """One parameter or field of a body; `name` is a dotted path (`policy.steps[].percent`)."""

    name: str
    type: str
    required: bool = False
    description: str = ""
    place: str = ""


@dataclass(frozen=True)
class Content:
    """A request's or response's content: its media type, fields and example (JSON text)."""

    media_type: str
    fields: tuple[Field, ...]
    example: str


@dataclass(frozen=True)
class Result:
    """One response of an operation: its status (`201`, `default`), meaning and content."""

    status: str
    description: str
    body: Content | None


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[Field, ...]
    body: Content | None
    results: tuple[Result, ...]
    anchor: str


@dataclass
class Section:
    """The operations of one tag; `slug` is the last part of its page's address."""

    name: str
    slug: str
    operations: list[Operation] = field(default_factory=list)


def build_sections(document: Schema) -> dict[str, Section]:
    """Return the sections of an OpenAPI 3.1 document by slug, in the order of their names."""
    sections: dict[str, Section] = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                name = next(iter(item[method].get("tags", ())), "other")
                section = sections.setdefault(slugify(name), Section(name, slugify(name)))
                section.operations.append(_read_operation(document, path, method, item[method]))
    return dict(sorted(sections.items()))


def _read_operation(document: Schema, path: str, method: str, raw: Schema) -> Operation:
    parameters = (_resolve(document, parameter) for parameter in raw.get("parameters", ()))
    return Operation(
        method=method.upper(),
        path=path,
        summary=raw.get("summary", raw["operationId"]),
        description=raw.get("description", ""),
        parameters=tuple(
            Field(
                parameter["name"],
                _name_type(document, parameter.get("schema", {})),
                parameter.get("required", False),
                parameter.get("description", ""),
                parameter["in"],
            )
            for parameter in parameters
        ),
        body=_read_body(document, raw.get("requestBody", {})),
        results=tuple(
            _read_result(document, status, result) for status, result in raw["responses"].items()
        ),
        anchor=raw["operationId"],
    )


def _read_result(document: Schema, status: str, raw: Schema) -> Result:
    result = _resolve(document, raw)
    body = None if status in BODILESS_STATUSES else _read_body(document, result)
    return Result(status, result.get("description", ""), body)


def _read_body(document: Schema, raw: Schema) -> Content | None:
    for media_type, content in _resolve(document, raw).get("content", {}).items():
        example = content.get("example")
        if example is None:
            example = next((case.get("value") for case in content.get("examples", {}).values()), "")
        text = example if isinstance(example, str) else _format_json(example)
        fields = tuple(_list_fields(document, content.get("schema", {})))
        return Content(media_type, fields, text)
    return None


def _list_fields(
    document: Schema, schema: Schema, prefix: str = "", depth: int = 0
) -> Iterator[Field]:
    schema = _unwrap(document, schema)
    if schema.get("type") == "array":
        yield from _list_fields(document, schema.get("items", {}), f"{prefix}[].", depth)
        return
    required = schema.get("required", ())
    for name, raw in schema.get("properties", {}).items():
        inner = _unwrap(document, raw)
        description = raw.get("description") or inner.get("description", "")
        path = f"{prefix}{name}"
        yield Field(path, _name_type(document, raw), name in required, description)
        if depth + 1 < MAX_DEPTH:
            mark = "" if inner.get("type") == "array" else "."
            yield from _list_fields(document, inner, f"{path}{mark}", depth + 1)


def _unwrap(document: Schema, schema: Schema) -> Schema:
    """Return `schema` without references, single-element `allOf` and `oneOf` with null."""
    schema = _resolve(document, schema)
    for keyword in ("allOf", "oneOf", "anyOf"):
        choices = [one for one in schema.get(keyword, ()) if one.get("type") != "null"]
        if len(choices) == 1:
            return _unwrap(document, choices[0])
    return schema


def _name_type(document: Schema, schema: Schema) -> str:
    raw = _resolve(document, schema)
    for keyword in ("oneOf", "anyOf", "allOf"):
        if keyword in raw:
            names = (_name_type(document, one) for one in raw[keyword])
            return " or ".join(dict.fromkeys(names))
    if "enum" in raw:
        return " | ".join("null" if value is None else str(value) for value in raw["enum"])
    types = raw.get("type", "any")
    types = [types] if isinstance(types, str) else types
    return " or ".join(_name_simple_type(document, raw, name) for name in types)


def _name_simple_type(document: Schema, schema: Schema, name: str) -> str:
    if name == "array":
        return f"list of {_name_type(document, schema.get('items', {}))}"
    named = schema.get("format", "") if name in ("string", "number") else ""
    named = name if named in ("", "double") else named
    limits = "" if name == "null" else _format_limits(schema, name)
    return f"{named}, {limits}" if limits else named


def _format_limits(schema: Schema, name: str) -> str:
    low, high, unit = ("minLength", "maxLength", " characters")
    if name in ("integer", "number"):
        low, high, unit = ("minimum", "maximum", "")
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        return f"{least} to {most}{unit}"
    if most is not None:
        return f"at most {most}{unit}"
    return "" if least is None else f"at least {least}{unit}"


def _resolve(document: Schema, schema: Schema) -> Schema:
    """Return `schema`, or what its `$ref` (`#/a/b`) names."""
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _format_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
