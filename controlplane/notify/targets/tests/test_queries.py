"""The number of queries does not depend on the number of targets and routes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.attention import services as attention
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, with_token
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import OnCallMember, Target
from controlplane.notify.targets import routing

from .many import many

pytestmark = pytest.mark.django_db


def queries(call):
    with CaptureQueriesContext(connection) as caught:
        call()
    return len(caught)


def test_routing_takes_three_queries_and_telling_two_more():
    now = db_now()
    many(30, now)

    def tell():
        outbox.announce(event="switch.engaged", event_key="a", facts={}, now=now)

    assert (
        queries(lambda: routing.find_destinations("switch.engaged", "segment", "warning", now)) <= 3
    )
    assert queries(tell) <= 5
    assert OutboxMessage.objects.filter(destination__startswith="webhook:").count() == 30


@pytest.mark.parametrize(
    "path", ["/targets/", "/attention/", "/api/v1/targets/?limit=500", "/api/v1/routes/?limit=500"]
)
def test_pages_take_as_many_queries_for_many_as_for_few(path):
    now = db_now()
    client = as_role("admin").client
    many(2, now)

    def look():
        assert client.get(path).status_code == 200

    look()
    few = queries(look)
    many(40, now, "more")

    assert queries(look) <= few


def test_attention_asks_as_often_when_much_is_missing():
    now = db_now()
    few = queries(lambda: attention.read_all(now))
    many(40, now)
    Target.objects.filter(kind="person").update(email="")
    OnCallMember.objects.filter(position=1).delete()

    many_ = queries(lambda: attention.read_all(now))

    # A rotation among them has to be read as well.
    assert many_ <= few + 2
    titles = [one.title for one in attention.read_all(now).waiting]
    assert "The route for switch.* to many on_call 0007 reaches no one" in titles


def test_rest_of_the_targets_is_on_further_pages():
    many(70, db_now())
    client = as_role("viewer").client

    first = client.get("/targets/").content.decode()
    second = client.get("/targets/?page=2").content.decode()
    routes = client.get("/targets/?routes=2").content.decode()

    assert "many channel 0000" in first
    last = '"list-row__what"><bdi>many person 0069'
    assert last not in first
    assert last in second
    assert 'id="matrix"' in second
    assert "many escalation 0069" in routes.partition('id="routes"')[2]
    assert "page=2" in first


def test_program_has_all_targets_of_a_page_with_who_is_behind_them():
    many(3, db_now())

    rows = with_token("switches:read").get("/targets/").json()["results"]

    by_name = {row["name"]: row for row in rows}
    assert by_name["many on_call 0001"]["members"] == ["many person 0001", "many person 0002"]
    ladder = by_name["many escalation 0002"]
    assert ladder["steps"] == [{"after_minutes": 0, "target": "many on_call 0002"}]
