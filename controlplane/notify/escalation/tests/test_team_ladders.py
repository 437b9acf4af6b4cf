"""Escalations climb the steps of the owner, then those of the teams above, then the severity's."""

from datetime import timedelta

import pytest

from controlplane.accounts.models import Ownership
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.escalations import services
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.escalation import engine, forecast
from controlplane.notify.models import TeamContact
from controlplane.notify.models.targets import EscalationStep, Route, Target
from controlplane.notify.targets.tests.people import add, fill

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def now():
    return db_now()


@pytest.fixture
def payments():
    """The team `payments`, below `root`, owns `segment:finance`; `lead@` heads the severities."""
    Route.objects.all().delete()
    EscalationStep.objects.exclude(target__name="team-lead").delete()
    fill("team-lead", "lead@example.org")
    EscalationStep.objects.update(after_minutes=0)
    return create_team("payments", "segment:finance", parent=create_team("root"))


def put_on_call(team, name):
    target = add(name, email=f"{name}@example.org")
    TeamContact.objects.create(team=team, kind="on_call", target=target)


def escalate_to(team, **minutes):
    """Give a team an escalation with one step per name, after so many minutes."""
    steps = []
    for name, after in minutes.items():
        add(name, email=f"{name}@example.org")
        steps.append((after, name))
    target = add(f"{team.slug}-steps", "escalation", steps=steps)
    TeamContact.objects.create(team=team, kind="escalation", target=target)


def opened(now, resource="segment:finance"):
    return services.open_escalation(
        subject="episode:1",
        event="episode.overdue",
        severity="critical",
        resource=resource,
        facts={},
        now=now,
    )


def climb(row, now, minutes):
    """Return who is notified at which minute, as the task runs once a minute."""
    found = []
    for minute in range(minutes):
        OutboxMessage.objects.all().delete()
        row.refresh_from_db()
        at = now + minute * MINUTE
        (notice,) = forecast.next_notices([row], at).values()
        engine.notify_due(at)
        told = sorted(OutboxMessage.objects.values_list("destination", flat=True))
        if told:
            # The forecast names those who are notified.
            assert notice.at == at
            assert len(notice.who) == len(told)
            names = [one.removeprefix("email:").partition("@")[0] for one in told]
            found.append((minute, *names))
    return found


def test_team_climbs_before_its_parent_and_the_severity(payments, now):
    escalate_to(payments, pat=0, sam=10)
    put_on_call(payments, "ignored")
    put_on_call(payments.parent, "rita")

    told = climb(opened(now), now, 60)

    assert told == [(0, "pat"), (10, "sam"), (25, "rita"), (40, "lead")]


def test_person_on_call_is_the_step_of_a_team_without_an_escalation(payments, now):
    put_on_call(payments, "pat")

    assert climb(opened(now), now, 30) == [(0, "pat"), (15, "lead")]


def test_person_on_call_stands_in_for_steps_that_reach_nobody(payments, now):
    escalate_to(payments, sam=20)
    Target.objects.filter(name="sam").update(email="")
    put_on_call(payments, "pat")

    assert climb(opened(now), now, 40) == [(0, "pat"), (15, "lead")]


@pytest.mark.parametrize("resource", ["", "segment:other"])
def test_only_the_severity_has_steps_for_what_no_team_owns(payments, now, resource):
    put_on_call(payments, "pat")

    assert climb(opened(now, resource), now, 30) == [(0, "lead")]


def test_team_that_reaches_nobody_takes_no_time(payments, now):
    put_on_call(payments, "pat")
    Target.objects.filter(name="pat").update(email="")

    assert climb(opened(now), now, 30) == [(0, "lead")]


def test_person_of_an_earlier_step_is_no_further_step(payments, now):
    put_on_call(payments, "pat")
    target = Target.objects.get(name="pat")
    TeamContact.objects.create(team=payments.parent, kind="on_call", target=target)

    assert climb(opened(now), now, 30) == [(0, "pat"), (15, "lead")]


def test_new_owner_is_notified_from_the_first_step(payments, now):
    search = create_team("search")
    put_on_call(payments, "pat")
    put_on_call(search, "sam")
    row = opened(now)
    assert climb(row, now, 10) == [(0, "pat")]

    Ownership.objects.update(team=search)

    assert climb(row, now + 10 * MINUTE, 10) == [(5, "lead", "sam")]


def test_owners_channels_get_a_list_that_no_step_reaches(payments, now):
    EscalationStep.objects.all().delete()
    channel = Target.objects.create(
        name="#payments", kind="channel", address="slack:#payments", created_at=now
    )
    TeamContact.objects.create(team=payments, kind="channel", target=channel)
    for number in range(5):
        services.open_escalation(
            subject=f"episode:{number}",
            event="episode.overdue",
            severity="critical",
            resource="segment:finance" if number < 2 else "segment:other",
            facts={},
            now=now,
        )

    engine.notify_due(now)

    (message,) = OutboxMessage.objects.all()
    assert message.destination == "slack:#payments"
    assert message.payload["count"] == 2
