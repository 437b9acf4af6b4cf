"""Interventions of people: pause, resume, cancel, each with a reason and on record."""

from dataclasses import replace

import pytest

from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.jobs import claims, control
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import KIND, MINUTE, NOW, SECOND, audited, begin, turn
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.roles import Role

pytestmark = pytest.mark.django_db
KIM = Actor(type="user", name="kim", role=Role.OPERATOR, scopes=frozenset({"switches:write"}))


@pytest.fixture(autouse=True)
def _kind(given):
    given(StepKind("one", lambda *_: StepPassed()))


def intervene(job, verb, reason="because", actor=KIM, now=NOW):
    return control.intervene(job_id=job.pk, verb=verb, reason=reason, actor=actor, now=now)


def test_a_paused_job_stands_still_until_it_is_resumed():
    job = begin()

    paused = intervene(job, "pause")
    assert turn(NOW + MINUTE) == 0
    intervene(job, "resume", now=NOW + MINUTE)
    turn(NOW + MINUTE)

    assert (paused.state, paused.paused_at) == ("paused", NOW)
    job.refresh_from_db()
    assert (job.state, job.paused_at) == ("completed", None)
    assert audited() == ["job.paused", "job.resumed"]


def test_it_is_on_record_who_did_it_to_what_and_why():
    job = begin()

    intervene(job, "pause", reason="  the target is overloaded ")

    (entry,) = AuditEntry.objects.all()
    assert (entry.target, entry.actor_name) == ("segment:finance", "kim")
    assert entry.reason == "the target is overloaded"
    assert f'"job":{job.pk}' in entry.after
    assert '"state":"running"' in entry.before


def test_who_works_on_it_meanwhile_writes_nothing_any_more():
    job = begin()
    (at_work,) = claims.claim_jobs([KIND], NOW, most=1)

    intervene(job, "pause", now=NOW + SECOND)

    with pytest.raises(claims.LeaseLost):
        at_work.heartbeat(NOW + SECOND)
    intervene(job, "resume", now=NOW + SECOND)
    with pytest.raises(claims.LeaseLost):
        at_work.heartbeat(NOW + SECOND)


def test_a_cancelled_job_is_over_and_calls_nobody_any_more():
    job = begin()
    Escalation.objects.create(
        subject=f"job:{job.pk}", event="job.stuck", severity="critical", opened_at=NOW, next_at=NOW
    )

    done = intervene(job, "cancel", reason="no longer needed")

    assert (done.state, done.finished_at, done.next_at) == ("cancelled", NOW, None)
    assert done.outcome == "Cancelled by user:kim: no longer needed"
    assert Escalation.objects.get().closed_at == NOW
    assert turn(NOW + MINUTE) == 0


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        ("pending", {"cancel"}),
        ("running", {"pause", "cancel"}),
        ("holding", {"pause", "cancel"}),
        ("paused", {"resume", "cancel"}),
        ("completed", set()),
        ("failed", set()),
        ("cancelled", set()),
    ],
)
def test_only_what_its_state_allows_is_done(state, verbs):
    over = state in {"completed", "failed", "cancelled"}
    allowed = set()

    for verb in control.INTERVENTIONS:
        job = begin()
        Job.objects.filter(pk=job.pk).update(state=state, finished_at=NOW if over else None)
        try:
            intervene(job, verb)
        except Conflict as refusal:
            assert refusal.extra == {"state": state}
            assert not AuditEntry.objects.filter(after__contains=f'"job":{job.pk},').exists()
        else:
            allowed.add(verb)

    assert allowed == verbs


def test_a_reason_is_needed():
    with pytest.raises(InvalidInput, match="Enter a reason"):
        intervene(begin(), "pause", reason="  ")


def test_it_takes_the_scope_that_the_kind_names(given):
    given(StepKind("one", lambda *_: StepPassed()), scope="ramps:write")
    job = begin()

    with pytest.raises(Forbidden, match="operator"):
        intervene(job, "pause")
    intervene(job, "pause", actor=replace(KIM, scopes=frozenset({"ramps:write"})))

    assert audited() == ["job.paused"]


def test_a_kind_may_have_its_own_way(given):
    did = []
    given(
        StepKind("one", lambda *_: StepPassed()),
        interventions={"cancel": lambda job, why, actor, now: did.append((job.pk, why, now))},
    )
    job = begin()

    intervene(job, "cancel")
    intervene(job, "pause")

    assert did == [(job.pk, "because", NOW)]
    assert Job.objects.get(pk=job.pk).state == "paused"


def test_there_is_no_such_job():
    with pytest.raises(NotFound, match="no job 7"):
        control.get_job(7)
