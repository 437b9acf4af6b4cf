"""Contacts of a team are changed by those who may edit it, without approval."""

import json

import pytest

from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.escalations import services as escalations
from controlplane.core.http.tests.callers import person, signed_in, with_token
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.models import TeamContact
from controlplane.notify.targets import services

from .people import add, an_admin

pytestmark = pytest.mark.django_db
PATH = "/teams/payments/contacts/"


@pytest.fixture
def lee():
    """The API for the lead of `payments`; there are a rotation, two channels and an escalation."""
    user = person("operator", "lee")
    create_team("payments", "segment:finance", leads=[user], parent=create_team("root"))
    add("pat", email="pat@example.org")
    add("pay-rotation", "on_call", members=["pat"], rotation_starts_at=db_now())
    add("#pay", "channel", address="slack:#pay")
    add("#pay-alarm", "channel", address="slack:#pay-alarm")
    add("pay-steps", "escalation", steps=[(0, "pay-rotation")])
    return signed_in(user)


def put(api, **contacts):
    return api.send("put", PATH, contacts)


def test_lead_sets_contacts_without_approval(lee):
    contacts = {"on_call": "pay-rotation", "channels": ["#pay-alarm", "#pay"]}

    answer = put(lee, **contacts, escalation="pay-steps")

    assert answer.status_code == 200, answer.json()
    assert lee.get(PATH).json() == {
        "team": "payments",
        "on_call": "pay-rotation",
        "channels": ["#pay", "#pay-alarm"],
        "escalation": "pay-steps",
        "person_on_call": {"name": "pat", "username": None, "team": "payments"},
    }
    row = AuditEntry.objects.get(action="team.contacts_changed")
    assert row.target == "team:payments"
    assert json.loads(row.before) == {"on_call": None, "channels": [], "escalation": None}
    assert json.loads(row.after)["channels"] == ["#pay", "#pay-alarm"]


def test_omitted_contacts_are_removed(lee):
    put(lee, channels=["#pay"], on_call="pat")

    put(lee, channels=["#pay-alarm"])

    found = TeamContact.objects.values_list("kind", "target__name")
    assert list(found) == [("channel", "#pay-alarm")]


def test_saving_the_same_writes_no_audit_row(lee):
    put(lee, channels=["#pay"])
    put(lee, channels=["#pay", "#pay"])

    assert AuditEntry.objects.filter(action="team.contacts_changed").count() == 1


def test_member_and_stranger_change_nothing(lee):
    for name in ("kim", "sam"):
        answer = put(signed_in(person("approver" if name == "kim" else "operator", name)))
        assert answer.status_code == 403
    assert with_token("switches:read").get(PATH).status_code == 200


@pytest.mark.parametrize(
    ("contacts", "field"),
    [
        ({"on_call": "#pay"}, "on_call"),
        ({"on_call": "nobody"}, "on_call"),
        ({"channels": ["pat"]}, "channels"),
        ({"escalation": "critical"}, "escalation"),
        ({"escalation": "pay-rotation"}, "escalation"),
    ],
)
def test_target_of_another_kind_is_refused(lee, contacts, field):
    answer = put(lee, **contacts)

    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert not TeamContact.objects.exists()


def test_unknown_team_is_not_found(lee):
    assert lee.get("/teams/unknown/contacts/").status_code == 404
    assert lee.send("put", "/teams/unknown/contacts/", {}).status_code == 404


def test_change_has_open_escalations_checked_at_once(lee):
    row = escalations.open_escalation(
        subject="job:1", event="job.stuck", severity="critical", facts={}, now=db_now()
    )
    Escalation.objects.update(next_at="2099-01-01T00:00:00Z")

    put(lee, on_call="pat")

    row.refresh_from_db()
    assert row.next_at <= db_now()


def test_target_in_use_by_a_team_is_not_removed(lee):
    put(lee, channels=["#pay"])
    target = TeamContact.objects.get().target

    with pytest.raises(Conflict, match="is used by the team Payments"):
        services.remove_target(target_id=target.pk, actor=an_admin(), now=db_now())


def test_channel_of_a_team_keeps_its_kind(lee):
    put(lee, channels=["#pay"])
    target = TeamContact.objects.get().target
    api = signed_in(person("admin", "ada"))

    answer = api.send(
        "put",
        f"/targets/{target.pk}/",
        {"name": "#pay", "kind": "person", "email": "x@example.org"},
    )

    assert answer.status_code == 400
    assert "kind" in answer.json()["errors"]
