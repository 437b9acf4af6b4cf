"""A worker stopped (SIGSTOP) at any point of a ramp step doesn't block an engage."""

import time

import pytest
from django.db import connection

from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.database.tests.idle_sessions import recorded
from switches.models import Publication
from switches.ramps.tests.ramp_helpers import (
    engage,
    get_ramp_state,
    get_share,
    get_state,
    list_actions,
    start_ramp,
)

from .crashing_worker import Nursery

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(240),
    pytest.mark.django_db(transaction=True),
]

WITHIN = 1.0
MAX_STATEMENTS = 200
STEPS = [{"percent": percent, "dwell_seconds": 1} for percent in (5, 25, 100)]
FROZEN = "SIGSTOP"


@pytest.fixture
def nursery():
    nursery = Nursery(connection.settings_dict)
    yield nursery
    nursery.end()


def frozen(nursery, ramp, now, **where):
    """Start a worker that runs the tick at which the first step is due, and stops itself in it."""
    return nursery.live(ramp.pk, now, ticks=range(2, 3), number=19, **where)


def engage_again(switch):
    """Engage the switch, and return the seconds that it took."""
    started = time.monotonic()
    engage(switch, db_now(), reason="fails again at five percent")
    return time.monotonic() - started


@pytest.mark.smoke
def test_worker_frozen_before_its_commit_is_ended_and_wakes_to_nothing(nursery):
    now = db_now()
    ramp = start_ramp(now, STEPS, switch="feature:chat")
    life = frozen(nursery, ramp, now, at="advance.notified", since=0)
    assert life.ended_by == FROZEN

    took = engage_again("feature:chat")

    assert took < WITHIN
    version = Publication.objects.get().version
    recorded()
    life.thaw()
    assert (life.ended_by, life.moved) == ("", [])
    assert (get_state("feature:chat"), get_share("feature:chat"), get_ramp_state(ramp)) == (
        "engaged",
        0,
        "aborted",
    )
    assert "ramp.advanced" not in list_actions("feature:chat")
    assert Publication.objects.get().version == version
    assert audit.verify().intact


def test_worker_frozen_after_any_statement_keeps_no_engage_waiting(nursery):
    slow = {}
    for after in range(1, MAX_STATEMENTS):
        now, switch = db_now(), f"feature:f{after}"
        ramp = start_ramp(now, STEPS, switch=switch)
        life = frozen(nursery, ramp, now, after=after)
        if life.ended_by != FROZEN:
            break

        took = engage_again(switch)

        if took > WITHIN:
            slow[after] = took
        assert (get_state(switch), get_share(switch), get_ramp_state(ramp)) == (
            "engaged",
            0,
            "aborted",
        )
        life.kill()
    assert not slow
    assert 10 < after < MAX_STATEMENTS
    recorded()
    assert audit.verify().intact
