"""Job claims: leases, fences, and writes after a lost lease."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction

from controlplane.core.http.tests.callers import at_once
from controlplane.core.jobs import claims
from controlplane.core.jobs.claims import LEASE, LeaseLost
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.tests.house import KIND, LEASE_OVER, MINUTE, NOW, SECOND, begin
from controlplane.core.threads import own_connection

HOUR = timedelta(hours=1)


def claim(now=NOW, most=100):
    return claims.claim_jobs([KIND], now, most=most)


@pytest.mark.django_db(transaction=True)
def test_many_workers_at_once_share_the_jobs_and_none_gets_one_twice():
    jobs = [begin() for _ in range(40)]

    shares = at_once(*[partial(claim, most=15)] * 4)

    taken = [turn.job.pk for share in shares for turn in share]
    assert len(taken) == len(set(taken))
    assert set(taken) <= {job.pk for job in jobs}
    assert set(Job.objects.values_list("fence", flat=True)) <= {0, 1}
    assert Job.objects.filter(fence=1).count() == len(taken) > 0


@pytest.mark.django_db(transaction=True)
def test_a_job_that_somebody_is_just_writing_is_passed_over_and_not_waited_for():
    busy, free = begin(), begin()

    def take():
        with own_connection():
            return claim()

    with transaction.atomic():
        Job.objects.select_for_update().get(pk=busy.pk)
        ((turn,),) = at_once(take)

    assert turn.job.pk == free.pk


@pytest.mark.django_db
def test_a_lease_keeps_others_away_until_it_is_over():
    begin()
    (first,) = claim()

    assert claim(NOW + SECOND) == []
    assert claim(NOW + LEASE - SECOND) == []
    (second,) = claim(NOW + LEASE)

    assert second.job.fence == first.job.fence + 1
    assert (first.inherited, second.inherited) == (False, True)


@pytest.mark.django_db
def test_a_lease_that_was_given_back_needs_no_waiting():
    begin()
    claims.release_leases(claim())

    (turn,) = claim(NOW + SECOND)

    assert not turn.inherited


@pytest.mark.django_db
def test_who_has_lost_its_lease_gives_back_nobody_elses():
    begin()
    stale = claim()
    claim(NOW + LEASE_OVER)

    claims.release_leases(stale)

    assert claim(NOW + LEASE_OVER + SECOND) == []


@pytest.mark.django_db
def test_a_stale_worker_changes_no_row():
    job = begin()
    (stale,) = claim()
    (present,) = claim(NOW + LEASE_OVER)

    for write in (
        lambda: stale.change(outcome="mine"),
        lambda: stale.heartbeat(NOW + HOUR),
        lambda: stale.checkpoint({"at": 7}, done=7, now=NOW + HOUR, size=8),
    ):
        with pytest.raises(LeaseLost):
            write()
    present.change(outcome="done")

    job.refresh_from_db()
    assert (job.outcome, job.checkpoint, job.heartbeat_at) == ("done", None, NOW + LEASE_OVER)


@pytest.mark.django_db
def test_a_write_is_compared_with_the_state_and_the_step_that_were_seen():
    begin("one", "two")
    (turn,) = claim()
    Job.objects.update(step_index=1)

    with pytest.raises(LeaseLost):
        turn.change(outcome="of the first step")


@pytest.mark.django_db
def test_what_is_not_due_is_left_alone():
    begin(next_at=NOW + MINUTE)
    begin(state="pending")
    begin(kind="other")

    assert claim() == []
    assert len(claim(NOW + MINUTE)) == 1


@pytest.mark.django_db
def test_those_left_alone_longest_come_first():
    first, second = begin(), begin()
    Job.objects.filter(pk=first.pk).update(heartbeat_at=NOW - SECOND)
    Job.objects.filter(pk=second.pk).update(heartbeat_at=NOW - MINUTE)

    (turn,) = claim(most=1)

    assert turn.job.pk == second.pk


@pytest.mark.django_db
def test_after_the_clock_was_set_back_a_lease_of_the_future_holds_nobody_up():
    begin()
    (stale,) = claim(NOW + HOUR)

    (turn,) = claim()

    assert turn.inherited
    with pytest.raises(LeaseLost):
        stale.change(outcome="mine")


@pytest.mark.django_db
def test_after_the_clock_was_set_back_what_was_due_soon_is_not_an_hour_away():
    begin()
    turns = claim(NOW + HOUR)
    turns[0].change(next_at=NOW + HOUR + SECOND)
    claims.release_leases(turns)

    assert len(claim()) == 1


@pytest.mark.django_db
def test_after_the_clock_was_set_back_what_is_planned_for_later_stays_so():
    begin(now=NOW + HOUR, next_at=NOW + 3 * HOUR)

    assert claim() == []


@pytest.mark.django_db
def test_the_query_uses_the_index_of_what_is_due():
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            "EXPLAIN " + claims._CLAIM,
            {
                "kinds": [KIND],
                "now": NOW,
                "until": NOW + LEASE,
                "worker": "w",
                "most": 1,
            },
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "job_due" in plan
