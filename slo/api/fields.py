"""Serializer fields with a handwritten OpenAPI schema; the called functions validate values."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from slo.models.objective import HOLD_RAMPS, PROMETHEUS, PUSH, TRIP
from slo.objectives import metadata, rules
from slo.objectives.rules import SEVERITIES as LABELS
from slo.objectives.sources_and_actions import ON, ON_UNKNOWN

_WINDOW = {"type": "string", "description": "Whole minutes: `5m`, `1h`, `3d`."}
RULE = {
    "type": "object",
    "required": ["long", "burn_rate", "severity"],
    "properties": {
        "long": _WINDOW,
        "short": {**_WINDOW, "description": "By default a twelfth of the long window."},
        "burn_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "The rule fires strictly above it over both windows; below 1 / budget.",
        },
        "severity": {"type": "string", "enum": [*LABELS]},
    },
}
RULES = {"type": "array", "items": RULE, "default": [rule.document() for rule in rules.SEED]}
SOURCE = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [PUSH, PROMETHEUS], "default": PUSH},
        "url": {"type": "string", "description": "Base URL of a Prometheus server."},
        "good": {"type": "string", "description": "PromQL of one counter of good events."},
        "total": {"type": "string", "description": "PromQL of one counter of all events."},
    },
}
ACTIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["do"],
        "properties": {
            "on": {"type": "string", "enum": [*ON], "default": "page"},
            "do": {"type": "string", "enum": [TRIP, HOLD_RAMPS]},
            "switch": {
                "type": "string",
                "description": "Switch to trip: `experiment:x`; not the global one.",
            },
            "expires_in": {
                "type": "string",
                "description": "Duration of the trip: `90s` to `30d`; by default `1h`.",
            },
            "on_unknown": {
                "type": "string",
                "enum": [*ON_UNKNOWN],
                "default": "nothing",
                "description": "What to do once the SLO was unknown for 5 minutes.",
            },
        },
    },
}

_LABELS = {
    "type": "object",
    "additionalProperties": {
        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    },
}
METADATA = {
    "type": "object",
    "description": "Names and labels of the imported document; without effect, kept for exports.",
    "additionalProperties": False,
    "properties": {
        **{name: {"type": "string"} for name in metadata.TEXTS},
        **dict.fromkeys(metadata.MAPS, _LABELS),
    },
}


@extend_schema_field(RULES)
class RulesField(serializers.JSONField):
    """The burn-rate rules of an SLO, validated by `slo.objectives.rules`."""


@extend_schema_field(SOURCE)
class SourceField(serializers.JSONField):
    """The source of an SLO's counters, validated by `slo.objectives.sources_and_actions`."""


@extend_schema_field(ACTIONS)
class ActionsField(serializers.JSONField):
    """The alert actions of an SLO, validated by `slo.objectives.sources_and_actions`."""


@extend_schema_field(METADATA)
class MetadataField(serializers.JSONField):
    """Names and labels of an imported SLO, validated by `slo.objectives.metadata`."""
