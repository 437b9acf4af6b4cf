"""Manual gates: the approval request, the people who may decide, and the effect of a decision."""

from datetime import timedelta

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.http.tests.callers import person, signed_in, with_token
from controlplane.core.jobs.models import Job
from switches.models import Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    GATED,
    SMOKE,
    get_outcome,
    get_person,
    get_ramp_state,
    get_share,
    list_actions,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)

pytestmark = pytest.mark.django_db
MANUAL = {"type": "manual"}
PLAN = [{"percent": 5, "dwell_seconds": 60, "gates": [MANUAL]}, {"percent": 100}]
HOURS = timedelta(hours=1)


def waiting(now, plan=PLAN):
    """Start a ramp that waits for its manual gate after the dwell; return it and its approval."""
    ramp = start_ramp(now, plan, by=get_person("approver"))
    run_tick(now + seconds(60))
    return ramp, Approval.objects.get(kind="ramp_gate")


def answer(verb, approval, now, name="ada"):
    actor = get_person("approver", name)
    return verb(approval_id=approval.pk, comment="error rate is flat", actor=actor, now=now)


def test_nobody_is_asked_before_the_dwell_is_over():
    now = db_now()
    start_ramp(now, PLAN)

    run_tick(now + seconds(59))

    assert not Approval.objects.exists()


def test_the_approval_names_the_step_and_who_asked():
    now = db_now()
    ramp, approval = waiting(now)

    assert (get_ramp_state(ramp), get_share()) == ("holding", 5)
    assert approval.target == f"feature:chat#ramp-{ramp.pk}-0"
    assert approval.requested_by == "user:kim"
    assert approval.expires_at - approval.requested_at == 2 * HOURS
    assert "100 %" in approval.summary


def test_is_asked_for_once_however_often_it_is_looked_at():
    now = db_now()
    waiting(now)

    for count in range(61, 70):
        run_tick(now + seconds(count))

    assert Approval.objects.count() == 1
    assert list_actions().count("ramp.held") == 1


def test_approved_by_somebody_else_it_goes_on():
    now = db_now()
    ramp, approval = waiting(now)

    answer(approvals.approve, approval, now + seconds(90))
    run_tick(now + seconds(91))

    assert (get_ramp_state(ramp), get_share()) == ("running", 100)


def test_who_asked_for_the_ramp_does_not_answer():
    now = db_now()
    ramp, approval = waiting(now)

    with pytest.raises(Forbidden, match="a second person must approve it"):
        answer(approvals.approve, approval, now, name="kim")
    with pytest.raises(Forbidden, match="someone else must continue it"):
        actions.advance(ramp_id=ramp.pk, reason="fine by me", actor=get_person(), now=now)

    run_tick(now + seconds(91))
    assert (get_ramp_state(ramp), get_share()) == ("holding", 5)


def test_denied_it_goes_back():
    now = db_now()
    ramp, approval = waiting(now)

    answer(approvals.deny, approval, now + seconds(90))
    run_tick(now + seconds(91))

    assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)
    assert "user:ada denied it: error rate is flat" in get_outcome(ramp)


@pytest.mark.parametrize("swept", [False, True])
def test_nobody_answers_within_two_hours_and_it_goes_back(swept):
    now = db_now()
    ramp, approval = waiting(now)
    before, after = (approval.expires_at + seconds(shift) for shift in (-1, 1))

    run_tick(before)
    assert get_ramp_state(ramp) == "holding"
    if swept:
        approvals.expire_due_requests(after)
    run_tick(after)

    assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)
    assert "not approved within 2 h" in get_outcome(ramp)


def test_its_own_timeout_counts():
    now = db_now()
    ramp, _ = waiting(now, [{**PLAN[0], "gates": [{**MANUAL, "timeout_seconds": 30}]}, PLAN[1]])

    run_tick(now + seconds(91))

    assert get_ramp_state(ramp) == "aborted"


def test_waits_longer_than_data_may():
    now = db_now()
    ramp, _ = waiting(now, [{**PLAN[0], "max_hold_seconds": 10}, PLAN[1]])

    run_tick(now + HOURS)

    assert get_ramp_state(ramp) == "holding"


def test_approved_before_data_comes_nobody_is_asked_again():
    now = db_now()
    ramp, approval = waiting(now, [{**PLAN[0], "gates": [SMOKE, MANUAL]}, PLAN[1]])

    answer(approvals.approve, approval, now + seconds(70))
    for count in (71, 72, 73):
        run_tick(now + seconds(count))
    assert Approval.objects.count() == 1
    assert "smoke" in Job.objects.get(pk=ramp.pk).hold_reason
    report_gate("ok", now + seconds(80))
    run_tick(now + seconds(81))

    assert (get_ramp_state(ramp), get_share()) == ("running", 100)


def test_edited_it_is_the_new_request_that_counts():
    now = db_now()
    _, old = waiting(now)
    new = approvals.edit_request(
        approval_id=old.pk, reason="seen in two regions", actor=get_person(), now=now + seconds(61)
    )

    run_tick(now + seconds(62))
    assert Approval.objects.filter(state="pending").get() == new
    answer(approvals.approve, new, now + seconds(63))
    run_tick(now + seconds(64))

    assert get_share() == 100


def test_advanced_by_a_second_person_the_request_is_withdrawn():
    now = db_now()
    ramp, approval = waiting(now)

    actions.advance(
        ramp_id=ramp.pk,
        reason="seen on the call",
        actor=get_person("approver", "ada"),
        now=now + seconds(70),
    )

    approval.refresh_from_db()
    assert (get_share(), approval.state) == (100, "void")


def test_of_a_ramp_that_is_over_is_not_approved():
    now = db_now()
    ramp, approval = waiting(now)
    actions.abort(ramp_id=ramp.pk, reason="enough for today", actor=get_person(), now=now)

    with pytest.raises(Conflict):
        answer(approvals.approve, approval, now)


def test_while_paused_the_answer_is_kept_and_a_no_ends_it():
    now = db_now()
    ramp, approval = waiting(now)
    actions.pause(ramp_id=ramp.pk, reason="lunch first", actor=get_person(), now=now + seconds(61))
    answer(approvals.deny, approval, now + seconds(62))

    run_tick(now + seconds(63))

    assert get_ramp_state(ramp) == "aborted"


def test_over_http_a_token_never_answers_and_a_person_does():
    kim, ada = (signed_in(person("approver", name)) for name in ("kim", "ada"))
    kim.engage("feature:chat")
    plan = [{**PLAN[0], "dwell_seconds": 0}, GATED[1]]
    body = {"justification": "fixed and seen", "plan": plan}
    begun = kim.post("/switches/feature/chat/release", body).json()["ramp"]
    run_tick(db_now())
    ramp = kim.get(f"/ramps/{begun['id']}/").json()
    token = with_token("ramps:write", "switches:write")

    assert ramp["steps"][0]["gates"][0]["verdict"] == "waiting"
    path = f"/approvals/{ramp['approval']}/approve"
    advance = f"/ramps/{ramp['id']}/advance"
    why = {"reason": "seen on the call"}
    assert token.post(path).status_code == token.post(advance, why).status_code == 403
    assert kim.post(path).status_code == kim.post(advance, why).status_code == 403
    assert ada.post(path).status_code == 200
    run_tick(db_now())

    assert kim.get(f"/ramps/{ramp['id']}/").json()["allow_percent"] == 100
    assert Ramp.objects.count() == 1
