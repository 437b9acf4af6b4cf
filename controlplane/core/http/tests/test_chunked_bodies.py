"""Chunked bodies without a length are limited to the same size."""

import json

import pytest

from controlplane.core.http.tests.callers import person, token_text
from controlplane.core.http.tests.over_asgi import ask
from controlplane.core.protocol import MAX_BODY_BYTES

ENGAGE = "/api/v1/switches/segment/finance/engage"
GOOD = json.dumps({"reason": "card payments charged twice", "expires_in": "24h"}).encode()
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def headers():
    return {
        "x-api-key": token_text(person("admin"), ["switches:write"]),
        "content-type": "application/json",
        "transfer-encoding": "chunked",
    }


def test_it_is_read_whole(headers):
    answer = ask("POST", ENGAGE, headers, [GOOD[:10], GOOD[10:]])

    assert answer.status == 200
    assert json.loads(answer.body)["state"] == "engaged"


def test_beyond_the_limit_it_is_413(headers):
    answer = ask("POST", ENGAGE, headers, [b" " * MAX_BODY_BYTES, GOOD])

    assert answer.status == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_empty_it_is_an_empty_object(headers):
    ask("POST", ENGAGE, headers, [GOOD])

    answer = ask("POST", "/api/v1/switches/segment/finance/undo", headers, [b"", b""])

    assert answer.status == 200


def test_without_a_type_it_is_415(headers):
    del headers["content-type"]

    assert ask("POST", ENGAGE, headers, [GOOD]).status == 415
