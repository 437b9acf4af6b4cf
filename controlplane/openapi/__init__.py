"""The finished OpenAPI document: what drf-spectacular and the data plane can't say by themselves.

`finish` is the last hook of the generator. Everything in it is central and made from tables, so a
new operation needs a row in `operations` and nothing else.
"""

from typing import Any

from controlplane.openapi import components, examples, problems
from controlplane.openapi.operations import OPERATIONS

ABOUT = """
Credentials: `Authorization: Bearer sg_…`, `X-API-Key`, or a signed-in browser (with `X-CSRFToken`).
Every answer carries `X-Request-ID`; yours is kept if it is up to 128 of `A-Za-z0-9._-`. Those of
the console carry `Switchgear-Environment`, too: the installation's name, percent-encoded.

Bodies are JSON objects of at most 64 KiB (reports: 512 KiB, hooks, OpenSLO and dead letters: 1 MiB,
points of SLIs: 4 MiB). Unknown fields and unknown query parameters are refused with the names that
are known. Where a field may be left out, null means the same.

`dry_run` does everything and rolls it back: the answer is what would have happened, and an id in it
names nothing. Lists come in pages; follow `next`. Errors are `application/problem+json`; where
fields are wrong, `errors` maps each (`evidence.labels.0`) to what is wrong with it.
"""
LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
SERVERS = [{"url": "/", "description": "The console that serves this document."}]


def finish(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Name, describe and complete every operation, in place."""
    _clean(result)
    result["info"] |= {
        "description": ABOUT.strip(),
        "summary": "Kill switches, circuit breakers, dead letters and SLOs.",
        "license": LICENSE,
    }
    result["servers"] = SERVERS
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            _name(method, path, operation)
    components.rename(result)
    problems.declare(result)
    examples.add(result)
    return result


def _name(method: str, path: str, operation: dict[str, Any]) -> None:
    known = OPERATIONS.get((method, path))
    if known is not None:
        operation["operationId"], operation["summary"] = known


def _clean(value: Any) -> None:
    """Drop what only the generator reads, and types that a union names twice."""
    if isinstance(value, dict):
        value.pop("x-spec-enum-id", None)
        if isinstance(value.get("type"), list):
            value["type"] = list(dict.fromkeys(value["type"]))
    for below in value.values() if isinstance(value, dict) else value:
        if isinstance(below, dict | list):
            _clean(below)
