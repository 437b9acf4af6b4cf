"""A simulated month of 300 switches: every expiry is noticed, without message storms.

Expectations follow from people's actions and the clock's turns, by rules written independently
here; results are read from the audit trail and the outbox.
"""

import json
import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import datetime, timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import OnCallMember, Target
from switches.models import Ramp
from switches.tests import messages
from switches.tests.month_expectations import A_WHILE, Term
from switches.tests.month_simulation import DAY, END, HOUR, IDLE, INCIDENT, SILENCE, Month

SWITCHES, IN_THE_INCIDENT = 300, 60
# Per destination and hour, without messages on actions of people (engaged, extended, …).
LOUDEST_HOUR = 20
BY_PEOPLE = (
    *("switch.engaged", "switch.extended", "episode.acknowledged", "episode.reconfirmed"),
    *("approval.requested", "approval.decided"),
)
BY_ANYBODY = ("switch.released", "ramp.started", "ramp.aborted")


@pytest.fixture
def somebody_on_call(settings):
    """Create the people that escalations begin with."""
    messages.configure(settings)
    now = db_now()
    for name, user in (("team-lead", "ULEAD"), ("cto", "UCTO")):
        Target.objects.filter(name=name).update(slack_user_id=user)
    Target.objects.filter(name="responsible-team").update(address="slack:#team")
    kim = Target.objects.create(name="kim", kind="person", slack_user_id="UKIM", created_at=now)
    OnCallMember.objects.create(rotation=Target.objects.get(name="on-call"), position=0, person=kim)


@pytest.fixture
def _quick():
    """Silence the log, which would take a third of the time."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def month(db, somebody_on_call, _quick):
    olga, ada = (person("approver", name).as_actor() for name in ("olga", "ada"))
    lived = Month(seed=20261126, olga=olga, ada=ada)
    lived.plan(SWITCHES, in_the_incident=IN_THE_INCIDENT)
    lived.run()
    return lived


def first_turn(month: Month, since: datetime) -> datetime | None:
    """Return the time of the first tick since then."""
    at = bisect_left(month.turns, since)
    return month.turns[at] if at < len(month.turns) else None


def ends_told(*events: str) -> Counter[tuple[int, datetime, datetime]]:
    """Count messages about ends, single or in digests, by episode, end and time of the message."""
    found: Counter[tuple[int, datetime, datetime]] = Counter()
    for message in OutboxMessage.objects.filter(event__in=events, destination="slack"):
        facts = message.payload
        end = facts.get("reconfirm_due_at") or facts.get("expires_at")
        for end_key in facts.get("ends", [f"{facts.get('episode')}@{end}"]):
            episode, _, ends_at = end_key.partition("@")
            found[int(episode), datetime.fromisoformat(ends_at), message.created_at] += 1
    return found


def audited(action: str, by: str) -> set[tuple[str, datetime]]:
    entries = AuditEntry.objects.filter(action=action, actor_type="system", actor_name=by)
    return {(entry.target, entry.at) for entry in entries}


def owed(month: Month, term: Term) -> list[datetime]:
    """Return the times of a term's reminders: the first ticks a day and an hour before its end."""
    day, hour = term.ends_at - DAY, term.ends_at - HOUR
    windows = [(day, term.ends_at)] if term.permanent else [(day, hour), (hour, term.ends_at)]
    due = []
    for opens, closes in windows:
        turn = first_turn(month, max(opens, term.set_at))
        if opens <= term.set_at or turn is None or turn >= closes:
            continue
        if term.stood_at(turn):
            due.append(turn)
    return due


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_month(month):
    assert len({term.switch for term in month.terms}) == SWITCHES
    assert sum(term.permanent for term in month.terms) > 20
    _none_outlives_its_expiry_unnoticed(month)
    _each_reminder_comes_once_when_it_is_owed(month)
    _people_are_called_until_somebody_knows_then_daily(month)
    _every_ramp_comes_to_its_end_in_time(month)
    _there_is_no_storm()


def _none_outlives_its_expiry_unnoticed(month: Month) -> None:
    held, called = (
        audited("episode.overdue", "expiry"),
        audited("episode.reconfirm_due", "expiry"),
    )
    released, ramped = audited("switch.released", "expiry"), audited("ramp.started", "ramps")
    ends = ends_told("episode.overdue", "ramp.started", "episodes.expired")
    ends += ends_told("episode.reconfirm_due", "episodes.reconfirm_due")
    gathered = Counter(
        switch
        for message in OutboxMessage.objects.filter(event="ramps.started", destination="slack")
        for switch in message.payload["switches"]
    )
    expected = Counter()
    for term in month.terms:
        turn = first_turn(month, term.ends_at)
        if turn is None or not term.stood_at(turn):
            continue
        expected[term.switch, turn] += 1
        if term.permanent:
            assert (term.switch, turn) in called, term
        elif term.policy == "release":
            assert (term.switch, turn) in released, term
            continue
        elif term.policy == "ramp":
            assert (term.switch, turn) in ramped, term
        else:
            assert (term.switch, turn) in held, term
        told_of = ends[term.episode, term.ends_at, turn]
        assert told_of + (gathered[term.switch] if term.policy == "ramp" else 0) == 1, term
    assert set(expected) == held | called | released | ramped
    assert len(expected) > SWITCHES / 2


def _every_ramp_comes_to_its_end_in_time(month: Month) -> None:
    """Assert that each share, and no other, began at the first tick after the previous dwell."""
    moves = defaultdict(list)
    for entry in AuditEntry.objects.filter(
        action__in=("ramp.started", "ramp.advanced", "switch.released")
    ).order_by("id"):
        moves[entry.target].append((entry.action, entry.at))
    kinds = Counter()
    for ascent in month.ascents:
        steps = [one for one in moves[ascent.switch] if one[1] >= ascent.moments[0]]
        actions = ["ramp.started", "ramp.advanced", "ramp.advanced", "switch.released"]
        moved = steps[: len(ascent.moments)]
        assert [action for action, _ in moved] == actions[: len(ascent.moments)], ascent
        late = [at - turn for (_, at), turn in zip(moved, ascent.moments, strict=True)]
        assert min(late) >= timedelta(), ascent
        assert max(late) < A_WHILE, ascent
        assert ascent.is_over or ascent.moments[0] > END - HOUR - SILENCE, ascent
        kinds[ascent.by_itself, bool(ascent.aborted_at)] += 1
    assert kinds[True, False] > 30
    assert kinds[True, True] > 3
    assert kinds[False, False] > 10
    advanced = AuditEntry.objects.filter(action="ramp.advanced").count()
    assert advanced == sum(min(len(one.moments), 3) - 1 for one in month.ascents)


def _each_reminder_comes_once_when_it_is_owed(month: Month) -> None:
    expected = Counter(
        (term.episode, term.ends_at, turn) for term in month.terms for turn in owed(month, term)
    )

    given = ends_told("episode.expires_soon", "episode.reconfirm_soon", "episodes.expire_soon")

    assert given == expected
    assert len(expected) > SWITCHES / 2


def _people_are_called_until_somebody_knows_then_daily(month: Month) -> None:
    notices = defaultdict(set)
    for message in OutboxMessage.objects.filter(event__startswith="escalation."):
        about = message.payload.get("escalations") or [message.payload["escalation"]]
        for escalation in about:
            notices[escalation].add(message.created_at)
    slack = HOUR + SILENCE  # Ticks then come hourly, and stop for an hour.
    calm_escalations = 0
    for one in Escalation.objects.all():
        assert one.subject.startswith("episode:")
        over = min(one.closed_at or END, END)
        known = min(one.acknowledged_at or over, over)
        called = sorted(notices[one.pk])
        loud = [at for at in called if at <= known]
        assert called[0] == first_turn(month, one.opened_at)
        for earlier, later in zip([*loud, known], [*loud[1:], known], strict=False):
            assert later - earlier <= HOUR + slack, one
        calm = [at for at in called if at > known]
        for earlier, later in zip([known, *calm], calm, strict=False):
            assert later - earlier >= (DAY if earlier == known else DAY / 2), one
        if over > known:
            assert over - [known, *calm][-1] <= DAY + IDLE + SILENCE, one
        calm_escalations += bool(calm)
    assert calm_escalations > 5


def _there_is_no_storm() -> None:
    hours: Counter[tuple[str, datetime]] = Counter()
    for message in OutboxMessage.objects.exclude(event__in=BY_PEOPLE):
        if message.event in BY_ANYBODY and not message.payload["by"].startswith("system:"):
            continue
        hours[message.destination, message.created_at.replace(minute=0)] += 1
    worst, count = hours.most_common(1)[0]
    assert count <= LOUDEST_HOUR, worst
    expiry = (INCIDENT + DAY).replace(minute=0, second=0)
    digests = OutboxMessage.objects.filter(created_at__gte=expiry, created_at__lt=expiry + HOUR)
    (expired,) = digests.filter(event="episodes.expired")
    assert expired.payload["count"] > IN_THE_INCIDENT / 2
    assert expired.payload["ramping"]
    (released,) = digests.filter(event="ramps.released")
    assert released.payload["count"] > 5
    facts = expired.payload
    ramped = [
        switch
        for switch, event in zip(facts["switches"], facts["events"], strict=True)
        if event == "ramp.started"
    ]
    steps = digests.filter(event__in=("ramp.started", "ramp.advanced"))
    by_themselves = Ramp.objects.filter(switch__in=ramped, automatic=True).values_list("pk")
    assert not steps.filter(payload__ramp__in=[pk for (pk,) in by_themselves]).exists()
    assert not json.dumps(expired.payload).count(timestamp(END))
