"""Contacts of teams that reach nobody need attention, and contacts that do are recipients."""

from dataclasses import replace

import pytest

from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.attention import services as attention
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.notify.models import TeamContact
from controlplane.notify.models.targets import EscalationStep, Route, Target
from controlplane.notify.targets import reach

from .people import add

pytestmark = pytest.mark.django_db


@pytest.fixture
def payments():
    """The team `payments`; there are no routes or steps."""
    Route.objects.all().delete()
    EscalationStep.objects.all().delete()
    return create_team("payments", "segment:finance")


def give_contact(team, kind, target):
    TeamContact.objects.create(team=team, kind=kind, target=target)


def titles():
    return [one.title for one in attention.read_all(db_now()).waiting]


def test_contact_that_reaches_nobody_is_listed_for_its_team(payments):
    channel = add("#pay", "channel", address="slack:#pay")
    hook = Target.objects.create(
        name="hook", kind="channel", address="webhook", created_at=db_now()
    )
    give_contact(payments, "channel", channel)
    give_contact(payments, "channel", hook)

    found = [one for one in attention.read_all(db_now()).waiting if one.kind == "team_contact"]

    assert [one.title for one in found] == [
        "The channel hook of Payments reaches no one: not set up"
    ]
    assert found[0].resource == "team:payments"


def test_channel_of_a_team_is_a_recipient(payments):
    assert not reach.has_recipient(db_now())
    assert "No notifications configured" in titles()

    give_contact(payments, "channel", add("#pay", "channel", address="slack:#pay"))

    assert reach.has_recipient(db_now())
    assert "No notifications configured" not in titles()
    assert "No route reaches anyone" in titles()


@pytest.mark.parametrize("kind", ["on_call", "escalation"])
def test_people_of_a_team_are_recipients(payments, kind):
    add("pat", email="pat@example.org")
    rotation = add("rotation", "on_call", members=["pat"], rotation_starts_at=db_now())
    steps = add("steps", "escalation", steps=[(0, "rotation")])
    give_contact(payments, kind, steps if kind == "escalation" else rotation)

    assert reach.has_recipient(db_now())


def test_page_lists_the_contacts_of_teams(payments, settings):
    give_contact(payments, "channel", add("#pay", "channel", address="slack:#pay"))
    give_contact(payments, "on_call", add("pat", email="pat@example.org"))
    create_team("search")

    html = as_role("viewer").client.get("/targets/").content.decode()

    panel = html.partition('id="teams"')[2].partition("</section>")[0]
    assert "Payments" in panel
    assert "#pay" in panel
    assert "On call:" in panel
    assert "pat" in panel
    assert "No contacts of its own" in panel
    assert "not configured" not in panel

    settings.SLACK = replace(settings.SLACK, bot_token="", channel="", webhook_url="")
    html = as_role("operator").client.get("/targets/").content.decode()
    assert "not configured" in html.partition('id="teams"')[2].partition("</section>")[0]


def test_page_has_no_panel_without_teams():
    assert 'id="teams"' not in as_role("viewer").client.get("/targets/").content.decode()
