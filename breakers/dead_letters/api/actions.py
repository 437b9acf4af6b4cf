"""API endpoints that retry, discard or reveal one letter."""

from datetime import datetime
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema

from breakers.dead_letters.letters.entries import NO_LIMITS
from breakers.dead_letters.letters.presentation import DETAIL_LIMITS, letter_resource
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.removals import actions, reveal
from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput
from controlplane.core.http.views import Done, mutation

from .bodies import ReasonBody, RetryLetterBody, RevealBody
from .messages import DeadLetterView, normalize_id
from .shapes import (
    ONE_MESSAGE,
    SERVER,
    DiscardedLetterShape,
    RetriedLetterShape,
    RevealedLetterShape,
)

DEFAULT_REASON = "Requested over the API without a reason."


class RemovalView(DeadLetterView):
    path_parameters = (*ONE_MESSAGE, SERVER)
    action: ClassVar[str]

    def prepare(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str, entry_id: str
    ) -> actions.PreparedRemoval:
        edited = body.get("edited_fields")
        if edited is not None and not isinstance(edited, dict):
            raise InvalidInput(
                {"edited_fields": ["Must be an object of field names and new values."]}
            )
        request = actions.RemovalRequest(
            action=self.action,
            stream=self.find_stream(name, now),
            entry_id=normalize_id(entry_id),
            reason=body["reason"],
            edited_fields=edited or {},
            actor=actor,
            now=now,
            dry_run=body.get("dry_run", False),
        )
        return actions.prepare_removal(request)


class RetryLetterView(RemovalView):
    """Retry the message: add it to its origin stream, optionally edited.

    Repeating the request returns the same response.
    """

    action = actions.RETRY

    @extend_schema(operation_id="dlq_retry", request=RetryLetterBody, responses=RetriedLetterShape)
    @mutation(RetryLetterBody, first=RemovalView.prepare)
    def post(self, *, prepared: actions.PreparedRemoval, now: datetime, **_given: Any) -> Done:
        return Done({"id": prepared.request.entry_id, **prepared.record(now)})


class DiscardLetterView(RemovalView):
    """Discard the letter. It stays in the archive for 30 days and can be restored."""

    action = actions.DISCARD

    @extend_schema(operation_id="dlq_discard", request=ReasonBody, responses=DiscardedLetterShape)
    @mutation(ReasonBody, first=RemovalView.prepare)
    def post(self, *, prepared: actions.PreparedRemoval, now: datetime, **_given: Any) -> Done:
        return Done({"id": prepared.request.entry_id, **prepared.record(now)})


class RevealLetterView(DeadLetterView):
    path_parameters = (*ONE_MESSAGE, SERVER)

    @extend_schema(operation_id="dlq_reveal", request=RevealBody, responses=RevealedLetterShape)
    @mutation(RevealBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str, entry_id: str
    ) -> Done:
        """Return the whole letter without redaction, and record that in the audit trail.

        Only admins and their tokens may reveal letters. A repeat with the same idempotency key,
        and a dry run, return the letter redacted.
        """
        stream = self.find_stream(name, now)
        reason = body.get("reason") or DEFAULT_REASON
        entry = reveal.reveal_letter(
            stream=stream, entry_id=normalize_id(entry_id), actor=actor, now=now, reason=reason
        )
        location = {"server": stream.server, "stream": stream.name}
        letter = letter_resource(entry, redaction=configured_redaction(), measure=DETAIL_LIMITS)
        redacted = {**location, **letter, "revealed": False}
        letter = letter_resource(entry, redaction=None, measure=NO_LIMITS)
        return Done(
            {**location, **letter, "revealed": True}, stored_data=redacted, dry_run_data=redacted
        )
