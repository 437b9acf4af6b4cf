"""A single login (`DATABASE_URL` alone): the application steps down to a restricted role."""

import os
import secrets
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from controlplane.tests.installation import running, wait_until

REASON = "provider outage, 5xx on completions since 02:10"


@pytest.fixture
def single_login():
    """The URL of a fresh database whose owner is the only login there is."""
    owner = os.environ["DATABASE_OWNER_URL"]
    name = f"single_{secrets.token_hex(4)}"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield urlunsplit(urlsplit(owner)._replace(path=f"/{name}"))
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.faults
@pytest.mark.smoke
@pytest.mark.timeout(200)
def test_an_engage_reaches_a_poll_and_the_trail_is_out_of_reach(tmp_path, single_login):
    with running(tmp_path / "var", DATABASE_URL=single_login) as installation:
        token = installation.token("switches:read", "switches:write")
        with installation.client(token) as client:
            body = {"reason": REASON, "expires_in": "24h"}
            answer = client.post("/api/v1/switches/segment/finance/engage", json=body)
            assert answer.status_code == 200, answer.text
            wait_until(lambda: client.get("/api/v1/snapshot").json()["version"] == 1, 2)
        who = (
            "from django.db import connection as c; k = c.cursor();"
            "k.execute('SELECT current_user, tableowner FROM pg_tables"
            " WHERE tablename = %s', ['core_auditentry']); print(*k.fetchone())"
        )
        current, owner = installation.manage("shell", "-v0", "-c", who).split()
        assert current == "switchgear_runtime"
        assert owner != current
