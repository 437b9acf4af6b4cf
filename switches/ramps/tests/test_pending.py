"""A ramp of the global switch, which waits for a second person's approval."""

from datetime import timedelta

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.http.tests.callers import person, signed_in
from switches import services
from switches.models import Episode, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    SHELL,
    engage,
    get_outcome,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    list_actions,
    release,
    run_tick,
    seconds,
    start_ramp,
)
from switches.rules.tests.factories import create_rule

pytestmark = pytest.mark.django_db
ALL = "global:all"
HOUR = timedelta(hours=1)


def request_release(now, **more):
    """Request the global switch's release by a ramp; return the ramp and its approval."""
    if not Episode.objects.exists():
        engage(ALL, now)
    done = release(ALL, now, by=get_person(), **more)
    assert done.ramp is None
    return Ramp.objects.latest("pk"), done.approval


def decide(verb, approval, now, name="ada"):
    actor = get_person("approver", name)
    return verb(approval_id=approval.pk, comment="looked at it", actor=actor, now=now)


def test_nothing_flows_until_somebody_approves():
    now = db_now()
    ramp, approval = request_release(now)

    assert run_tick(now + HOUR) == 0
    assert (get_ramp_state(ramp), get_share(ALL), get_state(ALL)) == (
        "pending_approval",
        0,
        "engaged",
    )
    assert (approval.kind, approval.risk) == ("release", "critical")
    assert approval.diff["plan"] == ramp.plan
    assert "ramp.requested" in list_actions(ALL)


def test_approved_it_begins_then():
    now = db_now()
    ramp, approval = request_release(now)

    decide(approvals.approve, approval, now + HOUR)

    assert (get_ramp_state(ramp), get_share(ALL)) == ("running", 5)
    assert run_tick(now + HOUR + seconds(299)) == 0
    run_tick(now + HOUR + seconds(301))
    assert get_share(ALL) == 25


def test_who_asked_does_not_approve():
    now = db_now()
    get_person("approver")
    ramp, approval = request_release(now)

    with pytest.raises(Forbidden, match="second person"):
        approvals.approve(approval_id=approval.pk, comment="", actor=get_person(), now=now)

    assert get_ramp_state(ramp) == "pending_approval"


def test_denied_it_is_over_and_nothing_flowed():
    now = db_now()
    ramp, approval = request_release(now)

    decide(approvals.deny, approval, now + HOUR)

    assert (get_ramp_state(ramp), get_share(ALL)) == ("aborted", 0)
    assert "looked at it" in get_outcome(ramp)
    assert Ramp.objects.get().live is False


@pytest.mark.parametrize(("after", "state"), [(7199, "pending_approval"), (7200, "aborted")])
def test_nobody_decides_within_two_hours(after, state):
    now = db_now()
    ramp, _ = request_release(now)

    approvals.expire_due_requests(now + seconds(after))

    assert (get_ramp_state(ramp), get_share(ALL)) == (state, 0)


def test_edited_it_begins_with_the_new_words():
    now = db_now()
    ramp, approval = request_release(now)

    new = approvals.edit_request(
        approval_id=approval.pk, reason="vendor confirmed it", actor=get_person(), now=now
    )
    with pytest.raises(Conflict):
        decide(approvals.approve, approval, now)
    assert get_ramp_state(ramp) == "pending_approval"
    decide(approvals.approve, new, now)

    ramp.refresh_from_db()
    assert (get_ramp_state(ramp), ramp.justification) == ("running", "vendor confirmed it")


def test_asked_for_twice_is_one_ramp():
    now = db_now()
    ramp, approval = request_release(now)

    again, same = request_release(now + seconds(5))

    assert (again.pk, same.pk) == (ramp.pk, approval.pk)


def test_asked_for_otherwise_replaces_it():
    now = db_now()
    first, old = request_release(now)

    second, new = request_release(now + seconds(5), plan=[{"percent": 50}, {"percent": 100}])

    assert (get_ramp_state(first), get_ramp_state(second)) == ("aborted", "pending_approval")
    assert Approval.objects.get(pk=old.pk).state == "void"
    decide(approvals.approve, new, now + seconds(6))
    assert get_share(ALL) == 50


def test_asked_for_at_once_meanwhile_replaces_it():
    now = db_now()
    ramp, old = request_release(now)

    done = release(ALL, now + seconds(5), by=get_person(), mode="immediate")

    assert get_ramp_state(ramp) == "aborted"
    assert Approval.objects.get(pk=old.pk).state == "void"
    decide(approvals.approve, done.approval, now + seconds(6))
    assert get_state(ALL) == "released"


def test_somebody_else_asking_otherwise_is_told_to_wait():
    now = db_now()
    ramp, _ = request_release(now)

    with pytest.raises(Conflict, match="still pending"):
        release(ALL, now, by=get_person("operator", "lee"), mode="immediate")

    assert get_ramp_state(ramp) == "pending_approval"


def test_broken_glass_begins_another_and_withdraws_it():
    now = db_now()
    ramp, approval = request_release(now)
    glass = {"rule": "two-person", "reason": "nobody else can be reached, INC-4411"}

    done = release(ALL, now, by=get_person("approver", "ada"), break_glass=glass)

    assert (get_ramp_state(ramp), get_ramp_state(done.ramp), get_share(ALL)) == (
        "aborted",
        "running",
        5,
    )
    assert Approval.objects.get(pk=approval.pk).state == "void"
    assert done.review.state == "pending"


def test_aborted_by_a_person_it_is_withdrawn():
    now = db_now()
    ramp, approval = request_release(now)

    actions.abort(ramp_id=ramp.pk, reason="not yet", actor=get_person(), now=now)

    assert (get_ramp_state(ramp), get_share(ALL)) == ("aborted", 0)
    assert Approval.objects.get(pk=approval.pk).state == "void"
    assert list_actions(ALL)[-1] == "ramp.aborted"


def test_it_can_only_be_aborted():
    now = db_now()
    ramp, _ = request_release(now)

    for verb in (actions.pause, actions.resume, actions.advance):
        with pytest.raises(Conflict, match="pending_approval"):
            verb(ramp_id=ramp.pk, reason="go on then", actor=SHELL, now=now)


def test_its_expiry_meanwhile_holds_and_the_approval_still_counts():
    now = db_now()
    engage(ALL, now, expires_in="30m")
    ramp, approval = request_release(now)

    services.expire_due(now + HOUR)
    assert Episode.objects.get().overdue
    decide(approvals.approve, approval, now + HOUR)

    assert (get_ramp_state(ramp), get_share(ALL), Episode.objects.get().overdue) == (
        "running",
        5,
        False,
    )


def test_of_a_segment_all_at_once_by_a_plan_waits_too():
    now = db_now()
    engage("segment:a", now)

    done = release("segment:a", now, by=get_person(), plan=[{"percent": 100}])
    ramp = Ramp.objects.get()
    assert (done.ramp, get_ramp_state(ramp)) == (None, "pending_approval")
    decide(approvals.approve, done.approval, now)

    assert (get_ramp_state(ramp), get_share("segment:a")) == ("running", 100)


def test_rule_in_the_way_of_what_was_approved_leaves_it_waiting():
    now = db_now()
    ramp, approval = request_release(now)
    create_rule("at_least_one", ALL, "segment:*", name="one way")

    with pytest.raises(Conflict, match="one way"):
        decide(approvals.approve, approval, now)

    assert (get_ramp_state(ramp), Approval.objects.get().state) == ("pending_approval", "pending")


def test_over_http_the_answer_is_the_approval_and_the_ramp_names_it():
    kim = signed_in(person("operator", "kim"))
    kim.engage(ALL)

    response = kim.post("/switches/global/all/release", {"justification": "fixed and seen"})

    assert (response.status_code, set(response.json())) == (202, {"approval"})
    (ramp,) = kim.get("/ramps/", {"state": "pending_approval"}).json()["results"]
    assert ramp["approval"] == response.json()["approval"]["id"]
    assert kim.get("/switches/global/all/").json()["ramp"] == ramp["id"]
    assert (ramp["allow_percent"], ramp["started_at"]) == (0, None)
    assert {step["state"] for step in ramp["steps"]} == {"pending"}


def test_begun_by_the_shell_it_waits_for_nobody_and_leaves_a_review():
    ramp = start_ramp(db_now(), switch=ALL)

    assert (get_ramp_state(ramp), get_share(ALL)) == ("running", 5)
    assert Approval.objects.get().kind == "break_glass_review"
