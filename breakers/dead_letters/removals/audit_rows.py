"""Audit rows of removed letters, in the name of the actor who requested the removal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from breakers.dead_letters.models import Departure, LetterStream
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


def actor_by_label(actor: Actor | None, label: str) -> Actor:
    """Return the actor for an audit row: `actor` if it has this label, else one with the label.

    It has no role, because the row is written even if the actor lost the role meanwhile.
    """
    if actor is not None and actor.label == label:
        return replace(actor, role=None)
    kind, _, name = label.partition(":")
    if kind not in _TYPES:
        kind, name = "system", label
    return Actor(type=cast(ActorType, kind), name=name)


def record_removals(
    done: Sequence[Departure], now: datetime, *, actor: Actor | None = None
) -> None:
    """Write the audit rows of single removals; call it last in a transaction.

    Each row names `actor` if they requested the removal, else the actor label in the archive.
    """
    pks = [one.pk for one in done]
    edited = Departure.objects.filter(pk__in=pks, edited__isnull=False)
    edited_pks = set(edited.values_list("pk", flat=True)) if pks else set()
    audit.record_many(
        [
            {
                "actor": actor_by_label(actor, one.by),
                "action": ACTIONS[one.action],
                "target": one.stream.audit_target,
                "reason": one.reason,
                "after": {
                    "id": one.entry_id,
                    "archive": one.pk,
                    **({"new_id": one.new_id} if one.new_id else {}),
                    **({"edited": True} if one.pk in edited_pks else {}),
                },
                "now": now,
            }
            for one in done
        ]
    )


def record_retention(
    stream: LetterStream, actor: Actor, counts: Mapping[str, int], now: datetime
) -> None:
    """Write one audit row with the numbers of letters that retention archived, by action."""
    audit.record(
        actor=actor,
        action="dead_letter.archived",
        target=stream.audit_target,
        reason="Letters that are too old, or too many, are archived and removed.",
        after={action: count for action, count in sorted(counts.items()) if count},
        now=now,
    )
