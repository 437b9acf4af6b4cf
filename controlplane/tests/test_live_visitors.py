"""Access to live sockets of a real web process, and its end."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings
from django.db import connection

from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import services as people
from controlplane.accounts.people import sessions
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, token_text
from controlplane.tests.console_sockets import Console, ends_with, hears, receive_message, refusal
from controlplane.tests.installation import wait_until
from switches.tests.browsers import browser, engaged

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


def test_strangers_are_refused_before_the_handshake(console, reader):
    own = {"Origin": console.server.url}
    session = console.cookie_of(person("viewer"), origin="http://evil.example")

    assert refusal(console.address, {}).status_code == 401
    assert refusal(console.address, own).status_code == 401
    assert refusal(console.address, {"Authorization": "Bearer sg_a_b"}).status_code == 401
    assert refusal(console.address, session).status_code == 403
    without = {name: value for name, value in session.items() if name != "Origin"}
    assert refusal(console.address, without).status_code == 403
    refused = refusal(console.address, {**own, "Cookie": "sessionid=unheard-of"})
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_a_persons_socket_under_a_name_that_is_not_ours_is_refused(console):
    evil = {"Host": "evil.example", **HANDSHAKE}
    session = console.cookie_of(person("viewer"), origin="http://evil.example")

    with httpx.stream(
        "GET", f"{console.server.url}/ws/live/", headers={**evil, **session}
    ) as answer:
        assert answer.status_code == 400
        assert "ALLOWED_HOSTS" in answer.read().decode()


def test_token_without_a_topic_is_refused(console, transactional_db):
    token = token_text(person("admin", "token-owner"), ["report:write"])
    wait_until(lambda: _status(console, token) != 401, 5)

    assert _status(console, token) == 403


def _status(console: Console, token: str) -> int:
    return refusal(console.address, {"X-API-Key": token}).status_code


def test_other_paths_have_no_sockets(console, reader):
    assert refusal(f"{console.address}more/", {"X-API-Key": reader}).status_code == 403


def test_person_listens_until_they_sign_out(console, transactional_db):
    user = person("viewer")
    client = browser(user)
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={key}", "Origin": console.server.url}
    with console.connect(headers) as listening:
        assert receive_message(listening)["seq"].keys() >= {"switches", "breakers", "dlq", "slo"}

        client.post("/sign-out/")

        assert ends_with(listening) == 4401


@pytest.mark.slow
def test_who_is_no_longer_welcome_is_not_told_any_more_and_others_are(console, reader):
    """Access is checked every two seconds.

    The sockets belong to a deactivated person, one whose sessions were ended elsewhere, one with
    another role, and a program whose token was revoked.
    """
    done: dict[str, Any] = {"actor": system_actor("test"), "now": db_now()}
    gone, elsewhere, other_role = (person("operator", f"leaves-{n}") for n in range(3))
    with ExitStack() as opened:
        leaving = {
            name: opened.enter_context(console.sit_down(user))
            for name, user in (("gone", gone), ("elsewhere", elsewhere), ("role", other_role))
        }
        leaving["token"] = opened.enter_context(console.listen(reader))
        staying = opened.enter_context(console.sit_down(person("operator")))
        for listening in leaving.values():
            receive_message(listening)

        people.change_user(user=gone, is_active=False, **done)
        sessions.end_all(user=elsewhere, **done)
        people.change_user(user=other_role, role="viewer", **done)
        tokens.revoke_token(token=Token.objects.get(), **done)

        assert {name: ends_with(each) for name, each in leaving.items()} == dict.fromkeys(
            leaving, 4401
        )
        engaged("segment:after")
        assert hears(staying, "switches", id="segment:after")


@pytest.mark.slow
def test_strangers_who_knock_keep_nobody_waiting_inside(console, reader):
    """Session lookups of strangers hang, which must not delay change notifications."""
    own = {"Origin": console.server.url, "Cookie": f"sessionid={'a' * 32}"}
    with console.listen(reader) as listening, ThreadPoolExecutor(100) as crowd:
        receive_message(listening)
        with lock_table("core_browsersession"):
            knocks = [crowd.submit(refusal, console.address, own) for _ in range(100)]
            time.sleep(0.5)
            engaged("segment:inside")

            assert hears(listening, "switches", seconds=1, id="segment:inside")
        refused = [each.result() for each in knocks]

    assert {each.status_code for each in refused} <= {401, 503}


@contextmanager
def lock_table(table: str) -> Iterator[None]:
    """Lock the table against readers in this context."""
    found = connection.settings_dict
    with psycopg.connect(
        host=str(found["HOST"]),
        port=int(found["PORT"] or 5432),
        dbname=str(found["NAME"]),
        user=str(found["USER"]),
        password=str(found["PASSWORD"]),
    ) as another:
        another.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


@pytest.mark.slow
def test_token_has_so_many_sockets_and_no_more(console, reader):
    with ExitStack() as opened:
        for _ in range(50):
            opened.enter_context(console.listen(reader))

        refused = refusal(console.address, {"X-API-Key": reader})

    assert refused.status_code == 429
    assert refused.headers["retry-after"]
