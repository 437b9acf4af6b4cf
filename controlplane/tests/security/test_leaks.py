"""What is secret stands nowhere in the database: not in its own table, and not in the trail."""

import pytest
from django.db import connection
from django.test import Client

from controlplane.core.http.tests.callers import person, token_text

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
PASSWORD = "correct-horse-9-staple"


def tables_with(text):
    """The tables in which some row says it, anywhere."""
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


def test_a_token_is_nowhere_after_it_was_made_and_used():
    text = token_text(person("admin", "ada"), ["switches:read", "switches:write"])
    secret = text.rpartition("_")[2]
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


def test_an_error_tells_nothing_of_the_inside():
    for path in ("/nothing/", "/api/v1/nothing/", "/api/v1/switches/", "/admin/"):
        said = Client().get(path).content.decode()

        for word in ("Traceback", "SECRET_KEY", "site-packages", "psycopg", "postgresql://"):
            assert word not in said
