"""The trips page, and the trips on a switch's page."""

import re

import pytest

from controlplane.core.clock import db_now
from controlplane.core.page_registry import ATTENTION_SOURCES
from switches.models import Episode, Trip, TripPolicy
from switches.tests.browsers import DIALOG, browser_as, page, text
from switches.trips.tests.requests import FLAG, engage, request_stop

pytestmark = pytest.mark.django_db
PAGE = "/trips/"
ROW = '<summary class="audit-row'
EVIL = "<script>alert(1)</script> \u202e 결제 이중 청구"
POLICY = {
    "title": "Outage of a provider",
    "sources": "openai*\n\nalertmanager:Provider*\n",
    "scopes": ["segment"],
    "gate": "automatic",
    "response": "Stop that segment",
    "budget_per_hour": "3",
    "longest_minutes": "60",
    "position": "1",
}


def leak(**more):
    return request_stop(db_now(), source="leak-detector", switch="segment:finance", **more)


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_empty_page_says_how_to_begin(role):
    response = browser_as(role).get(PAGE)

    assert response.status_code == 200
    assert "No trips" in page(response)
    assert "Waiting for a decision" not in page(response)
    assert "Sample ratio mismatch" in page(response)


def test_nobody_is_sent_to_sign_in(client):
    for path in (PAGE, "/trips/1/dismiss/", "/trips/policies/new/", "/trips/policies/srm/"):
        assert client.get(path).status_code == 302


def test_trip_is_shown_with_its_evidence_escaped():
    request_stop(db_now(), reason=EVIL, evidence={"note": EVIL})

    content = page(browser_as("viewer").get(PAGE))

    assert "<script>alert(1)" not in content
    assert "&lt;script&gt;alert(1)" in content
    assert "결제 이중 청구" in content
    assert "Tripped" in content


def test_huge_evidence_is_cut():
    request_stop(db_now(), evidence={"log": "x" * 30_000})

    content = page(browser_as("viewer").get(PAGE))

    assert len(content) < 60_000
    assert "… 22," in content


def test_list_is_narrowed_and_comes_in_pages():
    for number in range(30):
        request_stop(db_now(), switch=f"feature:f{number:02}", source="monitor")
    viewer = browser_as("viewer")

    first = page(viewer.get(PAGE))
    assert first.count(ROW) == 25
    older = Trip.objects.order_by("-id")[24].pk
    assert page(viewer.get(PAGE, {"before": older})).count(ROW) == 5
    assert page(viewer.get(PAGE, {"q": "feature:f07"})).count(ROW) == 1
    refused = page(viewer.get(PAGE, {"outcome": "refused"}))
    assert refused.count(ROW) == Trip.objects.filter(outcome="refused").count() > 0


@pytest.mark.parametrize(
    "query", [{"before": "x"}, {"before": "9" * 30}, {"outcome": "nope"}, {"q": "\x00" * 3}]
)
def test_query_that_makes_no_sense_narrows_nothing(query):
    request_stop(db_now())

    assert ROW in page(browser_as("viewer").get(PAGE, query))


def test_what_waits_offers_to_engage_and_to_dismiss():
    result = leak(reason="card numbers in the log, INC-77 & more")

    content = page(browser_as("operator").get(PAGE))

    assert f'id="trip-{result.trip.pk}"' in content
    link = "/switches/engage/?scope=segment&amp;key=finance&amp;reason=card+numbers"
    assert link in content
    assert f"/trips/{result.trip.pk}/dismiss/" in content
    viewers = page(browser_as("viewer").get(PAGE))
    assert link not in viewers
    assert "operators engage the switch" in viewers


def test_what_a_machine_has_stopped_meanwhile_links_to_its_page():
    leak()
    request_stop(db_now(), switch="segment:finance", fingerprint="slow")

    content = page(browser_as("operator").get(PAGE))

    assert "Open switch" in content
    assert "/switches/engage/?scope=segment" not in content


def test_link_fills_in_the_form():
    leak(reason="card numbers in the log, INC-77")
    operator = browser_as("operator")
    path = next(
        waiting.path
        for source in ATTENTION_SOURCES.values()
        for waiting in source.function(db_now())
        if waiting.kind == "trip"
    )  # fmt: skip
    assert path.startswith("/trips/#trip-")

    form = operator.get(
        "/switches/engage/?scope=segment&key=finance&reason=card+numbers+in+the+log"
    )

    assert "card numbers in the log" in page(form)


def test_dismissing_takes_a_reason_and_ends_the_wait():
    result = leak()
    operator = browser_as("operator")
    path = f"/trips/{result.trip.pk}/dismiss/"

    assert operator.get(path, headers=DIALOG).status_code == 200
    assert operator.post(path, {"reason": " "}, headers=DIALOG).status_code == 422
    assert operator.post(path, {"reason": "load test"}).status_code == 302
    assert operator.post(path, {"reason": "load test"}).status_code == 409
    assert "Waiting for a decision" not in page(operator.get(PAGE))
    assert "Dismissed by user:a-operator: load test" in page(operator.get(PAGE))
    assert operator.post("/trips/999999/dismiss/", {"reason": "x"}).status_code == 404


def test_viewer_dismisses_nothing():
    result = leak()

    response = browser_as("viewer").post(f"/trips/{result.trip.pk}/dismiss/", {"reason": "so"})
    assert response.status_code == 403


def test_admin_changes_a_policy():
    admin = browser_as("admin")

    form = admin.get("/trips/policies/provider-outage/", headers=DIALOG)
    assert "Stop that segment or feature" in page(form)
    assert admin.post("/trips/policies/provider-outage/", POLICY).status_code == 302

    row = TripPolicy.objects.get(trigger="provider-outage")
    assert row.sources == ["openai*", "alertmanager:Provider*"]
    assert (row.scopes, row.budget_per_hour, row.position) == (["segment"], 3, 0)
    assert TripPolicy.objects.count() == 5


def test_table_can_never_say_that_everything_stops_by_itself():
    admin = browser_as("admin")

    response = admin.post(
        "/trips/policies/provider-outage/", {**POLICY, "scopes": ["global", "segment"]}
    )

    assert response.status_code == 422
    assert "The global switch is never tripped automatically" in page(response)
    assert "openai*" in page(response)
    assert TripPolicy.objects.get(trigger="provider-outage").scopes == ["segment", "feature"]


def test_form_of_a_policy_that_somebody_else_changed_since_changes_nothing():
    admin, path = browser_as("admin"), "/trips/policies/provider-outage/"
    version = re.search(r'name="seen" value="(\w+)"', page(admin.get(path)))[1]
    assert admin.post(path, {**POLICY, "gate": "person", "seen": version}).status_code == 302

    late = admin.post(path, {**POLICY, "gate": "automatic", "title": "Outage", "seen": version})

    row = TripPolicy.objects.get(trigger="provider-outage")
    assert late.status_code == 409
    assert "Someone else changed this policy" in page(late)
    assert (row.gate, row.title) == ("person", POLICY["title"])


def test_form_of_a_policy_that_somebody_else_moved_since_moves_it_nowhere():
    admin, path = browser_as("admin"), "/trips/policies/provider-outage/"
    assert admin.post(path, POLICY).status_code == 302
    version = re.search(r'name="seen" value="(\w+)"', page(admin.get(path)))[1]
    last = str(TripPolicy.objects.count())
    assert admin.post(path, {**POLICY, "position": last, "seen": version}).status_code == 302

    late = admin.post(path, {**POLICY, "position": "1", "seen": version})

    assert late.status_code == 409
    assert TripPolicy.objects.order_by("position").last().trigger == "provider-outage"


def test_admin_adds_and_removes_a_policy():
    admin = browser_as("admin")

    assert admin.get("/trips/policies/new/").status_code == 200
    assert admin.post("/trips/policies/new/", {**POLICY, "trigger": "ci"}).status_code == 302
    again = admin.post("/trips/policies/new/", {**POLICY, "trigger": "ci"})
    assert again.status_code == 422
    assert "with this name already" in page(again)
    assert TripPolicy.objects.get(trigger="ci").position == 0
    assert admin.post("/trips/policies/ci/remove/").status_code == 302
    assert not TripPolicy.objects.filter(trigger="ci").exists()


@pytest.mark.parametrize("fields", [{"trigger": ""}, {"trigger": "ci", "budget_per_hour": "x"}, {}])
def test_form_with_mistakes_comes_back_with_what_was_typed(fields):
    response = browser_as("admin").post("/trips/policies/new/", {**POLICY, **fields})

    assert response.status_code == 422
    assert "Outage of a provider" in page(response)
    assert "field__error" in page(response)


def test_only_admins_change_the_table():
    for role in ("viewer", "operator", "approver"):
        person = browser_as(role)
        for path in ("/trips/policies/new/", "/trips/policies/srm/"):
            assert person.get(path).status_code == 403
            assert person.post(path, POLICY).status_code == 403
        assert person.post("/trips/policies/srm/remove/").status_code == 403
        assert "/trips/policies/" not in page(person.get(PAGE))
    assert browser_as("admin").get("/trips/policies/nowhere/").status_code == 404


def test_page_of_the_switch_shows_evidence_and_trips():
    request_stop(db_now(), evidence={"p95": EVIL})
    request_stop(db_now(), evidence={"p95": EVIL})

    content = page(browser_as("viewer").get("/switches/feature/checkout/"))

    assert "Evidence" in content
    assert "&lt;script&gt;alert(1)" in content
    assert "<script>alert" not in content
    assert "repeated 1 time" in text(content)


def test_page_of_a_switch_without_trips_has_no_such_part():
    engage(db_now())

    content = page(browser_as("viewer").get("/switches/feature/checkout/"))

    assert Episode.objects.get().switch_id == FLAG
    assert 'id="trips-title"' not in content
    assert 'id="evidence-title"' not in content


def test_attention_names_what_waits():
    leak()

    found = [
        waiting for source in ATTENTION_SOURCES.values() for waiting in source.function(db_now())
        if waiting.kind == "trip"
    ]  # fmt: skip

    assert [waiting.severity for waiting in found] == ["critical"]
    assert found[0].title == "leak-detector requests to stop segment:finance"
