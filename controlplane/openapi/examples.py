"""Examples of all requests and responses in the OpenAPI document, built from their schemas.

A property's example is the first of the `VALUES` for its name that its schema allows, else the
simplest valid value. `REQUESTS` has whole request examples; others get their required fields.
"""

from typing import Any

from jsonschema import Draft202012Validator

from controlplane.openapi.components import PREFIX

MAX_DEPTH = 7
TIME = "2026-11-21T09:00:00.000000Z"
STRINGS = {
    "date-time": TIME,
    "uuid": "0b6c2f1e-3f0c-4b0e-8a57-90a2f2f0c9b4",
    "uri": "https://switchgear.example.com/",
}
"""Example strings by format."""
VALUES: dict[str, tuple[Any, ...]] = {
    "action": ("switch.engaged",),
    "allow_percent": (100,),
    "at": (TIME,),
    "boot": ("6f0a4f0e-7d0c-4c6b-9a53-1b0f5a3c9f11",),
    "callee": ("oracle",),
    "caller": ("core",),
    "comment": ("Kim is on it.",),
    "count": (1000,),
    "dependency": ("core->oracle",),
    "description": ("Stops answers of the chat.",),
    "detail": ("Waits for an approver.",),
    "display_name": ("Kim Lee",),
    "email": ("kim@example.com",),
    "engaged_by": ("kim",),
    "error": ("Timed out after 30 s.",),
    "error_type": ("TimeoutError",),
    "event": ("switch.engaged",),
    "expires_at": ("2026-11-21T13:00:00.000000Z",),
    "expires_in": ("4h",),
    "fingerprint": ("5ef1b0f4d2a1c3e7",),
    "instance": ("core-7f9c",),
    "ip": ("192.0.2.10",),
    "justification": ("INC-4711: fixed by 1.42, smoke test 813 passed",),
    "key": ("chat",),
    "name": ("core-availability",),
    "next": (None,),
    "owner": ("payments",),
    "previous": (None,),
    "reason": ("INC-4711: answers show figures of another tenant",),
    "requested_by": ("kim",),
    "runbook_url": ("https://runbooks.example.com/chat",),
    "scope": ("feature",),
    "service": ("core",),
    "slo": ("core-availability",),
    "slug": ("core",),
    "source": ("ci",),
    "stream": ("orders:dlq",),
    "summary": ("Release global:all",),
    "switch": ("feature:chat",),
    "switches": (["segment:finance"],),
    "target": ("feature:chat", 0.999),
    "title": ("Chat answers",),
    "user": ("kim",),
    "username": ("kim",),
    "version": (17,),
    "week": ("2026-W47",),
    "window_days": (30,),
}
"""Example values by property name, in order of preference."""
REQUESTS: dict[str, dict[str, Any]] = {
    "ask_owner": {
        "action": "release",
        "resource": "segment:finance",
        "reason": "INC-4711: 5xx is back to 0",
    },
    "check_experiment_arms": {
        "arms": {
            "control": {"expected": 0.5, "count": 1000},
            "treatment": {"expected": 0.5, "count": 1014},
        }
    },
    "check_traffic": {"segments": ["finance"], "features": ["chat"], "targeting_key": "u1"},
    "create_exclusion": {
        "starts_at": "2026-11-21T02:00:00Z",
        "ends_at": "2026-11-21T03:00:00Z",
        "reason": "Planned maintenance of the database",
    },
    "create_dead_letter_job": {
        "action": "retry",
        "stream": "orders:dlq",
        "filter": {"error_type": "TimeoutError"},
        "rate_per_second": 50,
        "reason": "INC-4711: the store answers again",
    },
    "create_token": {"name": "ci", "scopes": ["switches:read"], "expires_in": "90d"},
    "describe_switch": {"owner": "payments", "runbook_url": "https://runbooks.example.com/chat"},
    "engage_switch": {
        "reason": "INC-4711: answers show figures of another tenant",
        "expires_in": "4h",
    },
    "evaluate_flag": {"context": {"targetingKey": "u1"}},
    "evaluate_flags": {"context": {"targetingKey": "u1"}},
    "extend_switch": {"expires_in": "8h", "reason": "INC-4711: fix 1.42 is on staging"},
    "import_openslo": {"text": "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: checkout}\n"},
    "push_sli_points": {
        "points": [{"slo": "core-availability", "source": "ci", "good": 999, "total": 1000}]
    },
    "put_service": {"name": "Core", "kind": "service", "owner": "payments"},
    "put_trip_policies": {"policies": []},
    "put_dependency": {"protocol": "https", "timeout_ms": 3000, "criticality": "high"},
    "create_dependency": {"caller": "core", "callee": "oracle", "protocol": "https"},
    "receive_alertmanager": {
        "version": "4",
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "HighErrors", "switchgear_switch": "feature:chat"},
                "fingerprint": "5ef1b0f4d2a1c3e7",
            }
        ],
    },
    "report_instance": {
        "service": "core",
        "instance": "core-7f9c",
        "boot": "6f0a4f0e-7d0c-4c6b-9a53-1b0f5a3c9f11",
        "seq": 42,
        "applied_version": 1842,
        "breakers": [{"dependency": "core->oracle", "state": "closed"}],
    },
    "retry_letter": {"reason": "INC-4711: the store answers again"},
    "set_override": {
        "mode": "forced_open",
        "reason": "INC-4711: oracle is being restored",
        "expires_in": "1h",
    },
    "trip_switch": {
        "switch": "experiment:new-ranking",
        "source": "ci",
        "fingerprint": "build-813",
        "reason": "Smoke test failed three times",
    },
    "update_user": {"role": "approver"},
}
"""Request examples by operation, where the required fields alone are a poor example."""

TEXTS = {
    "application/x-ndjson": '{"id":"1700000000000-0"}\n',
    "application/yaml": REQUESTS["import_openslo"]["text"],
    "text/csv": "id,at\n1,2026-11-21T09:00:00.000000Z\n",
    "text/event-stream": 'id: 1\nevent: snapshot\ndata: {"schema":1}\n\n',
}


def add_examples(document: dict[str, Any]) -> None:
    """Add an example to each request and response content that has none, in place."""
    make = _ExampleMaker(document["components"]["schemas"])
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                content.setdefault("example", make.request(name, kind, content["schema"]))
            for response in operation["responses"].values():
                for kind, content in response.get("content", {}).items():
                    content.setdefault("example", make.response(kind, content["schema"]))


class _ExampleMaker:
    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas

    def request(self, operation_id: str, kind: str, schema: dict[str, Any]) -> Any:
        if kind != "application/json":
            return REQUESTS[operation_id]["text"]
        example = REQUESTS.get(operation_id) or self._value("", schema, 0, only_required=True)
        return example or self._minimal_request(schema)

    def _minimal_request(self, schema: dict[str, Any]) -> dict[str, Any]:
        # A request without required fields has a reason, a comment or a dry run.
        fields = self._schemas[schema["$ref"].removeprefix(PREFIX)]["properties"]
        for name in ("reason", "comment"):
            if name in fields:
                return {name: self._make_scalar(name, fields[name])}
        return {"dry_run": True}

    def response(self, kind: str, schema: dict[str, Any]) -> Any:
        return TEXTS[kind] if kind in TEXTS else self._value("", schema, 0) or {"documents": []}

    def _value(
        self, name: str, schema: dict[str, Any], depth: int, *, only_required: bool = False
    ) -> Any:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].removeprefix(PREFIX)]
        if "const" in schema:
            return schema["const"]
        if not schema.keys() & {"properties", "items", "allOf", "oneOf", "anyOf"}:
            return self._make_scalar(name, schema)
        for key in ("allOf", "oneOf", "anyOf"):
            if key in schema:
                return self._value(name, schema[key][0], depth, only_required=only_required)
        if "items" in schema:
            if depth > MAX_DEPTH:
                return []
            value = self._find_value(name, schema)
            return value or [self._value(name, schema["items"], depth + 1)]
        required = schema.get("required", ())
        return {
            key: self._value(key, child, depth + 1)
            for key, child in schema.get("properties", {}).items()
            if not child.get("writeOnly")
            and (key in required or (not only_required and key != "dry_run" and depth < MAX_DEPTH))
        }

    def _find_value(self, name: str, schema: dict[str, Any]) -> Any:
        if "$ref" in str(schema):
            return None
        return next(filter(Draft202012Validator(schema).is_valid, VALUES.get(name, ())), None)

    def _make_scalar(self, name: str, schema: dict[str, Any]) -> Any:
        value = self._find_value(name, schema)
        if value is not None:
            return value
        if "enum" in schema:
            return schema["enum"][0]
        kinds = schema.get("type", "object")
        kind = kinds if isinstance(kinds, str) else kinds[0]
        if isinstance(kinds, list) and "null" in kinds and name not in VALUES:
            return None
        match kind:
            case "string":
                plain = "text"[: schema.get("maxLength", 4)]
                return STRINGS.get(schema.get("format", ""), plain)
            case "integer" | "number":
                least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
                return max(1, int(least)) if schema.get("maximum", 1) >= 1 else least
        return {"boolean": False, "null": None}.get(kind, {})
