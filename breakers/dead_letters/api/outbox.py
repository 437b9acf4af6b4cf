"""API endpoints of the outbox's failed messages, which are listed with the dead letters."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema

from controlplane.core.actors import Actor
from controlplane.core.http.fields import EmptyBody, Text
from controlplane.core.http.views import Done, ListView, mutation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import failed_messages, selection
from controlplane.notify.delivery.api import ROWS, OutboxLetterShape, render_delivery

from .bodies import ReasonBody
from .messages import DeadLetterIdView
from .shapes import OutboxLetterActionShape


class OutboxRetryBody(EmptyBody):
    reason = Text(required=False, max_length=500, help_text="What has changed since the failure.")


class FailedList(DeadLetterIdView, ListView[OutboxMessage]):
    """List failed messages of the outbox that were neither retried nor discarded, newest first."""

    queryset = ROWS.filter(selection.GIVEN_UP)
    serializer_class = OutboxLetterShape
    ordering = "-id"


class RetryMessageView(DeadLetterIdView):
    @extend_schema(
        operation_id="dlq_outbox_retry", request=OutboxRetryBody, responses=OutboxLetterActionShape
    )
    @mutation(OutboxRetryBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, message_id: int) -> Done:
        """Queue a failed message for delivery again."""
        row = failed_messages.retry_message(message_id=message_id, actor=actor, now=now)
        return Done({**render_delivery(row, actor), "retried": True})


class DiscardMessageView(DeadLetterIdView):
    @extend_schema(
        operation_id="dlq_outbox_discard", request=ReasonBody, responses=OutboxLetterActionShape
    )
    @mutation(ReasonBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, message_id: int) -> Done:
        """Discard a failed message, so that it is not delivered any more. It stays on record."""
        row = failed_messages.discard_message(
            message_id=message_id, reason=body["reason"], actor=actor, now=now
        )
        return Done({**render_delivery(row, actor), "discarded": True})
