"""Escalations announced by the routes: steps are notified as well, and nobody twice."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.escalations import services
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.escalation import engine
from controlplane.notify.targets.tests.people import fill

pytestmark = pytest.mark.django_db

ON_CALL, LEAD = "email:kim@example.org", "email:lead@example.org"


@pytest.fixture
def now():
    return db_now()


def minutes(count):
    return timedelta(minutes=count)


def list_messages():
    return list(OutboxMessage.objects.order_by("id").values_list("destination", "event"))


def announced(now):
    return services.open_escalation(
        subject="review:1",
        event="review.waiting",
        severity="critical",
        facts={},
        now=now,
        announced=True,
    )


def test_announced_with_nobody_behind_any_step_is_told_again_after_an_hour(now):
    announced(now)

    for later in (0, 5, 30, 59):
        engine.notify_due(now + minutes(later))
    assert list_messages() == []
    engine.notify_due(now + minutes(60))

    assert list_messages() == [("slack", "escalation.step")]
    assert Escalation.objects.get().notices == 1


def test_announced_tells_whoever_is_behind_a_step_at_once(now):
    fill("on-call", "kim@example.org")
    announced(now)

    engine.notify_due(now)
    engine.notify_due(now + minutes(5))

    assert list_messages() == [(ON_CALL, "escalation.step")] * 2


def test_announced_and_somebody_is_named_later_is_told_then(now):
    announced(now)
    engine.notify_due(now)

    fill("team-lead", "lead@example.org")
    Escalation.objects.update(next_at=now + minutes(2))  # As changing a target does.
    engine.notify_due(now + minutes(2))

    assert list_messages() == [(LEAD, "escalation.step")]
