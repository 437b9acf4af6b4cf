"""Bulk jobs over dead letters: asked for, gone through, held, ended by hand."""

import pytest

from breakers import gate_kinds as answering
from breakers.dead_letters.bulk import eligibility, replays, worker
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, LetterStream, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.resources import replay_resource
from breakers.models import Channel
from breakers.tests.fleet import MINUTE, NOW, SECOND, dependency, reports
from breakers.tests.registered import OPERATOR, VIEWER
from controlplane.core.approvals import services as approvals
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.gates.models import Gate
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs import control, engine, kinds
from controlplane.core.jobs.models import Job

pytestmark = pytest.mark.django_db
REASON = "broker is back, 0 errors since 02:10"
EVERYTHING = LetterFilter()
LEASE_OVER = 20 * SECOND


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(worker, "SLICE_SECONDS", 1.0)


def ask(stream, *, action="retry", chosen=EVERYTHING, actor=OPERATOR, **more):
    arguments = {"rate_per_second": 1000.0, "reason": REASON, "now": NOW, **more}
    return replays.request_replay(
        stream=stream, action=action, chosen=chosen, actor=actor, **arguments
    )


def work(at=NOW, probe=kinds.no_probe):
    return engine.run_tick("dlq.jobs", at, probe)


def until_over(job, at=NOW):
    for _ in range(30):
        work(at)
        job.refresh_from_db()
        if not job.is_live:
            return
        at += SECOND
    raise AssertionError(f"{job} goes on: {job.hold_reason or job.error}")


def origin(letters, of="events"):
    return letters.redis.xrange(f"{letters.prefix}:{of}")


def counts(job):
    return Replay.objects.get(pk=job.pk).counts


def test_everything_is_retried_once_and_written_down(letters):
    letters.fill(120)
    stream = letters.stream()

    job = ask(stream)
    until_over(job)

    sent = [fields[b"dlq_retry_of"] for _, fields in origin(letters)]
    assert sent == [f"{number}-0".encode() for number in range(1, 121)]
    assert letters.redis.xlen(stream.name) == 0
    assert Departure.objects.filter(job=job, state="done").count() == 120
    assert (job.state, job.done, job.total) == ("completed", 120, 120)
    assert counts(job)["done"] == 120
    assert job.outcome == "120 retried."
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["dead_letters.replay_asked", "dead_letters.replayed"]
    assert LetterStream.objects.get(pk=stream.pk).retried_total == 120


def test_only_what_is_chosen_leaves(letters):
    letters.add(error="order 1 is locked", dlq_error_type="Locked")
    letters.add(error="timeout after 30 s")
    letters.add(error="order 2 is locked", dlq_error_type="Locked")
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    (fingerprint,) = set(
        stream.letters.filter(error__contains="locked").values_list("group__fingerprint", flat=True)
    )

    job = ask(stream, chosen=LetterFilter(fingerprint=fingerprint))
    until_over(job)

    assert len(origin(letters)) == 2
    assert letters.redis.xlen(stream.name) == 1
    assert (counts(job)["done"], counts(job)["not_meant"]) == (2, 0)


def test_what_is_in_the_payload_is_looked_for_in_each_letter(letters):
    for number in range(60):
        letters.add(payload=f'{{"order": {{"id": {number % 3}}}}}')
    stream = letters.stream()

    job = ask(stream, action="discard", chosen=LetterFilter(field="payload.order.id", value="2"))
    until_over(job)

    assert origin(letters) == []
    assert letters.redis.xlen(stream.name) == 40
    counted = counts(job)
    assert (counted["done"], counted["not_meant"], counted["looked_at"]) == (20, 40, 60)
    assert job.outcome == "20 discarded."


def test_what_comes_later_is_not_touched(letters):
    letters.fill(3)
    stream = letters.stream()

    job = ask(stream)
    letters.fill(2, start=4)
    until_over(job)

    assert counts(job)["done"] == 3
    assert letters.redis.xlen(stream.name) == 2


@pytest.mark.parametrize("chosen", [EVERYTHING, LetterFilter(error_type="TimeoutError")])
def test_the_last_letter_gone_before_it_was_read_holds_nothing_up(letters, chosen):
    letters.add()
    last = letters.add()
    stream = letters.stream()
    job = ask(stream, chosen=chosen)
    letters.redis.xdel(stream.name, last)

    until_over(job)

    assert (job.state, counts(job)["done"]) == ("completed", 1)


def test_a_stream_that_is_deleted_meanwhile_ends_the_job(letters):
    for _ in range(5):
        letters.add()
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    job = ask(stream, chosen=LetterFilter(error_type="TimeoutError"), rate_per_second=1.0)
    letters.redis.delete(stream.name)
    indexer.catch_up(stream, NOW + SECOND)

    until_over(job, NOW + 2 * SECOND)

    assert (job.state, counts(job)["done"]) == ("completed", 0)


def test_what_can_not_leave_stays_and_is_counted_by_why(letters):
    letters.add(dlq_retry_count="3")
    letters.add(**{f"field{number}": "x" for number in range(3600)})
    letters.add(dlq_retry_count="2")
    stream = letters.stream()

    dry = eligibility.count_eligible(stream, EVERYTHING, "retry", 3, NOW)
    job = ask(stream)
    until_over(job)

    why = {"retried_too_often": 1, "too_many_fields": 1}
    assert (dry.eligible, dry.ineligible, dict(dry.why), dry.complete) == (1, 2, why, True)
    assert (counts(job)["done"], counts(job)["why"]) == (1, why)
    assert "2 skipped" in job.outcome
    assert origin(letters)[0][1][b"dlq_retry_count"] == b"3"


def test_a_dry_run_looks_into_payloads_and_says_how_far_it_came(letters):
    for number in range(60):
        letters.add(payload=f'{{"id": {number % 3}}}', dlq_retry_count=str(number % 2 * 3))
    stream = letters.stream()
    chosen = LetterFilter(field="payload.id", value="2")

    whole = eligibility.count_eligible(stream, chosen, "retry", 3, NOW, seconds=20)
    cut = eligibility.count_eligible(stream, chosen, "retry", 3, NOW, seconds=0)

    assert (whole.eligible, dict(whole.why)) == (10, {"retried_too_often": 10})
    assert (whole.looked_at, whole.complete) == (60, True)
    assert (cut.looked_at, cut.complete) == (0, False)
    assert letters.redis.xlen(stream.name) == 60


@pytest.mark.parametrize(
    "chosen",
    [
        LetterFilter(),
        LetterFilter(error="timeout"),
        LetterFilter(error_type="TimeoutError", q="17"),
    ],
)
def test_a_dry_run_counts_what_the_job_then_does(letters, chosen):
    letters.add(dlq_retry_count="9")
    letters.add(error="locked", dlq_error_type="Locked", order="18")
    letters.add(error="TIMEOUT after 31 s")
    stream = letters.stream()

    dry = eligibility.count_eligible(stream, chosen, "retry", 3, NOW)
    job = ask(stream, chosen=chosen)
    until_over(job)

    counted = counts(job)
    assert (dry.eligible, dry.ineligible) == (counted["done"], counted["skipped"])
    assert dry.eligible > 0


def test_a_very_long_name_is_filed_under_one_that_fits(letters):
    of = "x" * 200 + "é"
    letters.fill(2, to=of)

    job = ask(letters.stream(of))
    until_over(job)

    assert (job.state, counts(job)["done"]) == ("completed", 2)
    assert len(job.subject) == 200


def test_it_is_shown_with_what_it_does_and_how_far_it_is(letters):
    letters.fill(2)
    job = ask(letters.stream(), chosen=LetterFilter(error="failed"))
    until_over(job)

    response = replay_resource(Job.objects.get(pk=job.pk), NOW)

    assert (response["stream"], response["server"]) == (letters.name(), "default")
    assert (response["action"], response["filter"]) == ("retry", {"error": "failed"})
    assert (response["until"], response["rate_per_second"], response["waits_for"]) == (
        "2-0",
        1000.0,
        [],
    )
    assert (response["progress"]["done"], response["counts"]["done"]) == (2, 2)
    assert response["path"] == f"/dead-letters/jobs/{job.pk}/"


def test_what_somebody_else_is_about_to_take_is_left_to_them(letters):
    letters.fill(3)
    stream = letters.stream()
    Departure.objects.create(
        stream=stream,
        position=f"{2:020d}-{0:020d}",
        action="discard",
        fields=b"[]",
        by="user:max",
        intended_at=NOW,
    )

    dry = eligibility.count_eligible(stream, EVERYTHING, "retry", 3, NOW)
    job = ask(stream)
    until_over(job)

    assert (dry.eligible, dict(dry.why)) == (2, {"in_flight": 1})
    assert (counts(job)["done"], counts(job)["why"]) == (2, {"in_flight": 1})


def test_garbage_breaks_no_job(letters):
    letters.redis.xadd(letters.name(), {b"\xff\x00": b"\x80\x81", b"": b""})
    letters.redis.xadd(letters.name(), {"payload": b"x" * 5_000_000, "dlq_error": b"\xff\x00"})
    letters.redis.xadd(letters.name(), {f"f{number}": "" for number in range(500)})
    stream = letters.stream()
    before = [fields for _, fields in letters.redis.xrange(stream.name)]

    job = ask(stream, chosen=LetterFilter(before=NOW.replace(year=2090)))
    until_over(job)

    assert counts(job)["done"] == 3
    for sent, was in zip([fields for _, fields in origin(letters)], before, strict=True):
        assert {k: v for k, v in sent.items() if not k.startswith(b"dlq_")} == {
            k: v for k, v in was.items() if not k.startswith(b"dlq_")
        }


def test_the_pace_is_kept(letters, short_slices):
    letters.fill(100)

    job = ask(letters.stream(), rate_per_second=20.0)
    work()

    assert 15 <= counts(job)["done"] <= 45  # A second of it, and a second made up for.


@pytest.mark.parametrize(
    ("state", "holds"), [("open", True), ("half_open", True), ("closed", False)]
)
def test_an_open_breaker_of_the_consumer_holds_it(letters, state, holds):
    letters.fill(5)
    dependency("api->billing")
    consumed(letters, "api", "billing")
    job = ask(letters.stream())
    reports("api/a1", state, of="api->billing", at=NOW + SECOND)
    answering.answer_gates(NOW + SECOND)

    work(NOW + SECOND)
    job.refresh_from_db()

    assert Replay.objects.get(pk=job.pk).waits_for == ["api->billing"]
    assert (job.state == "holding") is holds
    assert ("The breaker of api → billing is not closed" in job.hold_reason) is holds
    assert (counts(job)["done"] == 0) is holds


def test_it_goes_on_when_the_breaker_closes_and_asks_no_more(letters):
    letters.fill(5)
    dependency("api->billing")
    consumed(letters, "api", "billing")
    job = ask(letters.stream())
    reports("api/a1", "open", of="api->billing", at=NOW + SECOND)
    answering.answer_gates(NOW + SECOND)
    work(NOW + SECOND)
    reports("api/a1", "closed", of="api->billing", at=NOW + 5 * SECOND)
    answering.answer_gates(NOW + 5 * SECOND)

    until_over(job, NOW + 5 * SECOND)

    assert (job.state, counts(job)["done"]) == ("completed", 5)
    assert not Gate.objects.exists()


def test_nobody_has_looked_at_the_breaker_holds_it(letters):
    letters.fill(1)
    dependency("api->billing")
    job = ask(letters.stream(), waits_for=["api->billing"])

    work()
    job.refresh_from_db()

    assert job.state == "holding"
    assert "is unknown" in job.hold_reason


def test_a_breaker_that_nobody_reports_holds_nothing(letters):
    letters.fill(1)
    dependency("api->billing")
    job = ask(letters.stream(), waits_for=["api->billing"])
    answering.answer_gates(NOW + SECOND)

    until_over(job, NOW + SECOND)

    assert counts(job)["done"] == 1


def test_a_server_that_refuses_holds_it_and_nothing_is_lost(letters):
    letters.fill(3)
    stream = letters.stream()
    letters.redis.set(stream.origin, "no stream at all")
    job = ask(stream)

    work()
    job.refresh_from_db()
    held, left = job.state, letters.redis.xlen(stream.name)
    letters.redis.delete(stream.origin)
    until_over(job, NOW + 5 * SECOND)

    assert (held, left) == ("holding", 3)
    assert counts(job)["done"] == len(origin(letters)) == 3


def test_paused_it_rests_and_resumed_it_goes_on(letters, short_slices):
    letters.fill(100)
    stream = letters.stream()
    job = ask(stream, rate_per_second=35.0)
    work()

    arguments = {"job_id": job.pk, "reason": "look first", "actor": OPERATOR}
    control.intervene(verb="pause", now=NOW + 4 * SECOND, **arguments)
    moved = work(NOW + 5 * SECOND)
    rested = counts(job)["done"]
    control.intervene(verb="resume", now=NOW + 6 * SECOND, **arguments)
    until_over(job, NOW + 7 * SECOND)

    assert moved == 0
    assert 0 < rested < 100
    assert counts(job)["done"] == len(origin(letters)) == 100


def test_cancelled_it_leaves_the_rest_and_says_what_it_did(letters, short_slices):
    letters.fill(100)
    stream = letters.stream()
    job = ask(stream, rate_per_second=10.0)
    work()

    control.intervene(
        job_id=job.pk, verb="cancel", reason="wrong group", actor=OPERATOR, now=NOW + SECOND
    )
    work(NOW + MINUTE)
    job.refresh_from_db()

    done = counts(job)["done"]
    assert job.state == "cancelled"
    assert f"{done} retried" in job.outcome
    assert letters.redis.xlen(stream.name) == 100 - done
    assert AuditEntry.objects.last().action == "job.cancelled"


def test_a_purge_waits_for_a_second_person(letters):
    letters.fill(4)
    stream = letters.stream()

    approval = ask(stream, action="purge")
    letters.fill(1, start=5)
    begun_before = Job.objects.exists()
    approver = person("approver", "grace").as_actor()
    approvals.approve(approval_id=approval.pk, comment="seen", actor=approver, now=NOW + SECOND)
    job = Job.objects.get()
    until_over(job, NOW + SECOND)

    assert not begun_before
    assert counts(job)["done"] == 4
    assert letters.redis.xlen(stream.name) == 1
    assert origin(letters) == []
    assert set(Departure.objects.values_list("action", "state")) == {("purge", "done")}
    assert AuditEntry.objects.last().action == "dead_letters.purged"


def test_who_approves_a_purge_reads_how_many_it_is(letters):
    letters.fill(40)

    approval = ask(letters.stream(), action="purge")

    assert "about 40 dead letters" in approval.summary
    assert approval.diff["letters"] == 40


def test_who_approves_a_purge_reads_that_it_may_be_more(letters, monkeypatch):
    letters.fill(1001)
    monkeypatch.setattr(replays, "COUNTING_SECONDS", 0.0)

    approval = ask(letters.stream(), action="purge")

    assert "at least 1,000 dead letters" in approval.summary


def test_the_same_again_is_refused_while_it_is_under_way(letters):
    letters.fill(1)
    stream = letters.stream()
    job = ask(stream)

    with pytest.raises(Conflict, match=f"Job {job.pk}"):
        ask(stream)


def test_nothing_there_is_a_conflict(letters):
    (entry_id,) = letters.fill(1)
    stream = letters.stream()
    letters.redis.xdel(stream.name, entry_id)

    with pytest.raises(Conflict, match="no dead letters"):
        ask(stream)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"action": "burn"}, "action"),
        ({"rate_per_second": 0.0}, "rate_per_second"),
        ({"rate_per_second": float("nan")}, "rate_per_second"),
        ({"most_retries": 0}, "most_retries"),
        ({"reason": "  "}, "reason"),
        ({"waits_for": ["api->nowhere"]}, "waits_for"),
        ({"waits_for": [17]}, "waits_for"),
    ],
)
def test_what_no_job_can_do_is_refused(letters, wrong, named):
    letters.fill(1)

    with pytest.raises(InvalidInput) as refused:
        ask(letters.stream(), **wrong)

    assert set(refused.value.errors) == {named}


def test_a_viewer_may_not(letters):
    letters.fill(1)

    with pytest.raises(Forbidden):
        ask(letters.stream(), actor=VIEWER)


def consumed(letters, producer, consumer):
    Channel.objects.create(
        name=letters.prefix,
        kind="stream",
        stream=letters.stream().origin,
        producer=producer,
        consumer=consumer,
        protocol="redis",
        changed_at=NOW,
    )
