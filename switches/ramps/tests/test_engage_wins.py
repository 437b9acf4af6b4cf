"""A new engage ends a ramp in any state, returns what every engage returns, and stays in force."""

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import as_role
from controlplane.core.jobs.models import Job
from switches.models import Episode, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
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
AGAIN = "checkout fails again at five percent"
ALL = [{"percent": 100, "dwell_seconds": 60}]


def bring(ramp, to, now):
    if to in {"holding", "waiting"}:
        run_tick(now + seconds(60))
    elif to == "paused":
        actions.pause(ramp_id=ramp.pk, reason="look first", actor=SHELL, now=now)
    elif to == "failed":
        Job.objects.filter(pk=ramp.pk).update(state="failed", finished_at=now, next_at=now)


@pytest.mark.parametrize("to", ["running", "holding", "waiting", "paused", "failed", "everything"])
def test_engage_ends_it(to):
    now = db_now()
    waiting = [{**GATED[0], "gates": [{"type": "manual"}]}, GATED[1]]
    ramp = start_ramp(now, {"waiting": waiting, "everything": ALL}.get(to, GATED))
    bring(ramp, to, now)
    before = Episode.objects.get()

    engage(CHAT, now + seconds(61), by=get_person(), reason=AGAIN, expires_in="2h")

    episode = Episode.objects.get()
    assert (get_ramp_state(ramp), get_share(), get_state()) == ("aborted", 0, "engaged")
    assert AGAIN in get_outcome(ramp)
    assert (episode.pk, episode.salt) == (before.pk, before.salt)
    assert (episode.reason, episode.engaged_by_name) == (AGAIN, "kim")
    assert episode.expires_at == now + seconds(61 + 7200)
    assert list_actions()[-1] == "switch.engaged"
    row = AuditEntry.objects.filter(action="switch.engaged").latest("id")
    assert '"state":"ramping"' in row.before
    assert f'"ramp":{ramp.pk}' in row.after
    assert not Approval.objects.filter(state="pending").exists()
    assert run_tick(now + seconds(4000)) == 0
    assert get_share() == 0


def test_no_safety_rule_stands_in_its_way():
    now = db_now()
    start_ramp(now)
    engage("feature:other", now)
    create_rule("at_most", "feature:*", n=1)

    engage(CHAT, now + seconds(1), reason=AGAIN)

    assert get_state() == "engaged"


def test_over_http_it_is_200_and_the_episode_goes_on():
    operator = as_role("operator")
    operator.engage(CHAT)
    operator.post("/switches/feature/chat/release", {"justification": "fixed and seen"})

    response = operator.engage(CHAT, reason=AGAIN)

    assert response.status_code == 200
    assert (response.json()["state"], response.json()["reason"]) == ("engaged", AGAIN)
    assert response.json()["ramp"] is None
    assert Episode.objects.count() == 1
    assert Ramp.objects.get().live is False


def test_while_a_ramp_waits_for_approval_it_is_engaged_already():
    now = db_now()
    engage("global:all", now)
    release("global:all", now, by=get_person())

    with pytest.raises(Conflict, match="already engaged"):
        engage("global:all", now + seconds(1), by=get_person(), reason=AGAIN)


def test_ramp_can_begin_anew_with_the_same_keys_in():
    now = db_now()
    first = start_ramp(now)
    salt = first.episode.salt
    engage(CHAT, now + seconds(1), reason=AGAIN)

    second = release(CHAT, now + seconds(2)).ramp

    assert second.episode.salt == salt
    assert get_share() == 5
