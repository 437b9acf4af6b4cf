"""OpenAPI description of the data plane's paths, which drf-spectacular doesn't find."""

from collections.abc import Mapping
from typing import Any

from .ingest import report_fields
from .ingest.report_fields import (
    MAX_ELEMENTS,
    MAX_REPORTED_NAME_LENGTH,
    MODES,
    REPORT,
    STATES,
    CountsField,
    Field,
    ListField,
)
from .ingest.report_merge import MAX_PER_BREAKER, MAX_TRANSITIONS

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_TIME = {"type": "string", "format": "date-time"}
_SECURITY: list[Any] = [{"token": []}, {"apiKey": []}]


def _object_schema(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _array_schema(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _parameter(where: str, name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "schema": _TEXT, "description": description, **more}


_WAIT = _parameter(
    "query",
    "wait",
    "Long poll: hold the request for at most this many seconds (60 at most) while "
    "If-None-Match names the current version, or a newer one of its epoch. 503 with Retry-After "
    "if too many requests are held. For tokens only; a signed-in browser is never held.",
    schema={**_TEXT, "pattern": "^[0-9]{1,9}([.][0-9]{1,6})?$"},
)
_INSTANCE = _parameter(
    "header",
    "Switchgear-Instance",
    "The calling instance, as `service/instance`. An instance marked for drills gets the drilled "
    "switches as engaged during a drill, here and from `/check`. The version is the same for all "
    "instances, but the ETag of the snapshot differs, as `Vary` indicates.",
)
_APPLIED = _parameter(
    "header",
    "Switchgear-Applied",
    "The version that this instance applies, as `<epoch>.<version>`. A bare version belongs to the "
    "current epoch.",
)
_FINAL_REPORT = _parameter(
    "header",
    "Switchgear-Final-Report",
    "`true` in the final report of a process that stops: the instance no longer counts, until it "
    "polls or reports again.",
)
_LAST_EVENT = _parameter(
    "header",
    "Last-Event-ID",
    "The id of the last event received; the current version is not sent again.",
)

_RELAY_NAME = _parameter("header", "Switchgear-Relay", "The name of the relay.")
_RELAY_PARTS = _parameter(
    "header",
    "Switchgear-Bundle",
    "The parts that the relay has, as `<part>=<SHA-256 in hexadecimal>`, separated by commas. Of "
    "parts that the data plane still knows, only the differences are sent.",
)

_REPORT_SCHEMAS: Mapping[Any, dict[str, Any]] = {
    report_fields.check_service: _TEXT,
    report_fields.check_part: _TEXT,
    report_fields.check_switch: _TEXT,
    report_fields.parse_cause: _TEXT,
    report_fields.parse_uuid: {"type": "string", "format": "uuid"},
    report_fields.parse_order_ids: {
        **_array_schema({"type": "string", "format": "uuid"}),
        "maxItems": report_fields.MAX_ORDERS,
    },
    report_fields.parse_time: _TIME,
    report_fields.check_integer: _COUNT,
    report_fields.check_count: _COUNT,
    report_fields.parse_rate: {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    report_fields.check_name: {**_TEXT, "minLength": 1, "maxLength": MAX_REPORTED_NAME_LENGTH},
    report_fields.check_dependency: {**_TEXT, "pattern": "^[a-z0-9-]{1,60}->[a-z0-9-]{1,60}$"},
    report_fields.check_state: {"enum": list(STATES)},
    report_fields.check_mode: {"enum": list(MODES)},
}
_REPORT_DESCRIPTIONS = {
    "boot": "Id of this process, generated at its start.",
    "seq": "Increases with each report of a boot. A report with the same number is a duplicate.",
    "applied_orders": "The ids of the emergency orders that the instance applies.",
    "checks": "Cumulative since the boot.",
    "breakers": "All breakers of the instance, each dependency once: a breaker that is left out is "
    "removed. Without this list, the stored breakers stay unchanged. A dependency that is not "
    "registered is created.",
    "breakers.since": "When the breaker entered this state.",
    "breakers.counters": "Cumulative since the boot.",
    "breakers.transitions": "Stored once per boot, dependency and `n`, also from late reports. If "
    f"there are more than {MAX_PER_BREAKER} of one breaker, or {MAX_TRANSITIONS:,} in total, the "
    "last ones are kept.",
    "bulkheads": "All bulkheads of the instance, like `breakers`.",
    "sli": "Events of SLOs, each SLO once; cumulative since the boot. Only the first 200 SLOs are "
    "counted. Calls blocked by a switch are not events.",
    "sli.good": "At most total.",
}


def _fields_schema(fields: Mapping[str, Field], path: str = "") -> dict[str, Any]:
    """Return the schema of an object in a report; `path` is its place in the report."""
    properties: dict[str, Any] = {}
    for name, field in fields.items():
        if isinstance(field, ListField):
            schema = _array_schema(_fields_schema(field.fields, f"{path}{name}."))
            if field.most != MAX_ELEMENTS:
                schema["maxItems"] = field.most
        elif isinstance(field, CountsField):
            schema = _object_schema("", **dict.fromkeys(field.names, _COUNT))
        else:
            schema = _REPORT_SCHEMAS[field.check]
        if description := _REPORT_DESCRIPTIONS.get(path + name):
            schema = {**schema, "description": description}
        properties[name] = schema
    required = " ".join(name for name, field in fields.items() if field.required)
    return _object_schema(required, **properties)


_REPORTED = _object_schema(
    "accepted duplicate snapshot_version config_version",
    accepted={"type": "boolean"},
    duplicate={"type": "boolean"},
    snapshot_version={"type": ["integer", "null"]},
    config_version=_COUNT,
    dropped_transitions={
        **_COUNT,
        "description": "Number of transitions dropped because there were too many; absent if none.",
    },
)
_RELAY_MESSAGE = _object_schema(
    "status batches",
    status={
        "type": "object",
        "description": "The relay's process: name, release, version, age and numbers.",
    },
    relays={"type": "array", "items": {"type": "object"}, "description": "Relays behind it."},
    batches={
        "type": "array",
        "items": _object_schema(
            "relay process seq",
            relay=_TEXT,
            process={"type": "string", "format": "uuid"},
            seq=_COUNT,
            presences={"type": "array", "items": {"type": "object"}},
            acks={"type": "array", "items": {"type": "object"}},
            reports={"type": "array", "items": {"type": "object"}},
            checks={"type": "array", "items": {"type": "object"}},
        ),
    },
)
_RELAY_BATCH_STORED = _object_schema(
    "accepted plane refused_reports",
    accepted={"type": "boolean"},
    plane={**_TEXT, "description": "Name of the data plane or relay that stored them."},
    refused_reports={
        **_COUNT,
        "description": "Number of reports that are invalid and were not stored.",
    },
)
_RELAY_VERSION = _object_schema(
    "body signature plane",
    body={**_TEXT, "description": "The text of the published snapshot that the relay serves."},
    signature={**_TEXT, "description": "Its `Switchgear-Signature`."},
    plane={**_TEXT, "description": "The name of the relay."},
)
_VERSION_FATE = _object_schema(
    "is_lost restored_in",
    is_lost={
        "type": "boolean",
        "description": "True while the database has lost the version, and not restored it.",
    },
    restored_in={
        "type": ["integer", "null"],
        "description": "The version from which on all that it engaged is engaged again; null if "
        "the database never lost it.",
    },
)
_OVERRIDE = _object_schema(
    "mode reason expires_at version",
    mode={"enum": ["forced_open", "forced_closed", "disabled", "metrics_only", "reset"]},
    reason=_TEXT,
    expires_at=_TIME,
    version={
        **_COUNT,
        "description": "An instance that applies this `config_version` or a later one obeys it.",
    },
)
_CONFIG = _object_schema(
    "service version dependencies",
    service=_TEXT,
    version=_COUNT,
    dependencies={
        "type": "object",
        "additionalProperties": _object_schema(
            "override", override={"oneOf": [_OVERRIDE, {"type": "null"}]}
        ),
    },
)
_SERVICE = _parameter("query", "service", "The calling service, such as `core`.", required=True)
_KNOWN = _parameter("header", "If-None-Match", "The ETag of the last response.")
_EVENT_TAG = _parameter(
    "query", "flagConfigEtag", "The `etag` of the event that triggered this request."
)
_FLAG_KEY = {"name": "key", "in": "path", "required": True, "schema": _TEXT}
_CONTEXT = _object_schema("", context={"type": "object", "properties": {"targetingKey": _TEXT}})
_FLAG = _object_schema(
    "key value variant reason metadata",
    key={**_TEXT, "description": "The id of a switch."},
    value={"type": "boolean", "description": "True while traffic is allowed."},
    variant={"enum": ["on", "off"]},
    reason={"enum": ["STATIC", "DISABLED", "SPLIT"]},
    metadata={"type": "object"},
)
_FLAGS = _object_schema(
    "flags eventStreams metadata",
    flags=_array_schema(_FLAG),
    eventStreams=_array_schema({"type": "object"}),
    metadata={"type": "object"},
)
_FAILED = _object_schema(
    "errorCode errorDetails metadata",
    key=_TEXT,
    errorCode=_TEXT,
    errorDetails=_TEXT,
    metadata={"type": "object"},
)


_KEYS = _object_schema(
    "keys",
    keys=_array_schema(
        _object_schema(
            "id algorithm public_key current valid_until",
            id={**_TEXT, "description": "The `keyid` in `Switchgear-Signature`."},
            algorithm={"const": "Ed25519"},
            public_key={**_TEXT, "description": "32 bytes in base64."},
            current={"type": "boolean"},
            valid_until={
                "type": ["string", "null"],
                "format": "date-time",
                "description": "A replaced key signs until then.",
            },
        )
    ),
)

_UUID = {"type": "string", "format": "uuid"}
_ORDER_BODY = _object_schema(
    "action reason",
    action={"enum": ["engage", "withdraw"]},
    switch={**_TEXT, "description": "To engage: the id of a switch, such as `feature:chat`."},
    order={**_UUID, "description": "To withdraw: the id of the order."},
    reason={**_TEXT, "description": "By the same rules as for an ordinary engage."},
    expires_in={
        **_TEXT,
        "description": "To engage: a duration, or `permanent`; 24h if missing. The switch stays "
        "engaged at its expiry.",
    },
    id={
        **_UUID,
        "description": "A new id. A repetition with it gets the same response; another request, "
        "409.",
    },
)
_ORDER_PROPERTIES: dict[str, Any] = {
    "id": _UUID,
    "action": {"enum": ["engage", "withdraw"]},
    "switch": _TEXT,
    "order": {"type": ["string", "null"], "format": "uuid"},
    "reason": _TEXT,
    "expires_in": {"type": ["string", "null"]},
    "on_expiry": {"const": "hold"},
    "by": _object_schema("type name id", type={"enum": ["user", "token"]}, name=_TEXT, id=_COUNT),
    "at": _TIME,
    "plane": {**_TEXT, "description": "The data plane that accepted the order."},
}
_LIMIT = {**_COUNT, "minimum": 1, "maximum": 200}
_PLANES = {**_array_schema(_TEXT), "description": "Data planes that have the order on disk."}


_RELAY_SIGNATURE = {
    **_object_schema("key given_id signature", key=_TEXT, given_id=_UUID, signature=_TEXT),
    "description": "Only of an order that a relay accepted: its public key, the id requested, and "
    "its Ed25519 signature.",
}


def _order_schema(**more: Any) -> dict[str, Any]:
    required = " ".join([*_ORDER_PROPERTIES, *more])
    return _object_schema(required, **_ORDER_PROPERTIES, relay=_RELAY_SIGNATURE, **more)


_EXCHANGE_SENDER: dict[str, Any] = {
    "plane": {**_TEXT, "description": "The name of the relay; in the response, of the data plane."},
    "process": {**_TEXT, "description": "32 hexadecimal digits, new for each process."},
    "digest": {**_TEXT, "description": "SHA-256 of all orders that are not closed."},
    "all_stored": {"type": "boolean", "description": "Whether all of them are on disk."},
    "orders": {**_array_schema(_TEXT), "description": "Orders, each as canonical JSON."},
}
_RELAY_ORDERS = _object_schema(
    "plane process digest orders",
    **_EXCHANGE_SENDER,
    listing={
        "type": ["array", "null"],
        "items": _TEXT,
        "description": "For each order that is not closed, its id and the first 8 digits of a "
        "SHA-256. Without it, no orders are sent back.",
    },
)
_RELAY_ORDERS_REPLY = _object_schema(
    "plane process digest all_stored stored wanted orders more",
    **_EXCHANGE_SENDER,
    stored={**_array_schema(_UUID), "description": "Of the sent orders, those on disk now."},
    wanted={**_array_schema(_UUID), "description": "Listed orders that are unknown here."},
    more={"type": "boolean", "description": "Whether there are further orders to send back."},
)


_ACCEPTED_ORDER = _order_schema(
    accepted_by=_PLANES, planes={**_COUNT, "description": "The number of data planes."}
)
_WITHDRAWAL = _order_schema(planes=_PLANES)
_LISTED_ORDER = _order_schema(
    state={"enum": ["open", "withdrawn"]},
    planes=_PLANES,
    applied={
        **_object_schema("by of", by=_COUNT, of=_COUNT),
        "description": "The instances that apply the order, of those that this process has heard "
        "of in the last 30 seconds.",
    },
    withdrawal={"oneOf": [_WITHDRAWAL, {"type": "null"}]},
)
_ORDERS_PAGE = _object_schema(
    "next previous results",
    next={"type": ["string", "null"]},
    previous={"type": ["string", "null"]},
    results=_array_schema(_LISTED_ORDER),
)


def add_paths(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Add the data plane's paths to the OpenAPI document `result`, and return it."""
    snapshot = result["paths"]["/api/v1/snapshot"]["get"]
    snapshot["parameters"] += [_WAIT, _INSTANCE, _APPLIED]
    result["paths"]["/api/v1/check"]["post"].setdefault("parameters", []).append(_INSTANCE)
    result["paths"] |= _build_paths()
    code = {"type": "http", "scheme": "basic", "description": "User name and emergency code."}
    result["components"]["securitySchemes"]["emergencyCode"] = code
    return result


def _make_path(
    method: str,
    name: str,
    description: str,
    responses: dict[str, Any],
    *parameters: dict[str, Any],
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "description": description,
        "tags": ["data plane"],
        "security": _SECURITY,
        "parameters": [*parameters],
        "responses": responses,
    }
    if body is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
    return {method: operation}


def _response(
    description: str, schema: dict[str, Any], media_type: str = "application/json"
) -> dict[str, Any]:
    return {"200": {"description": description, "content": {media_type: {"schema": schema}}}}


def _error_responses(*statuses: int) -> dict[str, Any]:
    content = {"application/json": {"schema": _FAILED}}
    named = [*map(str, statuses), "default"]
    return {status: {"description": "An error.", "content": content} for status in named}


def _build_paths() -> dict[str, Any]:
    """Return the OpenAPI path items, as new objects that the caller may modify."""
    return {
        "/api/v1/snapshot/stream": _make_path(
            "get",
            "snapshot_stream",
            "Server-sent events: each version of the snapshot as it is published, starting with "
            "the current one, and a comment every 15 seconds. For tokens only.",
            _response(
                "Events named `snapshot` with the id `<epoch>.<version>`.",
                _TEXT,
                "text/event-stream",
            ),
            *(_LAST_EVENT, _INSTANCE, _APPLIED),
        ),
        "/api/v1/report": _make_path(
            "post",
            "report",
            "Report the state of an instance (scope report:write): the versions it applies, its "
            "checks of switches, its breakers and bulkheads, and its SLO events. Rate limits per "
            "process: 5 reports a second of an instance (bursts of 20), 500 a second of a token "
            "(bursts of 2,000).",
            _response("The report was stored, or was a duplicate.", _REPORTED),
            _FINAL_REPORT,
            body=_fields_schema(REPORT),
        ),
        "/api/v1/config": _make_path(
            "get",
            "config",
            "Policies and overrides of a service's dependencies (scope breakers:read, "
            "report:write or switches:read). The version is the highest among them; 0 for a "
            "service without dependencies. For tokens only.",
            {
                **_response("All policies and overrides of the service.", _CONFIG),
                "304": {"description": "The caller has this version, or a newer one."},
            },
            *(_SERVICE, _WAIT, _KNOWN, _INSTANCE),
        ),
        "/api/v1/keys": _build_keys_path(),
        "/ofrep/v1/evaluate/flags": _make_path(
            "post",
            "ofrep_evaluate_flags",
            "OFREP 0.3: evaluate every known switch as a boolean flag.",
            {
                **_response("Every flag.", _FLAGS),
                "304": {"description": "Nothing has changed for this caller."},
                **_error_responses(400, 401, 403, 503),
            },
            *(_KNOWN, _EVENT_TAG),
            body=_CONTEXT,
        ),
        "/ofrep/v1/evaluate/flags/{key}": _make_path(
            "post",
            "ofrep_evaluate_flag",
            "OFREP 0.3: evaluate one switch as a boolean flag.",
            {**_response("The flag.", _FLAG), **_error_responses(400, 401, 403, 404, 503)},
            *(_FLAG_KEY, _INSTANCE),
            body=_CONTEXT,
        ),
        "/ofrep/v1/events": _make_path(
            "get",
            "ofrep_events",
            "Server-sent events after which OpenFeature clients refetch flags. For tokens only.",
            {
                **_response('`{"type":"refetchEvaluation","etag":…}`', _TEXT, "text/event-stream"),
                **_error_responses(401, 403, 503),
            },
            _LAST_EVENT,
        ),
        "/api/v1/emergency/orders": _build_order_path(),
        "/api/v1/relay/stream": _make_path(
            "get",
            "relay_stream",
            "Server-sent events for relays (scope relay): all that a data plane holds, signed, and "
            "then each change; emergency orders; and every 2 seconds a confirmation. 503 without a "
            "signing key.",
            _response(
                "Events named `bundle` (the signed manifest, and what changed of each part), "
                "`orders` (all emergency orders that are not closed) and `confirm` (ages in "
                "seconds, and what the data plane reaches).",
                _TEXT,
                "text/event-stream",
            ),
            *(_RELAY_NAME, _RELAY_PARTS),
        ),
        "/api/v1/relay/batch": _make_path(
            "post",
            "relay_batch",
            "Store what a relay received from its instances and from relays behind it (scope "
            "relay): reports, presences, acknowledgements and counts of `/check` requests. "
            "Answered once it is stored; a relay repeats a batch with the same `process` and "
            "`seq`, and its counts are stored once. For relays of the same release.",
            _response("The batches are stored.", _RELAY_BATCH_STORED),
            _RELAY_NAME,
            body=_RELAY_MESSAGE,
        ),
        "/api/v1/relay/lost-version": _make_path(
            "post",
            "relay_lost_version",
            "Tell a relay whether the database has lost the version that the relay serves, as in a "
            "failover (scope relay). A lost version is stored, and what it engaged is engaged "
            "again. 422 if this console has not signed it.",
            _response("What the database knows of the version.", _VERSION_FATE),
            body=_RELAY_VERSION,
        ),
        "/api/v1/relay/orders": _make_path(
            "post",
            "relay_orders",
            "Exchange emergency orders with a relay (scope relay). Orders from a relay must have "
            "the signature of a relay, and a withdrawal counts for orders of the same relay only.",
            _response(
                "What is stored and wanted, and the orders that the relay lacks.",
                _RELAY_ORDERS_REPLY,
            ),
            body=_RELAY_ORDERS,
        ),
    }


def _build_keys_path() -> dict[str, Any]:
    path = _make_path(
        "get",
        "keys",
        "The public keys that verify `Switchgear-Signature`, the current one first (no token "
        "needed). Empty if nothing is signed.",
        _response("The public keys.", _KEYS),
    )
    path["get"]["security"] = []
    return path


def _build_order_path() -> dict[str, Any]:
    accepted = {"description": "The order.", "content": _json_content(_ACCEPTED_ORDER)}
    path = _make_path(
        "post",
        "emergency_order",
        "Engage a switch, or withdraw such an order, also while PostgreSQL, Redis and the console "
        "are down (scope switches:emergency, or user name and emergency code). The order is on "
        "disk before the response, and becomes an engagement once PostgreSQL is back.",
        {"201": accepted},
        body=_ORDER_BODY,
    ) | _make_path(
        "get",
        "emergency_orders",
        "Emergency orders that are open or withdrawn, until the console has taken them over, the "
        "latest first (scope switches:emergency or switches:read, or name and emergency code).",
        _response("A page of orders.", _ORDERS_PAGE),
        _parameter("query", "limit", "The page length, 50 by default.", schema=_LIMIT),
        _parameter("query", "offset", "The number of orders to skip.", schema=_COUNT),
    )
    for operation in path.values():
        operation["security"] = [*_SECURITY, {"emergencyCode": []}]
    return path


def _json_content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
