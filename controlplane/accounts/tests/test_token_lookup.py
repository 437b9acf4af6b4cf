"""Tokens from memory: for reads only, and only where the holder vouches for them."""

from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.accounts.tokens import lookup, services
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, person, token_text

pytestmark = pytest.mark.django_db
MINUTES = timedelta(minutes=5)


class Holder:
    """A process's token table; `asked` counts lookups."""

    def __init__(self):
        self.tokens = {}
        self.asked = 0

    def find(self, text):
        self.asked += 1
        return self.tokens.get(text)


@pytest.fixture
def holder(monkeypatch):
    made = Holder()
    monkeypatch.setattr(lookup, "token_table", made.find)
    return made


@pytest.fixture
def token():
    return services.create_token(
        name="ci",
        owner=person("operator"),
        scopes=["switches:read", "switches:write"],
        actor=system_actor("test"),
        now=timezone.now(),
    )


def test_read_by_a_known_token_asks_no_token_table(holder, token):
    row, text = token
    holder.tokens[text] = services.to_known_token(row)

    with CaptureQueriesContext(connection) as queries:
        response = Api(x_api_key=text).get("/switches/")

    assert response.status_code == 200
    assert not [one for one in queries if "core_token" in one["sql"]]


def test_scopes_of_a_known_token_are_those_in_memory(holder, token):
    row, text = token
    holder.tokens[text] = replace(services.to_known_token(row), scopes=frozenset({"audit:read"}))

    assert Api(x_api_key=text).get("/switches/").status_code == 403


def test_unknown_token_is_checked_in_the_database(holder, token):
    _, text = token

    assert Api(x_api_key=text).get("/switches/").status_code == 200
    assert Api(x_api_key=f"{text}x").get("/switches/").status_code == 401


def test_write_is_checked_in_the_database_whatever_memory_says(holder, token):
    row, text = token
    holder.tokens[text] = services.to_known_token(row)
    services.revoke_token(token=row, actor=system_actor("test"), now=timezone.now())

    answer = Api(x_api_key=text).engage("feature:beta")

    assert (answer.status_code, holder.asked) == (401, 0)


@pytest.mark.parametrize(
    ("ahead", "lifetime", "status"),
    [(timedelta(hours=-1), timedelta(seconds=-1), 401), (timedelta(hours=1), MINUTES, 200)],
    ids=["expired, clock behind", "valid, clock ahead"],
)
def test_write_by_a_token_with_an_expiry_is_checked_by_the_clock_of_the_database(
    ahead, lifetime, status
):
    text = token_text(person("operator"), ["switches:write"], lifetime=lifetime)

    with time_machine.travel(db_now() + ahead):
        answer = Api(x_api_key=text).engage("feature:beta")

    assert answer.status_code == status
