"""Error pages of who is signed in: the frame of every page, with its alarms, and who may."""

import pytest
from django.db import OperationalError, connection

from controlplane.core.http.tests.callers import as_role, person, signed_in
from switches.tests.browsers import engaged, text

pytestmark = pytest.mark.django_db


def page(client, path):
    return client.get(path).content.decode()


def test_signed_in_keeps_alarm_navigation_name_and_environment(settings):
    settings.ENVIRONMENT_NAME = "staging"
    engaged("global:all")
    client = as_role("viewer").client

    for path, status in (("/nothing/here/", 404), ("/switches/engage/", 403)):
        response = client.get(path)
        html = response.content.decode()

        assert response.status_code == status
        assert "Global stop engaged" in html
        assert 'aria-label="Main"' in html
        assert "Signed in as <b>a-viewer</b>" in html
        assert "· staging</title>" in html


def test_stranger_is_told_nothing_but_the_error(client):
    engaged("global:all")

    html = page(client, "/nothing/here/")

    assert "Page not found" in html
    assert "Global stop engaged" not in html
    assert 'aria-label="Main"' not in html


def test_refusal_names_who_may_and_who_grants_it():
    person("operator", "kim")
    person("admin", "olga")
    person("approver", "anna")

    html = text(page(signed_in(person("viewer", "vic")).client, "/switches/engage/"))

    assert "Who can: anna, kim or olga." in html
    assert "ask an admin: olga." in html


def test_one_name_is_no_list():
    person("admin", "olga")

    html = text(page(as_role("operator").client, "/people/"))

    assert "Who can: olga." in html


def test_database_that_fails_meanwhile_leaves_the_page_alone():
    client = as_role("viewer").client

    def away(execute, sql, params, many, context):
        if "core_user" in sql and "role" in sql and "IN (" in sql:
            raise OperationalError("the server closed the connection unexpectedly")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(away):
        response = client.get("/switches/engage/")

    assert response.status_code == 403
    assert "You don't have access" in response.content.decode()
    assert 'aria-label="Main"' not in response.content.decode()
