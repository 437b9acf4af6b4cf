"""Authorization bypasses: extra fields, other people's objects, forged names."""

from contextlib import ExitStack, suppress

import pytest
from django.test import Client, RequestFactory

from controlplane.accounts.authentication import throttle
from controlplane.accounts.authentication.tests.people import PASSWORD, kim
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.tokens import services as tokens
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import TooManyRequests
from controlplane.core.http import confirmation
from controlplane.core.http.client_address import network_of
from controlplane.core.http.tests.callers import (
    Api,
    browser_of,
    person,
    signed_in,
    token_text,
)
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports.email import transport as email
from switches.models import Switch
from switches.tests.browsers import engaged

pytestmark = pytest.mark.django_db
JUSTIFIED = {"justification": "vendor says it is mended, queue empty"}


def stale(client):
    """Make the client's last confirmation old."""
    session = client.session
    session[confirmation.KEY] = 0
    session.save()
    return client


def test_no_more_is_changed_of_a_person_than_may_be():
    ada, lee = person("admin", "ada"), person("viewer", "lee")
    more = {"is_superuser": True, "is_staff": True, "password": "x", "username": "root", "id": 1}

    response = signed_in(ada).patch(f"/users/{lee.pk}/", {"display_name": "Lee", **more})

    after = User.objects.get(pk=lee.pk)
    assert response.status_code == 400
    assert (after.display_name, after.username, after.role) == ("", "lee", "viewer")
    assert (after.password, after.is_admin) == (lee.password, False)


def test_nobody_gives_themselves_a_role():
    lee = person("viewer", "lee")

    browser_of(lee).post("/preferences/", {"display_name": "Lee", "role": "admin"})
    browser_of(lee).post("/preferences/", {"time_zone": "UTC", "is_active": "on", "role": "admin"})

    assert User.objects.get(pk=lee.pk).role == "viewer"


def test_nobody_connects_themselves_with_slack_or_with_another_address():
    """A Slack account identifies its owner, and links to new passwords go to the e-mail address."""
    lee = person("approver", "lee")
    more = {"slack_user_id": "U024BE7LH", "email": "lee@evil.example", "username": "ada"}

    browser_of(lee).post("/preferences/", {"display_name": "L.", "time_zone": "UTC", **more})

    after = User.objects.get(pk=lee.pk)
    assert (after.display_name, after.username) == ("L.", "lee")
    assert (after.slack_user_id, after.email) == (lee.slack_user_id, lee.email)


def test_a_key_of_somebody_else_gives_no_answer_of_theirs():
    ada, bea, lee = (person("admin", name) for name in ("ada", "bea", "lee"))
    request_body = {"name": "ci", "scopes": ["slo:read"]}
    first = signed_in(ada).post("/tokens/", request_body, idempotency_key="known")

    again = signed_in(bea).post("/tokens/", request_body, idempotency_key="known")
    User.objects.filter(pk=lee.pk).update(role="viewer")
    refused = signed_in(User.objects.get(pk=lee.pk)).post(
        "/tokens/", request_body, idempotency_key="known"
    )

    assert (first.status_code, again.status_code, refused.status_code) == (201, 201, 403)
    assert "Idempotent-Replayed" not in again
    assert again.json()["id"] != first.json()["id"]


def test_who_is_no_admin_any_more_gets_no_answer_from_then_again():
    ada = person("admin", "ada")
    person("admin", "bea")
    request_body = {"name": "ci", "scopes": ["slo:read"]}
    signed_in(ada).post("/tokens/", request_body, idempotency_key="mine")
    User.objects.filter(pk=ada.pk).update(role="viewer")

    response = signed_in(User.objects.get(pk=ada.pk)).post(
        "/tokens/", request_body, idempotency_key="mine"
    )

    assert response.status_code == 403


@pytest.mark.parametrize(
    "more", [{"digest": "0" * 64}, {"prefix": "chosen0001"}, {"owner_id": 1}, {"token": "sg_a_b"}]
)
def test_a_token_is_made_of_what_was_asked_for_and_no_more(more):
    ada, lee = person("admin", "ada"), person("viewer", "lee")
    body = {"name": "ci", "scopes": ["slo:read"], "owner": "lee"}

    refused = signed_in(ada).post("/tokens/", {**body, **more})
    response = signed_in(ada).post("/tokens/", body)

    made = Token.objects.get()
    assert (refused.status_code, response.status_code) == (400, 201)
    assert (made.owner, made.scopes) == (lee, ["slo:read"])
    assert made.prefix != "chosen0001"
    assert made.digest != "0" * 64


def test_a_request_is_not_edited_into_an_approved_one():
    engaged("global:all")
    asker = signed_in(User.objects.get(username="kim"))
    asker.post("/switches/global/all/release", JUSTIFIED)
    waiting = Approval.objects.get()

    more = {"state": "approved", "decided_by": "user:ada", "requester": None}
    asker.patch(f"/approvals/{waiting.pk}/", {"reason": "the vendor says so again", **more})

    assert not Approval.objects.filter(state="approved").exists()
    assert Switch.objects.get(pk="global:all").state == "engaged"


def test_sessions_of_somebody_else_are_neither_seen_nor_ended():
    ada, lee = person("admin", "ada"), person("operator", "lee")
    browser_of(ada)
    theirs = BrowserSession.objects.get(user=ada)
    mine = signed_in(lee)

    answers = [
        mine.get("/sessions/", {"user": "ada"}),
        mine.post("/sessions/end", {"user": "ada"}),
        mine.send("delete", f"/sessions/{theirs.pk}/"),
    ]
    mine.client.post("/preferences/sessions/end/", {"session": theirs.pk, "user": "ada"})

    assert [answer.status_code for answer in answers] == [403, 403, 404]
    assert BrowserSession.objects.filter(pk=theirs.pk).exists()


def test_a_token_of_somebody_else_is_not_revoked():
    ada, lee = person("admin", "ada"), person("operator", "lee")
    token_text(ada, ["switches:read"])
    token = Token.objects.get()

    response = browser_of(lee).post(f"/tokens/{token.pk}/revoke/", {"reason": "just because of it"})

    token.refresh_from_db()
    assert response.status_code in {403, 404}
    assert token.revoked_at is None


def test_a_token_that_is_handed_over_may_what_its_new_owner_may():
    ada, lee = person("admin", "ada"), person("operator", "lee")
    text = token_text(ada, ["switches:write"])
    token = Token.objects.get()
    api = Api(authorization=f"Bearer {text}")
    assert api.engage("segment:finance").status_code == 200

    tokens.hand_over_token(token=token, owner=lee, actor=ada.as_actor(), now=db_now())
    User.objects.filter(pk=lee.pk).update(role="viewer")

    assert api.engage("segment:emea").status_code == 403


def test_nobody_approves_what_a_token_of_theirs_asked_for():
    ada = person("admin", "ada")
    engaged("global:all")
    program = Api(authorization=f"Bearer {token_text(ada, ['switches:read', 'switches:write'])}")
    response = program.post("/switches/global/all/release", JUSTIFIED)
    waiting = Approval.objects.get()

    by_person = signed_in(ada).post(f"/approvals/{waiting.pk}/approve", {"comment": "fine"})
    by_program = program.post(f"/approvals/{waiting.pk}/approve", {"comment": "fine"})

    assert response.status_code == 202
    assert {by_person.status_code, by_program.status_code} == {403}
    assert Switch.objects.get(pk="global:all").state == "engaged"


def test_nobody_approves_their_own_request_with_a_new_role():
    engaged("global:all")
    asker = User.objects.get(username="kim")
    signed_in(asker).post("/switches/global/all/release", JUSTIFIED)
    User.objects.filter(pk=asker.pk).update(role="admin")
    waiting = Approval.objects.get()

    api = signed_in(User.objects.get(pk=asker.pk)).post(f"/approvals/{waiting.pk}/approve", {})
    page = browser_of(User.objects.get(pk=asker.pk)).post(f"/approvals/{waiting.pk}/approve/", {})

    assert api.status_code == 403
    assert page.status_code in {302, 403}
    assert Approval.objects.get(pk=waiting.pk).state == "pending"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/switches/global/all/engage",
            {"reason": "card payments charged twice", "expires_in": "1h"},
        ),
        ("/switches/global/all/release", JUSTIFIED),
    ],
)
def test_the_api_asks_who_one_is_as_the_pages_do(path, body):
    api = Api(stale(browser_of(person("admin", "ada"))))

    response = api.post(path, body)

    assert response.status_code == 403
    assert "/confirm/" in str(response.json())
    assert api.get("/switches/global/all/").json()["state"] == "released"


@pytest.mark.parametrize(
    "path", ["/sign-out/", "/confirm/", "/theme/", "/preferences/", "/preferences/sessions/end/"]
)
def test_no_other_site_sends_a_form_for_somebody(path):
    browser = browser_of(person("operator", "lee"), csrf=True)
    before = BrowserSession.objects.count()

    response = browser.post(path, {"password": "x", "theme": "dark"})

    assert response.status_code == 403
    assert BrowserSession.objects.count() == before


@pytest.mark.parametrize("name", ["host", "x-forwarded-host", "forwarded"])
def test_the_link_to_a_new_password_leads_to_no_planted_host(name, settings):
    settings.EMAIL = type(settings.EMAIL)("127.0.0.1", 25, "", "", "", "switchgear@example.org")
    settings.PUBLIC_URL = "https://console.example"
    settings.ALLOWED_HOSTS = ["*"]
    kim(email="kim@example.org")

    Client(headers={name: "evil.example"}).post("/sign-in/forgotten/", {"who": "kim"})

    message = OutboxMessage.objects.get()
    mail = email.make_mail(message, "kim@example.org").as_string()
    assert "https://console.example/sign-in/reset/" in mail.replace("=\n", "")
    assert "evil.example" not in mail


def test_a_name_starts_no_header_of_its_own():
    lee = person("operator", "lee")

    response = browser_of(lee).post(
        "/preferences/", {"display_name": "Lee\r\nSet-Cookie: a=b", "time_zone": "UTC"}, follow=True
    )

    assert "a" not in response.cookies
    assert not any("\n" in f"{name}{value}" for name, value in response.headers.items())


def test_a_password_is_not_guessed_at_an_open_browser(settings):
    browser = browser_of(kim())
    sent = {"new_password1": "another-fine-4", "new_password2": "another-fine-4"}
    answers = [
        browser.post("/preferences/", {"old_password": f"guess-{number}", **sent}).status_code
        for number in range(settings.AXES_FAILURE_LIMIT + 1)
    ]

    assert answers[0] == 422
    assert answers[-1] == 429
    assert browser.post("/preferences/", {"old_password": PASSWORD, **sent}).status_code == 429
    assert User.objects.get(username="kim").check_password(PASSWORD)


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_signing_in_takes_no_other_method(method):
    answer = getattr(Client(), method)("/sign-in/", {"username": "kim", "password": PASSWORD})

    assert answer.status_code == 405


def test_strangers_of_one_address_do_not_fill_the_table_of_sessions(monkeypatch):
    monkeypatch.setattr(throttle, "MAX_ANONYMOUS", 10)
    monkeypatch.setattr(throttle, "EVICTED_AT_ONCE", 1)

    def get_status(address):
        return Client(REMOTE_ADDR=address).get("/sign-in/passkey/").status_code

    crowd = [get_status("203.0.113.7") for _ in range(15)]

    assert set(crowd) == {200}
    assert BrowserSession.objects.count() == 10
    assert get_status("203.0.113.8") == 200


def test_flood_of_names_from_one_address_is_refused_before_a_password_is_compared():
    address = "203.0.113.9"

    def tried(name, password="no", ip=address):
        sent = {"username": name, "password": password}
        return Client(REMOTE_ADDR=ip).post("/sign-in/", sent).status_code

    user = kim()
    came_in = tried(user.username, PASSWORD)
    request = RequestFactory(REMOTE_ADDR=address).get("/")
    with suppress(TooManyRequests):
        for _ in range(int(throttle.ATTEMPTS.burst) + 10):
            throttle.count_attempt(request)

    assert came_in == 302
    assert tried("nobody") == 429
    assert tried(user.username, PASSWORD) == 302
    assert tried("nobody", ip="203.0.113.10") == 422


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
    ],
)
def test_client_counts_by_an_ipv4_address_or_an_ipv6_network(address, network):
    assert network_of(address) == network


def test_addresses_of_one_ipv6_network_are_counted_together():
    def count(address):
        throttle.count_attempt(RequestFactory(REMOTE_ADDR=address).get("/"))

    for number in range(int(throttle.ATTEMPTS.burst)):
        count(f"2001:db8::{number:x}")

    with pytest.raises(TooManyRequests):
        count("2001:db8::ffff")
    count("2001:db8:0:1::1")


def test_crowd_at_the_door_waits_its_turn_and_is_told_so(client, monkeypatch):
    user = kim()
    monkeypatch.setattr(throttle, "HASHING_WAITS_SECONDS", 0.05)

    with ExitStack() as others:
        for _ in range(throttle.HASHED_AT_ONCE):
            others.enter_context(throttle.limit_hashing())
        crowded = client.post("/sign-in/", {"username": user.username, "password": PASSWORD})
    alone = client.post("/sign-in/", {"username": user.username, "password": PASSWORD})

    assert (crowded.status_code, crowded["Retry-After"]) == (429, "3")
    assert alone.status_code == 302


def test_text_that_reads_other_than_it_is_stored_is_refused_wherever_it_would_be_kept():
    ada = person("admin", "ada")
    api = signed_in(ada)
    api.engage("feature:chat")
    _, text = tokens.create_token(
        name="ci", owner=ada, scopes=["switches:read"], actor=ada.as_actor(), now=db_now()
    )
    token = Token.objects.get()
    api.engage("global:all")
    release = api.post("/switches/global/all/release", {**JUSTIFIED, "mode": "immediate"})
    approval = release.json()["approval"]["id"]
    turned = "ok \u202egnp.exe"

    refused = {
        "comment of an approval": api.post(f"/approvals/{approval}/deny", {"comment": turned}),
        "acknowledgement": api.post("/switches/feature/chat/acknowledge", {"comment": turned}),
        "name of a token": api.post("/tokens/", {"name": turned, "scopes": ["switches:read"]}),
        "reason to revoke": api.post(f"/tokens/{token.pk}/revoke", {"reason": turned}),
        "name of a person": api.patch(f"/users/{ada.pk}/", {"display_name": turned}),
    }

    assert text
    assert {where: answer.status_code for where, answer in refused.items()} == dict.fromkeys(
        refused, 400
    )
    assert not AuditEntry.objects.filter(reason__contains="\u202e").exists()


def test_two_people_are_not_told_apart_by_capitals_alone():
    api = signed_in(person("admin", "ada"))

    response = api.post("/users/", {"username": "Ada", "role": "viewer"})

    assert response.status_code == 400
    assert "ada already exists" in response.content.decode()
