"""The contacts on the page of a team, and their form."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.notify.models import TeamContact
from controlplane.notify.targets import contact_services

from .people import add

pytestmark = pytest.mark.django_db
PAGE, FORM = "/teams/payments/", "/teams/payments/contacts/"


@pytest.fixture
def payments():
    """The team `payments` with the lead `lee`, below `root`; `pat` is in a rotation."""
    team = create_team("payments", leads=[person("operator", "lee")], parent=create_team("root"))
    add("pat", email="pat@example.org")
    add("pay-rotation", "on_call", members=["pat"], rotation_starts_at=db_now())
    add("#pay", "channel", address="slack:#pay")
    add("pay-steps", "escalation", steps=[(0, "pat")])
    return team


def browser(username="lee"):
    return browser_of(User.objects.get(username=username))


def panel(client):
    html = client.get(PAGE).content.decode()
    return " ".join(html.partition('id="contacts"')[2].partition("</section>")[0].split())


def test_lead_chooses_contacts(payments):
    client = browser()
    form = client.get(FORM)
    assert form.status_code == 200
    assert 'value="critical"' not in form.content.decode()

    answer = client.post(
        FORM,
        {"on_call": "pay-rotation", "channel_0": "#pay", "channel_1": "", "escalation": ""},
    )

    assert answer.status_code in (302, 303)
    shown = panel(client)
    assert "pat" in shown
    assert "#pay" in shown
    assert "The person on call, immediately" in shown
    assert TeamContact.objects.filter(team=payments).count() == 2


def test_form_shows_the_present_contacts(payments):
    contact_services.set_contacts(
        slug="payments", channels=["#pay"], actor=_lead(), now=db_now(), escalation="pay-steps"
    )

    html = browser().get(FORM).content.decode()

    assert '<option value="#pay" selected>' in html
    assert '<option value="pay-steps" selected>' in html


def test_contacts_that_someone_else_changed_are_not_overwritten(payments):
    client = browser()
    seen = contact_services.get_revision(contact_services.read_document("payments"))
    contact_services.set_contacts(slug="payments", on_call="pat", actor=_lead(), now=db_now())

    answer = client.post(FORM, {"seen": seen, "channel_0": "#pay"})

    assert answer.status_code == 422
    assert "Someone else changed these contacts" in answer.content.decode()
    assert TeamContact.objects.get().kind == "on_call"


def test_page_says_who_stands_in(payments):
    parent = payments.parent
    add("rita", email="rita@example.org")
    for kind, name in (("on_call", "rita"), ("channel", "#pay")):
        target = contact_services.fields.find_target(name)
        TeamContact.objects.create(team=parent, kind=kind, target=target)

    shown = panel(browser())

    assert "rita" in shown
    assert "from a team above" in shown
    assert "Messages go to the channels of <bdi>Root</bdi>" in shown


def test_page_says_that_nobody_is_notified(payments):
    shown = panel(browser())

    assert "Nobody" in shown
    assert "Messages go by routes only" in shown


def test_others_see_no_button_and_no_form(payments):
    person("operator", "sam")

    assert "change-contacts" in panel(browser())
    assert "change-contacts" not in panel(browser("sam"))
    assert browser("sam").get(FORM).status_code == 403
    assert browser("sam").post(FORM, {"on_call": "pat"}).status_code == 403
    assert not TeamContact.objects.exists()


def test_unknown_team_is_not_found(payments):
    assert browser().get("/teams/unknown/contacts/").status_code == 404


def _lead():
    return User.objects.get(username="lee").as_actor()
