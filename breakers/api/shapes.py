"""Response serializers; `breakers.resources` builds the data of dependencies and breakers."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from breakers import names
from breakers.models import Channel, Service, Transition
from breakers.policies import parameters
from breakers.policies.parameters import Parameter
from breakers.resources import NameShape, OverrideShape
from breakers.services import catalog
from breakers.states.dependency_status import CLOSED, HALF_OPEN, OPEN, UNKNOWN
from controlplane.core.http.resources import Resource, TimestampField

SLUG = f"^{names.SLUG}$"
ONE_DEPENDENCY = (
    OpenApiParameter("caller", str, OpenApiParameter.PATH, pattern=SLUG),
    OpenApiParameter("callee", str, OpenApiParameter.PATH, pattern=SLUG),
)
ONE_SERVICE = (OpenApiParameter("slug", str, OpenApiParameter.PATH, pattern=SLUG),)
STATES = (CLOSED, OPEN, HALF_OPEN, UNKNOWN)


def parameter_schema(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON Schema of a policy parameter."""
    unit = f" In {parameter.unit}." if parameter.unit else ""
    schema: dict[str, Any] = {"description": f"{parameter.help}{unit}"}
    is_optional = parameter.default is None
    match parameter.kind:
        case "whole" | "number":
            kind = "integer" if parameter.kind == "whole" else "number"
            schema |= {"type": [kind, "null"] if is_optional else kind}
            schema |= {"minimum": parameter.least, "maximum": parameter.most}
        case "choice":
            schema |= {"enum": [*parameter.choices, *([None] if is_optional else [])]}
        case "words":
            schema |= {"type": "array", "items": {"type": ["string", "integer"]}}
        case "chain":
            schema |= {"type": "array", "items": {"type": ["string", "object"]}}
        case _:
            schema |= {"type": "string", "maxLength": int(parameter.most or 0)}
    default = parameter.default
    if default is not None and not isinstance(default, dict):
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


def _section_field(name: str) -> type[serializers.JSONField]:
    """Return a serializer field class for a policy section, with a JSON Schema for the API docs."""
    properties = {one.name: parameter_schema(one) for one in parameters.section_parameters(name)}
    if name == "breaker":
        properties |= {
            "failure_threshold": {"type": "integer", "description": "Alias of failure_count."},
            "window_seconds": {
                "type": "integer",
                "description": "Size of a time window: sets window_type and window_size.",
            },
        }
    field = type(f"{name.title()}Section", (serializers.JSONField,), {})
    schema = {"type": ["object", "null"], "properties": properties}
    return extend_schema_field(schema)(field)


BreakerSection = _section_field("breaker")
RetrySection = _section_field("retry")
BulkheadSection = _section_field("bulkhead")
FallbackSection = _section_field("fallback")
BudgetSection = _section_field("budget")


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["pattern", "timeout_ms"],
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "A path such as `/event-logs/**`; the first match applies.",
                },
                "timeout_ms": {"type": "integer", "minimum": 1},
                "reason": {"type": "string"},
            },
        },
    }
)
class Routes(serializers.JSONField):
    """Field for the timeouts of a callee's paths; `breakers.policies.policy` validates them."""


class DependencyShape(NameShape):
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
        help_text=(
            "Registry version of the last change of the policy or override; 0 if never changed."
        )
    )
    registered = serializers.BooleanField(
        help_text="False if the dependency is known only from reports of instances."
    )
    registered_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    removed_at = serializers.DateTimeField(allow_null=True)
    override = OverrideShape(allow_null=True)


class SavedDependencyShape(DependencyShape):
    dry_run = serializers.BooleanField(required=False)


class CountsShape(serializers.Serializer[Any]):
    closed = serializers.IntegerField()
    open = serializers.IntegerField()
    half_open = serializers.IntegerField()


class BreakerRowShape(NameShape):
    state = serializers.ChoiceField(
        STATES,
        help_text="Worst state among reporting instances, else among stale ones.",
    )
    counts = CountsShape(help_text="Reporting instances, by state.")
    instances = serializers.IntegerField(
        help_text="Instances that reported within 5 minutes and did not stop cleanly."
    )
    stale = serializers.IntegerField(
        help_text="Those of `instances` that last reported more than 30 s ago."
    )
    failure_rate = serializers.FloatField(allow_null=True)
    override = OverrideShape(allow_null=True)
    criticality = serializers.ChoiceField(parameters.CRITICALITIES)
    registered = serializers.BooleanField()
    last_transition_at = serializers.DateTimeField(allow_null=True)


class TransitionShape(Resource[Transition]):
    """A change of a breaker's state in one instance."""

    def get_fields(self) -> dict[str, Any]:
        # As class attributes, `from` is a syntax error and `instance` the serializer's own.
        return {
            "id": serializers.IntegerField(),
            "instance": serializers.CharField(),
            "boot": serializers.UUIDField(),
            "n": serializers.IntegerField(
                help_text="Sequence number of the transition within its boot."
            ),
            "from": serializers.ChoiceField(STATES[:3], source="from_state"),
            "to": serializers.ChoiceField(STATES[:3], source="to_state"),
            "at": TimestampField(),
            "received_at": TimestampField(),
            "cause": serializers.CharField(),
        }


class ServiceShape(Resource[Service]):
    """A registered service, worker, client, store or external service."""

    probe_url = serializers.CharField(help_text="tcp://host:port, http://… or https://….")
    loses = serializers.ListField(
        child=serializers.CharField(), help_text="Functions lost while the service is down."
    )
    keeps = serializers.ListField(
        child=serializers.CharField(), help_text="Functions that work without the service."
    )
    used_by = serializers.ListField(child=serializers.CharField())
    kind = serializers.ChoiceField(Service.Kind.values)
    level = serializers.IntegerField(
        help_text="Degradation level of the installation while the service is down."
    )
    retry = serializers.DictField(help_text="Retry settings of a worker.")
    changed_at = TimestampField()
    dry_run = serializers.BooleanField(required=False)

    def get_fields(self) -> dict[str, Any]:
        texts = ("slug", *catalog.SERVICE_TEXTS)
        return {**{name: serializers.CharField() for name in texts}, **super().get_fields()}


class ListedServiceShape(ServiceShape):
    """A registered service, worker, client, store or external service, as an item of a list."""


class ChannelShape(Resource[Channel]):
    """A stream with its consumer group, or a socket, over which services communicate."""

    kind = serializers.ChoiceField(Channel.Kind.values)
    changed_at = TimestampField()

    def get_fields(self) -> dict[str, Any]:
        texts = ("name", *catalog.CHANNEL_TEXTS)
        return {**{name: serializers.CharField() for name in texts}, **super().get_fields()}
