"""Ramps that wait for a person, and calls about failed compensations."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.gates import external
from controlplane.core.jobs import engine
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import ATTENTION_SOURCES
from controlplane.notify.escalation import engine as escalation
from controlplane.notify.models.targets import OnCallMember, Target
from switches import metrics, services
from switches.models import Episode, Publication, Ramp
from switches.ramps import actions
from switches.ramps import attention as ramps
from switches.ramps.tests.ramp_helpers import SHELL, SMOKE
from switches.tests import messages

pytestmark = pytest.mark.django_db

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
WHY = "provider confirmed the fix 2.14.1"


@pytest.fixture
def on_call(settings):
    """Put Kim on call, who is notified in Slack."""
    messages.configure(settings)
    now = db_now()
    kim = Target.objects.create(name="kim", kind="person", slack_user_id="UKIM", created_at=now)
    OnCallMember.objects.create(rotation=Target.objects.get(name="on-call"), position=0, person=kim)


def begin(now, *gates_of_first, key="chat"):
    services.engage(scope="feature", key=key, reason=WHY, expires_in="24h", actor=SHELL, now=now)
    plan = [{"percent": 5, "gates": list(gates_of_first)}, {"percent": 25}, {"percent": 100}]
    return services.release(
        scope="feature", key=key, justification=WHY, plan=plan, actor=SHELL, now=now
    ).ramp


def look(now):
    return engine.run_tick("ramps.turn", now)


def everything(now):
    """Return all items of the attention page."""
    return [item for source in ATTENTION_SOURCES.values() for item in source.function(now)]


def test_one_that_goes_on_waits_for_nobody():
    now = db_now()
    begin(now)
    look(now + 6 * MINUTE)

    assert [*ramps.list_holding_ramps(now), *ramps.list_paused_ramps(now)] == []
    assert not [item for item in everything(now + 6 * MINUTE) if "ramp" in item.path]


def test_one_that_holds_says_why_since_when_and_when_it_goes_back():
    now = db_now()
    ramp = begin(now, SMOKE)
    look(now + 6 * MINUTE)

    (item,) = ramps.list_holding_ramps(now + 20 * MINUTE)

    assert (item.kind, item.severity) == ("ramp_holding", "warning")
    assert item.path == f"/ramps/{ramp.pk}/"
    assert item.title == "The ramp of feature:chat holds at 5 %, step 1 of 3"
    assert "no observation of smoke has been reported yet" in item.detail
    assert timedelta() <= item.since - (now + 6 * MINUTE) < MINUTE
    assert item.due_at == item.since + HOUR


def test_one_that_waits_for_a_person_is_told_of_as_an_approval():
    now = db_now()
    begin(now, {"type": "manual"})
    look(now + 6 * MINUTE)

    assert ramps.list_holding_ramps(now + 7 * MINUTE) == []
    (item,) = [item for item in everything(now + 7 * MINUTE) if "feature:chat" in item.title]
    assert item.kind == "approval"
    assert "Ramp of feature:chat: advance to 25 %, after 5 %" in item.title
    assert item.path.startswith("/approvals/")


@pytest.mark.parametrize(
    ("minutes", "kinds"), [(59, []), (61, ["ramp_paused"]), (25 * 60, ["job_paused"])]
)
def test_one_that_is_paused_for_long_is_told_of_once(minutes, kinds):
    now = db_now()
    ramp = begin(now)
    actions.pause(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now)
    later = now + minutes * MINUTE
    Ramp.objects.get().job.__class__.objects.update(heartbeat_at=later)

    found = [item.kind for item in everything(later) if item.kind.endswith("_paused")]

    assert found == kinds


def test_what_ramps_is_not_about_to_expire_nor_forgotten():
    now = db_now()
    begin(now)
    Episode.objects.update(expires_at=now + 30 * MINUTE)

    assert not [item for item in everything(now) if item.kind in ("expiring", "forgotten")]


def unpublishable():
    """Make every publication fail, so that advancing and compensating fail alike."""
    head = Publication.objects.get()
    Publication.objects.update(version=2**63 - 1)
    return head.version


def test_one_that_can_not_be_taken_back_calls_the_person_on_call_until_it_is(on_call):
    now = db_now()
    ramp = begin(now, SMOKE)
    external.record_verdict(
        name="smoke", verdict="fail", evidence={}, actor=SHELL, now=now + MINUTE
    )
    version = unpublishable()

    look(now + MINUTE)
    escalation.notify_due(now + 2 * MINUTE)

    ramp.job.refresh_from_db()
    assert ramp.job.state == "failed"
    called = Escalation.objects.get(subject=f"job:{ramp.pk}")
    assert (called.event, called.severity) == ("job.compensation_failed", "critical")
    step = messages.find("escalation.step")[0]
    assert step.destination == "slack:UKIM"
    first = everything(now + MINUTE)[0]
    assert (first.kind, first.severity) == ("job_not_compensated", "critical")
    assert first.path == f"/ramps/{ramp.pk}/"

    look(now + 2 * MINUTE)
    assert len(messages.find("job.compensation_failed")) == 1
    Publication.objects.update(version=version)
    look(now + 3 * MINUTE)

    assert Episode.objects.get().allow_percent == 0
    called.refresh_from_db()
    assert called.closed_at is not None
    assert not [two for two in everything(now + 3 * MINUTE) if two.kind == "job_not_compensated"]
    assert len(messages.find("ramp.compensated")) == 1


def test_engaging_closes_the_call_too(on_call):
    now = db_now()
    ramp = begin(now, SMOKE)
    external.record_verdict(
        name="smoke", verdict="fail", evidence={}, actor=SHELL, now=now + MINUTE
    )
    version = unpublishable()
    look(now + MINUTE)
    Publication.objects.update(version=version)

    services.engage(
        scope="feature", key="chat", reason=WHY, expires_in="24h", actor=SHELL, now=now + 2 * MINUTE
    )

    assert Escalation.objects.get(subject=f"job:{ramp.pk}").closed_at is not None
    assert Episode.objects.get(ended_at=None).allow_percent == 0


def list_messages(now):
    return {
        (family.name, *sample.labels.values()): sample.value
        for family in [*metrics.collect_ramping(now), *metrics.collect_engaged(now)]
        for sample in family.samples
        if family.name != "switchgear_switches"
    }


def test_metrics_tell_step_and_share_while_it_ramps():
    now = db_now()
    begin(now)
    assert list_messages(now) == {
        ("switchgear_ramp_step", "feature:chat", "feature", "chat"): 1,
        ("switchgear_ramp_percent", "feature:chat", "feature", "chat"): 5,
        ("switchgear_switch_engaged", "feature", "chat"): 0,
    }

    look(now + 6 * MINUTE)
    assert list_messages(now)["switchgear_ramp_step", "feature:chat", "feature", "chat"] == 2
    assert list_messages(now)["switchgear_ramp_percent", "feature:chat", "feature", "chat"] == 25

    actions.abort(ramp_id=Ramp.objects.get().pk, reason=WHY, actor=SHELL, now=now + 7 * MINUTE)
    assert list_messages(now) == {("switchgear_switch_engaged", "feature", "chat"): 1}
