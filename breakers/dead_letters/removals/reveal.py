"""Unredacted letters for admins, with a reason and an audit row."""

from datetime import datetime
from typing import Any

from django.db import transaction

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader
from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Forbidden, NotFound
from controlplane.core.roles import Power, Role

from . import archive, missing_letters, settlement

REVEALED = "dead_letter.revealed"


def may_reveal(actor: Actor) -> bool:
    """Return True for admins, and for their tokens with the scope `dlq:write`."""
    if actor.is_person:
        return actor.has(Power.ADMINISTER)
    return actor.type == "token" and actor.role == Role.ADMIN and actor.may(settlement.SCOPE)


def reveal_letter(
    *, stream: LetterStream, entry_id: str, actor: Actor, now: datetime, reason: str
) -> LetterEntry:
    """Write the audit row and return the whole letter without redaction.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter is gone, and :class:`ServerUnavailable`.
    """
    _require_permission(actor)
    authority.require_in_limits(actor, stream.resource)
    reason = settlement.require_reason(reason)
    if stream.source == LetterStream.Source.OUTBOX:
        raise NotFound("Messages of the outbox are not in a stream.")
    ids.to_position(entry_id)
    entry = reader.read_entry(stream.server, stream.name, entry_id)
    if entry is None:
        raise missing_letters.missing_letter_error(stream, entry_id)
    _record_audit(stream, {"id": entry.id}, actor, reason, now)
    return entry


def reveal_archived(*, departure_id: int, actor: Actor, now: datetime, reason: str) -> Departure:
    """Write the audit row and return the removal with its unredacted payload."""
    _require_permission(actor)
    reason = settlement.require_reason(reason)
    departure = archive.find_departure(departure_id)
    authority.require_in_limits(actor, departure.stream.resource)
    after = {"id": departure.entry_id, "archive": departure.pk}
    _record_audit(departure.stream, after, actor, reason, now)
    return departure


def _require_permission(actor: Actor) -> None:
    if may_reveal(actor):
        return
    actor.require_power(Power.ADMINISTER) if actor.is_person else actor.require(settlement.SCOPE)
    raise Forbidden(
        "Only tokens of admins may see hidden values.",
        scope=settlement.SCOPE,
    )


@transaction.atomic
def _record_audit(
    stream: LetterStream, after: dict[str, Any], actor: Actor, reason: str, now: datetime
) -> None:
    target = stream.audit_target
    audit.record(actor=actor, action=REVEALED, target=target, reason=reason, after=after, now=now)
