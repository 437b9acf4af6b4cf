"""A worker of a replay that dies at any point: the next loses nothing, and repeats nothing."""

from collections import Counter

import pytest

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, Letter, Replay
from breakers.tests.fleet import NOW, SECOND
from breakers.tests.registered import OPERATOR
from controlplane.core.audit.models import AuditEntry
from controlplane.core.jobs import control, engine, kinds
from controlplane.core.jobs.claims import LEASE
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.tests.house import Died, Dying

pytestmark = pytest.mark.django_db
LEASE_OVER = LEASE + SECOND
LETTERS = 7
NUMBERS = range(1, LETTERS + 1)


def begin(letters, of):
    letters.fill(LETTERS, to=of)
    return replays.request_replay(
        stream=letters.stream(of),
        action="retry",
        chosen=LetterFilter(),
        rate_per_second=10.0,  # Two leave together.
        reason="broker is back",
        actor=OPERATOR,
        now=NOW,
    )


def turn(at=NOW, probe=kinds.no_probe):
    engine.run_tick("dlq.jobs", at, probe)


def until_over(job, at):
    for _ in range(10):
        turn(at)
        if not Job.objects.get(pk=job.pk).is_live:
            return
        at += 5 * SECOND
    raise AssertionError(f"{job} goes on")


def assert_each_once(letters, of, job, died_at):
    sent = letters.redis.xrange(f"{letters.prefix}:{of}")
    counted = Counter(fields[b"dlq_retry_of"].decode() for _, fields in sent)
    assert counted == {f"{number}-0": 1 for number in NUMBERS}, died_at
    assert letters.redis.xlen(letters.name(of)) == 0, died_at
    departures = Departure.objects.filter(job=job)
    assert set(departures.values_list("state", flat=True)) == {"done"}, died_at
    ids = {entry_id.decode() for entry_id, _ in sent}
    assert set(departures.values_list("new_id", flat=True)) == ids, died_at
    assert departures.count() == LETTERS, died_at
    counts = Replay.objects.get(pk=job.pk).counts
    assert (counts["done"], counts["gone"], counts["skipped"]) == (LETTERS, 0, 0), died_at
    (entry,) = AuditEntry.objects.filter(target=job.subject, action="dead_letters.replayed")
    assert f'"done":{LETTERS}' in entry.after, died_at
    assert not Letter.objects.filter(stream=letters.stream(of)).exists(), died_at


@pytest.mark.faults
def test_wherever_a_worker_dies_each_letter_leaves_once_and_all_counts_agree(letters):
    undisturbed = Dying()
    job = begin(letters, "undisturbed")
    turn(probe=undisturbed)
    until_over(job, NOW + 5 * SECOND)
    assert {"replay.declared", "replay.carried_out", "replay.settled"} < set(undisturbed.points)

    for at in range(1, len(undisturbed.points) + 1):
        of, probe = f"dies-{at}", Dying(at)
        job = begin(letters, of)
        with pytest.raises(Died):
            turn(probe=probe)
        until_over(job, NOW + LEASE_OVER)

        assert_each_once(letters, of, job, probe.points[-1])


@pytest.mark.slow
def test_a_worker_that_dies_more_often_than_a_step_may_goes_on_as_long_as_it_gets_further(letters):
    letters.fill(60)
    stream = letters.stream()
    job = replays.request_replay(
        stream=stream,
        action="retry",
        chosen=LetterFilter(),
        rate_per_second=10.0,
        reason="broker is back",
        actor=OPERATOR,
        now=NOW,
    )

    at = NOW
    for _ in range(14):
        with pytest.raises(Died):
            turn(at, probe=_after_passing_over)
        at += LEASE_OVER
    until_over(job, at)

    assert Job.objects.get(pk=job.pk).state == "completed"
    assert letters.redis.xlen(stream.origin) == 60


def test_a_worker_that_was_stopped_while_another_went_on_writes_nothing(letters):
    job = begin(letters, "events")

    def meanwhile(point):
        if point == "replay.declared" and not overtaken:
            overtaken.append(point)
            until_over(job, NOW + LEASE_OVER)

    overtaken = []
    turn(probe=meanwhile)

    assert overtaken
    assert_each_once(letters, "events", job, "overtaken")
    assert Job.objects.get(pk=job.pk).state == "completed"


def test_a_person_who_pauses_it_in_a_batch_gets_exact_counts(letters):
    job = begin(letters, "events")

    def paused(point):
        if point == "replay.carried_out":
            control.intervene(
                job_id=job.pk, verb="pause", reason="wait", actor=OPERATOR, now=NOW + SECOND
            )

    turn(probe=paused)

    row, counts = Job.objects.get(pk=job.pk), Replay.objects.get(pk=job.pk).counts
    assert row.state == "paused"
    assert counts["done"] == 2 == letters.redis.xlen(f"{letters.prefix}:events")


def test_cancelled_after_its_worker_died_what_was_about_to_leave_leaves_and_is_counted(letters):
    job = begin(letters, "events")
    with pytest.raises(Died):
        turn(probe=_after_declaring)

    control.intervene(
        job_id=job.pk, verb="cancel", reason="enough", actor=OPERATOR, now=NOW + SECOND
    )

    assert Replay.objects.get(pk=job.pk).counts["done"] == 2
    assert letters.redis.xlen(f"{letters.prefix}:events") == 2
    assert not Departure.objects.filter(state="intended").exists()


def _after_declaring(point):
    if point == "replay.declared":
        raise Died(point)


def _after_passing_over(point):
    if point == "replay.passed_over":
        raise Died(point)
