"""The Tokens page: creation with a secret shown once, revocation with a reason, handover."""

import re
from datetime import timedelta

import pytest

from controlplane.accounts.models.tokens import Token
from controlplane.accounts.tokens import forms, services
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import Api, browser_of, person, token_text
from controlplane.core.roles import ALL_SCOPES

pytestmark = pytest.mark.django_db
DIALOG = {"HX-Request": "true", "HX-Target": "dialog-body"}


@pytest.fixture
def admin():
    return person("admin", "root")


@pytest.fixture
def root(admin):
    return browser_of(admin)


def build_form(person_, **more):
    token = {"name": "billing", "scopes": ["switches:read"], "days": "90"}
    return {**token, "owner": person_.pk, **more}


def page(client, query=""):
    return " ".join(client.get(f"/tokens/{query}").content.decode().split())


def test_words_say_every_scope_once():
    named = [scope for _, area in forms.AREAS for scope, _ in area]

    assert sorted(named) == sorted(ALL_SCOPES)


def test_new_token_is_shown_once_and_works(root, admin):
    html = root.post("/tokens/new/", build_form(admin), headers=DIALOG).content.decode()

    text = re.search(r'<pre id="token-text"[^>]*>([^<]+)</pre>', html)[1]
    assert Api(authorization=f"Bearer {text}").get("/switches/").status_code == 200
    token = Token.objects.get()
    assert abs(token.expires_at - db_now() - timedelta(days=90)) < timedelta(minutes=1)
    secret = services.split_token(text)[1]
    assert secret not in page(root)
    assert secret not in AuditEntry.objects.get(action="token.created").after


def test_form_offers_ninety_days(root):
    html = root.get("/tokens/new/", headers=DIALOG).content.decode()

    assert re.findall(r'<option\s+value="(\d*)"\s+selected>\s*\d+ days', html) == ["90"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "required"),
        ({"scopes": []}, "Choose at least one"),
        ({"scopes": ["all"]}, "valid choice"),
        ({"days": "7000000"}, "valid choice"),
        ({"owner": 0}, "valid choice"),
    ],
)
def test_wrong_field_is_told_and_no_token_is_made(root, admin, wrong, message):
    response = root.post("/tokens/new/", build_form(admin, **wrong))

    assert response.status_code == 422
    assert message in response.content.decode()
    assert not Token.objects.exists()


def test_owner_who_may_not_is_told(root):
    viewer = person("viewer", "lee")

    response = root.post("/tokens/new/", build_form(viewer, scopes=["switches:write"]))

    assert response.status_code == 422
    assert "lee (viewer) may not use: switches:write" in response.content.decode()


def test_states_are_told_apart(root, admin):
    for name in ("plain", "soon", "gone", "over", "orphan"):
        token_text(admin, ["switches:read"], name)
    now, tokens = db_now(), Token.objects
    tokens.filter(name="soon").update(expires_at=now + timedelta(days=3))
    tokens.filter(name="gone").update(revoked_at=now)
    tokens.filter(name="over").update(expires_at=now - timedelta(days=1))
    left = person("viewer", "left")
    left.is_active = False
    left.save()
    tokens.filter(name="orphan").update(owner=left)

    def states(query):
        found = re.findall(
            r"<bdi>(\w+)</bdi> <span class=\"mono.*?<span>([^<]+)</span></span>",
            page(root, query),
            re.S,
        )
        return dict(found)

    assert states("") == {"plain": "In use", "soon": "Ends soon", "orphan": "Owner deactivated"}
    assert states("?state=ended") == {"gone": "Revoked", "over": "Expired"}
    assert states("?q=soo") == {"soon": "Ends soon"}
    assert states("?owner=left") == {"orphan": "Owner deactivated"}
    assert states("?q=%00&page=x") == states("")


def test_revoked_token_is_refused_and_the_reason_kept(root, admin):
    api = Api(authorization=f"Bearer {token_text(admin, ['switches:read'])}")
    path = f"/tokens/{Token.objects.get().pk}/revoke/"

    assert root.post(path, {"reason": " "}).status_code == 422
    assert api.get("/switches/").status_code == 200

    root.post(path, {"reason": "found in a public repository"})

    assert api.get("/switches/").status_code == 401
    entry = AuditEntry.objects.get(action="token.revoked")
    assert (entry.actor_name, entry.reason) == ("root", "found in a public repository")


def test_person_sees_and_revokes_their_own_only(admin):
    kim = person("operator", "kim")
    token_text(kim, ["switches:read"], "mine")
    token_text(admin, ["switches:read"], "theirs")
    client = browser_of(kim)
    mine, theirs = Token.objects.get(name="mine"), Token.objects.get(name="theirs")

    html = page(client)
    assert ("mine" in html, "theirs" in html, "Create a token" in html) == (True, False, False)
    assert client.post(f"/tokens/{theirs.pk}/revoke/", {"reason": "x"}).status_code == 404
    assert client.post("/tokens/new/", build_form(kim)).status_code == 403
    assert client.post(f"/tokens/{mine.pk}/hand-over/", {"owner": admin.pk}).status_code == 403

    assert client.post(f"/tokens/{mine.pk}/revoke/", {"reason": "not needed"}).status_code == 302
    assert Token.objects.filter(revoked_at=None).get() == theirs


def test_token_is_handed_to_somebody_who_may_as_much(root, admin):
    token_text(admin, ["switches:write"])
    path = f"/tokens/{Token.objects.get().pk}/hand-over/"
    viewer, kim = person("viewer", "lee"), person("operator", "kim")

    assert root.post(path, {"owner": viewer.pk}).status_code == 422
    assert root.post(path, {"owner": kim.pk}).status_code == 302
    assert Token.objects.get().owner == kim


def test_token_is_handed_over_by_the_api(root, admin):
    token_text(admin, ["switches:read"])
    lee = person("viewer", "lee")
    path = f"/api/v1/tokens/{Token.objects.get().pk}/hand-over"

    response = root.post(path, {"owner": "lee"}, content_type="application/json")

    assert (response.status_code, response.json()["owner"]) == (200, "lee")
    assert Token.objects.get().owner == lee


def test_whoever_has_not_lately_shown_who_they_are_is_asked_before_the_form(root, admin):
    session = root.session
    session[confirmation.KEY] = 0
    session.save()

    assert root.get("/tokens/new/")["Location"].startswith("/confirm/?next=")
    assert root.post("/tokens/new/", build_form(admin))["Location"].startswith("/confirm/?next=")
    made = root.post(
        "/api/v1/tokens/",
        {"name": "x", "scopes": ["switches:read"]},
        content_type="application/json",
    )
    assert (made.status_code, "confirm_url" in made.json()) == (403, True)
    assert not Token.objects.exists()


def test_nobody_revokes_who_signed_in_long_ago(root, admin):
    token_text(admin, ["switches:read"])
    path = f"/tokens/{Token.objects.get().pk}/revoke/"
    session = root.session
    session[confirmation.KEY] = 0
    session.save()

    for answer in (root.get(path), root.post(path, {"reason": "leaked"})):
        assert answer["Location"].startswith("/confirm/?next=")
    assert Token.objects.get().revoked_at is None


def test_form_limits_a_token_to_services(root, admin):
    root.post("/tokens/new/", build_form(admin, services="core, gateway"), headers=DIALOG)

    assert Token.objects.get().services == ["core", "gateway"]
    assert "Only for" in page(root)


def test_form_says_which_service_can_not_be(root, admin):
    html = root.post(
        "/tokens/new/", build_form(admin, services="a/b"), headers=DIALOG
    ).content.decode()

    assert "Not valid as service names: a/b" in html
    assert not Token.objects.exists()
