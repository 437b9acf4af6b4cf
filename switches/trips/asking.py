"""Asking people in a machine's stead: once for the same thing, and not more often than they bear.

What comes while they are asked of the same thing already is added to that. One program may ask for
so much within an hour; what it asks for beyond that is one question, which says how much it is.
All of it under the lock of the machines.
"""

from datetime import datetime, timedelta
from typing import Any

from controlplane.core.escalation.models import Escalation
from switches.models import Trip
from switches.trips import telling, words
from switches.trips.history import SUBJECT

WITHIN = timedelta(hours=1)
MAX_PER_SOURCE, MAX_PER_PROGRAM = 10, 30
"""Questions within the hour: of one source, and of one program whatever sources it names."""
MAX_KEPT, MAX_NAMED = 50, 5
OF_ONE_SWITCH = ("person:", "locked:", "rule:")
"""Questions whose trips are all about the switch that their name ends with."""


def ask(row: Trip, once: str, *, new: bool, now: datetime) -> None:
    """Have people told until one of them engages the switch or dismisses this; `once` names what
    they are asked. A row that is new is announced as well."""
    present = _open(once)
    if present is None and _was_told(row, once, now):
        if new:
            telling.announce(row, now)
        return
    why = row.why
    if present is None and _has_asked_enough(row, now):
        once = f"many:{row.by}"
        present = _open(once)
        why = f"{why} {row.by} has asked people so often that this hour's further wishes are one."
    if present is not None:
        _join(present, row, new=new, now=now)
        return
    told = telling.announce(row, now, alone=True) if new else 0
    telling.escalate(row, {"once": once, "own_why": why, "why": why}, announced=told > 0, now=now)


def members(question: Escalation) -> list[int]:
    """The trips that it is about, as far as it names them."""
    others = question.facts.get("others") or []
    return [head_of(question), *(one["trip"] for one in others)]


def head_of(question: Escalation) -> int:
    return int(question.subject.removeprefix(SUBJECT))


def leaves_some_out(question: Escalation) -> bool:
    """Whether it is about more than it names, on who knows which switches."""
    of_one = str(question.facts.get("once", "")).startswith(OF_ONE_SWITCH)
    return bool(question.facts.get("more")) and not of_one


def _open(once: str) -> Escalation | None:
    return (
        Escalation.objects.select_for_update()
        .filter(subject__startswith=SUBJECT, closed_at__isnull=True, facts__once=once)
        .order_by("id")
        .first()
    )


def _was_told(row: Trip, once: str, now: datetime) -> bool:
    """What a machine was refused is asked about once an hour. What was left to people from the
    beginning is asked about whenever nobody is being asked of it."""
    if row.outcome == Trip.Outcome.PERSON:
        return False
    told = Escalation.objects.filter(subject__startswith=SUBJECT, facts__once=once)
    return told.filter(opened_at__gt=now - WITHIN).exists()


def _has_asked_enough(row: Trip, now: datetime) -> bool:
    sources = list(
        Escalation.objects.filter(
            subject__startswith=SUBJECT, opened_at__gt=now - WITHIN, facts__by=row.by
        ).values_list("facts__source", flat=True)
    )
    return len(sources) >= MAX_PER_PROGRAM or sources.count(row.source) >= MAX_PER_SOURCE


def _join(question: Escalation, row: Trip, *, new: bool, now: datetime) -> None:
    """Add the trip to what people are asked already; they hear of it with the next step."""
    facts: dict[str, Any] = question.facts
    others = list(facts.get("others") or [])
    known = row.pk in members(question)
    if not known and len(others) < MAX_KEPT:
        one = {"trip": row.pk, "switch": row.switch, "fingerprint": row.fingerprint}
        others.append(one)
    elif not known and new:
        facts["more"] = facts.get("more", 0) + 1
    if not known:
        facts["others"] = others
        facts["why"] = f"{facts.get('own_why', row.why)} {_said(facts)}"
        question.save(update_fields=["facts"])
    fresh = now - question.opened_at < WITHIN
    if new and not (fresh and row.outcome == Trip.Outcome.PERSON):
        telling.announce(row, now)


def _said(facts: dict[str, Any]) -> str:
    others = facts["others"]
    named = [
        f"{one['switch']} (fingerprint {words.clipped(one['fingerprint'], 40)})"
        for one in others[:MAX_NAMED]
    ]
    rest = len(others) - len(named) + facts.get("more", 0)
    more = f" and {rest:,} more" if rest else ""
    return f"Asked for since then as well: {', '.join(named)}{more}."
