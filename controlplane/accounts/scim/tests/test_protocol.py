"""SCIM as a protocol: credentials, media types, errors, versions and what the service says."""

import pytest
from django.test import Client

from controlplane.accounts.scim.tests.caller import Directory
from controlplane.core.http.tests.callers import browser_of
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES

ERROR = ["urn:ietf:params:scim:api:messages:2.0:Error"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ServiceProviderConfig", 200),
        ("ResourceTypes", 200),
        ("ResourceTypes/User", 200),
        ("ResourceTypes/Car", 404),
        ("Schemas", 200),
        ("Schemas/urn:ietf:params:scim:schemas:core:2.0:Group", 200),
        ("Schemas/Group", 404),
        ("Me", 404),
        ("Users/1/2", 404),
        ("Users/x", 404),
        ("Groups/99999999999999999999999", 404),
    ],
)
def test_each_answer_is_scim(directory, name, expected):
    answer = directory.send("get", name)

    assert answer.status_code == expected
    assert answer["Content-Type"] == "application/scim+json"
    if expected == 404:
        assert answer.json()["schemas"] == ERROR
        assert answer.json()["status"] == "404"


def test_service_says_what_it_supports(directory):
    config = directory.get("ServiceProviderConfig")

    supported = {
        name
        for name, value in config.items()
        if isinstance(value, dict) and value.get("supported") is True
    }
    assert supported == {"patch", "filter", "etag"}
    assert config["filter"]["maxResults"] == 200
    kinds = {
        each["endpoint"]: each["schema"] for each in directory.get("ResourceTypes")["Resources"]
    }
    schemas = {each["id"] for each in directory.get("Schemas")["Resources"]}
    assert set(kinds) == {"/Users", "/Groups"}
    assert set(kinds.values()) == schemas


def test_nobody_gets_in_without_the_scope(directory, admin):
    everything = Directory(admin, *(ALL_SCOPES - EXCLUSIVE_SCOPES))
    for caller, status in (
        (Client(), 401),
        (Client(headers={"authorization": "Bearer sg_a_b"}), 401),
        (browser_of(admin), 401),
        (everything.client, 403),
    ):
        for method in ("get", "post"):
            answer = getattr(caller, method)("/scim/v2/Users", content_type="application/scim+json")
            assert (answer.status_code, answer.json()["schemas"]) == (status, ERROR)
            assert answer["Content-Type"] == "application/scim+json"


@pytest.mark.parametrize("media_type", ["application/scim+json", "application/json; charset=utf-8"])
def test_body_is_read_by_either_media_type(directory, media_type):
    answer = directory.client.post("/scim/v2/Users", b'{"userName": "kim"}', media_type)

    assert answer.status_code == 201
    assert answer["Location"] == answer.json()["meta"]["location"]


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"{", "application/scim+json", 400),
        (b"[]", "application/scim+json", 400),
        (b'{"userName": "a\\u0000"}', "application/scim+json", 400),
        (b"userName=kim", "application/x-www-form-urlencoded", 415),
        (b"{}", "text/plain", 415),
    ],
)
def test_body_that_can_not_be_read_is_refused(directory, body, media_type, status):
    answer = directory.client.post("/scim/v2/Users", body, media_type)

    assert (answer.status_code, answer.json()["schemas"]) == (status, ERROR)


@pytest.mark.parametrize("path", ["Users", "Groups", "ServiceProviderConfig", "Schemas"])
def test_method_that_is_not_there_is_refused(directory, path):
    answer = directory.send("put", path, {})

    assert (answer.status_code, answer.json()["schemas"]) == (405, ERROR)


@pytest.mark.parametrize("kind", ["Users", "Groups"])
def test_version_guards_against_lost_changes(directory, kind):
    made = directory.user() if kind == "Users" else directory.group("a")
    path, version = f"{kind}/{made['id']}", made["meta"]["version"]
    change = {"op": "replace", "path": "displayName", "value": "B"}

    read = directory.send("get", path)
    assert read["ETag"] == version
    assert directory.send("get", path, if_none_match=version).status_code == 304
    assert directory.send("get", path, if_none_match='W/"other"').status_code == 200

    assert directory.patch(path, change, if_match=version).status_code in {200, 204}
    late = directory.patch(path, {**change, "value": "C"}, if_match=version)
    assert (late.status_code, late.json()["schemas"]) == (412, ERROR)
    assert directory.send("delete", path, if_match=version).status_code == 412
    body = {"displayName": "D", "userName": "kim@example.com"}
    assert directory.send("put", path, body, if_match=version).status_code == 412
    shown = directory.send("get", path)
    assert shown.json()["displayName"] == "B"
    assert directory.send("put", path, body, if_match=shown["ETag"]).status_code == 200
    assert directory.send("put", path, body, if_match="*").status_code == 200


def test_addresses_are_those_of_the_public_url(directory, settings):
    settings.PUBLIC_URL = "https://switchgear.example.org"

    location = directory.user()["meta"]["location"]

    assert location.startswith("https://switchgear.example.org/scim/v2/Users/")
