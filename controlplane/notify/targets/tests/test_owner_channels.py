"""Messages about what a team owns go to its channels, without any route."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models import Ownership
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models import TeamContact
from controlplane.notify.models.targets import Route, Target

from .many import many

pytestmark = pytest.mark.django_db

PAGER = '{"pagerduty_routing_key":"k","pagerduty_region":"us"}'


@pytest.fixture(autouse=True)
def _no_routes():
    Route.objects.all().delete()


@pytest.fixture
def payments():
    """The team `payments`, below `root`, owns `segment:finance*`."""
    return create_team("payments", "segment:finance*", parent=create_team("root"))


def give_channel(team, address="slack:#payments", **more):
    """Make a channel one of the team's."""
    target, _ = Target.objects.get_or_create(
        name=address, kind="channel", address=address, defaults={"created_at": db_now(), **more}
    )
    TeamContact.objects.create(team=team, kind="channel", target=target)
    return target


def announce(event="switch.engaged", number=1, *, resource="segment:finance", **more):
    outbox.announce(
        event=event,
        event_key=f"a:{number}",
        facts={},
        resource=resource,
        now=db_now(),
        **{"subject": "episode:1", **more},
    )


def destinations(event="switch.engaged"):
    return sorted(OutboxMessage.objects.filter(event=event).values_list("destination", flat=True))


def test_owners_channels_get_the_message(payments):
    give_channel(payments)
    give_channel(payments, "slack:#payments-alarm")
    give_channel(payments.parent, "slack:#root")

    announce()

    assert destinations() == ["slack:#payments", "slack:#payments-alarm"]


@pytest.mark.parametrize("resource", ["", "segment:other", "team:unknown", "job:12"])
def test_nobody_gets_a_message_about_what_no_team_owns(payments, resource):
    give_channel(payments)

    announce(resource=resource)

    assert destinations() == []


def test_nearest_team_above_stands_in_for_a_team_without_channels(payments):
    give_channel(payments.parent, "slack:#root")

    announce()

    assert destinations() == ["slack:#root"]


def test_nearest_team_above_stands_in_for_a_channel_that_is_not_configured(payments):
    give_channel(payments, "webhook")  # Without its URL.
    give_channel(payments.parent, "slack:#root")

    announce()

    assert destinations() == ["slack:#root"]


def test_chain_without_channels_reaches_nobody(payments):
    announce()

    assert destinations() == []


def test_route_to_the_same_channel_sends_no_second_message(payments):
    target = give_channel(payments)
    Route.objects.create(event="*", target=target, created_at=db_now())

    announce()

    assert destinations() == ["slack:#payments"]


def test_on_call_service_of_a_team_gets_incidents_and_their_end_alone(payments):
    pager = give_channel(payments, "pagerduty", transport_settings=PAGER)
    give_channel(payments.parent, "slack:#root")

    announce(severity="critical")
    announce("switch.extended", 2, severity="info")
    announce("switch.released", 3)

    assert destinations() == [f"pagerduty:{pager.pk}"]
    # The nearest channel that takes such messages is the parent's.
    assert destinations("switch.extended") == ["slack:#root"]
    assert destinations("switch.released") == [f"pagerduty:{pager.pk}", "slack:#root"]


def test_former_owner_gets_what_becomes_of_a_message(payments):
    give_channel(payments)
    search = create_team("search")
    give_channel(search, "slack:#search")
    announce()

    Ownership.objects.update(team=search)
    announce("switch.released", 2)
    announce("switch.released", 3, subject="episode:2")

    assert destinations("switch.released") == ["slack:#payments", "slack:#search", "slack:#search"]


def test_former_owner_gets_it_though_nobody_owns_the_switch_any_more(payments):
    give_channel(payments)
    announce()

    Ownership.objects.all().delete()
    announce("switch.released", 2)

    assert destinations("switch.released") == ["slack:#payments"]


def test_routing_takes_six_queries_however_many_teams_there_are(payments):
    now = db_now()
    many(30, now)
    give_channel(payments)
    for number in range(20):
        give_channel(create_team(f"t{number}", f"feature:f{number}"), f"slack:#t{number}")
    announce()  # Reads the teams, once after each change.

    with CaptureQueriesContext(connection) as caught:
        announce(number=2)

    assert "slack:#payments" in destinations()
    routing = [
        one["sql"] for one in caught if one["sql"].startswith("SELECT") and " FROM " in one["sql"]
    ]
    assert len(routing) <= 6


def test_each_team_gets_its_part_of_a_message_about_many_things(payments):
    give_channel(payments)
    give_channel(create_team("search", "segment:search"), "slack:#search")
    everything = give_channel(payments.parent, "slack:#root")
    Route.objects.create(event="*", target=everything, created_at=db_now())

    count = outbox.announce_together(
        ["segment:finance-a", "segment:search", "segment:nobodys", "segment:finance-b"],
        resource_of=str,
        facts_of=lambda part: {"switches": list(part)},
        event="episodes.expire_soon",
        event_key="a:1",
        now=db_now(),
    )

    parts = dict(OutboxMessage.objects.values_list("destination", "payload__switches"))
    assert parts == {
        "slack:#root": [
            "segment:finance-a",
            "segment:search",
            "segment:nobodys",
            "segment:finance-b",
        ],
        "slack:#payments": ["segment:finance-a", "segment:finance-b"],
        "slack:#search": ["segment:search"],
    }
    assert count == 3


def test_channel_that_gets_all_gets_no_part(payments):
    target = give_channel(payments)
    Route.objects.create(event="*", target=target, created_at=db_now())

    count = outbox.announce_together(
        ["segment:finance-a", "segment:nobodys"],
        resource_of=str,
        facts_of=lambda part: {"switches": list(part)},
        event="episodes.expire_soon",
        event_key="a:1",
        now=db_now(),
    )

    (row,) = OutboxMessage.objects.all()
    assert count == 1
    assert row.payload["switches"] == ["segment:finance-a", "segment:nobodys"]
