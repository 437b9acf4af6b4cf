"""Asking gates, answering them, and taking in what outsiders say of theirs."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from controlplane.core import canonical, retention
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.gates import known, verdicts
from controlplane.core.gates.models import ExternalVerdict, Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, Answer, Question
from controlplane.core.gates.retention_rules import EVENTS, VERDICTS
from controlplane.core.gates.verdicts import FRESH, OK

ANSWERED_BY_APPS = frozenset({"slo", "breaker"})
NAME = re.compile(r"[A-Za-z0-9._-]{1,120}")
MAX_LABEL_LENGTH = 200
EXTERNAL = (OK, FAIL)


def ask(questions: Sequence[Question]) -> None:
    """Write down the questions that apps of ours answer, in the caller's transaction.

    Others need no row: what answers them is kept whether somebody asks or not. One that is written
    down already stays as it is.
    """
    rows = [
        Gate(key=one.key, type=one.type, spec=dict(one.spec), since=one.since)
        for one in sorted(questions, key=lambda one: one.key)
        if one.type in ANSWERED_BY_APPS
    ]
    Gate.objects.bulk_create(rows, ignore_conflicts=True)


def withdraw(keys: Collection[str]) -> None:
    """Nobody needs an answer to these any more, in the caller's transaction."""
    Gate.objects.filter(key__in=list(keys)).delete()


def answers(questions: Sequence[Question], now: datetime) -> list[Answer]:
    """What is known of each question now, in their order; one query for each type of gate."""
    places: dict[str, list[int]] = {}
    for place, one in enumerate(questions):
        places.setdefault(one.type, []).append(place)
    found: dict[int, Any] = {}
    for kind in places.keys() & known.LOOK_UPS.keys():
        some = [questions[place] for place in places[kind]]
        found.update(zip(places[kind], known.LOOK_UPS[kind](some, now), strict=True))
    return [
        _JUDGES.get(one.type, verdicts.unknown)(one, found.get(place), now)
        for place, one in enumerate(questions)
    ]


def open_questions(type: str) -> list[Gate]:
    """The questions of this type that somebody waits for, for the app that answers them."""
    return list(open_gates(type).order_by("pk"))


def open_gates(type: str) -> QuerySet[Gate]:
    """Return the open gates of this type."""
    return Gate.objects.filter(type=type)


def answer(
    *, key: str, verdict: str, evidence: Mapping[str, Any], observed_at: datetime, now: datetime
) -> bool:
    """Answer a question; False if nobody asks it any more or a later observation stands there.

    Evidence of an SLO has `good` and `total`, else it is no data; if it has a `why`, that is shown.
    Long evidence is shortened. Raises ValueError for a verdict that is none.
    """
    if verdict not in (PASS, FAIL, NO_DATA):
        raise ValueError(f"{verdict!r} is not {PASS}, {FAIL} or {NO_DATA}")
    observed_at = min(observed_at, now)
    earlier = Q(observed_at__isnull=True) | Q(observed_at__lte=observed_at)
    from_before_clock_was_set_back = Q(observed_at__gt=now + FRESH)
    rows = Gate.objects.filter(earlier | from_before_clock_was_set_back, key=key)
    brief = verdicts.brief(evidence)
    return bool(rows.update(verdict=verdict, evidence=brief, observed_at=observed_at))


@dataclass(frozen=True)
class Reported:
    """What stands after a report; `accepted` is False if an older observation came too late."""

    verdict: ExternalVerdict
    accepted: bool


@transaction.atomic
def report_external(
    *,
    name: str,
    verdict: str,
    evidence: Mapping[str, Any],
    observed_at: datetime | None = None,
    actor: Actor,
    now: datetime,
) -> Reported:
    """Take in what an outsider observed of its gate, `ok` or `fail`; now, if it does not say when.

    The latest observation stands, in whatever order they come; a `fail` is remembered beside it.
    Audited when it says otherwise than the one before. Raises :class:`InvalidInput`,
    :class:`Forbidden`.
    """
    actor.require("gates:write")
    seen_at = _checked(name, verdict, evidence, observed_at, now)
    fields = {
        "verdict": verdict,
        "evidence": dict(evidence),
        "observed_at": seen_at,
        "failed_at": _failed_at(verdict, seen_at, None, now),
        "received_at": now,
        "by": actor.label[:MAX_LABEL_LENGTH],
    }
    rows = ExternalVerdict.objects.select_for_update()
    row, is_first = rows.get_or_create(name=name, defaults=fields)
    before = None if is_first else row.verdict
    if not is_first:
        failed_at = _failed_at(verdict, seen_at, row.failed_at, now)
        if seen_at < row.observed_at <= now + FRESH:
            if failed_at == seen_at != row.failed_at:
                row.failed_at = seen_at  # It does not stand, but it counts.
                row.save(update_fields=["failed_at"])
                _note(row.name, row.verdict, verdict, seen_at, evidence, actor, now)
            return Reported(row, accepted=False)
        fields["failed_at"] = failed_at
        for field, value in fields.items():
            setattr(row, field, value)
        row.save()
    if before != verdict:
        _note(row.name, before, verdict, seen_at, evidence, actor, now)
    return Reported(row, accepted=True)


def _failed_at(
    verdict: str, seen_at: datetime, before: datetime | None, now: datetime
) -> datetime | None:
    """When a fail was last observed, with this word. One that nobody could have seen in time, as it
    was too old when it was reported, fails nothing."""
    if before is not None and before > now + FRESH:
        before = None  # From before the clock was set back.
    if verdict != FAIL or now - seen_at > FRESH:
        return before
    return seen_at if before is None else max(before, seen_at)


def _note(
    name: str,
    before: str | None,
    verdict: str,
    seen_at: datetime,
    evidence: Mapping[str, Any],
    actor: Actor,
    now: datetime,
) -> None:
    audit.record(
        actor=actor,
        action="gate.reported",
        target=f"gate:{name}",
        now=now,
        before=None if before is None else {"verdict": before},
        after={"verdict": verdict, "observed_at": seen_at, "evidence": verdicts.brief(evidence)},
    )


def external(name: str) -> ExternalVerdict:
    """What was said last of an outsider's gate. Raises :class:`NotFound`."""
    found = ExternalVerdict.objects.filter(pk=name).first() if NAME.fullmatch(name) else None
    if found is None:
        raise NotFound(f"Nobody has reported a gate {name} yet.")
    return found


def forget_old(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` counts of events older than 2 days, `at_once` in one statement, and
    verdicts that nobody has renewed for 30 days; returns how many."""
    return retention.purge([EVENTS, VERDICTS], now, at_once=at_once, most=most)


def _checked(
    name: str,
    verdict: str,
    evidence: Mapping[str, Any],
    observed_at: datetime | None,
    now: datetime,
) -> datetime:
    """When it was observed, in UTC: never later than now."""
    errors: dict[str, list[str]] = {}
    if not NAME.fullmatch(name):
        errors["name"] = ["Must be 1 to 120 letters, digits, `.`, `_` or `-`."]
    if verdict not in EXTERNAL:
        errors["verdict"] = [f"Must be {' or '.join(EXTERNAL)}."]
    if len(canonical.dumps(evidence)) > canonical.MAX_EVIDENCE_BYTES:
        errors["evidence"] = [canonical.TOO_MUCH_EVIDENCE]
    if observed_at is not None and observed_at > now + FRESH:
        errors["observed_at"] = [
            f"Is more than {FRESH.seconds} seconds ahead of {canonical.timestamp(now)}, the time"
            " here; set your clock, or leave it out."
        ]
    if errors:
        raise InvalidInput(errors)
    return now if observed_at is None else min(observed_at.astimezone(UTC), now)


_JUDGES: Mapping[str, Callable[[Question, Any, datetime], Answer]] = {
    "external": verdicts.external,
    "samples": verdicts.samples,
    "slo": verdicts.slo,
    "breaker": verdicts.breaker,
}
