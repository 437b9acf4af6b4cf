"""Credentials: accepted kinds, answers to invalid ones, and robustness against both."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.http.tests.callers import (
    MODEL_BACKEND,
    Api,
    as_role,
    person,
    signed_in,
    token_text,
    with_token,
)

pytestmark = pytest.mark.django_db
LIST = "/switches/"


def test_no_credential_is_401_and_says_how_to_send_one():
    response = Api().get(LIST)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="switchgear"'
    assert response["Content-Type"] == "application/problem+json"
    assert "Bearer sg_" in response.json()["detail"]


def test_token_is_taken_from_either_header():
    text = token_text(person("admin"), ["switches:read"])

    assert Api(authorization=f"Bearer {text}").get(LIST).status_code == 200
    assert Api(authorization=f"bearer  {text} ").get(LIST).status_code == 200
    assert Api(x_api_key=text).get(LIST).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "sg_",
        "sg__",
        "sg_abc",
        "sg_abc_",
        "sg__secret",
        "sk_abcdefghij_secret",
        "sg_abcdefghij_secret",
        "sg_abc\x00def_secret",
        "sg_é_ü",
        "sg_" + "a" * 20_000 + "_" + "b" * 20_000,
        "sg_%s_%s' OR 1=1 --",
        "_" * 50,
    ],
)
def test_wrong_token_is_401_whatever_it_looks_like(text):
    for headers in ({"authorization": f"Bearer {text}"}, {"x_api_key": text}):
        response = Api(**headers).get(LIST)

        assert response.status_code == 401
        assert response["WWW-Authenticate"]


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic YTpi", "Digest x", "\x00", "é", ",,,", "Bearer\tx", ""]
)
def test_odd_authorization_is_401(header):
    assert Api(authorization=header).get(LIST).status_code == 401


def test_right_prefix_with_another_secret_is_401():
    text = token_text(person("admin"), ["switches:read"])

    assert Api(x_api_key=text[:-1] + ("x" if text[-1] != "x" else "y")).get(LIST).status_code == 401


def test_expired_token_is_401():
    text = token_text(person("admin"), ["switches:read"], lifetime=timedelta(hours=1))
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert Api(x_api_key=text).get(LIST).status_code == 401


def test_revoked_token_is_401():
    text = token_text(person("admin"), ["switches:read"])
    tokens.revoke_token(token=Token.objects.get(), actor=system_actor("test"), now=timezone.now())

    assert Api(x_api_key=text).get(LIST).status_code == 401


def test_token_of_a_deactivated_owner_is_401():
    person("admin")
    owner = person("operator")
    text = token_text(owner, ["switches:read"])
    people.change_user(user=owner, is_active=False, actor=system_actor("test"), now=timezone.now())

    assert Api(x_api_key=text).get(LIST).status_code == 401


def test_token_keeps_only_the_scopes_its_owner_still_has():
    person("admin")
    owner = person("operator")
    program = Api(x_api_key=token_text(owner, ["switches:read", "switches:write"]))
    people.change_user(user=owner, role="viewer", actor=system_actor("test"), now=timezone.now())

    assert program.get(LIST).status_code == 200
    refused = program.engage("segment:finance")

    assert refused.status_code == 403
    assert refused.json()["scope"] == "switches:write"


def test_wrong_token_does_not_fall_back_to_the_session():
    browser = as_role("admin")

    assert browser.get(LIST, authorization="Bearer sg_wrong_token").status_code == 401


def test_another_scheme_in_authorization_leaves_the_session_alone():
    browser = as_role("viewer")

    assert browser.get(LIST, authorization="Basic cHJveHk6cHJveHk=").status_code == 200


def test_session_of_a_deactivated_person_is_401():
    person("admin")
    user = person("viewer")
    browser = signed_in(user)
    people.change_user(user=user, is_active=False, actor=system_actor("test"), now=timezone.now())

    assert browser.get(LIST).status_code == 401


@pytest.mark.parametrize("cookie", ["x", "é", "\x00", "a" * 5000, "' OR 1=1"])
def test_wrong_session_cookie_is_401(cookie):
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = cookie

    assert Api(client).get(LIST).status_code == 401


def test_session_without_csrf_token_may_read_and_not_change():
    browser = signed_in(person("operator"), csrf=True)

    assert browser.get(LIST).status_code == 200
    refused = browser.engage("segment:finance")

    assert refused.status_code == 403
    assert refused["Content-Type"] == "application/problem+json"
    assert "X-CSRFToken" in refused.json()["detail"]
    assert browser.get("/switches/segment/finance/").json()["state"] == "released"


def test_session_with_its_csrf_token_may_change():
    browser = signed_in(person("operator"), csrf=True)
    browser.client.cookies["csrftoken"] = "c" * 32

    assert browser.engage("segment:finance", headers={"x_csrftoken": "d" * 32}).status_code == 403
    assert browser.engage("segment:finance", headers={"x_csrftoken": "c" * 32}).status_code == 200


def test_token_needs_no_csrf_token_even_beside_a_session():
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("viewer"), backend=MODEL_BACKEND)
    program = Api(client, **with_token("switches:write").headers)

    assert program.engage("segment:finance").status_code == 200


def test_every_other_form_of_a_path_checks_csrf_too():
    browser = signed_in(person("operator"), csrf=True)

    assert browser.post("/switches/segment/finance/engage/", {}).status_code == 403


def test_use_of_a_token_is_noted():
    text = token_text(person("admin"), ["switches:read"])

    Api(x_api_key=text).get(LIST)

    assert Token.objects.get().last_used_at is not None


def test_audit_names_the_token_and_undo_belongs_to_whoever_engaged():
    program = with_token("switches:write", "audit:read")

    program.engage("segment:finance")

    row = program.get("/audit/", {"action": "switch.engaged"}).json()["results"][0]
    assert row["actor"] == {"type": "token", "name": "ci"}
    assert as_role("admin").post("/switches/segment/finance/undo").status_code == 409
    assert program.post("/switches/segment/finance/undo").status_code == 200
