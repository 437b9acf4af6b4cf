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
from switches.rules.tests.factories import WHY, break_glass_naming, create_rule

pytestmark = pytest.mark.django_db
SAFE = {"justification": "5xx below 0.1 % for twenty minutes"}


def release(api, switch, **fields):
    return api.post(f"/switches/{switch.replace(':', '/')}/release", {**SAFE, **fields})


def _at_once(switch):
    """Release at once by the server's shell, which needs no approval."""
    scope, _, key = switch.partition(":")
    command = ("killswitch", "release", f"--{scope}", key, "--reason", WHY)
    call_command(*command, "--mode", "immediate")


def state(api, switch):
    return api.get(f"/switches/{switch.replace(':', '/')}/").json()["state"]


ALL_AT_ONCE = {"plan": [{"percent": 100, "dwell_seconds": 60}]}
WITHOUT_A_WAIT = {
    "plan": [{"percent": 99, "dwell_seconds": 0}, {"percent": 100, "dwell_seconds": 60}]
}
NEARLY_AT_ONCE = {
    "plan": [
        {"percent": 99.99, "dwell_seconds": 0.000001},
        {"percent": 100, "dwell_seconds": 0},
    ]
}
LARGE_FOR_LONG = {
    "plan": [
        {"percent": 25, "dwell_seconds": 59},
        {"percent": 26, "dwell_seconds": 600},
        {"percent": 100},
    ]
}
SMALL_FOR_A_MINUTE = {
    "plan": [
        {"percent": 5, "dwell_seconds": 30},
        {"percent": 25, "dwell_seconds": 30},
        {"percent": 100},
    ]
}
WAITS, RAMPS, FLOWS = ("approval", "engaged"), ("ramp", "ramping"), ("id", "released")


@pytest.mark.parametrize(
    ("switch", "how", "protected", "expected"),
    [
        ("global:all", {}, False, WAITS),
        ("global:all", {"mode": "immediate"}, False, WAITS),
        ("global:all", ALL_AT_ONCE, False, WAITS),
        ("segment:a", {}, False, RAMPS),
        ("segment:a", {"mode": "immediate"}, False, WAITS),
        ("segment:a", ALL_AT_ONCE, False, WAITS),
        ("segment:a", WITHOUT_A_WAIT, False, WAITS),
        ("segment:a", NEARLY_AT_ONCE, False, WAITS),
        ("segment:a", LARGE_FOR_LONG, False, WAITS),
        ("segment:a", SMALL_FOR_A_MINUTE, False, RAMPS),
        ("feature:a", NEARLY_AT_ONCE, True, WAITS),
        ("segment:a", {}, True, RAMPS),
        ("feature:a", {}, False, RAMPS),
        ("feature:a", {"mode": "immediate"}, False, FLOWS),
        ("feature:a", ALL_AT_ONCE, False, RAMPS),
        ("feature:a", {}, True, RAMPS),
        ("feature:a", {"mode": "immediate"}, True, WAITS),
        ("feature:a", ALL_AT_ONCE, True, WAITS),
        ("feature:a", WITHOUT_A_WAIT, True, WAITS),
        ("experiment:a", {"mode": "immediate"}, False, FLOWS),
    ],
)
@pytest.mark.parametrize("role", ["operator", "admin"])
def test_who_has_to_wait_for_a_second_person(switch, how, protected, expected, role):
    somebody = as_role(role)
    if protected:
        create_rule("protected", switch)
    somebody.engage(switch)
    status, left = expected

    response = release(somebody, switch, **how)

    at_once = how and not protected and switch in {"feature:a", "experiment:a"}
    if role == "operator" and at_once:
        assert response.status_code == 403
        left = "engaged"
    else:
        assert response.status_code == (200 if status == "id" else 202)
        assert status in response.json()
    assert state(somebody, switch) == left


def test_request_for_a_hasty_plan_says_why_it_waits(operator):
    operator.engage("segment:a")

    approval = release(operator, "segment:a", **NEARLY_AT_ONCE).json()["approval"]

    assert "less than 60 s at 25 % or less, which counts as at once" in approval["summary"]


def test_unprotected_feature_may_ramp_as_fast_as_before(operator):
    operator.engage("feature:a")

    assert release(operator, "feature:a", **NEARLY_AT_ONCE).status_code == 202

    assert state(operator, "feature:a") == "ramping"


def test_approved_release_of_a_segment_is_carried_out(operator):
    operator.engage("segment:a")
    pending = release(operator, "segment:a", mode="immediate").json()["approval"]

    approved = as_role("approver").post(f"/approvals/{pending['id']}/approve")

    assert approved.status_code == 200
    assert state(operator, "segment:a") == "released"


def test_last_one_is_not_released(operator):
    create_rule("at_least_one", "feature:a", "feature:b", name="one way")
    operator.engage("feature:a")

    problem = release(operator, "feature:a").json()

    assert problem["rule"] == "one way"
    assert problem["would_pass"] == "Engage feature:b first, then release feature:a."
    operator.engage("feature:b")
    approver = as_role("approver")
    assert release(approver, "feature:a", mode="immediate").status_code == 200
    assert release(operator, "feature:b").status_code == 409
    assert release(approver, "feature:b", mode="immediate").status_code == 409


def test_rule_refuses_before_anybody_is_asked_to_approve(operator):
    create_rule("at_least_one", "segment:*")
    operator.engage("segment:a")

    assert release(operator, "segment:a", mode="immediate").status_code == 409
    assert not Approval.objects.exists()


def test_approved_release_is_judged_again_when_it_is_carried_out(operator):
    create_rule("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    operator.engage("segment:b")
    pending = release(operator, "segment:a", mode="immediate").json()["approval"]
    _at_once("segment:b")
    approver = as_role("approver")

    refused = approver.post(f"/approvals/{pending['id']}/approve")

    assert (refused.status_code, refused.json()["rule"]) == (409, "one way")
    assert state(operator, "segment:a") == "engaged"
    assert Approval.objects.get(pk=pending["id"]).state == "pending"


@pytest.mark.parametrize("switch", ["global:all", "segment:a", "feature:a"])
@pytest.mark.parametrize("role", ["approver", "admin"])
def test_approver_breaks_the_glass_instead_of_waiting(switch, role):
    create_rule("protected", "feature:a")
    somebody = as_role(role)
    somebody.engage(switch)

    response = release(
        somebody, switch, mode="immediate", break_glass=break_glass_naming("two-person")
    )

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
    begun = release(ada, "global:all", break_glass=break_glass_naming("two-person"))
    assert (begun.status_code, set(begun.json())) == (202, {"ramp", "review"})
    review = begun.json()["review"]["id"]

    assert ada.post(f"/approvals/{review}/approve").status_code == 403
    assert ben.post(f"/approvals/{review}/approve").status_code == 200


def test_operator_and_token_do_not_break_the_glass_to_release(operator):
    operator.engage("global:all")
    token = with_token("switches:write", "switches:read", owner=person("admin", "owner"))

    for somebody in (operator, token):
        response = release(somebody, "global:all", break_glass=break_glass_naming("two-person"))
        assert response.status_code == 403
    assert state(operator, "global:all") == "engaged"


@pytest.mark.parametrize(("role", "status"), [("operator", 403), ("approver", 200)])
def test_token_of_an_approver_goes_against_a_safety_rule_as_they_might(role, status):
    create_rule("at_least_one", "segment:*", "feature:*", name="one way")
    owner = person(role, "owner")
    token = with_token("switches:write", "switches:read", owner=owner)
    token.engage("feature:a")

    response = release(
        token, "feature:a", mode="immediate", break_glass=break_glass_naming("one way")
    )

    assert response.status_code == status
    reviews = Approval.objects.filter(kind="break_glass_review", requester=owner)
    assert reviews.count() == (1 if status == 200 else 0)


def test_all_in_the_way_of_a_release_has_to_be_named():
    create_rule("at_least_one", "segment:*", name="one way")
    admin = as_role("admin")
    admin.engage("segment:a")

    for named, left in ((["one way"], "two-person"), (["two-person"], "one way")):
        response = release(
            admin, "segment:a", mode="immediate", break_glass=break_glass_naming(*named)
        )
        assert (response.status_code, response.json()["rule"]) == (409, left)
    broken = release(
        admin,
        "segment:a",
        mode="immediate",
        break_glass=break_glass_naming("one way", "two-person"),
    )
    assert broken.status_code == 200


def test_glass_that_no_release_asks_for_stays_whole(operator):
    operator.engage("feature:a")

    response = release(operator, "feature:a", break_glass=break_glass_naming("two-person"))

    assert response.status_code == 202
    assert "review" not in response.json()


def test_dry_run_of_a_release_shows_the_refusal_and_the_review():
    create_rule("at_least_one", "segment:*", name="one way")
    admin = as_role("admin")
    admin.engage("segment:a")

    assert release(admin, "segment:a", dry_run=True).status_code == 409
    shown = release(admin, "segment:a", dry_run=True, break_glass=break_glass_naming("one way"))
    assert (shown.status_code, shown.json()["state"]) == (200, "ramping")
    assert shown.json()["review"]["diff"]["rules"] == ["one way"]
    assert shown.json()["ramp"]["overridden"] == ["one way"]
    assert state(admin, "segment:a") == "engaged"
    assert not Approval.objects.exists()


def test_undo_brings_back_what_was_and_no_rule_minds(operator):
    create_rule("at_least_one", "segment:*")
    create_rule("protected", "segment:a", name="keep")
    operator.engage("segment:a")

    assert operator.post("/switches/segment/a/undo").status_code == 200


def test_undo_is_refused_if_what_kept_the_rule_was_released_meanwhile(operator):
    create_rule("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    operator.engage("segment:b")
    _at_once("segment:a")

    refused = operator.post("/switches/segment/b/undo")

    assert (refused.status_code, refused.json()["rule"]) == (409, "one way")


def test_expiry_that_a_rule_refuses_holds(operator):
    operator.engage("segment:a", on_expiry="release")
    create_rule("at_least_one", "segment:*")
    Episode.objects.update(
        engaged_at=F("engaged_at") - timedelta(days=2), expires_at=db_now() - timedelta(days=1)
    )

    services.expire_due(db_now())

    assert operator.get("/switches/segment/a/").json()["overdue"] is True


def test_shell_releases_everything_at_once_and_leaves_a_review(operator, capsys):
    operator.engage("global:all")

    command = ("killswitch", "release", "--global", "--reason", "nobody can sign in")
    call_command(*command, "--mode", "immediate")

    assert "global:all  released" in capsys.readouterr().out
    review = Approval.objects.get(kind="break_glass_review")
    assert (review.diff["rule"], review.reason) == ("two-person", "nobody can sign in")


def test_shell_releases_a_segment_without_ado(operator):
    operator.engage("segment:a")

    call_command("killswitch", "release", "--segment", "a", "--reason", "fixed")

    assert not Approval.objects.exists()
    assert state(operator, "segment:a") == "ramping"


def test_shell_names_the_safety_rule_to_override(operator):
    create_rule("at_least_one", "segment:*", name="one way")
    operator.engage("segment:a")
    command = ("killswitch", "release", "--segment", "a", "--reason", WHY)

    with pytest.raises(CommandError, match="--break-glass 'one way'"):
        call_command(*command)
    call_command(*command, "--break-glass", "one way")

    assert state(operator, "segment:a") == "ramping"
    assert Approval.objects.get().diff["rule"] == "one way"


@pytest.mark.parametrize(
    ("switch", "before", "expires_in", "policy"),
    [
        ("segment:a", {}, "1s", "hold"),
        ("segment:a", {"on_expiry": "release"}, "1s", "hold"),
        ("segment:a", {"on_expiry": "release"}, "25h", "release"),
        ("segment:a", {}, "30d", "hold"),
        ("feature:a", {}, "1s", "release"),
    ],
)
def test_engaging_again_never_releases_sooner_where_that_takes_two_people(
    operator, switch, before, expires_in, policy
):
    operator.engage(switch, **before)
    release(operator, switch)

    again = operator.engage(switch, expires_in=expires_in, on_expiry="release").json()

    assert again["on_expiry"] == policy
    assert ("requires a second person" in again.get("notice", "")) == (policy == "hold")
    services.expire_due(db_now() + timedelta(days=31))
    assert state(operator, switch) == ("engaged" if policy == "hold" else "released")
