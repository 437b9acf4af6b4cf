"""Secrets are not stored in plain text anywhere in the database, the audit trail included."""

import pytest
from django.db import connection
from django.test import Client

from controlplane.accounts.authentication.tests.conftest import provider, server  # noqa: F401
from controlplane.accounts.authentication.tests.fake_provider import SECRET
from controlplane.accounts.authentication.tests.people import code, first_step, kim
from controlplane.accounts.authentication.tests.test_provider import sign_in
from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import BrowserSession
from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person, signed_in, token_text
from controlplane.notify.models.targets import Target

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
PASSWORD = "correct-horse-9-staple"


def tables_with(text):
    """Return the tables with a row that contains the text."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            name = connection.ops.quote_name(table)
            cursor.execute(
                f"SELECT EXISTS (SELECT 1 FROM {name} t WHERE strpos(t::text, %s) > 0)", [text]
            )
            if cursor.fetchone()[0]:
                found.append(table)
    return found


def test_a_password_that_was_typed_is_nowhere():
    user = person("operator", "kim")
    user.set_password(PASSWORD)
    user.save()

    Client().post("/sign-in/", {"username": "kim", "password": PASSWORD + "-mistyped"})
    Client().post("/sign-in/", {"username": "nobody", "password": PASSWORD})
    Client().post("/sign-in/", {"username": "kim", "password": PASSWORD})

    assert tables_with(PASSWORD) == []


def test_an_emergency_code_is_nowhere_after_it_was_made():
    user = person("operator", "kim")
    user.email = "kim@example.org"
    user.save()

    text = emergency_codes.create_code(user=user, actor=user.as_actor(), now=db_now())

    assert tables_with(text) == []
    assert [part for part in text.split("-") if tables_with(part)] == []
    assert tables_with(emergency_codes.codes.normalize_code(text)) == []


def test_a_token_is_nowhere_after_it_was_made_and_used():
    text = token_text(person("admin", "ada"), ["switches:read", "switches:write"])
    secret = text.split("_", 2)[2]
    client = Client(headers={"authorization": f"Bearer {text}"})

    body = {"reason": "card payments charged twice", "expires_in": "1h"}
    done = client.post(
        "/api/v1/switches/segment/finance/engage",
        body,
        content_type="application/json",
        headers={"idempotency-key": "once"},
    )

    assert done.status_code == 200
    assert tables_with(secret) == []


def test_secret_and_url_of_a_webhook_are_nowhere_in_the_clear():
    request_body = {
        "name": "pager",
        "kind": "channel",
        "address": "webhook",
        "webhook_url": "https://1.1.1.1/services/T0/V3rYs3cretPath",
    }

    made = signed_in(person("admin", "ada")).post("/targets/", request_body)

    assert made.status_code == 201
    secret = made.json()["webhook_secret"].removeprefix("whsec_")
    assert len(secret) > 20
    assert tables_with(secret) == []
    assert tables_with("V3rYs3cretPath") == []
    assert Target.objects.get(name="pager").webhook_url == request_body["webhook_url"]


def test_an_error_tells_nothing_of_the_inside():
    for path in ("/nothing/", "/api/v1/nothing/", "/api/v1/switches/", "/admin/"):
        html = Client().get(path).content.decode()

        for word in ("Traceback", "SECRET_KEY", "site-packages", "psycopg", "postgresql://"):
            assert word not in html


def kept_in_sessions(text):
    """Return True if a session contains the text.

    Sessions are encoded, so that SQL can't search them.
    """
    rows = BrowserSession.objects.values_list("session_data", flat=True)
    return any(text in str(SessionStore().decode(data)) for data in rows)


def test_second_factors_recovery_codes_and_session_keys_are_nowhere_in_the_clear():
    browser = browser_of(kim())
    secret = browser.get("/preferences/security/app/").context["secret"].replace(" ", "")
    assert not kept_in_sessions(secret)

    shown = browser.post("/preferences/security/app/", {"code": code(secret)})
    client = Client()
    first_step(client)
    client.post("/sign-in/second/", {"code": shown.context["codes"][0]})

    key = client.cookies["sessionid"].value
    assert client.get("/").status_code == 200
    for text in (secret, key, *(each.replace(" ", "") for each in shown.context["codes"])):
        assert tables_with(text) == []
        assert not kept_in_sessions(text)


def test_what_the_provider_sent_is_nowhere(client, provider):  # noqa: F811
    sign_in(client, provider)

    assert client.get("/preferences/").status_code == 200
    for text in ("an-access-token", SECRET):
        assert tables_with(text) == []
        assert not kept_in_sessions(text)
