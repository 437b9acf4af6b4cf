"""Users created or found for identities from the provider, odd claims included."""

import pytest

from controlplane.accounts.models.people import User

from .people import kim
from .test_provider import is_in, sign_in

pytestmark = pytest.mark.django_db


# PostgreSQL calls them the same as kim and sue, whatever their case.
@pytest.mark.parametrize("address", ["k\u0131m@example.org", "\u017fue@example.org"])
def test_address_that_only_looks_alike_leads_to_nobody_else(client, provider, address):
    kim("admin", email="kim@example.org")
    User.objects.create_user("sue", role="admin", email="sue@example.org")
    provider.person |= {"email": address, "preferred_username": "eve"}

    sign_in(client, provider)

    assert client.get("/preferences/").wsgi_request.user.username == "eve"


@pytest.mark.parametrize(
    ("claims", "username", "email"),
    [
        ({"email": "kim@intranet"}, "kim", ""),
        ({"email": "no address"}, "kim", ""),
        ({"email": f"{'k' * 300}@example.org"}, "kim", ""),
        ({"email": "\ud800@example.org"}, "kim", ""),
        ({"preferred_username": "a\u00bdb"}, "a12b", "kim@example.org"),
        ({"preferred_username": "\ufdfa", "name": "\ud800"}, None, "kim@example.org"),
        ({"preferred_username": "\ud800", "email": ""}, "person", ""),
        ({"preferred_username": 5, "name": ["x"]}, "kim", "kim@example.org"),
    ],
)
def test_odd_name_or_address_keeps_nobody_out(client, provider, claims, username, email):
    provider.person |= claims

    sign_in(client, provider)

    assert is_in(client)
    made = User.objects.get()
    assert (username or made.username, email) == (made.username, made.email)
