"""The pages of rules: permissions, proposals, refusals and the break-glass banner."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.approvals.models import Approval
from controlplane.core.http.tests.callers import person
from switches.models import Episode, Rule
from switches.rules.tests.factories import WHY, break_glass_naming, create_rule
from switches.tests.browsers import (
    DIALOG,
    REASON,
    SAFE_NOW,
    Tags,
    browser,
    browser_as,
    engaged,
    page,
    released,
    text,
)

pytestmark = pytest.mark.django_db
NAME = "결제 <b>경로</b> 하나는 열어 둔다"
FORM = {
    "scope": "segment",
    "key": "b",
    "reason": REASON,
    "how_long": "24h",
    "on_expiry": "hold",
}
PROPOSAL = {
    "name": NAME,
    "kind": "at_most",
    "n": "2",
    "switches": "segment:*, feature:a\nfeature:b",
    "reason": "both were off on 14 Nov, INC-4411",
}


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "admin"])
def test_everybody_reads_the_rules_and_admins_get_the_forms(role):
    create_rule("at_most", "segment:*", name=NAME, n=2)
    engaged("segment:finance")

    html = page(browser_as(role).get("/rules/"))

    assert "At most 2 of segment:* engaged" in html
    assert "1 engaged now" in text(html)
    assert "<b>경로</b>" not in html
    assert ("/rules/new/" in html) is (role == "admin")


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
@pytest.mark.parametrize("path", ["/rules/new/", "/rules/{}/change/", "/rules/{}/remove/"])
def test_forms_are_for_admins(role, path):
    row = create_rule("exclusive", "segment:*")
    client = browser_as(role)

    assert client.get(path.format(row.pk)).status_code == 403
    assert client.post(path.format(row.pk), PROPOSAL).status_code == 403
    assert not Approval.objects.exists()


def test_page_says_what_is_broken_and_what_is_at_its_limit():
    engaged("segment:a")
    engaged("segment:b")
    create_rule("exclusive", "segment:*", name="one")
    create_rule("at_most", "segment:*", name="two", n=2)
    create_rule("protected", "feature:x", name="kept")

    shown = text(page(browser_as("viewer").get("/rules/")))

    assert "2 are engaged, 1 more than allowed." in shown
    assert "one Violated" in shown
    assert "two At its limit" in shown
    assert "kept Protected" in shown


def test_no_rules_yet_says_what_they_are_for():
    assert "No safety rules yet" in page(browser_as("viewer").get("/rules/"))


def test_many_rules_come_in_pages():
    for number in range(55):
        create_rule("exclusive", "segment:*", name=f"rule {number:02}")
    client = browser_as("viewer")

    first = page(client.get("/rules/"))
    after = Rule.objects.order_by("pk")[49].pk

    assert f"?after={after}" in first
    assert "rule 54" in page(client.get("/rules/", {"after": after}))
    assert client.get("/rules/", {"after": "x" * 30}).status_code == 200


def test_proposal_is_asked_for_with_its_words_kept():
    response = browser_as("admin").post("/rules/new/", PROPOSAL, follow=True)

    (approval,) = Approval.objects.all()
    assert approval.diff["switches"] == [None, ["segment:*", "feature:a", "feature:b"]]
    assert approval.diff["n"] == [None, 2]
    shown = page(response)
    assert "1 change waits for approval" in shown
    assert f"/approvals/?id={approval.pk}#approval-{approval.pk}" in shown


def test_approver_reads_the_proposed_rule_as_a_sentence():
    browser_as("admin").post("/rules/new/", PROPOSAL)

    shown = text(page(browser_as("approver").get("/approvals/")))

    assert "rule At most 2 of segment:*, feature:a, feature:b engaged" in shown
    assert "at_most" not in shown


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": ""}, "Name the rule by its purpose"),
        ({"switches": "team:*"}, "is not a switch or pattern"),
        ({"n": "many"}, "1 to 1000"),
        ({"reason": " "}, "Enter a reason"),
    ],
)
def test_complaint_stands_beside_its_field_and_nothing_is_lost(fields, complaint):
    response = browser_as("admin").post("/rules/new/", {**PROPOSAL, **fields})

    html = page(response)
    assert response.status_code == 422
    assert complaint in html
    assert "feature:b" in html or "switches" in fields
    assert not Approval.objects.exists()


def test_what_it_would_do_is_shown_and_not_asked_for():
    engaged("segment:a")
    engaged("segment:c")
    engaged("segment:d")

    response = browser_as("admin").post("/rules/new/", {**PROPOSAL, "check": "yes"})

    assert response.status_code == 200
    assert "3 are engaged, 1 more than allowed." in text(page(response))
    assert not Approval.objects.exists()


def test_change_and_removal_are_asked_for():
    row = create_rule("at_most", "segment:*", name="few", n=2)
    client = browser_as("admin")

    form = page(client.get(f"/rules/{row.pk}/change/"))
    assert 'value="few"' in form
    client.post(f"/rules/{row.pk}/change/", {**PROPOSAL, "name": "few"})
    refused = client.post(f"/rules/{row.pk}/change/", {**PROPOSAL, "name": "few", "n": "2"})
    assert refused.status_code in {302, 409}
    Approval.objects.all().delete()
    client.post(f"/rules/{row.pk}/remove/", {"reason": "gone for good, INC-4502"})

    (approval,) = Approval.objects.all()
    assert approval.diff["name"] == ["few", None]
    assert client.get("/rules/99/change/").status_code == 404


def test_forms_keep_what_stands_above_every_page():
    row = create_rule("exclusive", "segment:*")
    engaged("global:all")
    client = browser_as("admin")

    for path in ("/rules/", "/rules/new/", f"/rules/{row.pk}/change/", f"/rules/{row.pk}/remove/"):
        assert "Global stop engaged" in page(client.get(path)), path


@pytest.mark.parametrize("headers", [{}, DIALOG], ids=["page", "dialog"])
def test_refused_engage_offers_the_glass_with_everything_kept(headers):
    create_rule("exclusive", "segment:*", name=NAME)
    engaged("segment:a")
    client = browser(person("operator", "lee"))

    response = client.post("/switches/engage/", FORM, headers=headers)

    html = page(response)
    assert response.status_code == 409
    assert "To pass the rule:" in html
    assert "Release segment:a first" in html
    assert "<b>경로</b>" not in html
    assert Tags(html).value("key") == "b"
    assert f">{REASON}</textarea>" in html
    assert Tags(html).having("button", name="glass_rule", value=NAME)


def test_glass_breaks_from_the_form():
    create_rule("exclusive", "segment:*", name=NAME)
    create_rule("at_most", "*", name="few", n=1)
    engaged("segment:a")
    client = browser(person("operator", "lee"))
    again = {**FORM, "glass_rule": f"few\r\n{NAME}", "glass_reason": WHY}

    vague = client.post("/switches/engage/", {**again, "glass_reason": "urgent"}, headers=DIALOG)
    assert vague.status_code == 422
    assert 'id="glass" open' in page(vague)
    response = client.post("/switches/engage/", again, headers=DIALOG)

    assert response.status_code == 200
    assert "Break-glass:" in page(response)
    assert "No recipient is configured for this: nobody was notified" in page(response)
    assert Episode.objects.get(switch_id="segment:b").broke_glass["rules"] == ["few", NAME]
    assert "Engaged against the rule" in page(client.get("/switches/segment/b/"))


def test_glass_sent_twice_is_one_wish():
    create_rule("exclusive", "segment:*", name="one")
    engaged("segment:a")
    client = browser(person("operator", "lee"))
    again = {**FORM, "glass_rule": "one", "glass_reason": WHY}

    first, second = (client.post("/switches/engage/", again, headers=DIALOG) for _ in range(2))

    assert (first.status_code, second.status_code) == (200, 200)
    assert Approval.objects.count() == 1


def test_plan_says_beforehand_that_a_rule_is_in_the_way():
    create_rule("exclusive", "segment:*", name=NAME)
    engaged("segment:a")

    plan = page(browser_as("operator").post("/switches/engage/preview/", FORM))

    assert "Release segment:a first" in plan
    assert "<b>경로</b>" not in plan


def test_default_of_the_form_gives_way_to_a_protecting_rule():
    create_rule("protected", "feature:a")
    form = {**FORM, "scope": "feature", "key": "a", "on_expiry": "ramp"}

    browser_as("operator").post("/switches/engage/", form)

    assert Episode.objects.get().on_expiry == "hold"


def test_broken_glass_stands_above_every_page_until_it_is_reviewed():
    create_rule("exclusive", "segment:*", name=NAME)
    kim = engaged("segment:a")
    viewer, approver = browser_as("viewer"), browser(person("approver", "ben"))
    assert "Break-glass used" not in page(viewer.get("/audit/"))
    engaged("segment:b", by=kim, break_glass=break_glass_naming(NAME))

    shown = page(viewer.get("/audit/"))
    assert "Break-glass used" in shown
    assert WHY in shown
    assert "segment:b engaged by kim" in text(shown)
    assert "1 review to sign" in shown
    released("segment:b")
    assert "2 reviews to sign" in page(viewer.get("/audit/"))
    for review in Approval.objects.all():  # Of the break-glass, and of the server's shell.
        approver.post(f"/approvals/{review.pk}/approve/", {"comment": "fair enough"})

    assert not Approval.objects.exclude(state="approved").exists()
    assert "Break-glass used" not in page(viewer.get("/audit/"))


@pytest.mark.parametrize(
    ("switch", "button"),
    [
        ("feature:a", "Start ramp of feature:a"),
        ("segment:a", "Start ramp of segment:a"),
        ("global:all", "Request release by ramp"),
        ("feature:kept", "Start ramp of feature:kept"),
    ],
)
def test_release_form_says_what_its_button_does(switch, button):
    create_rule("protected", "feature:kept")
    engaged(switch)
    client = browser_as("operator")
    path = f"/switches/{switch.replace(':', '/')}/release/"

    html = page(client.get(path))
    client.post(path, {"justification": SAFE_NOW})

    asks = button.startswith("Request")
    assert button in text(html)
    assert "glass_reason" not in html
    assert Approval.objects.exists() is asks
    assert Episode.objects.get(switch_id=switch).allow_percent == (0 if asks else 5)


@pytest.mark.parametrize("headers", [{}, DIALOG], ids=["page", "dialog"])
def test_refused_release_says_what_would_pass(headers):
    create_rule("at_least_one", "feature:a", "feature:b", name="one way")
    engaged("feature:a")
    sent = {"justification": SAFE_NOW}

    response = browser_as("operator").post("/switches/feature/a/release/", sent, headers=headers)

    assert response.status_code == 409
    assert "Engage feature:b first" in page(response)
    assert SAFE_NOW in page(response)
    assert "glass_reason" not in page(response)


def test_approver_breaks_the_glass_to_release_everything():
    engaged("global:all")
    approver = browser(person("approver", "ben"))
    path = "/switches/global/all/release/"
    assert 'value="two-person"' in page(approver.get(path))

    sent = {"justification": SAFE_NOW, "glass_rule": "two-person", "glass_reason": WHY}
    response = approver.post(path, {**sent, "mode": "immediate"})

    assert response.status_code == 302
    assert not Episode.objects.filter(ended_at__isnull=True).exists()
    assert Approval.objects.get().kind == "break_glass_review"
    assert User.objects.get(username="ben").pk == Approval.objects.get().requester_id


def test_operator_who_forges_the_fields_does_not_break_the_glass():
    engaged("global:all")

    response = browser_as("operator").post(
        "/switches/global/all/release/",
        {"justification": SAFE_NOW, "glass_rule": "two-person", "glass_reason": WHY},
    )

    assert response.status_code == 403
    assert Episode.objects.filter(ended_at__isnull=True).exists()
