"""Releasing everything by a ramp: it waits for a second person, and what comes of that."""

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
from switches.ramps.tests.given import (
    SHELL,
    audited,
    begin,
    engage,
    flows,
    look,
    outcome,
    release,
    seconds,
    somebody,
    stands,
    state,
)
from switches.rules.tests.factories import create_rule

pytestmark = pytest.mark.django_db
ALL = "global:all"
HOUR = timedelta(hours=1)


def asked(now, **more):
    """The ramp that Kim asked for, and its approval."""
    if not Episode.objects.exists():
        engage(ALL, now)
    done = release(ALL, now, by=somebody(), **more)
    assert done.ramp is None
    return Ramp.objects.latest("pk"), done.approval


def decide(verb, approval, now, name="ada"):
    actor = somebody("approver", name)
    return verb(approval_id=approval.pk, comment="looked at it", actor=actor, now=now)


def test_nothing_flows_until_somebody_approves():
    now = db_now()
    ramp, approval = asked(now)

    assert look(now + HOUR) == 0
    assert (state(ramp), flows(ALL), stands(ALL)) == ("pending_approval", 0, "engaged")
    assert (approval.kind, approval.risk) == ("release", "critical")
    assert approval.diff["plan"] == ramp.plan
    assert "ramp.requested" in audited(ALL)


def test_approved_it_begins_then():
    now = db_now()
    ramp, approval = asked(now)

    decide(approvals.approve, approval, now + HOUR)

    assert (state(ramp), flows(ALL)) == ("running", 5)
    assert look(now + HOUR + seconds(299)) == 0
    look(now + HOUR + seconds(301))
    assert flows(ALL) == 25


def test_who_asked_does_not_approve():
    now = db_now()
    somebody("approver")
    ramp, approval = asked(now)

    with pytest.raises(Forbidden, match="second person"):
        approvals.approve(approval_id=approval.pk, comment="", actor=somebody(), now=now)

    assert state(ramp) == "pending_approval"


def test_denied_it_is_over_and_nothing_flowed():
    now = db_now()
    ramp, approval = asked(now)

    decide(approvals.deny, approval, now + HOUR)

    assert (state(ramp), flows(ALL)) == ("aborted", 0)
    assert "looked at it" in outcome(ramp)
    assert Ramp.objects.get().live is False


@pytest.mark.parametrize(("after", "left"), [(7199, "pending_approval"), (7200, "aborted")])
def test_nobody_decides_within_two_hours(after, left):
    now = db_now()
    ramp, _ = asked(now)

    approvals.expire_due(now + seconds(after))

    assert (state(ramp), flows(ALL)) == (left, 0)


def test_edited_it_begins_with_the_new_words():
    now = db_now()
    ramp, approval = asked(now)

    new = approvals.edit(
        approval_id=approval.pk, reason="vendor confirmed it", actor=somebody(), now=now
    )
    with pytest.raises(Conflict):
        decide(approvals.approve, approval, now)
    assert state(ramp) == "pending_approval"
    decide(approvals.approve, new, now)

    ramp.refresh_from_db()
    assert (state(ramp), ramp.justification) == ("running", "vendor confirmed it")


def test_asked_for_twice_is_one_ramp():
    now = db_now()
    ramp, approval = asked(now)

    again, same = asked(now + seconds(5))

    assert (again.pk, same.pk) == (ramp.pk, approval.pk)


def test_asked_for_otherwise_replaces_it():
    now = db_now()
    first, old = asked(now)

    second, new = asked(now + seconds(5), plan=[{"percent": 50}, {"percent": 100}])

    assert (state(first), state(second)) == ("aborted", "pending_approval")
    assert Approval.objects.get(pk=old.pk).state == "void"
    decide(approvals.approve, new, now + seconds(6))
    assert flows(ALL) == 50


def test_asked_for_at_once_meanwhile_replaces_it():
    now = db_now()
    ramp, old = asked(now)

    done = release(ALL, now + seconds(5), by=somebody(), mode="immediate")

    assert state(ramp) == "aborted"
    assert Approval.objects.get(pk=old.pk).state == "void"
    decide(approvals.approve, done.approval, now + seconds(6))
    assert stands(ALL) == "released"


def test_somebody_else_asking_otherwise_is_told_to_wait():
    now = db_now()
    ramp, _ = asked(now)

    with pytest.raises(Conflict, match="still waits"):
        release(ALL, now, by=somebody("operator", "lee"), mode="immediate")

    assert state(ramp) == "pending_approval"


def test_broken_glass_begins_another_and_withdraws_it():
    now = db_now()
    ramp, approval = asked(now)
    glass = {"rule": "two-person", "reason": "nobody else can be reached, INC-4411"}

    done = release(ALL, now, by=somebody("approver", "ada"), break_glass=glass)

    assert (state(ramp), state(done.ramp), flows(ALL)) == ("aborted", "running", 5)
    assert Approval.objects.get(pk=approval.pk).state == "void"
    assert done.review.state == "pending"


def test_aborted_by_a_person_it_is_withdrawn():
    now = db_now()
    ramp, approval = asked(now)

    actions.abort(ramp_id=ramp.pk, reason="not yet", actor=somebody(), now=now)

    assert (state(ramp), flows(ALL)) == ("aborted", 0)
    assert Approval.objects.get(pk=approval.pk).state == "void"
    assert audited(ALL)[-1] == "ramp.aborted"


def test_it_can_only_be_aborted():
    now = db_now()
    ramp, _ = asked(now)

    for verb in (actions.pause, actions.resume, actions.advance):
        with pytest.raises(Conflict, match="pending_approval"):
            verb(ramp_id=ramp.pk, reason="go on then", actor=SHELL, now=now)


def test_its_expiry_meanwhile_holds_and_the_approval_still_counts():
    now = db_now()
    engage(ALL, now, expires_in="30m")
    ramp, approval = asked(now)

    services.expire_due(now + HOUR)
    assert Episode.objects.get().overdue
    decide(approvals.approve, approval, now + HOUR)

    assert (state(ramp), flows(ALL), Episode.objects.get().overdue) == ("running", 5, False)


def test_of_a_segment_all_at_once_by_a_plan_waits_too():
    now = db_now()
    engage("segment:a", now)

    done = release("segment:a", now, by=somebody(), plan=[{"percent": 100}])
    ramp = Ramp.objects.get()
    assert (done.ramp, state(ramp)) == (None, "pending_approval")
    decide(approvals.approve, done.approval, now)

    assert (state(ramp), flows("segment:a")) == ("running", 100)


def test_rule_in_the_way_of_what_was_approved_leaves_it_waiting():
    now = db_now()
    ramp, approval = asked(now)
    create_rule("at_least_one", ALL, "segment:*", name="one way")

    with pytest.raises(Conflict, match="one way"):
        decide(approvals.approve, approval, now)

    assert (state(ramp), Approval.objects.get().state) == ("pending_approval", "pending")


def test_over_http_the_answer_is_the_approval_and_the_ramp_names_it():
    kim = signed_in(person("operator", "kim"))
    kim.engage(ALL)

    answer = kim.post("/switches/global/all/release", {"justification": "fixed and seen"})

    assert (answer.status_code, set(answer.json())) == (202, {"approval"})
    (ramp,) = kim.get("/ramps/", {"state": "pending_approval"}).json()["results"]
    assert ramp["approval"] == answer.json()["approval"]["id"]
    assert kim.get("/switches/global/all/").json()["ramp"] == ramp["id"]
    assert (ramp["allow_percent"], ramp["started_at"]) == (0, None)
    assert {step["state"] for step in ramp["steps"]} == {"pending"}


def test_begun_by_the_shell_it_waits_for_nobody_and_leaves_a_review():
    ramp = begin(db_now(), switch=ALL)

    assert (state(ramp), flows(ALL)) == ("running", 5)
    assert Approval.objects.get().kind == "break_glass_review"
