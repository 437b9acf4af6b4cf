"""The audit page: filters, rendering, and verification."""

import re
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in

pytestmark = pytest.mark.django_db


@transaction.atomic
def happened(action="switch.engaged", target="segment:finance", name="kim", **more):
    actor = Actor(type="user", name=name, ip="10.0.0.7", request_id="req-1")
    return audit.record(actor=actor, action=action, target=target, now=db_now(), **more)


def trail(query="", role="viewer"):
    return as_role(role).client.get(f"/audit/?{query}").content.decode()


def rows(html):
    return html.count('class="audit-row"')


def test_row_tells_who_did_what_to_what_and_why():
    happened(reason="결제 이중 청구 의심, INC-4411")

    html = trail()

    for part in ("switch.engaged", "segment:finance", "kim", "결제 이중 청구", "req-1", "10.0.0.7"):
        assert part in html


def test_difference_is_readable():
    happened(before={"state": "released", "version": 3}, after={"state": "engaged", "version": 4})

    html = trail()

    assert "<del>released</del>" in html
    assert "<ins>engaged</ins>" in html


def test_actions_to_filter_by_are_those_of_the_trail():
    nothing = trail(role="operator")
    for action in ("slo.created", "switch.engaged", "alert.acknowledged", "switch.engaged"):
        happened(action=action)

    offered = re.findall(r'<option value="([^"]+)"></option>', trail())

    assert "<option" not in nothing.partition('id="audit-actions"')[2].partition("</datalist>")[0]
    assert offered == ["alert.acknowledged", "slo.created", "switch.engaged"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", 3),
        ("q=vendor", 1),
        ("q=FINANCE", 1),
        ("actor=lee", 1),
        ("actor=user:lee", 1),
        ("actor=token:lee", 0),
        ("action=switch.engaged", 2),
        ("action=switch", 2),
        ("action=episode", 1),
        ("target=segment:finance", 1),
        ("until=2020-01-01T00:00", 0),
        ("since=2020-01-01T00:00", 3),
        ("before=3", 2),
        ("before=1", 0),
    ],
)
def test_filters_narrow_it(query, found):
    happened()
    happened(target="feature:mail", name="lee", reason="The vendor threatens suspension")
    happened(action="episode.overdue", target="experiment:x")

    assert rows(trail(query)) == found


@pytest.mark.parametrize("query", ["since=yesterday", "before=x", "q=a%00b"])
def test_filter_that_can_not_be_read_is_told_and_left_out(query):
    happened()

    html = trail(query)

    assert "This filter was ignored." in html
    assert rows(html) == 1


def test_times_of_filters_are_in_the_persons_zone():
    entry = happened()
    user = person("viewer", "seoul")
    user.time_zone = "Asia/Seoul"
    user.save()
    client = signed_in(user).client
    in_seoul = entry.at + timedelta(hours=9)

    def count_rows(since):
        return rows(client.get("/audit/", {"since": f"{since:%Y-%m-%dT%H:%M}"}).content.decode())

    assert count_rows(in_seoul - timedelta(minutes=2)) == 1
    assert count_rows(in_seoul + timedelta(minutes=2)) == 0


def test_pages_hold_while_rows_arrive():
    for _ in range(60):
        happened()
    client = as_role("viewer").client

    first = client.get("/audit/").content.decode()
    happened()
    older = client.get("/audit/?before=11").content.decode()

    assert rows(first) == 50
    assert "before=11" in first
    assert rows(older) == 10


def test_number_of_queries_does_not_grow_with_the_rows():
    client = as_role("viewer").client

    def queries():
        with CaptureQueriesContext(connection) as caught:
            client.get("/audit/")
        return len(caught)

    happened()
    queries()  # The figure in the navigation is counted, and kept for some seconds.
    few = queries()
    for _ in range(20):
        happened()

    assert queries() == few


def test_markup_in_a_row_is_text():
    happened(reason="<img src=x onerror=alert(1)>", after={"note": "<script>alert(2)</script>"})

    html = trail()

    assert "<img src=x" not in html
    assert "<script>alert(2)" not in html


def test_admin_has_the_chain_verified():
    for _ in range(3):
        happened()

    html = as_role("admin").client.post("/audit/verify/").content.decode()

    assert "The audit chain is intact" in html
    assert "All 3 rows" in html


def test_broken_chain_is_loud_and_names_the_row():
    happened()
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_append_only;"
            "UPDATE core_auditentry SET reason = 'never happened';"
            "ALTER TABLE core_auditentry ENABLE TRIGGER core_audit_append_only;"
        )

    html = as_role("admin").client.post("/audit/verify/").content.decode()

    assert "The audit chain is broken" in html
    assert "Row 1 doesn't match" in html


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_others_are_shown_the_command_instead(role):
    client = as_role(role).client

    assert "manage.py audit verify" in client.get("/audit/").content.decode()
    assert client.post("/audit/verify/").status_code == 403


def test_row_of_the_system_is_shown_too():
    with transaction.atomic():
        audit.record(
            actor=system_actor("expiry"), action="episode.overdue", target="x", now=db_now()
        )

    assert "expiry" in trail()
