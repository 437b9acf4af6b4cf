"""The forecast of a notification matches what the tick then sends, also with nobody to reach."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.escalations import services
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.escalation import engine, forecast
from controlplane.notify.targets.tests.people import fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return db_now()


def opened(now, **more):
    return services.open_escalation(
        subject="review:1", event="review.waiting", severity="critical", facts={}, now=now, **more
    )


def unconfigured(settings):
    settings.SLACK = replace(settings.SLACK, bot_token="", channel="", webhook_url="")


def test_no_step_and_no_route_reaches_anybody_is_not_heard(now, settings):
    unconfigured(settings)
    row = opened(now)

    found = forecast.next_notices([row], now)[row.pk]

    assert (found.is_heard, found.who, found.number) == (False, (), None)


def test_routes_alone_reach_somebody_is_heard_without_a_step(now):
    row = opened(now)

    found = forecast.next_notices([row], now)[row.pk]

    assert (found.is_heard, found.who, found.number) == (True, (), None)


def test_step_that_reaches_is_named_and_then_told_at_that_time(now, settings):
    unconfigured(settings)
    fill("team-lead", "lead@example.org")
    row = opened(now)

    found = forecast.next_notices([row], now)[row.pk]
    engine.notify_due(found.at)

    assert (found.kind, found.who) == ("step", ("team-lead",))
    assert [*OutboxMessage.objects.values_list("destination", flat=True)] == [
        "email:lead@example.org"
    ]


def test_all_steps_told_is_a_repeat_and_not_a_step_more(now):
    fill("on-call", "kim@example.org")
    row = opened(now)
    for later in (0, 5, 15, 30):
        engine.notify_due(now + timedelta(minutes=later))
    row.refresh_from_db()

    found = forecast.next_notices([row], now + timedelta(minutes=31))[row.pk]

    assert (found.kind, found.number, found.who) == ("repeat", None, ("on-call",))


def test_over_has_nothing_next(now):
    row = opened(now)
    services.close(subject=row.subject, now=now)
    row.refresh_from_db()

    assert forecast.next_notices([row], now) == {}
