"""Messages about requests for what a team owns go to its channels and to its person on call."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.accounts.models import Ownership, User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.approvals import services
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models import TeamContact
from controlplane.notify.models.targets import OnCallMember, Route, Target

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("by_bot")]


@pytest.fixture
def payments(settings):
    """The team `payments`, below `root`, owns `segment:finance`; `pat` and `rita` are on call."""
    settings.EMAIL = replace(settings.EMAIL, host="127.0.0.1")
    Route.objects.all().delete()
    root = create_team("root", members=[person("approver", "rita")])
    team = create_team("payments", "segment:finance", parent=root, leads=[person(username="pat")])
    give_contact(root, "on_call", name="rita", kind="person", email="rita@example.org")
    give_contact(team, "on_call", name="pat", kind="person", email="pat@example.org")
    give_contact(team, "channel", name="#payments", kind="channel", address="slack:#payments")
    return team


def give_contact(team, role, **fields):
    target = Target.objects.create(created_at=db_now(), **fields)
    TeamContact.objects.create(team=team, kind=role, target=target)
    return target


def ask(target="segment:finance", requester="kim"):
    return services.request_approval(
        kind="rule_change",
        target=target,
        summary="Change it",
        diff={},
        reason="one more may be stopped",
        actor=person("operator", requester).as_actor(),
        now=db_now(),
    )


def destinations(event):
    rows = OutboxMessage.objects.filter(event=event)
    return sorted(rows.values_list("destination", flat=True))


def test_request_goes_to_the_channels_and_the_person_on_call_of_the_owner(payments):
    ask()

    assert destinations("approval.requested") == ["email:pat@example.org", "slack:#payments"]


def test_request_about_what_no_team_owns_goes_by_routes_alone(payments):
    ask("segment:other")

    assert destinations("approval.requested") == []


def test_request_for_the_global_switch_goes_to_the_person_on_call_of_the_root_team(payments):
    ask("global:all")

    assert destinations("approval.requested") == ["email:rita@example.org"]


def test_requester_on_call_does_not_ask_themselves(payments):
    kim = person("operator", "kim")
    Target.objects.filter(name="pat").update(user=kim)
    services.request_approval(
        kind="rule_change",
        target="segment:finance",
        summary="Change it",
        diff={},
        reason="one more may be stopped",
        actor=kim.as_actor(),
        now=db_now(),
    )

    assert destinations("approval.requested") == ["email:rita@example.org", "slack:#payments"]


def test_decision_reaches_all_who_were_asked_though_the_team_has_changed(payments):
    approval = ask()
    ada = person("approver", "ada")
    search = create_team("search", members=[ada])
    give_contact(search, "channel", name="#search", kind="channel", address="slack:#search")
    Ownership.objects.update(team=search)
    TeamContact.objects.filter(team=payments).delete()

    services.deny(
        approval_id=approval.pk,
        comment="",
        actor=ada.as_actor(),
        now=db_now(),
    )

    assert destinations("approval.decided") == [
        "email:pat@example.org",
        "slack:#payments",
        "slack:#search",
    ]


def test_decision_reaches_who_was_asked_after_the_next_person_came_on_call(payments):
    now = db_now()
    people = [
        Target.objects.create(name=name, kind="person", email=f"{name}@example.org", created_at=now)
        for name in ("ann", "ben")
    ]
    rotation = Target.objects.create(
        name="rotation",
        kind="on_call",
        rotation_days=1,
        rotation_starts_at=now - timedelta(hours=1),
        created_at=now,
    )
    for position, one in enumerate(people):
        OnCallMember.objects.create(rotation=rotation, position=position, person=one)
    TeamContact.objects.filter(team=payments, kind="on_call").update(target=rotation)
    approval = ask()

    services.deny(
        approval_id=approval.pk,
        comment="",
        actor=User.objects.get(username="rita").as_actor(),
        now=now + timedelta(days=1),
    )

    asked = ["email:ann@example.org", "slack:#payments"]
    assert destinations("approval.requested") == asked
    assert destinations("approval.decided") == asked


def test_decision_reaches_the_channel_of_a_removed_route(payments):
    channel = Target.objects.create(
        name="#ops", kind="channel", address="slack:#ops", created_at=db_now()
    )
    Route.objects.create(event="*", target=channel, created_at=db_now())
    approval = ask("segment:other")
    Route.objects.all().delete()

    services.deny(
        approval_id=approval.pk,
        comment="",
        actor=person("admin", "ada").as_actor(),
        now=db_now(),
    )

    assert destinations("approval.decided") == ["slack:#ops"]
