"""Everything that waits: in order, from every source, and honest when one of them fails."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.utils.html import strip_tags

from controlplane.core.attention import services, views
from controlplane.core.authority import read_teams
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.http.tests.callers import Api, as_role, person, with_token
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import (
    ATTENTION_SOURCES,
    AttentionAction,
    AttentionItem,
    AttentionSource,
)
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

    assert titles["No escalation step reaches anyone: critical"].severity == "critical"
    critical = titles["No escalation step reaches anyone: critical"]
    assert "on-call: not set up" in critical.detail
    assert not [title for title in titles if title.startswith("on-call reaches")]
    assert "No route reaches anyone" not in titles


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
    assert "No route reaches anyone" in titles


def test_escalation_without_a_page_of_its_own_is_told_until_acknowledged(now):
    row = escalation.open_escalation(
        subject="outbox:x", event="some.thing", severity="warning", facts={}, now=now
    )
    titles = [one.title for one in services.read_all(now).waiting]
    assert "some.thing" in titles

    response = as_role("operator").client.post(f"/escalations/{row.pk}/acknowledge/", follow=True)

    assert "You acknowledged some.thing" in response.content.decode()
    assert "some.thing" not in [one.title for one in services.read_all(now).waiting]


def test_page_lists_an_escalation_once_with_its_action_by_role(now):
    row = escalation.open_escalation(
        subject="outbox:<b>",
        event="some.thing",
        severity="critical",
        facts={"path": "/deliveries/", "what": "한국어 <script>"},
        now=now,
    )

    viewed = as_role("viewer").client.get("/attention/").content.decode().split("<main", 1)[1]
    operated = as_role("operator").client.get("/attention/").content.decode()

    assert 'id="attention-critical"' in viewed
    assert viewed.count('href="/deliveries/"') == 1
    assert "<script>" not in viewed
    assert "/acknowledge/" not in viewed
    assert f'action="/escalations/{row.pk}/acknowledge/"' in operated


def test_acknowledged_escalation_is_listed_apart_with_who_knows(now):
    row = escalation.open_escalation(
        subject="outbox:x", event="some.thing", severity="critical", facts={}, now=now
    )
    as_role("operator").client.post(f"/escalations/{row.pk}/acknowledge/")

    html = as_role("viewer").client.get("/attention/").content.decode()

    assert f'id="escalation-{row.pk}"' in html
    assert "user:a-operator" in html.split('id="acknowledged"', 1)[1]


def test_of_many_acknowledged_escalations_it_lists_a_page_and_says_of_how_many(now):
    for number in range(views.ESCALATIONS_SHOWN + 2):
        row = escalation.open_escalation(
            subject=f"outbox:{number}", event="some.thing", severity="warning", facts={}, now=now
        )
        at = now - timedelta(minutes=number)
        # A reminder has moved the next one of those that were acknowledged long ago.
        Escalation.objects.filter(pk=row.pk).update(
            acknowledged_at=at, acknowledged_by="user:kim", next_at=now + (now - at)
        )

    html = as_role("viewer").client.get("/attention/").content.decode()

    assert html.count('id="escalation-') == views.ESCALATIONS_SHOWN
    assert f"The {views.ESCALATIONS_SHOWN} acknowledged longest ago, of 52" in html
    assert f'id="escalation-{row.pk}"' in html


def test_item_about_subjects_of_earlier_items_is_left_out(now):
    def twice(_now):
        one = waits("overdue", "critical", now)
        return [
            replace(waits("engaged", "info", now), subjects=("episode:1",)),
            replace(one, subjects=("episode:1",)),
            replace(waits("group", "warning", now), subjects=("alert:1", "episode:1")),
        ]

    overview = services.read_sources([AttentionSource(twice)], now)

    assert [item.title for item in overview.waiting] == ["overdue", "group"]


def test_item_for_one_person_is_shown_to_them_and_not_counted(now):
    def mine(_now):
        return [replace(waits("mine", "info", now), only_for=7), waits("all", "info", now)]

    overview = services.read_sources([AttentionSource(mine)], now)

    assert overview.total == 1
    assert [item.title for item in overview.shown_to(7).waiting] == ["all", "mine"]
    assert [item.title for item in overview.shown_to(8).waiting] == ["all"]


@pytest.mark.parametrize(
    ("role", "user_id", "labels"),
    [
        ("viewer", 1, []),
        ("operator", 1, ["Release…"]),
        ("approver", 1, ["Release…", "Approve…"]),
        ("approver", 2, ["Release…"]),
    ],
)
def test_only_permitted_actions_are_offered(now, role, user_id, labels):
    actor = replace(person(role).as_actor(), user_id=user_id)
    actions = (
        AttentionAction("Release…", "/", "switches:write", "released"),
        AttentionAction("Approve…", "/", "approve", "approvals", except_user=2),
    )

    permitted = services.permitted_actions(
        replace(waits("x", "info", now), actions=actions), actor, read_teams()
    )

    assert [action.label for action in permitted] == labels


def test_empty_page_is_calm_and_a_failed_source_is_not(now):
    for name in ("on-call", "responsible-team", "team-lead", "cto"):
        fill(name, f"{name}@example.org")
    client = as_role("viewer").client

    calm = client.get("/attention/").content.decode()
    ATTENTION_SOURCES.register(failing := AttentionSource(_fails, 99))
    failed = client.get("/attention/rows/").content.decode()
    ATTENTION_SOURCES.unregister(failing.name)

    assert "All clear" in calm
    assert "Could not read: fails" in failed
    assert "All clear" not in failed


def test_head_counts_all_listed_items_and_names_those_for_one_person(now):
    viewer = as_role("viewer")
    viewer_id = int(viewer.client.session["_auth_user_id"])
    own = AttentionSource(lambda _now: [replace(waits("mine", "info", now), only_for=viewer_id)])
    ATTENTION_SOURCES.register(own)

    page = viewer.client.get("/attention/rows/").content.decode()
    ATTENTION_SOURCES.unregister(own.name)

    listed = page.count('class="list-row ')
    words = " ".join(strip_tags(page).split())
    assert listed > 1
    assert f"{listed} need attention" in words or f"{listed} in all" in words
    assert "Includes 1 switch that you engaged." in words


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
        "kind", "severity", "title", "detail", "path", "since", "due_at", "resource", "actions",
    }  # fmt: skip
    assert api.get("/attention/", {"severity": "x"}).status_code == 400
    assert (
        with_token("slo:read", owner=person("admin", "other")).get("/attention/").status_code == 403
    )
    assert Api().get("/attention/").status_code == 401
