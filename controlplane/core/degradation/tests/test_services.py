"""Reported causes, and the resulting level on pages, over HTTP and in the trail."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import RequestFactory

from controlplane.core import degradation_levels as levels
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.degradation import context, services
from controlplane.core.degradation.models import Degradation
from controlplane.core.degradation.services import HOLD_TIME
from controlplane.core.degradation_levels import Cause
from controlplane.core.http.tests.callers import as_role, person, with_token
from controlplane.core.outbox.models import OutboxMessage

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
LATER = NOW + timedelta(minutes=7)
SECOND = timedelta(seconds=1)
ORACLE = Cause(1, "core->oracle", "Oracle's breaker is open.", fails=("NL2SQL",), works=("Docs",))
REDIS = Cause(2, "redis-cache", "The cache does not respond.")


def row():
    return Degradation.objects.get()


def test_each_change_of_causes_has_a_revision_and_the_level_its_own_time():
    services.report([ORACLE], NOW)
    services.report([ORACLE, Cause(1, "core->vision", "Vision too.")], LATER)

    found = row()

    assert (found.revision, found.level, found.since) == (2, 1, NOW)
    assert [one["what"] for one in found.causes] == ["core->oracle", "core->vision"]


def test_a_cause_keeps_the_time_since_when_it_is_known():
    services.report([ORACLE], NOW)
    services.report([REDIS, ORACLE], LATER)

    since = {one.what: one.since for one in services.load_causes()}

    assert since == {"core->oracle": timestamp(NOW), "redis-cache": timestamp(LATER)}


def test_the_order_in_which_causes_come_is_no_change():
    services.report([ORACLE, REDIS], NOW)

    assert not services.report([REDIS, ORACLE], LATER)
    assert row().revision == 1


def test_the_worst_cause_is_the_level_and_its_end_is_audited():
    services.report([ORACLE, REDIS], NOW)
    for at, reported in ((LATER, [ORACLE]), (LATER + 2 * HOLD_TIME, [])):
        services.report(reported, at)
        services.report(reported, at + HOLD_TIME)

    levels = [
        entry.after
        for entry in AuditEntry.objects.filter(action="degradation.changed").order_by("id")
    ]
    assert ['"level":2' in levels[0], '"level":1' in levels[1], '"level":0' in levels[2]] == [
        True,
        True,
        True,
    ]


def test_a_read_only_database_is_an_emergency():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL default_transaction_read_only = on")

    assert services.load_degradation(redis_reachable=True).causes == (levels.READ_ONLY,)
    assert services.load_document()["level"] == levels.EMERGENCY


def test_a_cause_that_comes_and_goes_is_told_of_once(settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")

    for seconds in range(0, 150, 5):
        services.report([ORACLE] if seconds % 10 else [REDIS], NOW + timedelta(seconds=seconds))

    assert OutboxMessage.objects.filter(event="degradation.changed").count() == 1
    assert AuditEntry.objects.filter(action="degradation.changed").count() == 1
    assert row().revision == 2


def test_a_cause_that_is_gone_stands_for_a_minute_and_one_that_gets_lighter_as_well():
    services.report([ORACLE, REDIS], NOW)
    lighter = Cause(1, REDIS.what, "The cache answers again, slowly.")

    services.report([lighter], LATER)
    services.report([lighter], LATER + HOLD_TIME - SECOND)
    held = services.load_causes()
    services.report([lighter], LATER + HOLD_TIME)

    assert [one.level for one in held] == [2, 1]
    (left,) = services.load_causes()
    assert (left.level, left.text) == (1, lighter.text)
    assert row().falling == {}


def test_a_cause_that_comes_back_in_time_keeps_its_beginning():
    services.report([ORACLE], NOW)
    services.report([], LATER)
    services.report([ORACLE], LATER + HOLD_TIME - SECOND)

    services.report([], LATER + HOLD_TIME + SECOND)

    (cause,) = services.load_causes()
    assert cause.since == timestamp(NOW)


def test_our_own_redis_counts_beside_what_was_reported():
    services.report([ORACLE], NOW)

    found = services.load_degradation(redis_reachable=False)

    assert (found.level, found.name) == (2, "critical")
    assert [one.what for one in found.causes] == ["redis", "core->oracle"]
    assert found.since is None


def test_the_api_tells_what_fails_and_what_works(settings):
    services.report([ORACLE], NOW)

    answer = with_token("switches:read").get("/degradation").json()

    assert (answer["level"], answer["name"]) == (1, "degraded")
    assert answer["causes"] == ["Oracle's breaker is open."]
    assert answer["effects"][0]["fails"] == ["NL2SQL"]
    assert answer["effects"][0]["since"] == timestamp(NOW)


def test_every_page_of_who_is_signed_in_knows_it():
    services.report([ORACLE], NOW)
    request = RequestFactory().get("/")
    request.user = person("viewer", "kim")

    found = context.degradation(request)["degradation"]

    assert (found.level, found.causes[0].what) == (1, "core->oracle")


def test_a_page_shows_the_causes():
    services.report([ORACLE], NOW)

    page = as_role("viewer").client.get("/attention/").content.decode()

    assert "Oracle&#x27;s breaker is open." in page
