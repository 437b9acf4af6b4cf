"""The API for sessions: one's own, and for admins those of others."""

import pytest
from django.conf import settings

from controlplane.accounts.models.people import BrowserSession
from controlplane.core.http import confirmation
from controlplane.core.http.requests import session_digest
from controlplane.core.http.tests.callers import Api, browser_of, person, with_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def kim():
    return person("operator", "kim")


def session_of(client):
    return session_digest(client.cookies[settings.SESSION_COOKIE_NAME].value)


def listed(api, **params):
    return api.get("/sessions/", params).json()["results"]


def test_person_lists_their_own(kim):
    here, other = browser_of(kim), browser_of(kim)
    browser_of(person("viewer", "lee"))

    found = {row["id"]: row["is_this"] for row in listed(Api(here))}

    assert found == {session_of(here): True, session_of(other): False}


def test_only_an_admin_lists_those_of_others(kim):
    kims, root = browser_of(kim), browser_of(person("admin", "root"))

    assert [row["user"] for row in listed(Api(root), user="kim")] == ["kim"]
    assert Api(kims).get("/sessions/", {"user": "root"}).status_code == 403
    assert Api(root).get("/sessions/", {"user": "nobody"}).status_code == 400


def test_session_is_ended_by_its_person_or_an_admin_and_nobody_else(kim):
    first, second, here = browser_of(kim), browser_of(kim), browser_of(kim)
    lee, root = browser_of(person("approver", "lee")), browser_of(person("admin", "root"))

    assert Api(lee).send("delete", f"/sessions/{session_of(first)}/").status_code == 404
    assert Api(here).send("delete", f"/sessions/{session_of(first)}/").json() == {"ended": 1}
    assert Api(root).send("delete", f"/sessions/{session_of(second)}/").status_code == 200

    assert [row["id"] for row in listed(Api(here))] == [session_of(here)]
    assert first.get("/api/v1/switches/").status_code == 401


def test_all_others_end_and_the_one_that_asks_stays(kim):
    here, _, _ = browser_of(kim), browser_of(kim), browser_of(kim)

    assert Api(here).post("/sessions/end", {"dry_run": True}).json()["ended"] == 2
    assert BrowserSession.objects.filter(user=kim).count() == 3
    assert Api(here).post("/sessions/end").json() == {"ended": 2}
    assert BrowserSession.objects.get(user=kim).pk == session_of(here)


def test_token_has_no_sessions(kim):
    token = with_token("switches:read", owner=kim)

    assert token.get("/sessions/").status_code == 403
    assert token.post("/sessions/end").status_code == 403
    assert Api().get("/sessions/").status_code == 401


def test_admin_who_signed_in_long_ago_confirms_before_ending_those_of_others(kim):
    root = browser_of(person("admin", "root"))
    other, here = browser_of(kim), browser_of(kim)
    for browser in (root, here):
        session = browser.session
        session[confirmation.KEY] = 0
        session.save()

    one = Api(root).send("delete", f"/sessions/{session_of(other)}/")
    every = Api(root).post("/sessions/end", {"user": "kim"})

    assert (one.status_code, every.status_code) == (403, 403)
    assert BrowserSession.objects.filter(user=kim).count() == 2
    assert Api(here).post("/sessions/end").json() == {"ended": 1}
