"""Real responses about teams, authority and tokens have the statuses and fields of the document."""

from typing import Any

import pytest
from django.http import HttpResponse

from controlplane.accounts.teams.tests.company import REASON, make_team
from controlplane.core.http.tests.callers import Api, person, signed_in

from .documents import api_document
from .test_responses import complaints

pytestmark = pytest.mark.django_db
OWNERSHIP_FIELDS = {"action", "resource", "owner", "who_may", "on_call", "can_ask"}
RELEASE = {"justification": "duplicate charges refunded, queue empty"}
RULE = {"relation": "owner", "role": "approver", "reason": REASON}
ASKED = {"action": "release", "resource": "segment:finance", "reason": REASON}
TOKEN = {
    "name": "ci",
    "scopes": ["switches:write"],
    "team": "payments",
    "patterns": ["segment:fin*"],
}


@pytest.fixture
def company(db) -> dict[str, Api]:
    """Return the browsers of an admin, the lead of Payments, and an operator of no team."""
    people = {"admin": "ada", "approver": "bob", "operator": "sam"}
    found = {name: signed_in(person(role, name)) for role, name in people.items()}
    make_team("company", members={"ada": "lead"})
    make_team("payments", parent="company", members={"bob": "lead"}, owns=["segment:fin*"])
    return found


def find_undocumented(schema: dict[str, Any], value: Any) -> list[str]:
    """Return the names of the fields in a value that the schema lacks."""
    schemas = api_document()["components"]["schemas"]
    parts = [one for key in ("allOf", "oneOf", "anyOf") for one in schema.get(key, ())]
    if "$ref" in schema:
        return find_undocumented(schemas[schema["$ref"].rpartition("/")[2]], value)
    if parts:
        return min((find_undocumented(one, value) for one in parts), key=len)
    if isinstance(value, list):
        return [name for one in value for name in find_undocumented(schema["items"], one)]
    if not isinstance(value, dict) or "properties" not in schema:
        return [] if not isinstance(value, dict) or "additionalProperties" in schema else [*value]
    known = schema["properties"]
    below = (find_undocumented(known[name], value[name]) for name in value if name in known)
    return [
        *(name for name in value if name not in known),
        *(one for some in below for one in some),
    ]


def check(path: str, method: str, status: int, response: HttpResponse) -> None:
    document = api_document()
    assert response.status_code == status, response.content
    responses = document["paths"][f"/api/v1{path}"][method]["responses"]
    assert str(status) in responses, (method, path, status)
    assert complaints(document, f"/api/v1{path}", method, response) == [], response.json()
    if status < 400:
        (content,) = responses[str(status)]["content"].values()
        assert find_undocumented(content["schema"], response.json()) == [], (method, path)


def test_responses_about_teams(company):
    ada, bob, sam = company.values()
    team, one = "/teams/{slug}/", "/teams/payments/"
    wanted = {"slug": "ops", "name": "Ops", "members": {"ada": "lead"}, "reason": REASON}

    check("/teams/", "get", 200, ada.get("/teams/", {"limit": 1}))
    check("/teams/", "post", 202, ada.post("/teams/", wanted))
    check("/teams/", "post", 400, ada.post("/teams/", {"slug": "no no", "name": ""}))
    check("/teams/", "post", 403, sam.post("/teams/", wanted))
    check(team, "get", 200, sam.get(one))
    check(team, "get", 404, sam.get("/teams/gone/"))
    check(team, "patch", 200, bob.patch(one, {"description": "Pays"}))
    check(team, "patch", 202, bob.patch(one, {"owns": ["segment:*"], "reason": REASON}))
    check(team, "patch", 409, bob.patch(one, {"name": "x", "revision": "old"}))
    check(team, "patch", 403, sam.patch(one, {"name": "x"}))
    check(team, "delete", 409, ada.send("delete", "/teams/company/", {"reason": REASON}))
    check(f"{team}contacts/", "get", 200, sam.get(f"{one}contacts/"))
    check(f"{team}contacts/", "get", 404, sam.get("/teams/gone/contacts/"))
    check(f"{team}contacts/", "put", 200, bob.send("put", f"{one}contacts/", {"channels": []}))
    check(f"{team}contacts/", "put", 400, bob.send("put", f"{one}contacts/", {"on_call": "x"}))
    check(f"{team}contacts/", "put", 403, sam.send("put", f"{one}contacts/", {}))


def test_responses_about_authority(company):
    ada, bob, sam = company.values()
    rule, decision, who_could = (
        "/authority/{action}/{kind}/",
        "/authority/decision",
        "/audit/who-could",
    )
    finance = {"action": "release", "resource": "segment:finance"}

    check("/authority/", "get", 200, sam.get("/authority/"))
    check(rule, "put", 202, ada.send("put", "/authority/release/all/", RULE))
    check(rule, "put", 400, ada.send("put", "/authority/gone/all/", RULE))
    check(rule, "put", 403, sam.send("put", "/authority/release/all/", RULE))
    check(rule, "delete", 200, ada.send("delete", "/authority/override/all/"))
    check(decision, "get", 200, sam.get(decision, finance))
    check(decision, "get", 400, sam.get(decision, {**finance, "resource": "finance"}))
    check("/authority/ask", "post", 202, sam.post("/authority/ask", ASKED))
    check("/authority/ask", "post", 409, bob.post("/authority/ask", ASKED))
    check("/authority/ask", "post", 400, sam.post("/authority/ask", {**ASKED, "resource": "x"}))
    check(who_could, "get", 200, sam.get(who_could, {**finance, "from": "2026-11-01"}))
    check(who_could, "get", 400, sam.get(who_could, finance))
    check("/environment/", "get", 200, sam.get("/environment/"))


def test_responses_about_tokens(company):
    ada, _, sam = company.values()
    made = ada.post("/tokens/", TOKEN)
    path, one = "/tokens/{token_id}", f"/tokens/{made.json()['id']}"

    check("/tokens/", "post", 201, made)
    check("/tokens/", "post", 400, ada.post("/tokens/", {**TOKEN, "team": "gone"}))
    check("/tokens/", "post", 403, sam.post("/tokens/", TOKEN))
    check(f"{path}/rotate", "post", 201, ada.post(f"{one}/rotate", {"overlap": "1h"}))
    check(f"{path}/rotate", "post", 409, ada.post(f"{one}/rotate", {}))
    check(f"{path}/rotate", "post", 400, ada.post(f"{one}/rotate", {"overlap": "90d"}))
    check(f"{path}/rotate", "post", 403, sam.post(f"{one}/rotate", {}))
    check(f"{path}/rotate", "post", 404, ada.post("/tokens/99999/rotate", {}))
    check(f"{path}/hand-over", "post", 200, ada.post(f"{one}/hand-over", {"team": "payments"}))
    check(f"{path}/hand-over", "post", 400, ada.post(f"{one}/hand-over", {}))
    check(f"{path}/revoke", "post", 200, ada.post(f"{one}/revoke", {}))
    check("/tokens/", "get", 200, ada.get("/tokens/"))


def test_document_names_the_fields_of_a_refusal_by_the_owner(company):
    sam = company["sam"]
    sam.engage("segment:finance")

    refused = sam.post("/switches/segment/finance/release", RELEASE)

    check("/switches/{scope}/{key}/release", "post", 403, refused)
    components = api_document()["components"]
    (content,) = components["responses"]["Forbidden"]["content"].values()
    assert find_undocumented(content["schema"], refused.json()) == []
    assert refused.json().keys() >= OWNERSHIP_FIELDS <= content["example"].keys()
