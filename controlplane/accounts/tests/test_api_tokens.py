"""Tokens over HTTP: an admin makes one, sees its text once, and ends it."""

import pytest

from controlplane.accounts.models.tokens import Token
from controlplane.core.http.tests.callers import Api, as_role, person, with_token
from controlplane.core.idempotency.models import IdempotencyKey

CI = {"name": "ci", "scopes": ["switches:read", "switches:write"], "expires_in": "90d"}


@pytest.fixture
def admin(db):
    return as_role("admin")


def test_new_token_works_and_its_text_is_shown_once(admin):
    response = admin.post("/tokens/", CI)

    made = response.json()
    assert response.status_code == 201
    assert made["token"].startswith(f"sg_{made['prefix']}_")
    assert (made["owner"], made["scopes"]) == ("a-admin", CI["scopes"])
    assert made["expires_at"] > made["created_at"]
    assert Api(x_api_key=made["token"]).get("/switches/").status_code == 200
    (listed,) = admin.get("/tokens/").json()["results"]
    assert "token" not in listed
    assert "digest" not in listed


def test_text_of_a_token_is_stored_nowhere_not_even_for_a_repeat(admin):
    made = admin.post("/tokens/", CI, idempotency_key="k").json()

    again = admin.post("/tokens/", CI, idempotency_key="k")

    assert (again.status_code, again.json()) == (201, {**made, "token": None})
    assert Token.objects.count() == 1
    assert made["token"].rpartition("_")[2] not in IdempotencyKey.objects.get().body


def test_token_can_belong_to_somebody_else(admin):
    person("operator", "kim")

    assert admin.post("/tokens/", {**CI, "owner": "kim"}).json()["owner"] == "kim"


def test_token_without_an_end(admin):
    made = admin.post("/tokens/", {"name": "ci", "scopes": ["slo:read"]}).json()

    assert made["expires_at"] is None


def test_dry_run_makes_no_token(admin):
    response = admin.post("/tokens/", {**CI, "dry_run": True})

    assert (response.status_code, response.json()["token"]) == (200, None)
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "n" * 121}, "name"),
        ({"name": None}, "name"),
        ({"name": "nul\x00"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["everything"]}, "scopes"),
        ({"scopes": "slo:read"}, "scopes"),
        ({"scopes": {"slo:read": True}}, "scopes"),
        ({"scopes": [5]}, "scopes.0"),
        ({"expires_in": "soon"}, "expires_in"),
        ({"expires_in": 90}, "expires_in"),
        ({"owner": "nobody"}, "owner"),
    ],
)
def test_wrong_field_is_named(admin, fields, field):
    response = admin.post("/tokens/", {**CI, **fields})

    assert response.status_code == 400
    assert field in response.json()["errors"]
    assert not Token.objects.exists()


def test_owner_can_not_be_given_more_than_their_role_allows(admin):
    person("viewer", "kim")

    response = admin.post("/tokens/", {**CI, "owner": "kim"})

    assert response.status_code == 400
    assert "scopes" in response.json()["errors"]


def test_revoked_token_is_let_in_no_more_and_can_be_revoked_again(admin):
    made = admin.post("/tokens/", CI).json()

    revoked = admin.post(f"/tokens/{made['id']}/revoke", {"reason": "leaked in a log"})
    again = admin.post(f"/tokens/{made['id']}/revoke", {})

    assert revoked.status_code == again.status_code == 200
    assert revoked.json()["revoked_at"] == again.json()["revoked_at"] is not None
    assert Api(x_api_key=made["token"]).get("/switches/").status_code == 401
    rows = admin.get("/audit/", {"action": "token.revoked"}).json()["results"]
    assert [row["reason"] for row in rows] == ["leaked in a log"]


@pytest.mark.parametrize("token_id", ["0", "9" * 30])
def test_unknown_token_is_404(admin, token_id):
    assert admin.post(f"/tokens/{token_id}/revoke", {}).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_other_roles_are_refused(role):
    somebody = as_role(role)

    assert somebody.get("/tokens/").status_code == 403
    assert somebody.post("/tokens/", CI).status_code == 403
    assert somebody.post("/tokens/1/revoke", {}).status_code == 403


@pytest.mark.django_db
def test_no_token_makes_tokens_even_if_its_owner_could():
    program = with_token("switches:write", "audit:read")

    assert program.get("/tokens/").status_code == 403
    assert program.post("/tokens/", CI).status_code == 403
    assert Api().get("/tokens/").status_code == 401


def test_token_can_be_limited_to_services(admin):
    made = admin.post("/tokens/", {**CI, "services": ["gateway", "core"]}).json()

    assert made["services"] == ["core", "gateway"]
    (listed,) = admin.get("/tokens/").json()["results"]
    assert listed["services"] == ["core", "gateway"]


def test_token_for_what_is_no_service_names_the_field(admin):
    response = admin.post("/tokens/", {**CI, "services": ["a/b"]})

    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["services"]
