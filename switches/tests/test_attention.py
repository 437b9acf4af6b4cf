"""Attention items of episodes."""

from datetime import timedelta

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.page_registry import ATTENTION_SOURCES
from switches import attention as waiting
from switches import services
from switches.models import Episode

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
KIM = system_actor("test")
REASON = "결제 이중 청구 의심, INC-4411"
pytestmark = pytest.mark.django_db


def engage(switch, now, **more):
    scope, _, key = switch.partition(":")
    arguments = {"reason": REASON, "expires_in": "20d", **more}
    services.engage(scope=scope, key=key, actor=KIM, now=now, **arguments)


def all_waiting(now):
    sources = (
        waiting.list_overdue,
        waiting.list_unconfirmed,
        waiting.list_forgotten,
        waiting.list_expiring,
    )
    return [(one.kind, one.path) for source in sources for one in source(now)]


def test_sources_are_found_by_the_registry():
    known = [source.function for source in ATTENTION_SOURCES.values()]

    assert {
        waiting.list_overdue,
        waiting.list_unconfirmed,
        waiting.list_forgotten,
        waiting.list_expiring,
    } <= {*known}


def test_nothing_waits_for_one_that_is_new_and_far_from_its_end():
    now = db_now()
    engage("segment:finance", now)

    assert all_waiting(now) == []


def test_overdue_one_waits_since_its_expiry():
    now = db_now()
    engage("segment:finance", now - 2 * HOUR, expires_in="1h")
    services.expire_due(now)

    (one,) = waiting.list_overdue(now)

    assert (one.kind, one.severity, one.since) == ("overdue", "critical", now - HOUR)
    assert one.path == "/switches/segment/finance/"
    assert "overdue by 1 h" in one.title
    assert REASON in one.detail
    assert all_waiting(now) == [("overdue", one.path)]


def test_acknowledged_one_still_waits_and_names_who_knows():
    now = db_now()
    engage("segment:finance", now - 2 * HOUR, expires_in="1h")
    services.expire_due(now)
    services.acknowledge(scope="segment", key="finance", actor=KIM, now=now)

    (one,) = waiting.list_overdue(now)

    assert "Acknowledged by system:test" in one.detail


@pytest.mark.parametrize(
    ("due_in", "severity"), [(2 * DAY, None), (HOUR, "warning"), (-HOUR, "critical")]
)
def test_permanent_one_waits_from_a_day_before_its_week_ends(due_in, severity):
    now = db_now()
    engage("segment:finance", now - 30 * DAY)
    Episode.objects.update(permanent=True, expires_at=None, reconfirm_due_at=now + due_in)

    found = waiting.list_unconfirmed(now)

    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all_waiting(now) == [("unconfirmed", one.path) for one in found]


@pytest.mark.parametrize(("left", "shown"), [(DAY + HOUR, 0), (DAY, 1), (HOUR, 1)])
def test_last_day_of_one_in_time_is_shown_with_its_end(left, shown):
    now = db_now()
    engage("segment:finance", now - 2 * DAY, expires_in=f"{2 * 86400 + int(left.total_seconds())}s")

    found = waiting.list_expiring(now)

    assert [one.due_at for one in found] == [now + left] * shown


@pytest.mark.parametrize(("left", "severity"), [(HOUR * 2, None), (HOUR, "warning")])
def test_one_that_was_to_last_a_day_is_shown_in_its_last_hour(left, severity):
    now = db_now()
    engage("segment:finance", now - DAY + left, expires_in="24h")

    assert [one.severity for one in waiting.list_expiring(now)] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("left", "shown"), [(HOUR, 0), (timedelta(minutes=11), 0), (timedelta(minutes=10), 1)]
)
def test_one_of_an_hour_is_shown_in_its_last_ten_minutes(left, shown):
    now = db_now()
    engage("segment:finance", now - HOUR + left - timedelta(seconds=1), expires_in="1h")

    assert len(waiting.list_expiring(now)) == shown


def test_forgotten_after_a_week_without_a_sign_of_life():
    now = db_now()
    engage("segment:old", now - 7 * DAY)
    engage("segment:newer", now - 7 * DAY + HOUR)
    for key in ("acknowledged", "extended"):
        engage(f"segment:{key}", now - 10 * DAY)
    services.acknowledge(scope="segment", key="acknowledged", actor=KIM, now=now - DAY)
    services.extend(
        scope="segment",
        key="extended",
        expires_in="29d",
        reason=REASON,
        actor=KIM,
        now=now - DAY,
    )

    (one,) = waiting.list_forgotten(now)

    assert (one.path, one.severity) == ("/switches/segment/old/", "warning")
    assert "engaged for 7 d" in one.title
    later = [one.path for one in waiting.list_forgotten(now + 6 * DAY)]
    all_in_order = ("old", "newer", "acknowledged", "extended")
    assert later == [f"/switches/segment/{key}/" for key in all_in_order]


def test_ended_ones_do_not_wait():
    now = db_now()
    engage("feature:a", now - 10 * DAY, expires_in="1d", on_expiry="release")
    services.expire_due(now)

    assert all_waiting(now) == []
