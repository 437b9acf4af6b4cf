"""Redirects and paths: the target after a sign-in, and paths with dots in them."""

import pytest
from django.test import Client

from controlplane.core.http.tests.callers import browser_of, person

pytestmark = pytest.mark.django_db
AWAY = (
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "////evil.example",
    "/\\evil.example/",
    "\\\\evil.example/",
    "http:evil.example",
    "https:///evil.example",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "\thttps://evil.example/",
    "/\t/evil.example/",
    "/\n/evil.example/",
    " //evil.example/",
    "https://testserver@evil.example/",
    "https://testserver.evil.example/",
    "//testserver:80@evil.example/",
)
DOTS = (
    "/static/../settings.py",
    "/static/..%2f..%2fcontrolplane/settings.py",
    "/static/%2e%2e/%2e%2e/etc/passwd",
    "/static/....//....//etc/passwd",
    "/static/..\\..\\etc\\passwd",
    "/static//etc/passwd",
    "/static/css/%00.css",
    "/runbooks/..%2f..%2fREADME/",
    "/runbooks/../../README.md/",
    "/reports/weekly/..%2f..%2f/",
    "/api/v1/dlq/streams/..%2f..%2fetc%2fpasswd/messages/",
)


def leads_away(location):
    return not location.startswith("/") or location.startswith(("//", "/\\")) or "\\" in location


@pytest.mark.parametrize("away", AWAY)
def test_signing_in_leads_nowhere_else(away):
    user = person("operator", "kim")
    user.set_password("right horse")
    user.save()
    response = Client().post(
        "/sign-in/", {"username": "kim", "password": "right horse", "next": away}
    )

    assert response.status_code == 302
    assert not leads_away(response.headers["Location"])


@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("path", ["/confirm/", "/sign-in/", "/admin/login/", "/sign-in/again/"])
def test_no_page_on_the_way_takes_the_address_along(path, away):
    user = person("admin", "ada")
    user.set_password("right horse")
    user.save()
    client = browser_of(user)

    answers = [
        client.get(path, {"next": away}),
        browser_of(user).post(path, {"next": away, "password": "right horse"}),
        Client().get(path, {"next": away}),
    ]

    for answer in answers:
        assert not leads_away(answer.headers.get("Location", "/")), answer.headers["Location"]
        assert 'href="https://evil' not in answer.content.decode()
        assert 'href="javascript' not in answer.content.decode()


@pytest.mark.parametrize("path", ["/theme/", "/preferences/", "/sign-out/"])
def test_no_form_leads_back_to_another_site(path):
    client = browser_of(person("operator", "kim"))

    response = client.post(
        path,
        {"theme": "dark", "next": "https://evil.example/"},
        headers={"referer": "https://evil.example/page"},
    )

    assert not leads_away(response.headers.get("Location", "/"))


@pytest.mark.parametrize("path", DOTS)
def test_dots_lead_out_of_no_folder(path):
    response = browser_of(person("admin", "ada")).get(path)

    assert response.status_code in {301, 302, 308, 400, 404}
    content = b"".join(response.streaming_content) if response.streaming else response.content
    assert b"root:" not in content
    assert b"SECRET_KEY" not in content


@pytest.mark.parametrize("path", ["/health/live", "/api/v1/switches", "/slack/interactions"])
def test_the_other_form_of_a_path_redirects_within_the_house(path):
    response = Client().get(f"//evil.example{path}")

    assert not leads_away(response.headers.get("Location", "/"))
