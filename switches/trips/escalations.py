"""Escalations that ask people whether to engage a switch; trips may share one.

A trip joins the open escalation with its key, if there is one. Beyond an hourly limit, further
trips by the same program share one escalation. Callers hold the advisory lock for trips.
"""

from datetime import datetime, timedelta
from typing import Any

from controlplane.core.outbox.escalation import Escalation
from switches.models import Trip

from . import notifications, texts
from .history import SUBJECT, open_questions

WINDOW = timedelta(hours=1)
MAX_PER_SOURCE, MAX_PER_PROGRAM = 10, 30
"""Maximum escalations per hour: per source, and per program over all sources."""
MAX_KEPT, MAX_NAMED = 50, 5
SINGLE_SWITCH_QUESTIONS = ("person:", "locked:", "rule:")
"""Key prefixes of escalations about a single switch, whose id ends the key."""


def ask_people(row: Trip, once: str, *, new: bool, now: datetime) -> None:
    """Ask people whether to engage the switch, until one engages it or dismisses the trip.

    Trips with the same key `once` share an escalation. A `new` trip is also announced.
    """
    present = _find_open_question(once)
    recent = Escalation.objects.filter(subject__startswith=SUBJECT, opened_at__gt=now - WINDOW)
    is_refusal = row.outcome != Trip.Outcome.PERSON
    if present is None and is_refusal and recent.filter(facts__once=once).exists():
        if new:
            notifications.announce(row, now)
        return
    why = row.why
    if present is None:
        sources = list(recent.filter(facts__by=row.by).values_list("facts__source", flat=True))
        if len(sources) >= MAX_PER_PROGRAM or sources.count(row.source) >= MAX_PER_SOURCE:
            once = f"many:{row.by}"
            present = _find_open_question(once)
            why = (
                f"{why} {row.by} sent so many requests that the rest of this hour are combined into"
                " one."
            )
    if present is not None:
        _join_question(present, row, new=new, now=now)
        return
    announced = notifications.announce(row, now, alone=True) if new else 0
    notifications.open_escalation(
        row, {"once": once, "own_why": why, "why": why}, announced=announced > 0, now=now
    )


def member_trips(question: Escalation) -> list[int]:
    others = question.facts.get("others") or []
    return [first_trip(question), *(other["trip"] for other in others)]


def first_trip(question: Escalation) -> int:
    return int(question.subject.removeprefix(SUBJECT))


def is_incomplete(question: Escalation) -> bool:
    """Return True if the escalation lists only some of its trips, which are of several switches."""
    of_one = str(question.facts.get("once", "")).startswith(SINGLE_SWITCH_QUESTIONS)
    return bool(question.facts.get("more")) and not of_one


def _find_open_question(once: str) -> Escalation | None:
    found = open_questions().select_for_update().filter(facts__once=once)
    return found.order_by("id").first()


def _join_question(question: Escalation, row: Trip, *, new: bool, now: datetime) -> None:
    facts: dict[str, Any] = question.facts
    others = list(facts.get("others") or [])
    if row.pk not in member_trips(question):
        if len(others) < MAX_KEPT:
            others.append({"trip": row.pk, "switch": row.switch, "fingerprint": row.fingerprint})
        elif new:
            facts["more"] = facts.get("more", 0) + 1
        facts["others"] = others
        facts["why"] = f"{facts.get('own_why', row.why)} {_describe_others(facts)}"
        question.save(update_fields=["facts"])
    fresh = now - question.opened_at < WINDOW
    if new and not (fresh and row.outcome == Trip.Outcome.PERSON):
        notifications.announce(row, now)


def _describe_others(facts: dict[str, Any]) -> str:
    others = facts["others"]
    named = [
        f"{other['switch']} (fingerprint {texts.clip(other['fingerprint'], 40)})"
        for other in others[:MAX_NAMED]
    ]
    rest = len(others) - len(named) + facts.get("more", 0)
    more = f" and {rest:,} more" if rest else ""
    return f"Also requested since then: {', '.join(named)}{more}."
