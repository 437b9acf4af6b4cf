"""Failures are answered as problem+json on the API, as a page elsewhere."""

import json
import logging

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import Client

from controlplane.core.http.tests.callers import Api, as_role
from controlplane.core.http.tests.sessions import another_session

BROKEN = "controlplane.core.http.tests.broken_urls"


def visit(path):
    return Client(raise_request_exception=False).get(path)


def impatient(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.urls(BROKEN)
@pytest.mark.parametrize("kind", ["api", "api/plain"])
@pytest.mark.parametrize(
    ("what", "status", "slug"),
    [
        ("unforeseen", 500, "internal-error"),
        ("conflict", 409, "conflict"),
        ("slower", 429, "too-many-requests"),
        ("throttled", 429, "too-many-requests"),
        ("missing", 404, "not-found"),
        ("denied", 403, "forbidden"),
    ],
)
def test_failure_on_the_api_is_a_problem(kind, what, status, slug):
    response = visit(f"/{kind}/{what}")

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"] == f"urn:switchgear:problem:{slug}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]


@pytest.mark.urls(BROKEN)
@pytest.mark.parametrize(
    ("what", "status"),
    [("unforeseen", 500), ("conflict", 409), ("missing", 404), ("denied", 403), ("slower", 429)],
)
def test_failure_elsewhere_is_a_page(what, status):
    response = visit(f"/page/{what}")

    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")
    assert response["X-Request-ID"] in response.content.decode()


@pytest.mark.urls(BROKEN)
@pytest.mark.parametrize("path", ["/api/unforeseen", "/page/unforeseen"])
def test_unforeseen_failure_tells_the_log_once_and_the_caller_nothing(path, caplog):
    response = visit(path)

    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "ZeroDivisionError" in str(errors[0].exc_info)
    assert "hunter2" not in response.content.decode()
    assert "ZeroDivision" not in response.content.decode()


@pytest.mark.urls(BROKEN)
def test_facts_of_a_conflict_are_members_of_the_problem():
    assert visit("/api/conflict").json()["episode"] == {"id": 1}


@pytest.mark.urls(BROKEN)
@pytest.mark.parametrize(("what", "seconds"), [("slower", "7"), ("throttled", "2")])
def test_too_many_requests_say_when_to_come_back(what, seconds):
    assert visit(f"/api/{what}")["Retry-After"] == seconds


@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1/", "/api/v1/nothing", "/api/v2/switches/", "/api/v1/switches/a/b/c"]
)
def test_unknown_path_of_the_api_is_a_problem(path):
    response = visit(path)

    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"


def test_unknown_path_elsewhere_is_a_page():
    response = visit("/nothing/here/")

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


def test_unknown_host_is_refused_in_the_callers_form():
    response = Client(headers={"host": "evil.example"}).get("/api/v1/switches/")

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/switches/"),
        ("POST", "/switches/"),
        ("PUT", "/switches/segment/finance/"),
        ("GET", "/switches/segment/finance/engage"),
        ("OPTIONS", "/switches/"),
        ("TRACE", "/switches/"),
        ("PATCH", "/audit/"),
        ("BREW", "/audit/"),
    ],
)
def test_other_method_is_405_and_says_which_are_allowed(method, path):
    admin = as_role("admin")

    response = admin.client.generic(method, f"/api/v1{path}")

    assert response.status_code == 405
    assert response["Allow"]
    assert method not in response["Allow"]
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
def test_answers_are_json_whatever_the_caller_accepts():
    viewer = as_role("viewer")

    response = viewer.get("/switches/", {}, accept="text/html")

    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    assert response["Cache-Control"] == "no-store"


@pytest.mark.django_db
def test_waiting_too_long_for_a_lock_is_503_and_nothing_is_half_written(caplog):
    operator = as_role("operator")
    impatient("SET lock_timeout = '100ms'")

    with another_session() as session:
        session.execute("SELECT * FROM switches_publication FOR UPDATE")
        response = operator.engage("segment:finance", headers={"idempotency_key": "k"})

    assert response.status_code == 503
    assert response["Retry-After"] == "1"
    assert response.json()["type"] == "urn:switchgear:problem:unavailable"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert operator.get("/audit/").json()["results"] == []
    assert operator.engage("segment:finance", headers={"idempotency_key": "k"}).status_code == 200


@pytest.mark.django_db
def test_read_only_database_is_503_and_says_that_nothing_was_changed():
    admin = as_role("admin")

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL transaction_read_only = on")
        answer = admin.engage("segment:finance")
        transaction.set_rollback(True)

    assert answer.status_code == 503
    assert answer["Retry-After"] == "3"
    assert "PostgreSQL is read-only, so nothing was changed" in answer.json()["detail"]


@pytest.mark.django_db
def test_statement_that_takes_too_long_is_503():
    operator = as_role("operator")
    impatient("SET statement_timeout = '100ms'")

    with another_session() as session:
        session.execute("LOCK TABLE switches_switch")
        response = operator.get("/switches/")

    assert response.status_code == 503
    assert response["Retry-After"] == "1"


@pytest.fixture
def no_database(transactional_db):
    """The database is gone: nothing listens at its port any more."""
    port = connection.settings_dict["PORT"]
    yield lambda: (connection.close(), connection.settings_dict.update(PORT="1"))
    connection.close()
    connection.settings_dict["PORT"] = port


@pytest.mark.parametrize("path", ["/api/v1/switches/", "/api/v1/audit/", "/"])
def test_database_that_is_gone_is_503_for_people(no_database, path, caplog):
    browser = as_role("operator")
    no_database()

    response = browser.client.get(path)

    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response["X-Request-ID"]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_database_that_is_gone_is_503_for_programs(no_database):
    no_database()

    response = Api(x_api_key="sg_abcdefghij_secret").engage("segment:finance")

    assert response.status_code == 503
    assert response.json()["status"] == 503
    assert "127.0.0.1" not in json.dumps(response.json())


@pytest.mark.django_db
def test_settings_give_every_wait_an_end():
    options = settings.DATABASES["default"]["OPTIONS"]

    assert options["connect_timeout"] <= 3
    assert "statement_timeout=8s" in options["options"]
    assert "lock_timeout=5s" in options["options"]
