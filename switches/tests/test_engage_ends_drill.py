"""Engaging a switch for real ends its drill."""

import pytest

from controlplane.core.clock import db_now
from switches.drills.tests.drill_helpers import CANARY, begin, mark, report_present, turn
from switches.emergency.tests import orders
from switches.episodes import live_drills
from switches.models import Drill, Publication
from switches.ramps.tests.ramp_helpers import engage, get_person, get_state, seconds

pytestmark = pytest.mark.django_db
FINANCE = "segment:finance"


def test_engage_ends_the_drill_and_says_who():
    now = db_now()
    mark(CANARY, now=now)
    report_present(CANARY, now=now)
    begin(FINANCE, now=now)
    turn(now)
    assert live_drills.find_drills_in_force().exists()
    version = Publication.objects.get().version

    engage(FINANCE, now + seconds(1), by=get_person())

    assert not live_drills.find_drills_in_force().exists()
    assert Drill.objects.get().failure_reason == "user:kim engaged the switch."
    assert (get_state(FINANCE), Publication.objects.get().version) == ("engaged", version + 1)


def test_an_emergency_order_ends_the_drill_too():
    now = db_now()
    mark(CANARY, now=now)
    report_present(CANARY, now=now)
    begin(FINANCE, now=now)
    turn(now)

    orders.store(FINANCE)
    orders.reconcile(now + seconds(1))

    assert not live_drills.find_drills_in_force().exists()
    assert Drill.objects.get().failure_reason == "user:kim engaged the switch."
    assert get_state(FINANCE) == "engaged"
