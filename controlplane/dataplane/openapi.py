"""The data plane's own paths in the OpenAPI document: Django does not see them."""

from typing import Any

from .ingest.report_fields import (
    COUNTERS,
    MAX_BREAKERS,
    MAX_BULKHEADS,
    MAX_REPORTED_NAME_LENGTH,
    MODES,
    STATES,
)
from .ingest.transition_limits import MAX_PER_SOURCE, MAX_TOTAL

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_TIME = {"type": "string", "format": "date-time"}
_SECURITY: list[Any] = [{"token": []}, {"apiKey": []}]


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": _TEXT, "description": description}


_WAIT = {
    "name": "wait",
    "in": "query",
    "schema": {"type": "string", "pattern": "^[0-9]{1,9}([.][0-9]{1,6})?$"},
    "description": "Hold the answer while If-None-Match names this version, or a newer one of its "
    "epoch, for at most this many seconds; more than 60 are 60. 503 with Retry-After when too many "
    "are held. For tokens; a signed-in browser is answered at once.",
}
_INSTANCE = _header(
    "Switchgear-Instance",
    "`service/instance`: who asks. One that is marked for drills is told of a drilled switch as "
    "engaged while the drill lasts, here and by `/check`; the version is the same for all, the "
    "ETag of the snapshot is not, and `Vary` says so.",
)
_APPLIED = _header(
    "Switchgear-Applied",
    "`<epoch>.<version>` that this instance applies now; a bare version is of the present epoch.",
)
_LAST_EVENT = _header("Last-Event-ID", "The last event's id; the present one is not repeated.")

_CHECKED = _object("switch allowed blocked", switch=_TEXT, allowed=_COUNT, blocked=_COUNT)
_COUNTED = _object(
    "slo good total",
    slo={"type": "string", "minLength": 1, "maxLength": 200},
    good={**_COUNT, "description": "At most total."},
    total=_COUNT,
)
_RATE = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_STATE = {"enum": list(STATES)}
_STEP = _object("n from to at", n=_COUNT, **{"from": _STATE}, to=_STATE, at=_TIME, cause=_TEXT)
_BREAKER = _object(
    "dependency state",
    dependency={**_TEXT, "pattern": "^[a-z0-9-]{1,60}->[a-z0-9-]{1,60}$"},
    state=_STATE,
    mode={"enum": list(MODES)},
    since={**_TIME, "description": "When it came to this state."},
    failure_rate=_RATE,
    slow_rate=_RATE,
    calls=_COUNT,
    counters={
        **_object("", **dict.fromkeys(COUNTERS, _COUNT)),
        "description": "Cumulative per boot.",
    },
    transitions={
        **_list(_STEP),
        "description": "Kept once for each boot, dependency and `n`, also from late reports. Of "
        f"more than {MAX_PER_SOURCE} of one breaker, or {MAX_TOTAL:,} of all, the last are kept.",
    },
)
_BULKHEAD = _object(
    "name in_flight limit",
    name={**_TEXT, "minLength": 1, "maxLength": MAX_REPORTED_NAME_LENGTH},
    **dict.fromkeys(("in_flight", "limit", "queued", "queue_limit", "rejected"), _COUNT),
)
_REPORT = _object(
    "service instance boot seq",
    service=_TEXT,
    instance=_TEXT,
    boot={"type": "string", "format": "uuid", "description": "Of this process; made at its start."},
    started_at=_TIME,
    seq={**_COUNT, "description": "Grows with each report of a boot; a repeat is a duplicate."},
    sent_at=_TIME,
    applied_version=_COUNT,
    config_version=_COUNT,
    checks={**_list(_CHECKED), "description": "Cumulative per boot."},
    breakers={
        **_list(_BREAKER),
        "maxItems": MAX_BREAKERS,
        "description": "All that there are, each dependency named once: a breaker that is left out "
        "is gone. Without this list all is as it was. A dependency that nobody has registered "
        "becomes known by this.",
    },
    bulkheads={**_list(_BULKHEAD), "maxItems": MAX_BULKHEADS, "description": "As breakers: all."},
    sli={
        **_list(_COUNTED),
        "description": "Events of SLOs, each named once; cumulative per boot. Those of the first "
        "200 SLOs are counted. Calls that a switch blocked are no events.",
    },
)
_REPORTED = _object(
    "accepted duplicate snapshot_version config_version",
    accepted={"type": "boolean"},
    duplicate={"type": "boolean"},
    snapshot_version={"type": ["integer", "null"]},
    config_version=_COUNT,
    dropped_transitions={
        **_COUNT,
        "description": "So many were not kept, because there were too many; left out if none.",
    },
)
_OVERRIDE = _object(
    "mode reason expires_at version",
    mode={"enum": ["forced_open", "forced_closed", "disabled", "metrics_only", "reset"]},
    reason=_TEXT,
    expires_at=_TIME,
    version={**_COUNT, "description": "Who applies this `config_version` or a later one obeys it."},
)
_CONFIG = _object(
    "service version dependencies",
    service=_TEXT,
    version=_COUNT,
    dependencies={
        "type": "object",
        "additionalProperties": _object(
            "override", override={"oneOf": [_OVERRIDE, {"type": "null"}]}
        ),
    },
)
_SERVICE = {
    "name": "service",
    "in": "query",
    "required": True,
    "schema": _TEXT,
    "description": "The service that calls: `core`.",
}
_KNOWN = _header("If-None-Match", "The ETag of the last answer.")
_CONTEXT = _object("", context={"type": "object", "properties": {"targetingKey": _TEXT}})
_FLAG = _object(
    "key value variant reason metadata",
    key={**_TEXT, "description": "The id of a switch."},
    value={"type": "boolean", "description": "True while traffic may flow."},
    variant={"enum": ["on", "off"]},
    reason={"enum": ["STATIC", "DISABLED", "SPLIT"]},
    metadata={"type": "object"},
)
_FLAGS = _object(
    "flags eventStreams metadata",
    flags=_list(_FLAG),
    eventStreams=_list({"type": "object"}),
    metadata={"type": "object"},
)
_FAILED = _object(
    "errorCode errorDetails metadata",
    key=_TEXT,
    errorCode=_TEXT,
    errorDetails=_TEXT,
    metadata={"type": "object"},
)


def described(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Add the data plane's paths to the OpenAPI document `result`, and return it."""
    snapshot = result["paths"]["/api/v1/snapshot"]["get"]
    snapshot["parameters"] += [_WAIT, _INSTANCE, _APPLIED]
    result["paths"]["/api/v1/check"]["post"].setdefault("parameters", []).append(_INSTANCE)
    result["paths"] |= _paths()
    return result


def _operation(
    name: str,
    description: str,
    responses: dict[str, Any],
    *,
    parameters: list[Any] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "description": description,
        "tags": ["data plane"],
        "security": _SECURITY,
        "parameters": parameters or [],
        "responses": responses,
    }
    if body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return operation


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {"200": {"description": description, "content": content}}


def _stream(description: str) -> dict[str, Any]:
    content = {"text/event-stream": {"schema": _TEXT}}
    return {"200": {"description": description, "content": content}}


def _failures(*statuses: int) -> dict[str, Any]:
    content = {"application/json": {"schema": _FAILED}}
    named = [*map(str, statuses), "default"]
    return {status: {"description": "A failure.", "content": content} for status in named}


def _paths() -> dict[str, Any]:
    """Return new path objects each time, because the caller modifies them in place."""
    return {
        "/api/v1/snapshot/stream": {
            "get": _operation(
                "snapshot_stream",
                "Server-sent events: each version as it is published, beginning with the present "
                "one; a comment every 15 seconds. Tokens only.",
                _stream("Events named `snapshot`, whose id is `<epoch>.<version>`."),
                parameters=[_LAST_EVENT, _INSTANCE, _APPLIED],
            )
        },
        "/api/v1/report": {
            "post": _operation(
                "report",
                "What an instance tells of itself (scope report:write): what it applies and "
                "checks, its breakers and bulkheads, and the events of SLOs that it counted. An "
                "instance may report 5 times a second (20 at once), a token 500 times (2,000 at "
                "once), at each process.",
                _json("Taken in, or known already.", _REPORTED),
                body=_REPORT,
            )
        },
        "/api/v1/config": {
            "get": _operation(
                "config",
                "Policies and overrides of a service's dependencies (scope breakers:read, "
                "report:write or switches:read). The version is the highest among them; a service "
                "without any is told so, at version 0. Tokens only.",
                {
                    **_json("All of them.", _CONFIG),
                    "304": {"description": "The caller has this version, or a newer one."},
                },
                parameters=[_SERVICE, _WAIT, _KNOWN, _INSTANCE],
            )
        },
        "/ofrep/v1/evaluate/flags": {
            "post": _operation(
                "ofrep_evaluate_flags",
                "OFREP 0.3: every known switch as a boolean flag.",
                {
                    **_json("Every flag.", _FLAGS),
                    "304": {"description": "Nothing has changed for this caller."},
                    **_failures(400, 401, 403, 503),
                },
                body=_CONTEXT,
                parameters=[
                    _header("If-None-Match", "The ETag of the last answer."),
                    {
                        "name": "flagConfigEtag",
                        "in": "query",
                        "schema": _TEXT,
                        "description": "The `etag` of the event that made the caller ask.",
                    },
                ],
            )
        },
        "/ofrep/v1/evaluate/flags/{key}": {
            "post": _operation(
                "ofrep_evaluate_flag",
                "OFREP 0.3: one switch as a boolean flag.",
                {**_json("The flag.", _FLAG), **_failures(400, 401, 403, 404, 503)},
                body=_CONTEXT,
                parameters=[
                    {"name": "key", "in": "path", "required": True, "schema": _TEXT},
                    _INSTANCE,
                ],
            )
        },
        "/ofrep/v1/events": {
            "get": _operation(
                "ofrep_events",
                "Server-sent events that tell OpenFeature clients to ask again. Tokens only.",
                {**_stream('`{"type":"refetchEvaluation","etag":…}`'), **_failures(401, 403, 503)},
                parameters=[_LAST_EVENT],
            )
        },
    }
