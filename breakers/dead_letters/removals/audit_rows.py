"""Audit rows of removed letters, each in the name of whoever requested it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.subjects import audit_target
from controlplane.core.actors import Actor, ActorType, system_actor
from controlplane.core.audit import services as audit

ACTIONS = {
    "retry": "dead_letter.retried",
    "discard": "dead_letter.discarded",
    "purge": "dead_letters.purged",
    "age": "dead_letter.archived",
    "length": "dead_letter.archived",
}
WITHDRAWN = "dead_letter.withdrawn"
SETTLE = system_actor("dlq-settle")
_TYPES = frozenset({"user", "token", "system", "slack"})


def acting(actor: Actor | None, label: str) -> Actor:
    """Return the actor to record: `actor` if the label is theirs, else whom the label names.

    Roles are left out: the row is written even if the actor lost theirs since.
    """
    if actor is not None and actor.label == label:
        return replace(actor, role=None)
    type_, _, name = label.partition(":")
    if type_ not in _TYPES:
        type_, name = "system", label
    return Actor(type=cast(ActorType, type_), name=name)


def record_removals(
    done: Sequence[Departure], now: datetime, *, actor: Actor | None = None
) -> None:
    """Write the audit rows of single removals, last in the caller's transaction.

    They are in the name of `actor` where that is who requested it, else of the label in the
    archive.
    """
    pks = [one.pk for one in done]
    edited = Departure.objects.filter(pk__in=pks, edited__isnull=False)
    edited_pks = set(edited.values_list("pk", flat=True)) if pks else set()
    rows = []
    for one in done:
        rows.append(
            {
                "actor": acting(actor, one.by),
                "action": ACTIONS[one.action],
                "target": audit_target(one.stream),
                "reason": one.reason,
                "after": _describe_removal(one, edited=one.pk in edited_pks),
                "now": now,
            }
        )
    audit.record_many(rows)


def record_retention(
    stream: LetterStream, actor: Actor, counts: Mapping[str, int], now: datetime
) -> None:
    """Write one audit row about what retention archived of a stream, by action."""
    audit.record(
        actor=actor,
        action="dead_letter.archived",
        target=audit_target(stream),
        reason="What is too old, or too much, is archived before it goes.",
        after={action: count for action, count in sorted(counts.items()) if count},
        now=now,
    )


def _describe_removal(departure: Departure, *, edited: bool) -> dict[str, object]:
    after: dict[str, object] = {
        "id": ids.to_entry_id(departure.position),
        "archive": departure.pk,
    }
    if departure.new_id:
        after["new_id"] = departure.new_id
    if edited:
        after["edited"] = True
    return after
