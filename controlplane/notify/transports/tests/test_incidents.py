"""On-call services get incidents and their end, whatever the routes."""

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox import services
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import digests
from controlplane.notify.escalation import engine
from controlplane.notify.models.targets import EscalationStep, Route, Target

pytestmark = pytest.mark.django_db
SUBJECT = "episode:12"


@pytest.fixture
def pager():
    Route.objects.all().delete()
    return Target.objects.create(
        name="pager",
        kind="channel",
        address="pagerduty",
        transport_settings='{"pagerduty_routing_key":"k","pagerduty_region":"us"}',
        created_at=db_now(),
    )


def announce(event, number=1, **more):
    services.announce(
        event=event, event_key=f"a:{number}", facts={}, subject=SUBJECT, now=db_now(), **more
    )


def events():
    return list(OutboxMessage.objects.order_by("id").values_list("event", flat=True))


def open_one(subject=SUBJECT):
    facts = {"switch": "feature:a"}
    escalation.open_escalation(
        subject=subject, event="episode.overdue", severity="critical", facts=facts, now=db_now()
    )


def test_route_for_all_leads_only_what_is_critical_or_a_warning(pager):
    Route.objects.create(event="*", target=pager, created_at=db_now())

    announce("switch.engaged", severity="critical")
    announce("switch.extended", 2, severity="info")

    assert events() == ["switch.engaged"]


def test_end_is_sent_though_no_route_leads_it(pager):
    Route.objects.create(event="*", severity="critical", target=pager, created_at=db_now())
    announce("switch.engaged", severity="critical")

    announce("switch.released", 2)
    services.announce(
        event="switch.released", event_key="b", facts={}, subject="episode:99", now=db_now()
    )

    assert events() == ["switch.engaged", "switch.released"]


def test_escalation_is_acknowledged_and_closed_where_it_was_sent(pager):
    EscalationStep.objects.filter(escalation__name="critical", position=0).update(target=pager)
    open_one()
    engine.notify_due(db_now())

    escalation.acknowledge(subject=SUBJECT, actor=system_actor("test"), now=db_now())
    escalation.close(subject=SUBJECT, now=db_now())
    escalation.close(subject=SUBJECT, now=db_now())

    assert events() == ["escalation.step", "escalation.acknowledged", "escalation.closed"]
    assert set(OutboxMessage.objects.values_list("destination", flat=True)) == {
        f"pagerduty:{pager.pk}"
    }


def test_many_escalations_are_an_incident_each(pager):
    EscalationStep.objects.filter(escalation__name="critical", position=0).update(target=pager)
    for number in range(6):
        open_one(f"episode:{number}")

    engine.notify_due(db_now())

    assert events() == ["escalation.step"] * 6


def test_waiting_escalations_are_not_combined(pager):
    to = f"pagerduty:{pager.pk}"
    for number in range(12):
        services.announce(
            event="escalation.step",
            event_key=f"s:{number}",
            facts={},
            subject=f"episode:{number}",
            now=db_now(),
            to=[to],
        )

    assert digests.create_digest(to, db_now()) is None
