"""Hostile request bodies, on every API path that reads one: no crash, and nothing stored."""

import gzip
import re
from itertools import cycle

import orjson
import pytest
from django.http import QueryDict

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
    b' "points": {"a": 1}, "alerts": 3, "document": 4, "kind": null, "rule": [], "plan": 7,'
    b' "userName": [], "emails": {}, "displayName": {}, "members": 5, "Operations": [[]]}',
    "very long": orjson.dumps({"reason": "x" * 60_000, "name": "y" * 5000}),
    "a quarter of a million keys": b'{"a":0,'
    + b",".join(b'"%d":0' % n for n in range(4000))
    + b"}",
}
NO_ONES = "%00%ff=[]"
"""An unknown parameter."""
SENSELESS = (
    *("%00", "[]", "-1", "1e9", "99999999999999999999", "%ff%fe", "%25%25%25", "A" * 3000),
    *("9999999999-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-W99"),
    *("%F0%9F%92%A9" * 300, "%27%20OR%201%3D1--", "a%2B" * 200),
)
# The most harmful kind of value for some parameters.
SUITED = {
    "before": ["99999999999999999999"],
    "cursor": ["%ff%fe"],
    "from": ["0001-01-01T00:00:00Z"],
    "page": ["1e9"],
    "q": ["%00"],
    "scope": ["&scope=".join(["segment"] * 900)],
    "state": ["[]"],
    "step": ["1ms"],
    "to": ["-1"],
    "week": ["2026-W99"],
}


def places():
    for place in urls.places():
        for method in matrix.needs().get(place.route, {}):
            if place.is_api and not place.other_form and method not in {"GET", "DELETE"}:
                yield place, method


def is_in_words(answer):
    """True if the answer is no error, or one that says what is wrong."""
    kinds = ("application/problem+json", "application/scim+json")
    return answer.status_code < 400 or (
        answer.status_code < 500 and answer.headers["Content-Type"] in kinds
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_body_is_refused_in_words(what):
    admin = person("admin", "ada")
    people, programs, wrong = callers.browser_of(admin), callers.program("scim", owner=admin), {}
    for place, method in places():
        client = programs if matrix.needs()[place.route][method].program else people
        with callers.undone():
            answer = client.generic(
                method, place.path, HOSTILE[what], content_type="application/json"
            )
        if not is_in_words(answer):
            wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, wrong


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "gzip, gzip"])
def test_a_compressed_body_is_never_unpacked(coding):
    """A few compressed bytes could become gigabytes, so compressed bodies are invalid JSON."""
    packed = gzip.compress(orjson.dumps({"reason": REASON, "expires_in": "1h"}))
    client = callers.somebody("operator")

    response = client.post(
        "/api/v1/switches/segment/finance/engage",
        packed,
        content_type="application/json",
        headers={"content-encoding": coding},
    )

    assert response.status_code in {400, 415}
    assert client.get("/api/v1/switches/segment/finance/").json()["state"] == "released"


class Looked(QueryDict):
    """A query that records which parameters a view reads."""

    names = set()

    def __getitem__(self, name):
        self.names.add(name)
        return super().__getitem__(name)

    def getlist(self, name, default=None):
        self.names.add(name)
        return super().getlist(name, default)


def lists():
    """Each place that may read a query."""
    for place in urls.places():
        is_ours = "GET" in matrix.needs().get(place.route, {})
        is_admins = place.is_admin and (place.name or "").endswith("changelist")
        if (is_ours or is_admins) and not place.other_form and place.route != callers.NO_DATA_PLANE:
            yield place


def parameters(answer, place):
    """Return a view's parameter names: listed by the API, or read by a page."""
    if place.is_admin:
        return ["q"]
    if place.is_api:
        known = re.search(rb"allowed: ([\w, ]+)\.", answer.content)
        return sorted(set(known[1].decode().split(", ")) - {"none"}) if known else []
    return sorted(name for name in Looked.names if name.isidentifier())


@pytest.mark.exhaustive
def test_a_query_that_makes_no_sense_is_refused_in_words(monkeypatch):
    """Tests each list of the API and each page, with each filter and an unknown one."""
    monkeypatch.setattr("django.core.handlers.wsgi.QueryDict", Looked)
    client, broken, tried = callers.somebody("admin"), {}, set()
    turn = cycle(SENSELESS)

    def ask(place, query):
        with callers.undone():
            response = client.get(f"{place.path}?{query}")
        if response.status_code >= 500:
            broken[f"{place.path}?{query[:60]}"] = response.status_code
        return response

    for place in lists():
        Looked.names = set()
        for name in parameters(ask(place, NO_ONES), place):
            tried.add((place.route, name))
            for value in (*SUITED.get(name, ()), next(turn)):
                ask(place, f"{name}={value}")

    assert not broken, broken
    assert len(tried) > 250
    assert {name for _route, name in tried} >= SUITED.keys() - {"week"}  # In an address.


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
            response = callers.nobody().get("/api/v1/switches/", headers=headers)

            assert response.status_code == 401, text[:40]
            assert text[:40] not in response.content.decode() or len(text) < 5
