"""Evidence of each first step: what ticks it, and what does not."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.instances.first_steps import find_connected_service
from controlplane.core.instances.models import Instance
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.first_steps import find_delivered_message
from switches.drills.tests.drill_helpers import CANARY, begin, mark, report_present, run_drill
from switches.first_steps import find_first_switch, find_passed_drill
from switches.models import Switch
from switches.tests.browsers import engaged

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    return db_now()


def add_instance(now, name, ago=12, *, stopped=False):
    at = now - timedelta(seconds=ago)
    return Instance.objects.create(
        id=name, service=name.partition("/")[0], heard_at=at, first_heard_at=at,
        stopped_at=at if stopped else None,
    )  # fmt: skip


def message(now, state, event="target.test"):
    return OutboxMessage.objects.create(
        event=event, event_key=f"test:{state}", destination="slack:#ops", payload={}, state=state,
        next_attempt_at=now, created_at=now, finished_at=now if state == "sent" else None,
    )  # fmt: skip


def test_no_step_is_done_on_an_empty_console(now):
    for find in (find_connected_service, find_first_switch, find_passed_drill):
        assert find(now) is None
    assert find_delivered_message(now) is None


def test_instance_that_reported_is_evidence_of_a_service(now):
    add_instance(now, "core/a1", ago=60)
    add_instance(now, "checkout/b1")

    evidence = find_connected_service(now)

    assert evidence is not None
    assert evidence.text == "2 instances reported in the last 5 minutes; checkout last reported"
    assert evidence.at == now - timedelta(seconds=12)


def test_instance_that_is_gone_is_not_said_to_report_now(now):
    add_instance(now, "core/a1", ago=7200)

    evidence = find_connected_service(now)

    assert evidence is not None
    assert evidence.text == "core last reported"


def test_instances_that_stopped_are_not_counted(now):
    add_instance(now, "core/a1", ago=60)
    add_instance(now, "core/a2", ago=70)
    add_instance(now, "checkout/b1", stopped=True)

    evidence = find_connected_service(now)

    assert evidence is not None
    assert evidence.text == "2 instances reported in the last 5 minutes; core last reported"


def test_service_that_stopped_is_said_to_have_stopped(now):
    add_instance(now, "core/a1", ago=14, stopped=True)
    add_instance(now, "checkout/b1", stopped=True)

    evidence = find_connected_service(now)

    assert evidence is not None
    assert evidence.text == "checkout has stopped; it last reported"


def test_client_with_only_a_token_is_no_service(now):
    add_instance(now, "token:ci")

    assert find_connected_service(now) is None


def test_engaged_switch_is_evidence_with_its_person(now):
    engaged("feature:chat")

    evidence = find_first_switch(now)

    assert evidence is not None
    assert evidence.text == "feature:chat was engaged by user:kim"
    assert evidence.path == "/switches/feature/chat/"


def test_registered_switch_is_no_evidence(now):
    Switch.objects.create(id="feature:chat", scope="feature", key="chat", registered_at=now)

    assert find_first_switch(now) is None


@pytest.mark.parametrize("state", ["pending", "failed", "superseded"])
def test_message_that_did_not_arrive_is_no_evidence(now, state):
    message(now, state)

    assert find_delivered_message(now) is None


def test_delivered_test_message_is_evidence(now):
    message(now, "sent")

    evidence = find_delivered_message(now)

    assert evidence is not None
    assert evidence.text == "A test message to Slack #ops was delivered"
    assert evidence.at == now


def test_passed_drill_is_evidence(now):
    mark(CANARY, now=now)
    report_present(CANARY, now=now)
    drill = run_drill(begin(now=now), CANARY, now=now)

    evidence = find_passed_drill(now)

    assert drill.passed
    assert evidence is not None
    assert evidence.text == f"The drill of {drill.switch_id} passed on 1 instance"


def test_drill_that_nobody_applied_is_no_evidence(now):
    mark(CANARY, now=now)
    report_present(CANARY, now=now)
    drill = run_drill(begin(now=now), now=now, pace=timedelta(seconds=30))

    assert not drill.passed
    assert find_passed_drill(now) is None
