"""Probes and scrapes work with a container's address; other paths need an allowed host name."""

import pytest

pytestmark = pytest.mark.django_db
POD = {"Host": "10.244.7.31:8000"}


@pytest.mark.parametrize("path", ["/health/startup", "/health/live", "/health/ready"])
def test_a_probe_by_an_address_is_answered(client, settings, path):
    settings.ALLOWED_HOSTS = ["switchgear.example"]

    assert client.get(path, headers=POD).status_code == 200
    assert client.get(path + "/", headers=POD).status_code == 308


def test_a_scrape_by_an_address_is_asked_who_it_is(client, settings):
    settings.ALLOWED_HOSTS = ["switchgear.example"]

    assert client.get("/metrics", headers=POD).status_code == 401


@pytest.mark.parametrize("path", ["/", "/sign-in/", "/api/v1/switches/", "/healthy", "/admin/"])
def test_everything_else_by_an_address_is_refused(client, settings, path):
    settings.ALLOWED_HOSTS = ["switchgear.example"]

    assert client.get(path, headers=POD).status_code == 400
