"""Password resets: recipients, effect and limits of a link."""

import re
import time

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from controlplane.accounts.authentication import resets
from controlplane.accounts.authentication.views import password_reset
from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports.email import transport as email

from .people import WORLD, first_step, kim, with_app

pytestmark = pytest.mark.django_db
ASK = "/sign-in/forgotten/"
NEW = "another-fine-secret-4"
ADDRESS = "kim@example.org"


@pytest.fixture(autouse=True)
def mail(settings):
    settings.EMAIL = email_at("127.0.0.1", settings)
    settings.PUBLIC_URL = "https://console.example"


@pytest.fixture(autouse=True)
def soon(request, monkeypatch):
    """Shorten the minimum time of an answer, except for the test that measures it."""
    if "unhurried" not in request.fixturenames:
        monkeypatch.setattr(password_reset, "ANSWER_SECONDS", 0.01)


@pytest.fixture
def unhurried():
    """Keep the real minimum time of an answer."""


def email_at(host, settings):
    return type(settings.EMAIL)(host, 25, "", "", "", "switchgear@example.org")


def ask(who):
    return Client().post(ASK, {"who": who})


def choose(client, path, password=NEW, address="127.0.0.1"):
    page = client.get(path, follow=True).redirect_chain[-1][0]
    given = {"new_password1": password, "new_password2": password}
    return client.post(page, given, REMOTE_ADDR=address)


def link_in(message):
    text = email.make_mail(message, ADDRESS).get_body(("plain",)).get_content()
    return re.search(r"https://console\.example(/sign-in/reset/\S+)", text)[1]


@pytest.mark.parametrize("who", ["kim", ADDRESS, "KIM@example.org"])
def test_one_answer_and_about_one_time_whether_there_is_anybody(who, unhurried):
    kim(email=ADDRESS)
    times, answers = [], []
    for typed in (who, "nobody", "nobody@example.org"):
        began = time.monotonic()
        answers.append(re.sub(r'value="[^"]+"', "", ask(typed).content.decode()))
        times.append(time.monotonic() - began)

    assert len(set(answers)) == 1
    assert min(times) >= 0.39
    assert OutboxMessage.objects.get().destination == f"email:{ADDRESS}"


def test_link_is_in_the_mail_and_in_no_table():
    user = kim(email=ADDRESS)
    ask("kim")
    message = OutboxMessage.objects.get()

    link = link_in(message)
    _, uid, token = link.rstrip("/").rsplit("/", 2)

    assert resets.tokens.check_token(user, token)
    assert uid
    kept = f"{list(OutboxMessage.objects.values())} {list(AuditEntry.objects.values())}"
    assert token not in kept
    assert "sign-in/reset" not in kept


def test_nobody_is_mailed_twice_in_a_few_minutes():
    kim(email=ADDRESS)
    for _ in range(3):
        ask("kim")

    assert OutboxMessage.objects.count() <= 2  # Two, if five minutes began meanwhile.
    entries = AuditEntry.objects.filter(action="user.reset_asked")
    assert entries.count() >= 1


@pytest.mark.parametrize("field", [{"is_active": False}, {"email": ""}, {"password": "!"}])
def test_who_has_no_address_no_password_or_no_access_gets_no_mail(field):
    kim(email=ADDRESS)
    User.objects.update(**field)

    assert ask("kim").status_code == 200
    assert not OutboxMessage.objects.exists()


def test_link_sets_the_password_once_and_ends_all_sessions():
    user = kim()
    elsewhere = Client()
    first_step(elsewhere)
    path = resets.build_path(User.objects.get(pk=user.pk))
    client, other = Client(), Client()
    other.get(path)

    done = choose(client, path)

    assert done["Location"] == "/sign-in/"
    assert elsewhere.get("/").status_code == 302
    assert first_step(Client(), password=NEW).status_code == 302
    assert Client().get(path).status_code == 410
    late = {"new_password1": "x-correct-horse-1", "new_password2": "x-correct-horse-1"}
    assert other.post(path.rsplit("/", 2)[0] + "/link/", late).status_code == 410
    assert first_step(Client()).status_code == 422


def test_token_leaves_the_address_at_once():
    path = resets.build_path(kim())
    token = path.rstrip("/").rsplit("/", 1)[1]

    response = Client().get(path)

    assert response.status_code == 302
    assert token not in response["Location"]


def test_link_lets_nobody_past_the_second_factor():
    user = kim()
    with_app(user)
    client = Client()
    choose(client, resets.build_path(user))

    assert first_step(client, password=NEW)["Location"] == "/sign-in/second/"


def test_link_lasts_an_hour():
    user = kim()
    with time_machine.travel("2026-11-21T02:00:00Z", tick=False) as clock:
        path = resets.build_path(user)
        clock.shift(3590)
        assert Client().get(path).status_code == 302
        clock.shift(20)
        assert Client().get(path).status_code == 410


@pytest.mark.parametrize("uid", ["x", "MQ", "____", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "%00"])
def test_odd_links_are_spent(uid):
    assert Client().get(f"/sign-in/reset/{uid}/abc-def/").status_code == 410


def test_vague_password_is_refused_and_the_link_stays_good():
    path = resets.build_path(kim())
    client = Client()

    assert choose(client, path, "12345678").status_code == 422
    assert choose(client, path).status_code == 302


def test_admin_makes_a_link_that_the_trail_notes_without_it():
    user = kim()

    url = resets.issue_link(user, WORLD, db_now())

    assert url.startswith("https://console.example/sign-in/reset/")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("user.reset_issued", "user:kim")
    assert url.rsplit("/", 2)[1] not in str((entry.before, entry.after, entry.reason))
    assert choose(Client(), url.removeprefix("https://console.example")).status_code == 302


def test_no_link_is_made_for_who_is_deactivated():
    user = kim()
    user.is_active = False

    with pytest.raises(Conflict):
        resets.issue_link(user, system_actor("test"), db_now())


def test_without_a_mail_server_nothing_is_offered(settings):
    settings.EMAIL = email_at("", settings)

    assert Client().get(ASK).status_code == 404
    assert "forgotten" not in Client().get("/sign-in/").content.decode()


def test_who_tried_too_often_gets_in_with_the_new_password_and_others_still_wait(client):
    user = kim(email=ADDRESS)
    for browser, address in ((client, "192.0.2.1"), (Client(), "192.0.2.2")):
        for _ in range(settings.AXES_FAILURE_LIMIT):
            sign_in(browser, "wrong", address)

    choose(client, resets.build_path(user), address="192.0.2.1")

    assert sign_in(client, NEW, "192.0.2.1").status_code == 302
    assert sign_in(Client(), NEW, "192.0.2.2").status_code == 429


def sign_in(client, password, address):
    given = {"username": "kim", "password": password}
    return client.post("/sign-in/", given, REMOTE_ADDR=address)
