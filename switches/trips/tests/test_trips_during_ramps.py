"""Requests during a ramp: a new alert ends it."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from switches import services
from switches.models import Episode, Ramp, Trip
from switches.ramps.tests.ramp_helpers import (
    SHELL,
    engage,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    release,
)
from switches.trips import resolution
from switches.trips import services as trips

pytestmark = pytest.mark.django_db
FLAG = "experiment:ranking-v2"
MINUTE = timedelta(minutes=1)


def trip(now, fingerprint="burn-1", **more):
    arguments = {
        "source": "slo:core-availability",
        "reason": "burn rate 14 within an hour",
        "evidence": {"burn_rate": 14.2},
        "expires_in": "1h",
        **more,
    }
    return trips.request_trip(
        switch=FLAG, fingerprint=fingerprint, actor=SHELL, now=now, **arguments
    )


def tripped_and_ramped(now):
    assert trip(now).tripped
    return release(FLAG, now + MINUTE, by=get_person()).ramp


def test_a_new_alert_ends_the_ramp():
    now = db_now()
    engage(FLAG, now)
    ramp = release(FLAG, now, by=get_person()).ramp

    result = trip(now + MINUTE)

    assert (result.tripped, result.trip.outcome) == (True, Trip.Outcome.TRIPPED)
    assert (get_ramp_state(ramp), get_share(FLAG), get_state(FLAG)) == ("aborted", 0, "engaged")
    episode = Episode.objects.get()
    assert result.trip.episode == episode
    assert (episode.engaged_by_type, episode.reason) == ("system", "burn rate 14 within an hour")


def test_another_alert_than_the_one_that_stopped_it_ends_it_too():
    now = db_now()
    ramp = tripped_and_ramped(now)

    assert trip(now + 2 * MINUTE, "latency-7").tripped
    assert get_ramp_state(ramp) == "aborted"


def test_the_alert_that_a_person_knew_of_is_a_repeat_while_it_fires():
    now = db_now()
    ramp = tripped_and_ramped(now)

    result = trip(now + 2 * MINUTE)

    assert not result.tripped
    assert "user:kim started a ramp of experiment:ranking-v2" in result.why
    assert (get_ramp_state(ramp), get_share(FLAG)) == ("running", 5)
    assert Trip.objects.get(outcome="tripped").repeats == 1


def test_once_it_has_resolved_and_fires_anew_it_ends_the_ramp():
    now = db_now()
    ramp = tripped_and_ramped(now)
    resolution.resolve_alert(switch=FLAG, fingerprint="burn-1", actor=SHELL, now=now + 2 * MINUTE)

    assert trip(now + 3 * MINUTE).tripped
    assert (get_ramp_state(ramp), get_share(FLAG)) == ("aborted", 0)


def test_a_ramp_that_nobody_decided_on_gives_way_to_the_alert_that_still_fires():
    now = db_now()
    assert trip(now).tripped
    services.expire_due(now + timedelta(hours=1))
    ramp = Ramp.objects.get()
    assert (ramp.automatic, get_share(FLAG)) == (True, 5)

    result = trip(now + timedelta(minutes=61))

    assert result.tripped
    assert (get_ramp_state(ramp), get_share(FLAG)) == ("aborted", 0)
    assert Episode.objects.get().expires_at == now + timedelta(minutes=121)
