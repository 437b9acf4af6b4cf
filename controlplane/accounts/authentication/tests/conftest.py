"""Fixtures: the identity provider of the authentication tests."""

import dataclasses

import pytest

from .fake_provider import CLIENT, SECRET, running


@pytest.fixture(scope="module")
def server():
    with running() as found:
        yield found


@pytest.fixture
def provider(server, settings):
    server.claims, server.faults, server.asked = {}, {}, []
    server.person = {
        "sub": "u-1", "preferred_username": "kim", "name": "Kim Min-jun",
        "email": "kim@example.org", "email_verified": True, "groups": ["ops"],
    }  # fmt: skip
    settings.OIDC = dataclasses.replace(
        settings.OIDC,
        issuer=server.issuer,
        client_id=CLIENT,
        client_secret=SECRET,
        roles=(("ops", "operator"), ("leads", "approver"), ("root", "admin")),
    )
    return server
