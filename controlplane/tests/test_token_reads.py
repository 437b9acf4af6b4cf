"""The lane of reads by token: which requests take it, and that its answers are Django's own."""

import asyncio
import gzip

import orjson
import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, token_text
from controlplane.token_reads import TokenReads, is_token_read
from switches.models import Switch

TOKEN = (b"authorization", b"Bearer sg_x_y")


def scope(method="GET", path="/api/v1/switches/", headers=(TOKEN,)):
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver"), *headers],
        "client": ("127.0.0.1", 5000),
    }


@pytest.mark.parametrize(
    ("request_scope", "is_ours"),
    [
        (scope(), True),
        (scope("HEAD"), True),
        (scope(headers=[(b"x-api-key", b"sg_x_y")]), True),
        (scope("POST"), False),
        (scope(path="/"), False),
        (scope(path="/api/schema/"), False),
        (scope(headers=[]), False),
        (scope(headers=[(b"cookie", b"sessionid=x")]), False),
        (scope(headers=[(b"authorization", b"Basic eA==")]), False),
        (scope(headers=[(b"authorization", b"Basic eA=="), TOKEN]), False),
        (scope(headers=[TOKEN, (b"content-length", b"2")]), False),
        (scope(headers=[TOKEN, (b"transfer-encoding", b"chunked")]), False),
    ],
)
def test_only_reads_by_token_take_the_lane(request_scope, is_ours):
    assert is_token_read(request_scope) is is_ours


async def answer_of(application, request_scope):
    call = ApplicationCommunicator(application, request_scope)
    await call.send_input({"type": "http.request", "body": b""})
    start = await call.receive_output(30)
    body = b""
    while True:
        message = await call.receive_output(30)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await call.wait(30)
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, body


def unexpected(*_):
    raise AssertionError("this is the lane's own to answer")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/switches/", 200),
        ("/api/v1/switches", 308),
        ("/api/v1/nothing/", 404),
        ("/api/v1/audit/", 403),
        ("/api/v1/audit/export", 200),
    ],
)
def test_answer_is_the_one_that_all_middleware_gives(path, status):
    scopes = ["audit:read"] if path.endswith("export") else ["switches:read"]
    key = (b"x-api-key", token_text(person("admin"), scopes).encode())
    known = (b"x-request-id", b"the-same-one-0")

    ours = asyncio.run(answer_of(TokenReads(unexpected), scope(path=path, headers=[key, known])))
    theirs = asyncio.run(answer_of(get_asgi_application(), scope(path=path, headers=[key, known])))

    assert ours[0] == theirs[0] == status
    assert without_vary(ours[1]) == without_vary(theirs[1])
    assert ours[2] == theirs[2]


def without_vary(headers):
    """Return the headers without Vary: programs have no session or language."""
    return {name: value for name, value in headers.items() if name != "vary"}


@pytest.mark.django_db(transaction=True)
def test_wrong_host_is_refused(settings):
    settings.ALLOWED_HOSTS = ["switchgear.example"]
    key = (b"x-api-key", token_text(person("admin"), ["switches:read"]).encode())

    status, _, _ = asyncio.run(answer_of(TokenReads(unexpected), scope(headers=[key])))

    assert status == 400


@pytest.mark.django_db(transaction=True)
def test_wrong_token_is_refused_even_beside_a_session():
    wrong = [TOKEN, (b"cookie", b"sessionid=anything")]

    status, headers, _ = asyncio.run(answer_of(TokenReads(unexpected), scope(headers=wrong)))

    assert status == 401
    assert headers["content-type"] == "application/problem+json"


@pytest.mark.django_db(transaction=True)
def test_answer_is_compressed_for_callers_that_accept_gzip():
    token = token_text(person("operator", "kim"), ["switches:read"])
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"accept-encoding", b"gzip")]
    read = scope(path="/api/v1/switches/", headers=headers)
    Switch.objects.bulk_create(
        Switch(id=f"feature:a{n}", scope="feature", key=f"a{n}", registered_at=db_now())
        for n in range(20)
    )

    status, received, body = asyncio.run(answer_of(TokenReads(unexpected), read))

    assert (status, received["content-encoding"]) == (200, "gzip")
    assert len(orjson.loads(gzip.decompress(body))["results"]) == 20
