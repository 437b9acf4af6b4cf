"""Response serializers for the OpenAPI document; `breakers.resources` builds the responses."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from breakers import names, resources
from breakers.models import Channel, Override, Service, Transition
from breakers.policies import parameters
from breakers.policies.parameters import Parameter
from breakers.states.dependency_status import CLOSED, HALF_OPEN, OPEN, UNKNOWN

SLUG = f"^{names.SLUG}$"
ONE_DEPENDENCY = (
    OpenApiParameter("caller", str, OpenApiParameter.PATH, pattern=SLUG),
    OpenApiParameter("callee", str, OpenApiParameter.PATH, pattern=SLUG),
)
ONE_SERVICE = (OpenApiParameter("slug", str, OpenApiParameter.PATH, pattern=SLUG),)
STATES = (CLOSED, OPEN, HALF_OPEN, UNKNOWN)
_TYPES = {"whole": "integer", "number": "number"}


def schema_of(one: Parameter) -> dict[str, Any]:
    """A parameter as JSON Schema."""
    unit = f" In {one.unit}." if one.unit else ""
    said: dict[str, Any] = {"description": f"{one.help}{unit}"}
    match one.kind:
        case "whole" | "number":
            kind = _TYPES[one.kind]
            said |= {"type": [kind, "null"] if one.default is None else kind}
            said |= {"minimum": one.least, "maximum": one.most}
        case "choice":
            said |= {"enum": [*one.choices, *([None] if one.default is None else [])]}
        case "words":
            said |= {"type": "array", "items": {"type": ["string", "integer"]}}
        case "chain":
            said |= {"type": "array", "items": {"type": ["string", "object"]}}
        case _:
            said |= {"type": "string", "maxLength": int(one.most or 0)}
    if one.default is not None and not isinstance(one.default, dict):
        default = one.default
        said["default"] = list(default) if isinstance(default, tuple) else default
    return said


def _section(name: str) -> dict[str, Any]:
    """Return a section of a policy as JSON Schema, built from the table of parameters."""
    properties = {one.name: schema_of(one) for one in parameters.section_parameters(name)}
    if name == "breaker":
        properties |= {
            "failure_threshold": {"type": "integer", "description": "Means failure_count."},
            "window_seconds": {
                "type": "integer",
                "description": "Means a window of time of that size.",
            },
        }
    return {"type": ["object", "null"], "properties": properties}


ROUTES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["pattern", "timeout_ms"],
        "properties": {
            "pattern": {"type": "string", "description": "`/event-logs/**`; the first that fits."},
            "timeout_ms": {"type": "integer", "minimum": 1},
            "reason": {"type": "string"},
        },
    },
}


def _section_field(name: str) -> type[serializers.JSONField]:
    """Return a field for a section of a policy, which `breakers.policies.policy` validates."""
    field = type(f"{name.title()}Section", (serializers.JSONField,), {})
    return extend_schema_field(_section(name))(field)


BreakerSection = _section_field("breaker")
RetrySection = _section_field("retry")
BulkheadSection = _section_field("bulkhead")
FallbackSection = _section_field("fallback")
BudgetSection = _section_field("budget")


@extend_schema_field(ROUTES)
class Routes(serializers.JSONField):
    """Checked by `breakers.policies.policy`."""


class AcknowledgedShape(serializers.Serializer[Any]):
    applied = serializers.IntegerField(help_text="Instances of the caller that say they apply it.")
    instances = serializers.IntegerField(help_text="Those that reported within 30 seconds.")
    stragglers = serializers.ListField(
        child=serializers.CharField(), help_text="At most 20 of the others."
    )


class OverrideShape(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(Override.Mode.values)
    reason = serializers.CharField()
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    version = serializers.IntegerField(help_text="The version of the configuration that tells it.")
    acknowledged = AcknowledgedShape()


class OverriddenShape(OverrideShape):
    """The present override.

    After a DELETE, the ended one and how many instances know of its end.
    """

    name = serializers.CharField()
    caller = serializers.CharField()
    callee = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_by = serializers.CharField(allow_null=True)
    ended_why = serializers.CharField(allow_null=True)
    dry_run = serializers.BooleanField(required=False)


class DependencyShape(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`core->oracle`.")
    caller = serializers.CharField()
    callee = serializers.CharField()
    protocol = serializers.CharField()
    timeout_ms = serializers.IntegerField(allow_null=True)
    routes = Routes()
    criticality = serializers.ChoiceField(parameters.CRITICALITIES)
    mode = serializers.ChoiceField(parameters.MODES)
    notes = serializers.CharField()
    breaker = BreakerSection(allow_null=True)
    retry = RetrySection(allow_null=True)
    bulkhead = BulkheadSection(allow_null=True)
    fallback = FallbackSection(allow_null=True)
    budget = BudgetSection(allow_null=True)
    runbook_url = serializers.CharField()
    owner = serializers.CharField()
    managed_by = serializers.CharField()
    on_outage = serializers.DictField(allow_null=True)
    version = serializers.IntegerField(
        help_text="The registry's at the last change of its policy or override; 0 before one."
    )
    registered = serializers.BooleanField(
        help_text="False if it is known only because an instance reported its breaker."
    )
    registered_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    removed_at = serializers.DateTimeField(allow_null=True)
    override = OverrideShape(allow_null=True)


class PutShape(DependencyShape):
    dry_run = serializers.BooleanField(required=False)


class CountsShape(serializers.Serializer[Any]):
    closed = serializers.IntegerField()
    open = serializers.IntegerField()
    half_open = serializers.IntegerField()


class BreakerRowShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    caller = serializers.CharField()
    callee = serializers.CharField()
    state = serializers.ChoiceField(STATES, help_text="The worst over its instances.")
    counts = CountsShape(help_text="Instances that reported within 30 s, by state.")
    instances = serializers.IntegerField(help_text="All that reported within 5 minutes.")
    stale = serializers.IntegerField(help_text="Of them, those silent for 30 s.")
    failure_rate = serializers.FloatField(allow_null=True)
    override = OverrideShape(allow_null=True)
    criticality = serializers.ChoiceField(parameters.CRITICALITIES)
    registered = serializers.BooleanField()
    last_transition_at = serializers.DateTimeField(allow_null=True)


class TransitionShape(serializers.Serializer[Transition]):
    id = serializers.IntegerField()
    boot = serializers.UUIDField()
    n = serializers.IntegerField(help_text="Which of that boot's transitions it was.")
    at = serializers.DateTimeField()
    received_at = serializers.DateTimeField()
    cause = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        """Add the fields whose names are taken: `from` by Python, `instance` by the serializer."""
        return {
            **super().get_fields(),
            "instance": serializers.CharField(),
            "from": serializers.ChoiceField(STATES[:3]),
            "to": serializers.ChoiceField(STATES[:3]),
        }

    def to_representation(self, row: Transition) -> dict[str, Any]:
        return resources.transition_resource(row)


class ServiceShape(serializers.Serializer[Service]):
    slug = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Service.Kind.values)
    owner = serializers.CharField()
    runbook_url = serializers.CharField()
    notes = serializers.CharField()
    level = serializers.IntegerField(help_text="How far all has degraded while it is away.")
    loses = serializers.ListField(child=serializers.CharField(), help_text="What is gone then.")
    keeps = serializers.ListField(child=serializers.CharField(), help_text="What goes on.")
    used_by = serializers.ListField(child=serializers.CharField())
    failure_mode = serializers.CharField()
    fallback = serializers.CharField()
    impact = serializers.CharField()
    retry = serializers.DictField(help_text="How a worker tries again.")
    probe_url = serializers.CharField(help_text="tcp://host:port, http://… or https://….")
    changed_at = serializers.DateTimeField()
    dry_run = serializers.BooleanField(required=False)


class ChannelShape(serializers.Serializer[Channel]):
    name = serializers.CharField()
    kind = serializers.ChoiceField(Channel.Kind.values)
    stream = serializers.CharField()
    producer = serializers.CharField()
    consumer = serializers.CharField()
    group = serializers.CharField()
    protocol = serializers.CharField()
    purpose = serializers.CharField()
    reach = serializers.CharField()
    failure_mode = serializers.CharField()
    fallback = serializers.CharField()
    impact = serializers.CharField()
    changed_at = serializers.DateTimeField()
