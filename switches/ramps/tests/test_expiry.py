"""Ramps at expiries: one ramp per expiry, and an overdue switch if the ramp is compensated."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.outbox.escalation import Escalation
from switches import attention as waiting
from switches import services
from switches.models import Episode, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    SHELL,
    engage,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    list_actions,
    release,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)
from switches.rules.tests.factories import create_rule
from switches.tests import messages

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slack_configured")]
HOUR = timedelta(hours=1)
WHY = "not while the vendor is down"


def expired(now, **more):
    """Engage a switch whose expiry is now; return its episode and its ramp, if one started."""
    engage(CHAT, now - HOUR, expires_in="1h", **more)
    services.expire_due(now)
    return Episode.objects.get(), Ramp.objects.filter(live=True).first()


def test_policy_to_ramp_begins_the_usual_ramp():
    now = db_now()
    episode, ramp = expired(now)

    assert (ramp.automatic, ramp.requested_by_name, get_ramp_state(ramp)) == (
        True,
        "ramps",
        "running",
    )
    assert [step["percent"] for step in ramp.plan] == [5, 25, 100]
    assert (get_share(), episode.overdue) == (5, False)
    assert not Escalation.objects.filter(closed_at=None).exists()


def test_one_ramp_for_one_expiry():
    now = db_now()
    _, ramp = expired(now)
    actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(5))

    for count in (6, 7, 1000):
        services.expire_due(now + seconds(count))

    assert Ramp.objects.count() == 1
    assert (get_share(), get_state()) == (0, "engaged")


def test_taken_back_past_its_expiry_it_is_held_and_overdue():
    now = db_now()
    _, ramp = expired(now)

    actions.abort(ramp_id=ramp.pk, reason=WHY, actor=get_person(), now=now + seconds(5))

    episode = Episode.objects.get()
    assert (episode.on_expiry, episode.overdue) == ("hold", True)
    (called,) = Escalation.objects.filter(closed_at=None)
    assert (called.event, called.subject) == ("episode.overdue", f"episode:{episode.pk}")
    assert WHY in called.facts["said"]


def test_a_gate_past_the_expiry_does_the_same():
    now = db_now()
    ramp = start_ramp(now, GATED, expires_in="30s")
    assert services.expire_due(now + seconds(31)) == 0  # Its ramp handles it.
    report_gate("fail", now + seconds(40))

    run_tick(now + seconds(41))

    episode = Episode.objects.get()
    assert (get_ramp_state(ramp), episode.on_expiry, episode.overdue) == ("aborted", "hold", True)
    assert services.expire_due(now + HOUR) == 0
    assert Ramp.objects.count() == 1


def test_extended_after_that_it_is_held_at_the_next_end():
    now = db_now()
    _, ramp = expired(now)
    actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(5))

    services.extend(
        scope="feature", key="chat", expires_in="1h", reason=WHY, actor=SHELL, now=now + seconds(6)
    )
    assert not Episode.objects.get().overdue
    services.expire_due(now + HOUR + seconds(7))

    assert Episode.objects.get().overdue
    assert Ramp.objects.count() == 1


def test_a_ramp_before_the_expiry_leaves_that_its_own():
    now = db_now()
    first = start_ramp(now, expires_in="1h")
    actions.abort(ramp_id=first.pk, reason=WHY, actor=SHELL, now=now + seconds(5))
    assert Episode.objects.get().on_expiry == "ramp"

    services.expire_due(now + HOUR)

    assert Ramp.objects.get(live=True).automatic
    assert get_share() == 5


def test_engaged_again_its_new_expiry_has_a_ramp_of_its_own():
    now = db_now()
    _, first = expired(now)
    engage(CHAT, now + seconds(5), reason="fails again at five percent", expires_in="1h")

    services.expire_due(now + seconds(5) + HOUR)

    second = Ramp.objects.get(live=True)
    assert (second.pk != first.pk, second.automatic, get_share()) == (True, True, 5)


def test_while_it_ramps_its_expiry_means_nothing():
    now = db_now()
    start_ramp(now, expires_in="2d")
    end = Episode.objects.get().expires_at

    assert services.remind_due(end - HOUR / 2) == 0
    assert waiting.list_expiring(end - HOUR / 2) == []
    assert services.expire_due(end + HOUR) == 0
    assert waiting.list_overdue(end + HOUR) == []
    assert get_share() == 5


def test_it_can_be_engaged_but_not_extended_while_it_ramps():
    now = db_now()
    start_ramp(now)

    with pytest.raises(Conflict):
        services.extend(
            scope="feature", key="chat", expires_in="2d", reason=WHY, actor=SHELL, now=now
        )


@pytest.mark.parametrize("kind", ["at_least_one", "protected"])
def test_a_rule_in_the_way_holds(kind):
    now = db_now()
    engage(CHAT, now - HOUR, expires_in="1h", on_expiry="ramp")
    create_rule(kind, CHAT)

    services.expire_due(now)

    assert (Ramp.objects.count(), Episode.objects.get().overdue, get_share()) == (0, True, 0)


def test_run_twice_at_once_it_is_one_ramp():
    now = db_now()
    expired(now)

    assert services.expire_due(now) == 0
    assert list_actions().count("ramp.started") == 1


class TestManyAtOnce:
    def engage_switches(self, now):
        for number in range(3):
            engage(f"segment:held-{number}", now - HOUR, expires_in="1h")
        for number in range(3):
            engage(f"feature:ramps-{number}", now - HOUR, expires_in="1h")
        engage("feature:goes", now - HOUR, expires_in="1h", on_expiry="release")

    def test_the_digest_tells_who_ramps_apart(self):
        now = db_now()
        self.engage_switches(now)

        services.expire_due(now)

        (digest,) = messages.find("episodes.expired")
        facts = digest.payload
        assert facts["ramping"] == "feature:ramps-0, feature:ramps-1, feature:ramps-2"
        assert facts["held"] == "segment:held-0, segment:held-1, segment:held-2"
        assert facts["released"] == "feature:goes"
        assert Episode.objects.filter(overdue_at__isnull=False).count() == 3

    def test_they_are_not_told_of_by_themselves_as_well(self):
        now = db_now()
        self.engage_switches(now)

        services.expire_due(now)

        events = ("ramp.started", "ramps.started", "episode.overdue", "switch.released")
        assert [event for event in events if messages.find(event)] == []

    def test_one_that_is_held_after_all_is_told_of_by_itself(self):
        now = db_now()
        self.engage_switches(now)
        ramp = release("feature:ramps-1", now - HOUR / 2).ramp
        actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now - HOUR / 3)
        create_rule("at_least_one", "feature:ramps-1", name="keep")

        services.expire_due(now)

        (digest,) = messages.find("episodes.expired")
        assert "feature:ramps-1" in digest.payload["held"]
        assert "feature:ramps-1" not in digest.payload["ramping"]
