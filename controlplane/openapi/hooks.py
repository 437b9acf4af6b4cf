"""The last step of generating the OpenAPI document: names, summaries, errors and examples."""

from typing import Any

from controlplane.openapi import components, examples, problems
from controlplane.openapi.operations import OPERATIONS

ABOUT = """
Credentials: `Authorization: Bearer sg_…`, `X-API-Key`, or a signed-in browser (with `X-CSRFToken`).
Each response has an `X-Request-ID`; yours is kept if it has up to 128 characters of
`A-Za-z0-9._-`. Responses of the console also have `Switchgear-Environment`: the installation's
name, percent-encoded.

Bodies are JSON objects of at most 64 KiB (reports: 512 KiB, hooks, OpenSLO and dead letters: 1 MiB,
points of SLIs: 4 MiB). Requests with unknown fields or query parameters are rejected, and the error
lists the known names. In an optional field, null means the same as leaving it out.

`dry_run` runs the whole change and rolls it back: the response shows the result, and ids in it
don't exist. Lists are paged; follow `next`. Errors are `application/problem+json`; where
fields are wrong, `errors` maps each field (`evidence.labels.0`) to its messages.
"""


def finish(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Complete the document in place: operation ids, component names, errors and examples."""
    _clean(result)
    result["info"] |= {
        "description": ABOUT.strip(),
        "summary": "Kill switches, circuit breakers, dead letters and SLOs.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }
    result["servers"] = [{"url": "/", "description": "The console that serves this document."}]
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            if names := OPERATIONS.get((method, path)):
                operation["operationId"], operation["summary"] = names
    components.rename_components(result)
    problems.declare_problems(result)
    examples.add_examples(result)
    return result


def _clean(value: Any) -> None:
    # Drop extensions only for the generator, and duplicate types in unions.
    if isinstance(value, dict):
        value.pop("x-spec-enum-id", None)
        if isinstance(value.get("type"), list):
            value["type"] = list(dict.fromkeys(value["type"]))
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            _clean(child)
