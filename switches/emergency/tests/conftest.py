"""Fixtures of the tests of emergency orders."""

import pytest

from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person


@pytest.fixture
def token():
    made, _ = tokens.create_token(
        name="ci",
        owner=person("operator", "olga"),
        scopes=["switches:emergency"],
        actor=system_actor("test"),
        now=db_now(),
        lifetime=None,
    )
    return made
