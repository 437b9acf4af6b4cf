"""Callers of each kind: anonymous, people of each role, tokens; and the expected answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.test import Client

from controlplane.accounts.models.teams import Membership, Team
from controlplane.core import roles
from controlplane.core.http.tests.callers import browser_of, person, token_text
from controlplane.core.roles import EXCLUSIVE_SCOPES, SCOPES_OF, Role
from controlplane.tests.security.matrix import Need
from controlplane.tests.security.urls import Place

ALL_SCOPES = roles.ALL_SCOPES - EXCLUSIVE_SCOPES
"""All scopes that one token can have."""

RANKS = ("viewer", "operator", "approver", "admin")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SIGN_IN = "/sign-in/"
NO_DATA_PLANE = "health/ready/data"  # Not ready, where none runs in this process: that is right.


def nobody() -> Client:
    return Client(raise_request_exception=False)


def somebody(role: str) -> Client:
    """Return the browser of a new person, who is in the root team, so that the role decides."""
    user = person(role, f"matrix-{role}")
    for team in Team.objects.filter(parent=None):
        Membership.objects.create(team=team, user=user)
    return browser_of(user)


def program(*scopes: str, owner: Any) -> Client:
    """Return a client that sends a token with each request."""
    text = token_text(owner, scopes, name="matrix-" + ("-".join(sorted(scopes)) or "none")[:40])
    return Client(raise_request_exception=False, headers={"authorization": f"Bearer {text}"})


def person_may(need: Need, role: str) -> bool:
    if need.open or need.program:
        return need.open
    has = [scope in SCOPES_OF[Role(role)] for scope in need.scopes]
    enough = not has or (all(has) if need.all_scopes else any(has))
    return enough and RANKS.index(role) >= RANKS.index(need.rank)


def token_scopes(need: Need) -> list[tuple[str, ...]]:
    """Return the smallest sets of scopes that suffice for a token; none if no token may."""
    if need.person or need.open:
        return []
    return [need.scopes] if need.all_scopes else [(scope,) for scope in need.scopes]


def too_few_scopes(need: Need) -> list[tuple[str, ...]]:
    """Return the largest sets of scopes that do not suffice."""
    everything = set(ALL_SCOPES)
    if need.person or not need.scopes:
        return [tuple(everything)]
    if need.all_scopes:
        return [tuple(everything - {scope}) for scope in need.scopes]
    return [tuple(everything - set(need.scopes))]


def ask(client: Client, method: str, place: Place) -> Any:
    """Make the request with an empty body, and roll back its changes."""
    more = {"content_type": "application/json"} if place.is_api and method != "GET" else {}
    cookies = client.cookies.copy()
    with undone():
        answer = getattr(client, method.lower())(place.path, **more)
    client.cookies = cookies
    return answer


@contextmanager
def undone() -> Iterator[None]:
    """Roll back everything done in this context.

    Code that requires its own transaction may open one, as in Django's test cases.
    """
    around = transaction.atomic()
    around._from_testcase = True
    with around:
        yield
        transaction.set_rollback(True)


def verdict(answer: Any, place: Place) -> str:
    """`in`, `out` (401, 403, to the sign-in), `none` for a method that is not there, `broken`."""
    status = answer.status_code
    if status >= 500 and place.route != NO_DATA_PLANE:
        return "broken"
    if status == 405:
        return "none"
    if status in {401, 403}:
        return "out"
    led = answer.headers.get("Location", "")
    if status == 302 and led.startswith((SIGN_IN, "/admin/login/")) and not is_entry(place):
        return "out"
    return "in"


def is_entry(place: Place) -> bool:
    return place.route.startswith(("sign-in/", "sign-out/"))
