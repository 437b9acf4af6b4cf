"""Pages of the API reference, made from the OpenAPI document."""

import os
from collections.abc import Iterator, Sequence

from controlplane.openapi.reference import Content, Field, Operation, Section

FOLDER = "reference/http"
_NAMES = {"dlq": "Dead letters", "openslo": "OpenSLO", "sli": "SLI", "slos": "SLOs"}
_BUILD_SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    "SECRET_KEY": "signs-nothing-in-a-build",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
"""Settings of Django for a build outside an installation; nothing is connected to."""


def build_pages() -> dict[str, str]:
    """Return the Markdown of the pages by their place on the site: one per section, and a list."""
    for name, value in _BUILD_SETTINGS.items():
        os.environ.setdefault(name, value)
    import django

    django.setup()
    from controlplane.openapi import document, reference

    found = document.load()
    sections = list(reference.build_sections(found).values())
    pages = {f"{FOLDER}/{section.slug}.md": render_section(section) for section in sections}
    return {f"{FOLDER}/index.md": _render_index(found["info"], sections), **pages}


def render_section(section: Section) -> str:
    """Return the Markdown of a section's page."""
    operations = "\n".join(
        line for operation in section.operations for line in _render_operation(operation)
    )
    return f"# {_name_section(section)}\n\n{operations}\n"


def _render_index(info: dict[str, str], sections: Sequence[Section]) -> str:
    lines = ["# HTTP API", "", info.get("description", ""), ""]
    for section in sections:
        lines += [f"## [{_name_section(section)}]({section.slug}.md)", ""]
        lines += [
            f"- [{operation.summary}]({section.slug}.md#{operation.anchor}):"
            f" `{operation.method} {operation.path}`"
            for operation in section.operations
        ]
        lines.append("")
    return "\n".join(lines)


def _render_operation(operation: Operation) -> Iterator[str]:
    yield f"## {operation.summary} {{ #{operation.anchor} }}"
    yield f"\n`{operation.method} {operation.path}`\n"
    if operation.description:
        yield f"{operation.description}\n"
    if operation.parameters:
        yield "**Parameters**\n"
        yield from _render_fields(operation.parameters)
    if operation.body:
        yield f"**Request body** (`{operation.body.media_type}`)\n"
        yield from _render_fields(operation.body.fields)
        yield from _render_example(operation.body)
    yield "**Responses**\n"
    for result in operation.results:
        yield f"`{result.status}` {result.description}\n"
        # Errors are problem documents, which docs/api.md explains once.
        if result.body and result.status[0] == "2":
            yield from _render_example(result.body)
            if result.body.fields:
                yield f'??? info "Fields of the response: {len(result.body.fields)}"\n'
                yield from (f"    {line}" for line in _render_fields(result.body.fields))


def _render_fields(fields: Sequence[Field]) -> Iterator[str]:
    if not fields:
        return
    yield "| name | type | description |"
    yield "|---|---|---|"
    for field in fields:
        notes = [
            _escape(field.type),
            f"in {field.place}" if field.place else "",
            "**required**" if field.required else "",
        ]
        words = ", ".join(note for note in notes if note)
        yield f"| `{field.name}` | {words} | {_escape(field.description)} |"
    yield ""


def _render_example(content: Content) -> Iterator[str]:
    if content.example:
        yield f"```json\n{content.example}\n```\n"


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _name_section(section: Section) -> str:
    name = section.name.replace("-", " ")
    return _NAMES.get(name) or name[:1].upper() + name[1:]
