"""The OpenAPI document is valid, complete, and matches real responses."""

import json

import pytest
from django.core.management import call_command
from django.urls import get_resolver
from jsonschema import Draft202012Validator

from controlplane.core.http.tests.callers import Api, as_role

JUSTIFIED = {"justification": "duplicate charges refunded, queue empty"}


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    file = tmp_path_factory.mktemp("schema") / "schema.json"
    call_command(
        "spectacular", "--validate", "--fail-on-warn", format="openapi-json", file=str(file)
    )
    return json.loads(file.read_text())


def complaints(document, path, method, response):
    """Return the differences between a real response and the OpenAPI document."""
    answers = document["paths"][path][method]["responses"]
    described = answers.get(str(response.status_code)) or answers["default"]
    if "$ref" in described:
        described = document["components"]["responses"][described["$ref"].rpartition("/")[2]]
    (content,) = [
        content
        for media_type, content in described["content"].items()
        if response["Content-Type"].startswith(media_type)
    ]
    schema = {**content["schema"], "components": document["components"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(response.json())]


@pytest.mark.slow
def test_document_is_valid_without_a_warning(document):
    assert document["openapi"].startswith("3.1")


def test_every_path_of_the_api_is_in_it_once(document):
    routed = {
        "/" + str(prefix.pattern) + str(route.pattern)
        for prefix in get_resolver().url_patterns
        if str(prefix.pattern) == "api/v1/"
        for route in prefix.url_patterns
        if route.name
    }

    assert len(routed) == len(document["paths"].keys() - DATA_PLANE_ONLY)
    assert document["paths"].keys() > DATA_PLANE_ONLY


def test_every_operation_names_its_problems_and_its_credentials(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "default" in operation["responses"], (method, path)
            for_people = {"session": []} in operation["security"]
            assert for_people == (path not in DATA_PLANE_ONLY), (method, path)


DATA_PLANE_ONLY = {
    "/api/v1/snapshot/stream",
    "/api/v1/config",
    "/api/v1/report",
    "/api/v1/emergency/orders",
    "/api/v1/keys",
    "/api/v1/relay/batch",
    "/api/v1/relay/stream",
    "/api/v1/relay/lost-version",
    "/api/v1/relay/orders",
    "/ofrep/v1/evaluate/flags",
    "/ofrep/v1/evaluate/flags/{key}",
    "/ofrep/v1/events",
}
WITHOUT_A_KEY = {
    "/api/v1/check",  # These change nothing,
    "/ofrep/v1/evaluate/flags",
    "/ofrep/v1/evaluate/flags/{key}",
    "/api/v1/hooks/alertmanager",  # these tell their repeats by themselves.
    "/api/v1/report",
    "/api/v1/emergency/orders",  # Orders have an id.
    "/api/v1/relay/lost-version",  # A version is stored once.
    "/api/v1/relay/batch",  # Batches have a process and a seq.
    "/api/v1/relay/orders",
}


def test_every_mutation_takes_an_idempotency_key(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names = {parameter["name"] for parameter in operation.get("parameters", [])}
            changes = method != "get" and path not in WITHOUT_A_KEY
            assert ("Idempotency-Key" in names) == changes, (method, path)


@pytest.mark.slow
@pytest.mark.django_db
def test_real_answers_are_what_it_says(document):
    operator, approver, admin = as_role("operator"), as_role("approver"), as_role("admin")
    one, all_traffic = "/api/v1/switches/{scope}/{key}", "/switches/global/all"
    finance = "/switches/segment/finance"
    day = {"expires_in": "2d", "reason": "refund job is still running"}

    answers = [
        (f"{one}/", "get", operator.get(f"{finance}/")),
        (f"{one}/engage", "post", operator.engage("segment:finance", dry_run=True)),
        (f"{one}/engage", "post", operator.engage("segment:finance", evidence={"a": [1]})),
        (f"{one}/engage", "post", operator.engage("segment:finance")),
        (f"{one}/engage", "post", operator.engage("segment:x", reason="")),
        (f"{one}/engage", "post", operator.engage("feature:forever", expires_in="permanent")),
        (f"{one}/extend", "post", operator.post(f"{finance}/extend", day)),
        (f"{one}/acknowledge", "post", operator.post(f"{finance}/acknowledge", {})),
        (f"{one}/", "patch", operator.patch(f"{finance}/", {"owner": "payments"})),
        (f"{one}/release", "post", operator.post(f"{finance}/release", JUSTIFIED)),
        (f"{one}/history", "get", operator.get(f"{finance}/history")),
        (f"{one}/engage", "post", operator.engage("global:all")),
        (f"{one}/release", "post", operator.post(f"{all_traffic}/release", JUSTIFIED)),
        (
            f"{one}/release",
            "post",
            operator.post(f"{all_traffic}/release", {**JUSTIFIED, "dry_run": True}),
        ),
        ("/api/v1/approvals/", "get", operator.get("/approvals/")),
        ("/api/v1/snapshot", "get", operator.get("/snapshot")),
        ("/api/v1/check", "post", operator.post("/check", {"segments": ["finance"]})),
        ("/api/v1/degradation", "get", operator.get("/degradation")),
        ("/api/v1/gates/{name}", "post", operator.post("/gates/smoke", {"verdict": "ok"})),
        ("/api/v1/gates/{name}", "get", operator.get("/gates/smoke")),
        ("/api/v1/gates/", "get", operator.get("/gates/")),
        ("/api/v1/switches/", "get", operator.get("/switches/")),
        ("/api/v1/audit/", "get", operator.get("/audit/")),
        (
            "/api/v1/tokens/",
            "post",
            admin.post("/tokens/", {"name": "ci", "scopes": ["slo:read"], "expires_in": "90d"}),
        ),
        ("/api/v1/tokens/", "get", admin.get("/tokens/")),
        ("/api/v1/tokens/", "get", Api().get("/tokens/")),
    ]
    pending = approver.get("/approvals/", {"state": "pending"}).json()["results"]
    deny, approve = (f"/approvals/{row['id']}/" for row in pending)
    answers += [
        ("/api/v1/approvals/{approval_id}/deny", "post", approver.post(f"{deny}deny", {})),
        ("/api/v1/approvals/{approval_id}/approve", "post", approver.post(f"{approve}approve")),
    ]

    for path, method, response in answers:
        assert complaints(document, path, method, response) == [], (method, path, response.json())
    statuses = [response.status_code for _, _, response in answers]
    assert {200, 201, 202, 400, 401, 409} == set(statuses)


def test_it_is_served_as_json_and_as_yaml_to_anybody(client):
    as_json = client.get("/api/schema/")
    as_yaml = client.get("/api/schema/", headers={"accept": "application/vnd.oai.openapi"})
    as_html = client.get("/api/schema/", headers={"accept": "text/html"})

    assert as_json["Content-Type"] == "application/json"
    assert as_json.json()["openapi"].startswith("3.1")
    assert as_yaml.content.startswith(b"openapi: 3.1")
    assert as_html.status_code == 406
    assert as_html["Content-Type"] == "application/problem+json"
