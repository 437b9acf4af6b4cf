"""What no body may do, on every address of the API that reads one: break it, or stay."""

import gzip

import orjson
import pytest

from controlplane.core.http.tests.callers import person
from controlplane.tests.security import callers, matrix, urls

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameless"),
]
REASON = "card payments charged twice"
NESTED = b'{"reason":' + b"[" * 3000 + b"]" * 3000 + b"}"
HOSTILE = {
    "deep": NESTED,
    "deep objects": b'{"a":' * 3000 + b"1" + b"}" * 3000,
    "a number that is none": b'{"reason": NaN, "expires_in": Infinity}',
    "a huge number": b'{"version": ' + b"9" * 4000 + b', "n": 1e999999, "rate_per_second": 1e400}',
    "half a surrogate": b'{"reason": "\\ud800 ' + REASON.encode() + b'", "name": "\\udfff"}',
    "a null character": b'{"reason": "card\\u0000payments twice", "name\\u0000": "x"}',
    "keys twice": b'{"reason": "' + REASON.encode() + b'", "reason": ["x"], "reason": {}}',
    "no object": b"[1, 2, 3]",
    "a text": b'"text"',
    "no JSON": b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>",
    "cut off": b'{"reason": "card pay',
    "no UTF-8": b'{"reason": "\xff\xfe\xc0\xaf"}',
    "a byte order mark": b'\xef\xbb\xbf{"reason": "x"}',
    "another encoding": '{"reason": "x"}'.encode("utf-16"),
    "prototype": b'{"__proto__": {"admin": true}, "constructor": {"prototype": {}}}',
    "wrong kinds": b'{"reason": {"$ne": null}, "name": ["x"], "expires_in": true, "scope": 7,'
    b' "username": {}, "role": ["admin"], "scopes": {"a": 1}, "items": "x", "steps": 5,'
    b' "points": {"a": 1}, "alerts": 3, "document": 4, "kind": null, "rule": [], "plan": 7}',
    "very long": orjson.dumps({"reason": "x" * 60_000, "name": "y" * 5000}),
    "a quarter of a million keys": b'{"a":0,'
    + b",".join(b'"%d":0' % n for n in range(4000))
    + b"}",
}


def places():
    for place in urls.places():
        for method in matrix.needs().get(place.route, {}):
            if place.is_api and not place.other_form and method not in {"GET", "DELETE"}:
                yield place, method


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_body_is_refused_in_words(what):
    client, wrong = callers.somebody("admin"), {}
    for place, method in places():
        with callers.undone():
            answer = client.generic(
                method, place.path, HOSTILE[what], content_type="application/json"
            )
        good = answer.status_code < 500 and (
            answer.status_code < 400 or answer.headers["Content-Type"] == "application/problem+json"
        )
        if not good:
            wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, wrong


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip"])
def test_a_compressed_body_is_never_unpacked(coding):
    """A few bytes could become gigabytes. What was packed is no JSON, whatever it says."""
    packed = gzip.compress(orjson.dumps({"reason": REASON, "expires_in": "1h"}))
    client = callers.somebody("operator")

    answer = client.post(
        "/api/v1/switches/segment/finance/engage",
        packed,
        content_type="application/json",
        headers={"content-encoding": coding},
    )

    assert answer.status_code in {400, 415}
    assert client.get("/api/v1/switches/segment/finance/").json()["state"] == "released"


@pytest.mark.slow
def test_a_query_that_makes_no_sense_is_refused_in_words():
    """On each list of the API and each page, for filters that exist and those that don't."""
    queries = (
        "q=%00&cursor=%ff%fe&state=[]&from=9999999999-01-01&to=-1",
        "cursor=" + "A" * 3000,
        "from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59.999999Z&before=99999999999999999999",
        "q=" + "%F0%9F%92%A9" * 300 + "&page=1e9&step=1ms&window=-1h&week=2026-W99",
        "actor=%27%20OR%201%3D1--&action=%25%25%25&target=" + "a%2B" * 200,
        "scope=" + "&scope=".join(["segment"] * 900),
    )
    client, broken = callers.somebody("admin"), {}
    for place in urls.places():
        if place.other_form or place.route == callers.NO_DATA_PLANE:
            continue
        if "GET" not in matrix.needs().get(place.route, {}) and not place.is_admin:
            continue
        if place.is_admin and not (place.name or "").endswith("changelist"):
            continue
        for query in queries:
            with callers.undone():
                status = client.get(f"{place.path}?{query}").status_code
            if status >= 500:
                broken[f"{place.path}?{query[:60]}"] = status

    assert not broken, broken


def test_a_token_that_is_no_token_is_refused_in_words():
    owner = person("admin", "owner")
    good = callers.token_text(owner, ["switches:read"])
    strange = [
        good[:-1],
        good + "x",
        good.upper(),
        good.replace("sg_", "gs_"),
        "sg__",
        "sg_" + "a" * 100_000,
        "sg_%00_%00",
        "sg_üü_ü",
        "null",
        "' OR 1=1 --",
        good + "," + good,
    ]
    for text in strange:
        for headers in ({"authorization": f"Bearer {text}"}, {"x-api-key": text}):
            answer = callers.nobody().get("/api/v1/switches/", headers=headers)

            assert answer.status_code == 401, text[:40]
            assert text[:40] not in answer.content.decode() or len(text) < 5
