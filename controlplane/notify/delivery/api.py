"""HTTP API of deliveries: list messages with their attempts; retry or discard failed ones."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import HIDDEN, DestinationName
from controlplane.notify.transports import destinations

from . import failed_messages, selection

ROWS = OutboxMessage.objects.prefetch_related("tries")


class AttemptShape(Resource[Attempt]):
    number = serializers.IntegerField()
    started_at = TimestampField()
    finished_at = TimestampField(allow_null=True)
    outcome = serializers.ChoiceField(Attempt.Outcome.values)
    error = serializers.CharField()


class DeliveryShape(Resource[Any]):
    id = serializers.IntegerField()
    event = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    subject = serializers.CharField()
    title = serializers.CharField()
    destination = serializers.CharField(
        help_text="A person's address is shown to signed-in people only."
    )
    destination_name = serializers.CharField()
    state = serializers.ChoiceField(OutboxMessage.State.values)
    created_at = TimestampField()
    finished_at = TimestampField(allow_null=True)
    next_attempt_at = TimestampField(
        allow_null=True, help_text="Next attempt of a pending message."
    )
    last_error = serializers.CharField()
    discarded_at = TimestampField(
        allow_null=True,
        help_text="When a FAILED message was discarded, by a person or because it was too late.",
    )
    discarded_by = serializers.CharField()
    attempts = AttemptShape(many=True)


class DeliveryList(serializers.ListSerializer[Any]):
    """Serializer of a page of messages; looks up the names of all their destinations at once."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        rows = list(data)
        names = destination_names.name_destinations(row.destination for row in rows)
        actor = actor_of(self.context["request"])
        return [_render_named(row, names[row.destination], actor) for row in rows]


class OutboxLetterShape(DeliveryShape):
    class Meta:
        list_serializer_class = DeliveryList


class DeliveryFilters(Filters):
    state = serializers.ChoiceField(OutboxMessage.State.values, required=False)
    severity = serializers.ChoiceField(SEVERITIES, required=False)
    event = serializers.CharField(
        required=False, max_length=64, help_text="`switch.engaged`, or a family: `switch`."
    )
    destination = serializers.CharField(
        required=False,
        max_length=120,
        help_text="A kind (`email`), a destination (`webhook:7`) or the name of a target.",
    )


class DiscardBody(EmptyBody):
    reason = Text(max_length=500, help_text="Why it doesn't need to be delivered.")


class RetryAllBody(EmptyBody):
    destination = Text(max_length=120, help_text="`slack`, `slack:C024BE91L`, `webhook:7`, …")


class RetriedDeliveriesShape(serializers.Serializer[Any]):
    destination = serializers.CharField()
    retried = serializers.IntegerField()
    left = serializers.IntegerField(help_text="FAILED messages beyond the limit of one retry.")


class DeliveriesView(ListView[OutboxMessage]):
    """All messages with their attempts, newest first."""

    queryset = ROWS
    serializer_class = OutboxLetterShape
    filters = DeliveryFilters
    ordering = "-id"
    read_scope = "reports:read"

    def apply_filters(
        self, rows: QuerySet[OutboxMessage], filters: dict[str, Any]
    ) -> QuerySet[OutboxMessage]:
        _check_destination_filter(filters.get("destination", ""), actor_of(self.request))
        return selection.filter_messages(rows, filters)


class DeliveryView(ApiView):
    read_scope = "reports:read"
    http_method_names = ["get"]

    @extend_schema(responses=DeliveryShape)
    def get(self, request: Request, delivery_id: int) -> Response:
        """Return a message with all its attempts."""
        row = ROWS.filter(pk=delivery_id).first()
        if row is None:
            raise NotFound(f"There is no message {delivery_id}.")
        return Response(render_delivery(row, actor_of(request)))


class RetryView(ApiView):
    write_scope = "switches:write"

    @mutation(EmptyBody, DeliveryShape)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, delivery_id: int) -> Done:
        """Send a FAILED message again. Receivers can recognize a repeat by its id."""
        row = failed_messages.retry_message(message_id=delivery_id, actor=actor, now=now)
        return Done(render_delivery(row, actor))


class DiscardView(ApiView):
    write_scope = "switches:write"

    @mutation(DiscardBody, DeliveryShape)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, delivery_id: int) -> Done:
        """Discard a FAILED message that need not be delivered any more; it stays on record."""
        row = failed_messages.discard_message(
            message_id=delivery_id, reason=body["reason"], actor=actor, now=now
        )
        return Done(render_delivery(row, actor))


class RetryAllView(ApiView):
    write_scope = "switches:write"

    @mutation(RetryAllBody, RetriedDeliveriesShape, operation_id="deliveries_retry_all")
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Send the oldest FAILED messages of one destination again, at most 100."""
        destination = body["destination"]
        _check_destination_filter(destination, actor)
        retried, left = failed_messages.retry_destination(
            destination=destination, actor=actor, now=now
        )
        return Done({"destination": destination, "retried": retried, "left": left})


def render_delivery(message: OutboxMessage, actor: Actor) -> dict[str, Any]:
    """Return a message's API representation; only signed-in people see personal addresses."""
    (name,) = destination_names.name_destinations([message.destination]).values()
    return _render_named(message, name, actor)


def list_attempts(message: OutboxMessage) -> list[Attempt]:
    """Return a message's attempts in order.

    The message should be fetched with `prefetch_related("tries")`.
    """
    return sorted(message.tries.all(), key=lambda one: one.number)


def _render_named(message: OutboxMessage, name: DestinationName, actor: Actor) -> dict[str, Any]:
    def redact(text: str) -> str:
        return destinations.redact_secrets(text if actor.is_person else name.for_programs(text))

    shown = {
        **vars(message),
        "title": renderer.render(message.event, message.payload).title,
        "destination": redact(message.destination),
        "destination_name": name.label,
        "last_error": redact(message.last_error),
        "attempts": [{**vars(one), "error": redact(one.error)} for one in list_attempts(message)],
    }
    if message.state != OutboxMessage.State.PENDING:
        shown["next_attempt_at"] = None
    return DeliveryShape.render(shown)


def _check_destination_filter(destination: str, actor: Actor) -> None:
    """Raise :class:`InvalidInput` if an API token filters by a personal address.

    Such a filter could be used to guess addresses.
    """
    if not actor.is_person and ":" in destination and destination_names.is_personal(destination):
        raise InvalidInput(
            {
                "destination": [
                    f"Personal addresses are shown to signed-in people only; here it is {HIDDEN}."
                ]
            }
        )
