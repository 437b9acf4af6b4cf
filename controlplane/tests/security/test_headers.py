"""Security headers of every response: policy, framing, content sniffing, caching."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pytest
from django.conf import settings as house
from django.test import Client

from controlplane.core.http.tests.callers import browser_of, person
from controlplane.tests.security import callers, urls

pytestmark = pytest.mark.django_db
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
ERRORS = ("/nothing-here/", "/api/v1/nothing-here/", "/switches/nonsense/x/", "/admin/nothing/")


class Answer(NamedTuple):
    status_code: int
    headers: Mapping[str, str]


def missing(answer):
    """Return the missing or weak security headers, as text."""
    headers = answer.headers
    policy = {one.strip() for one in headers.get("Content-Security-Policy", "").split(";")}
    lacking = sorted(POLICY - policy)
    if any("unsafe" in one or "*" in one for one in policy):
        lacking.append("a strict policy")
    wanted = {
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    lacking += [name for name, value in wanted.items() if headers.get(name) != value]
    return lacking + [name for name in ("X-Request-ID",) if not headers.get(name)]


@cache
def answers(role):
    """Return every place with its answer, and each kind of error; requested once for all tests."""
    client = callers.nobody() if role == "nobody" else callers.somebody(role)
    found = {place.path: place for place in urls.places() if not place.other_form}
    responses = []
    for path, place in {**found, **dict.fromkeys(ERRORS)}.items():
        with callers.undone():
            response = client.get(path)
        responses.append((path, place, Answer(response.status_code, response.headers)))
    return responses


def cache_control(answer):
    return {one.strip() for one in answer.headers.get("Cache-Control", "").split(",")}


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["nobody", "admin"])
def test_every_answer_carries_the_policy_and_its_companions(role):
    lacking = {path: found for path, _, answer in answers(role) if (found := missing(answer))}

    assert not lacking, lacking


@pytest.mark.exhaustive
def test_no_cache_keeps_what_signed_in_people_see():
    kept, count = {}, 0
    for path, place, answer in answers("admin"):
        if place is None or place.is_api or answer.status_code != 200:
            continue
        if "text/html" in answer.headers.get("Content-Type", ""):
            count += 1
            if not {"no-store", "private"} & cache_control(answer):
                kept[path] = cache_control(answer)

    assert not kept, kept
    assert count > 100


@pytest.mark.parametrize("name", ["password_change", "password_change/done"])
def test_no_cache_keeps_the_way_to_a_new_password(name):
    response = callers.somebody("admin").get(f"/admin/{name}/")

    assert response.status_code == 302
    assert "no-store" in response.headers.get("Cache-Control", "")


def test_no_cache_keeps_an_answer_that_shows_a_secret_once():
    client, lee = callers.somebody("admin"), person("viewer", "lee")
    token = {"name": "ci", "scopes": ["slo:read"], "owner": lee.pk, "days": "90"}
    answers = [
        client.post("/tokens/new/", token),
        client.post("/people/new/", {"username": "new", "role": "viewer", "time_zone": "UTC"}),
        client.post(f"/people/{lee.pk}/link/"),
        client.get("/preferences/security/app/"),
        client.post(
            "/api/v1/tokens/",
            {"name": "x", "scopes": ["slo:read"]},
            content_type="application/json",
        ),
    ]

    for answer in answers:
        assert answer.status_code in {200, 201}, answer.content
        assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.exhaustive
def test_no_cache_keeps_what_the_api_answers_to_somebody():
    kept, count = {}, 0
    for path, place, answer in answers("admin"):
        if place and place.route.startswith("api/v1/") and answer.status_code == 200:
            count += 1
            if not {"no-store", "private", "no-cache"} & cache_control(answer):
                kept[path] = cache_control(answer)

    assert not kept, kept
    assert count > 30


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_no_other_origin_may_read_an_answer(origin):
    client = browser_of(person("admin", "ada"))
    for path in ("/", "/api/v1/switches/", "/api/v1/snapshot", "/api/schema/"):
        headers = client.get(path, headers={"origin": origin}).headers

        assert not [name for name in headers if name.lower().startswith("access-control-")], path


def test_the_cookies_are_out_of_reach_of_scripts_and_other_sites():
    user = person("operator", "kim")
    user.set_password("right horse")
    user.save()
    client = Client()
    client.get("/sign-in/")

    client.post("/sign-in/", {"username": "kim", "password": "right horse"})

    session, csrf = client.cookies["sessionid"], client.cookies["csrftoken"]
    assert session["httponly"] is True
    assert {session["samesite"], csrf["samesite"]} == {"Lax"}
    assert session["domain"] == csrf["domain"] == ""


ASK_WITHOUT_HTTPS = """
import json, django; django.setup()
from django.conf import settings as s
from django.test import Client
def ask(path, **headers):
    found = Client(raise_request_exception=False, headers=headers).get(path)
    return [found.status_code, found.headers.get("Location", "")]
console, inside = {"host": "switchgear.example"}, {"host": "switchgear-web.switchgear"}
print(json.dumps({
    "cookies": [s.SESSION_COOKIE_SECURE, s.CSRF_COOKIE_SECURE],
    "hsts": s.SECURE_HSTS_SECONDS,
    "page": ask("/switches/", **console),
    "docs": ask("/api/docs/", **console),
    "live": ask("/health/live", **inside),
    "api": ask("/api/v1/switches/", **inside),
}))
"""


@pytest.mark.slow
def test_behind_https_pages_and_cookies_stay_there_and_callers_inside_are_answered():
    """The settings as a deployment with HTTPS_ONLY gets them, in a process of their own."""
    result = subprocess.run(
        [sys.executable, "-c", ASK_WITHOUT_HTTPS],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "HTTPS_ONLY": "true",
            "ALLOWED_HOSTS": "switchgear.example,switchgear-web.switchgear",
        },
        cwd=house.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    found = json.loads(result.stdout.splitlines()[-1])
    assert (found["cookies"], found["hsts"]) == ([True, True], 31_536_000)
    assert found["page"] == [301, "https://switchgear.example/switches/"]
    assert found["docs"] == [301, "https://switchgear.example/api/docs/"]
    assert found["live"] == [200, ""]
    assert found["api"] == [401, ""]
