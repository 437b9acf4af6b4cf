"""Releasing under safety rules, and what takes two people."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import F

from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from switches import services
from switches.models import Episode
from switches.rules.tests.given import WHY, glass, in_force

pytestmark = pytest.mark.django_db
SAFE = {"justification": "5xx below 0.1 % for twenty minutes"}


@pytest.fixture
def operator():
    return as_role("operator")


def release(api, switch, **fields):
    return api.post(f"/switches/{switch.replace(':', '/')}/release", {**SAFE, **fields})


def state(api, switch):
    return api.get(f"/switches/{switch.replace(':', '/')}/").json()["state"]


@pytest.mark.parametrize(
    ("switch", "mode", "protected", "answer"),
    [
        ("global:all", "ramp", False, 202),
        ("global:all", "immediate", False, 202),
        ("segment:a", "ramp", False, 200),
        ("segment:a", "immediate", False, 202),
        ("segment:a", "ramp", True, 202),
        ("feature:a", "ramp", False, 200),
        ("feature:a", "immediate", False, 200),
        ("feature:a", "ramp", True, 202),
        ("feature:a", "immediate", True, 202),
        ("experiment:a", "immediate", False, 200),
    ],
)
@pytest.mark.parametrize("role", ["operator", "admin"])
def test_who_has_to_wait_for_a_second_person(switch, mode, protected, answer, role):
    somebody = as_role(role)
    if protected:
        in_force("protected", switch)
    somebody.engage(switch)

    response = release(somebody, switch, mode=mode)

    assert response.status_code == answer
    assert (set(response.json()) == {"approval"}) is (answer == 202)
    assert state(somebody, switch) == ("engaged" if answer == 202 else "released")


def test_approved_release_of_a_segment_is_carried_out(operator):
    operator.engage("segment:a")
    pending = release(operator, "segment:a", mode="immediate").json()["approval"]

    approved = as_role("approver").post(f"/approvals/{pending['id']}/approve")

    assert approved.status_code == 200
    assert state(operator, "segment:a") == "released"


def test_last_one_is_not_released(operator):
    in_force("at_least_one", "feature:a", "feature:b", name="one way")
    operator.engage("feature:a")

    problem = release(operator, "feature:a").json()

    assert problem["rule"] == "one way"
    assert problem["would_pass"] == "Engage feature:b first; then feature:a can be released."
    operator.engage("feature:b")
    assert release(operator, "feature:a").status_code == 200
    assert release(operator, "feature:b").status_code == 409


def test_rule_refuses_before_anybody_is_asked_to_approve(operator):
    in_force("at_least_one", "segment:*")
    operator.engage("segment:a")

    assert release(operator, "segment:a", mode="immediate").status_code == 409
    assert not Approval.objects.exists()


def test_approved_release_is_judged_again_when_it_is_carried_out(operator):
    in_force("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    operator.engage("segment:b")
    pending = release(operator, "segment:a", mode="immediate").json()["approval"]
    release(operator, "segment:b")
    approver = as_role("approver")

    refused = approver.post(f"/approvals/{pending['id']}/approve")

    assert (refused.status_code, refused.json()["rule"]) == (409, "one way")
    assert state(operator, "segment:a") == "engaged"
    assert Approval.objects.get(pk=pending["id"]).state == "pending"


@pytest.mark.parametrize("switch", ["global:all", "segment:a", "feature:a"])
@pytest.mark.parametrize("role", ["approver", "admin"])
def test_approver_breaks_the_glass_instead_of_waiting(switch, role):
    in_force("protected", "feature:a")
    somebody = as_role(role)
    somebody.engage(switch)

    response = release(somebody, switch, mode="immediate", break_glass=glass("two-person"))

    assert response.status_code == 200
    assert response.json()["state"] == "released"
    assert response.json()["review"]["kind"] == "break_glass_review"
    review = Approval.objects.get(kind="break_glass_review")
    assert (review.state, review.reason) == ("pending", WHY)
    (row,) = somebody.get("/audit/", {"action": "switch.released"}).json()["results"]
    assert row["after"]["broke_glass"]["rules"] == ["two-person"]
    (past,) = somebody.get(f"/switches/{switch.replace(':', '/')}/history").json()["results"]
    assert past["broke_glass"]["release"]["reason"] == WHY


def test_who_broke_the_glass_does_not_sign_the_review():
    ada, ben = (signed_in(person("approver", name)) for name in ("ada", "ben"))
    ada.engage("global:all")
    review = release(ada, "global:all", break_glass=glass("two-person")).json()["review"]["id"]

    assert ada.post(f"/approvals/{review}/approve").status_code == 403
    assert ben.post(f"/approvals/{review}/approve").status_code == 200


def test_operator_and_token_do_not_break_the_glass_to_release(operator):
    operator.engage("global:all")
    token = with_token("switches:write", "switches:read", owner=person("admin", "owner"))

    for somebody in (operator, token):
        response = release(somebody, "global:all", break_glass=glass("two-person"))
        assert response.status_code == 403
    assert state(operator, "global:all") == "engaged"


def test_all_in_the_way_of_a_release_has_to_be_named():
    in_force("at_least_one", "segment:*", name="one way")
    admin = as_role("admin")
    admin.engage("segment:a")

    for named, left in ((["one way"], "two-person"), (["two-person"], "one way")):
        response = release(admin, "segment:a", mode="immediate", break_glass=glass(*named))
        assert (response.status_code, response.json()["rule"]) == (409, left)
    broken = release(
        admin, "segment:a", mode="immediate", break_glass=glass("one way", "two-person")
    )
    assert broken.status_code == 200


def test_glass_that_no_release_asks_for_stays_whole(operator):
    operator.engage("feature:a")

    response = release(operator, "feature:a", break_glass=glass("two-person"))

    assert response.status_code == 200
    assert "review" not in response.json()


def test_dry_run_of_a_release_shows_the_refusal_and_the_review():
    in_force("at_least_one", "segment:*", name="one way")
    admin = as_role("admin")
    admin.engage("segment:a")

    assert release(admin, "segment:a", dry_run=True).status_code == 409
    shown = release(admin, "segment:a", dry_run=True, break_glass=glass("one way"))
    assert (shown.status_code, shown.json()["state"]) == (200, "released")
    assert state(admin, "segment:a") == "engaged"
    assert not Approval.objects.exists()


def test_undo_brings_back_what_was_and_no_rule_minds(operator):
    in_force("at_least_one", "segment:*")
    in_force("protected", "segment:a", name="keep")
    operator.engage("segment:a")

    assert operator.post("/switches/segment/a/undo").status_code == 200


def test_undo_is_refused_if_what_kept_the_rule_was_released_meanwhile(operator):
    in_force("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    operator.engage("segment:b")
    release(operator, "segment:a")

    refused = operator.post("/switches/segment/b/undo")

    assert (refused.status_code, refused.json()["rule"]) == (409, "one way")


def test_expiry_that_a_rule_refuses_holds(operator):
    operator.engage("segment:a", on_expiry="release")
    in_force("at_least_one", "segment:*")
    Episode.objects.update(
        engaged_at=F("engaged_at") - timedelta(days=2), expires_at=db_now() - timedelta(days=1)
    )

    services.expire_due(db_now())

    assert operator.get("/switches/segment/a/").json()["overdue"] is True


def test_shell_releases_everything_at_once_and_leaves_a_review(operator, capsys):
    operator.engage("global:all")

    call_command("killswitch", "release", "--global", "--reason", "nobody can sign in")

    assert "global:all  released" in capsys.readouterr().out
    review = Approval.objects.get(kind="break_glass_review")
    assert (review.diff["rule"], review.reason) == ("two-person", "nobody can sign in")


def test_shell_releases_a_segment_without_ado(operator):
    operator.engage("segment:a")

    call_command("killswitch", "release", "--segment", "a", "--reason", "fixed")

    assert not Approval.objects.exists()


def test_shell_names_the_safety_rule_to_override(operator):
    in_force("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    command = ("killswitch", "release", "--segment", "a", "--reason", WHY)

    with pytest.raises(CommandError, match="--break-glass 'one way'"):
        call_command(*command)
    call_command(*command, "--break-glass", "one way")

    assert state(operator, "segment:a") == "released"
    assert Approval.objects.get().diff["rule"] == "one way"
