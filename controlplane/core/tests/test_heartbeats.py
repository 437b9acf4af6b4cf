"""A heartbeat depends on a turning loop, not on a running process."""

import time
from datetime import timedelta

import pytest

from controlplane.core import heartbeats
from controlplane.core.clock import db_now
from controlplane.core.models import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(heartbeats, "EVERY_SECONDS", 0.05)


def age(name):
    return heartbeats.load_ages().get(name)


def wait_until(condition, seconds=5.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_process_never_heard_of_has_no_age():
    assert heartbeats.load_ages() == {}


def test_the_pulse_goes_on_while_the_loop_turns_and_stops_with_it(quick):
    pulse = heartbeats.Pulse("test-loop", may_rest_seconds=0.3)

    pulse.start()

    wait_until(lambda: age("test-loop") is not None)
    ends = time.monotonic() + 0.6
    while time.monotonic() < ends:
        pulse.record_turn()
        time.sleep(0.02)
    assert age("test-loop") < 0.2
    time.sleep(0.8)
    assert age("test-loop") > 0.3
    pulse.record_turn()
    wait_until(lambda: age("test-loop") < 0.1)
    time.sleep(0.4)  # Its thread lives as long as the process; let it come to rest.


def test_a_sign_of_life_from_before_the_clock_was_set_back_is_not_fresh():
    in_the_future = db_now() + timedelta(minutes=20)
    Heartbeat.objects.create(name="test-loop", at=in_the_future)

    assert age("test-loop") > heartbeats.STALE_SECONDS
