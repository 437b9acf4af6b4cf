"""Everything that waits: in order, from every source, and honest when one of them fails."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core.attention import services
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.http.tests.callers import Api, as_role, person, with_token
from controlplane.core.page_registry import ATTENTION_SOURCES, AttentionItem, AttentionSource
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.targets.tests.people import add, fill

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return db_now()


def waits(title, severity, since):
    return AttentionItem("overdue", severity, title, "", "/", since)


def test_worst_first_then_longest_waiting(now):
    hour = timedelta(hours=1)

    def one(_now):
        return [waits("new", "critical", now), waits("note", "info", now - 9 * hour)]

    def another(_now):
        return [waits("warn", "warning", now - 5 * hour), waits("old", "critical", now - hour)]

    overview = services.read_sources([AttentionSource(one), AttentionSource(another)], now)

    assert [waiting.title for waiting in overview.waiting] == ["old", "new", "warn", "note"]
    assert [severity for severity, _ in overview.groups] == ["critical", "warning", "info"]


def test_source_that_fails_hides_nothing_but_itself(now):
    def broken_sql(_now):
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")
        return []

    def broken_code(_now):
        raise KeyError("x")

    def fine(_now):
        Target.objects.count()
        return [waits("still here", "info", now)]

    overview = services.read_sources(
        [AttentionSource(read) for read in (broken_sql, fine, broken_code)], now
    )

    assert [waiting.title for waiting in overview.waiting] == ["still here"]
    assert overview.unread == ("broken sql", "broken code")


def test_unconfigured_places_and_silent_severities_are_named(now, settings):
    titles = {one.title: one for one in services.read_all(now).waiting}

    assert titles["No escalation step reaches anybody: critical"].severity == "critical"
    on_call = titles["on-call reaches no one: not set up"]
    assert "critical at once, critical after 5 min" in on_call.detail
    assert "No route reaches anybody" not in titles


def test_nothing_configured_at_all_is_one_line(now, settings):
    settings.SLACK = replace(settings.SLACK, bot_token="", channel="", webhook_url="")

    (waiting,) = services.read_all(now).waiting

    assert (waiting.title, waiting.severity) == ("No notifications configured", "critical")


def test_everybody_is_reached_and_nothing_waits(now):
    for name in ("on-call", "responsible-team", "team-lead", "cto"):
        fill(name, f"{name}@example.org")

    assert services.read_all(now).waiting == ()
    assert services.count(now) == services.Overview(())


def test_no_route_and_dead_route_are_told(now):
    add("kim")
    cto = Target.objects.get(name="cto")
    Route.objects.create(event="switch.*", target=cto, created_at=now)
    titles = [one.title for one in services.read_all(now).waiting]
    assert "The route for switch.* to cto reaches no one" in titles

    Route.objects.exclude(target=cto).delete()
    fill("team-lead", "lee@example.org")

    titles = [one.title for one in services.read_all(now).waiting]
    assert "No route reaches anybody" in titles


def test_escalation_without_a_page_of_its_own_is_told_until_acknowledged(now):
    row = escalation.open_escalation(
        subject="outbox:x", event="some.thing", severity="warning", facts={}, now=now
    )
    titles = [one.title for one in services.read_all(now).waiting]
    assert "some.thing" in titles

    response = as_role("operator").client.post(f"/escalations/{row.pk}/acknowledge/", follow=True)

    assert "You acknowledged some.thing" in response.content.decode()
    assert "some.thing" not in [one.title for one in services.read_all(now).waiting]


def test_page_groups_and_links_and_shows_who_is_told_meanwhile(now):
    escalation.open_escalation(
        subject="outbox:<b>",
        event="some.thing",
        severity="critical",
        facts={"path": "/deliveries/", "what": "한국어 <script>"},
        now=now,
    )

    html = as_role("viewer").client.get("/attention/").content.decode()

    assert 'id="attention-critical"' in html
    assert 'href="/deliveries/"' in html
    assert "Who is told meanwhile" in html
    assert "No step reaches anybody: the routes alone are told." in html
    assert "<script>" not in html.split("<main", 1)[1]
    assert "/acknowledge/" not in html


def test_nobody_can_be_told_says_so_and_promises_no_moment(now, settings):
    settings.SLACK = replace(settings.SLACK, bot_token="", channel="", webhook_url="")
    escalation.open_escalation(
        subject="outbox:x", event="some.thing", severity="critical", facts={}, now=now
    )

    html = as_role("admin").client.get("/attention/").content.decode()

    climbing = html.split('id="climbing"', 1)[1]
    assert "No one is notified." in climbing
    assert 'href="/targets/">Set up notifications' in climbing
    assert "within seconds" not in html
    assert "time left:" not in html
    assert "data-until" not in html


def test_empty_page_is_calm_and_a_failed_source_is_not(now):
    for name in ("on-call", "responsible-team", "team-lead", "cto"):
        fill(name, f"{name}@example.org")
    client = as_role("viewer").client

    calm = client.get("/attention/").content.decode()
    ATTENTION_SOURCES.register(failing := AttentionSource(_fails, 99))
    failed = client.get("/attention/rows/").content.decode()
    ATTENTION_SOURCES.unregister(failing.name)

    assert "Nothing is forgotten" in calm
    assert "Could not be read: fails" in failed
    assert "Nothing is forgotten" not in failed


def _fails(_now):
    raise RuntimeError("no")


def test_api_has_it_all_with_total_filters_and_limit():
    api = with_token("switches:read")

    everything = api.get("/attention/").json()
    critical = api.get("/attention/", {"severity": "critical"}).json()
    first = api.get("/attention/", {"limit": "1"}).json()
    one = api.get(first["next"].removeprefix("http://testserver")).json()
    back = api.get(one["previous"].removeprefix("http://testserver")).json()

    assert everything["total"] == len(everything["results"]) > 2
    assert everything["unread"] == []
    assert {row["severity"] for row in critical["results"]} == {"critical"}
    assert one["results"] == everything["results"][1:2]
    assert back["results"] == first["results"] == everything["results"][:1]
    assert first["previous"] is everything["next"] is None
    assert set(everything["results"][0]) == {
        "kind", "severity", "title", "detail", "path", "since", "due_at",
    }  # fmt: skip
    assert api.get("/attention/", {"severity": "x"}).status_code == 400
    assert (
        with_token("slo:read", owner=person("admin", "other")).get("/attention/").status_code == 403
    )
    assert Api().get("/attention/").status_code == 401
