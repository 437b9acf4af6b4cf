"""Concurrent actions on one ramp, in threads: one wins, and no effect happens twice."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import at_once
from controlplane.core.http.tests.sessions import another_session, until_waiting
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from controlplane.database.tests.idle_sessions import PUBLICATION, holding
from switches.models import Publication, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    SHELL,
    engage,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    release,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 6
STEPS = [{"percent": percent, "dwell_seconds": 10} for percent in (5, 25, 100)]


def tried(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that calls `call` and returns its :class:`Conflict` instead of raising."""

    def attempt() -> Any:
        try:
            return call()
        except Conflict as conflict:
            return conflict

    return attempt


def test_two_looks_at_once_move_it_once():
    now = db_now()
    start_ramp(now, STEPS)
    version = Publication.objects.get().version

    at_once(*(lambda: run_tick(now + seconds(11)) for _ in range(4)))

    assert (get_share(), Publication.objects.get().version) == (25, version + 1)
    assert AuditEntry.objects.filter(action="ramp.advanced").count() == 1
    assert JobEffect.objects.filter(name="publish").count() == 2
    assert audit.verify().intact


@pytest.mark.parametrize("after", [2, 11])
def test_engage_against_a_look_wins_whoever_comes_first(after):
    """At 2 s, in the dwell, the tick finds a failing gate; at 11 s, it finds the next step due."""
    for number in range(ROUNDS):
        now, switch = db_now(), f"feature:f{number}"
        ramp = start_ramp(
            now, [{**STEPS[0], "gates": GATED[0]["gates"]}, *STEPS[1:]], switch=switch
        )
        report_gate("fail" if after < 10 else "ok", now + seconds(1))

        at_once(
            lambda now=now: run_tick(now + seconds(after)),
            tried(
                lambda now=now, switch=switch: engage(
                    switch, now + seconds(after), reason="fails again at five percent"
                )
            ),
        )
        run_tick(now + seconds(after + 30))

        assert (get_share(switch), get_state(switch), get_ramp_state(ramp)) == (
            0,
            "engaged",
            "aborted",
        )
        assert not JobStep.objects.filter(job_id=ramp.pk, state="running").exists()
    assert audit.verify().intact


def test_pause_against_a_look_leaves_one_clear_state():
    for number in range(ROUNDS):
        now, switch = db_now(), f"feature:f{number}"
        ramp = start_ramp(now, STEPS, switch=switch)

        _, paused = at_once(
            lambda now=now: run_tick(now + seconds(11)),
            tried(
                lambda now=now, ramp=ramp: actions.pause(
                    ramp_id=ramp.pk, reason="wait a moment", actor=SHELL, now=now + seconds(11)
                )
            ),
        )

        assert isinstance(paused, Ramp)
        job = Job.objects.get(pk=ramp.pk)
        assert (job.state, get_share(switch)) == ("paused", [5, 25][job.step_index])
        assert run_tick(now + seconds(60)) == 0
        actions.abort(ramp_id=ramp.pk, reason="done here", actor=SHELL, now=now + seconds(61))


@pytest.mark.parametrize("step_index", [None, 0])
def test_of_two_who_advance_at_once_the_second_is_told_who_was_first(step_index):
    now = db_now()
    ramp = start_ramp(now, STEPS)
    people = [get_person("approver", name) for name in ("kim", "lee")]

    def advance(actor):
        return actions.advance(
            ramp_id=ramp.pk, reason="looks good", actor=actor, now=now, step_index=step_index
        )

    with holding(PUBLICATION) as session:

        def let_go():
            until_waiting(2)
            session.close()

        results = at_once(*(tried(lambda actor=actor: advance(actor)) for actor in people), let_go)

    (refused,) = [result for result in results if isinstance(result, Conflict)]
    (entry,) = AuditEntry.objects.filter(action="ramp.advanced")
    assert (get_share(), get_ramp_state(ramp)) == (25, "running")
    assert refused.detail.startswith(f"user:{entry.actor_name} advanced it to step 2 of 3, 25 %")
    assert refused.extra["advanced_by"] == f"user:{entry.actor_name}"


def test_one_who_advances_twice_in_a_row_moves_it_two_steps():
    now = db_now()
    ramp = start_ramp(now, STEPS)

    for _ in range(2):
        actions.advance(ramp_id=ramp.pk, reason="looks good", actor=SHELL, now=now + seconds(1))

    assert (get_share(), get_ramp_state(ramp)) == (100, "running")
    assert AuditEntry.objects.filter(action="ramp.advanced").count() == 2


def test_of_two_who_release_by_ramp_one_begins():
    now = db_now()
    engage(CHAT, now)

    results = at_once(*(tried(lambda: release(CHAT, now)) for _ in range(4)))

    assert sum(isinstance(result, Conflict) for result in results) == 3
    assert Ramp.objects.count() == 1


def test_abort_against_a_look_that_completes_leaves_one_end():
    for number in range(ROUNDS):
        now, switch = db_now(), f"feature:f{number}"
        ramp = start_ramp(now, [{"percent": 100, "dwell_seconds": 10}], switch=switch)

        at_once(
            lambda now=now: run_tick(now + seconds(11)),
            tried(
                lambda now=now, ramp=ramp: actions.abort(
                    ramp_id=ramp.pk, reason="not yet", actor=SHELL, now=now + seconds(11)
                )
            ),
        )

        ends = (get_ramp_state(ramp), get_state(switch))
        assert ends in {("completed", "released"), ("aborted", "engaged")}
        entries = AuditEntry.objects.filter(
            target=switch, action__in=["switch.released", "ramp.aborted"]
        )
        assert entries.count() == 1


def test_session_that_is_ended_in_a_move_keeps_no_other_ramp_from_moving():
    now, ended = db_now(), []
    ramps = [start_ramp(now, STEPS, switch=f"feature:{name}") for name in ("a", "b")]

    def end_once(execute, sql, params, many, context):
        if sql.startswith('UPDATE "switches_episode"') and not ended:
            ended.append(connection.connection.info.backend_pid)
            with another_session() as session:
                session.execute("SELECT pg_terminate_backend(%s, 2000)", ended)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(end_once):
        moved = run_tick(now + seconds(11))

    assert moved == 1
    assert sorted([get_share("feature:a"), get_share("feature:b")]) == [5, 25]
    assert run_tick(now + seconds(12)) == 1
    assert (get_share("feature:a"), get_share("feature:b")) == (25, 25)
    assert {get_ramp_state(ramp) for ramp in ramps} == {"running"}
    assert audit.verify().intact
