"""Annotations: only what overlaps the span and concerns the service."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from slo import topics
from slo.arithmetic.minutes import last_ended
from slo.dashboard import annotations
from slo.objectives import services
from switches.tests.browsers import engaged, released

from . import factories
from .month_of_events import alert, excluded, store_statuses

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def kinds(slo, since, until) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in annotations.load_annotations(slo, since, until)]


def test_switches_that_the_service_asks_for_are_shown_and_others_are_not():
    now = db_now()
    slo = factories.slo(service="core")
    Instance.objects.create(id="core/a1", service="core", checks={"segment:finance": []})
    Instance.objects.create(id="web/a1", service="web", checks={"segment:elsewhere": []})
    for switch in ("segment:finance", "segment:elsewhere", "global:all"):
        engaged(switch, now=now - HOUR)

    found = kinds(slo, now - 2 * HOUR, now)

    assert sorted(found) == [("episode", "global:all"), ("episode", "segment:finance")]


def test_service_that_nobody_named_shows_the_global_switch_alone():
    now = db_now()
    slo = factories.slo(service="")
    Instance.objects.create(id="token:ci", service="", checks={"segment:finance": []})
    engaged("segment:finance", now=now - HOUR)
    engaged("global:all", now=now - HOUR)

    assert kinds(slo, now - 2 * HOUR, now) == [("episode", "global:all")]


def test_what_ended_before_or_began_after_is_left_out():
    now = db_now()
    slo = factories.slo(actions=[{"do": "trip", "switch": "feature:ranker"}])
    engaged("feature:ranker", now=now - 5 * HOUR)
    released("feature:ranker")
    alert(slo, now - 5 * HOUR, 30)
    alert(slo, now - HOUR, None)
    excluded(slo, last_ended(now) - 600, last_ended(now) - 500)

    assert kinds(slo, now - 4 * HOUR, now - 2 * HOUR) == [("episode", "feature:ranker")]
    assert kinds(slo, now - 7 * HOUR, now - 6 * HOUR) == []
    assert kinds(slo, now + HOUR, now + 2 * HOUR) == [("alert", "Page 1h/5m")]


def test_newest_comes_first_and_alerts_of_others_are_not_shown():
    now = db_now()
    slo, other = factories.slo(), factories.slo("other")
    alert(slo, now - 3 * HOUR, 5, rule="6h/30m>6 ticket", label="ticket", severity="warning")
    alert(slo, now - HOUR, 5)
    alert(other, now - HOUR, 5)

    assert kinds(slo, now - 4 * HOUR, now) == [("alert", "Page 1h/5m"), ("alert", "Ticket 6h/30m")]


def test_live_topic_tells_how_an_slo_stands_and_forgets_removed_ones():
    now = db_now()
    store_statuses([factories.slo()], now)
    factories.slo("unjudged")
    factories.slo("removed")
    services.remove_slo(name="removed", actor=factories.ADMIN, now=now)

    found = topics.read_statuses(["core-availability", "unjudged", "removed", "nothing"], now)

    assert sorted(found) == ["core-availability", "unjudged"]
    assert found["unjudged"]["state"] == "unknown"
    assert set(found["core-availability"]) == {
        *("name", "service", "state", "since", "burn_rates", "budget", "rules", "coverage"),
    }
