"""Permissions of every endpoint, for every role, by session and by token."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core.http.tests.callers import Api, as_role, person, token_text
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES

pytestmark = pytest.mark.django_db
ROLES = ("viewer", "operator", "approver", "admin")
OPERATORS = ("operator", "approver", "admin")
RELEASE = {"justification": "duplicate charges refunded, queue empty"}
ENGAGE = {"reason": "card payments charged twice", "expires_in": "1h"}
LATER = {"expires_in": "2d", "reason": "refund job is still running"}
F = "/switches/feature/beta"

# method, path, body, who may with a session, the scope a token needs (None: no token ever may)
ENDPOINTS = [
    ("get", "/switches/", None, ROLES, "switches:read"),
    ("get", f"{F}/", None, ROLES, "switches:read"),
    ("get", f"{F}/history", None, ROLES, "switches:read"),
    ("get", f"{F}/calls", None, ROLES, "switches:read"),
    ("get", f"{F}/preview", None, ROLES, "switches:read"),
    ("get", "/snapshot", None, ROLES, "switches:read"),
    ("post", "/check", {"features": ["beta"]}, ROLES, "switches:read"),
    ("get", "/approvals/", None, ROLES, "switches:read"),
    ("get", "/audit/", None, ROLES, "audit:read"),
    ("get", "/audit/export", None, ROLES, "audit:read"),
    ("patch", f"{F}/", {"owner": "growth"}, OPERATORS, "switches:write"),
    ("post", f"{F}/engage", ENGAGE, OPERATORS, "switches:write"),
    ("post", f"{F}/extend", LATER, OPERATORS, "switches:write"),
    ("post", f"{F}/acknowledge", {}, OPERATORS, "switches:write"),
    ("post", f"{F}/reconfirm", {"reason": "vendor contract ended for good"}, OPERATORS, None),
    ("post", f"{F}/release", RELEASE, OPERATORS, "switches:write"),
    ("post", f"{F}/undo", {}, OPERATORS, "switches:write"),
    ("post", "/approvals/{approval}/approve", {}, ("approver", "admin"), None),
    ("post", "/approvals/{approval}/deny", {}, ("approver", "admin"), None),
    ("get", "/tokens/", None, ("admin",), None),
    ("post", "/tokens/", {"name": "ci", "scopes": ["slo:read"]}, ("admin",), None),
    ("post", "/tokens/{token}/revoke", {}, ("admin",), None),
]
EVERY_ENDPOINT = pytest.mark.parametrize(
    ("method", "path", "body", "roles", "scope"),
    ENDPOINTS,
    ids=[f"{method} {path}" for method, path, *_ in ENDPOINTS],
)
EVERY_SCOPE = ["switches:read", "switches:write", "audit:read"]


@pytest.fixture(scope="module")
def ids(module_db):
    """Create a switch, a token, and a request by another person."""
    other = Api(x_api_key=token_text(person("admin", "other"), EVERY_SCOPE, name="other"))
    other.engage("feature:beta", expires_in="1h")
    approval_id = other.engage("feature:gamma", expires_in="permanent").json()["approval"]["id"]
    return {"approval": approval_id, "token": Token.objects.get(name="other").pk}


def call(api, method, path, body, ids):
    at = path.format(**ids)
    return api.get(at) if method == "get" else api.send(method, at, body)


def door(response):
    """Return True unless the response is 403; a conflict (409) is not about permission."""
    if response.status_code == 403:
        assert response["Content-Type"] == "application/problem+json"
        return False
    assert response.status_code in {200, 201, 202, 409}, response.content
    return True


@EVERY_ENDPOINT
def test_session_may_what_its_role_may(ids, method, path, body, roles, scope):
    callers = {role: as_role(role) for role in ROLES}

    let_in = {role for role in ROLES if door(call(callers[role], method, path, body, ids))}

    assert let_in == set(roles)


@EVERY_ENDPOINT
def test_token_may_what_its_scope_and_the_role_of_its_owner_may(
    ids, method, path, body, roles, scope
):
    callers = {}
    for role in ROLES:
        owner = person("admin", f"owner-{role}")
        callers[role] = Api(x_api_key=token_text(owner, [scope or "switches:write"]))
        User.objects.filter(pk=owner.pk).update(role=role)

    let_in = {role for role in ROLES if door(call(callers[role], method, path, body, ids))}

    assert let_in == (set(roles) if scope else set())


@EVERY_ENDPOINT
def test_token_with_every_other_scope_is_refused(ids, method, path, body, roles, scope):
    others = ALL_SCOPES - EXCLUSIVE_SCOPES - {scope}
    program = Api(x_api_key=token_text(person("admin", "owner"), others))

    assert not door(call(program, method, path, body, ids))


@EVERY_ENDPOINT
def test_nobody_is_401(ids, method, path, body, roles, scope):
    response = call(Api(), method, path, body, ids)

    assert response.status_code == 401
    assert response["WWW-Authenticate"]
