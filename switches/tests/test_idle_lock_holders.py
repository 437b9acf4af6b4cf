"""An idle session that holds a lock delays an engage by less than a second."""

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from controlplane.backup.tests import places
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once, with_token
from controlplane.database.tests.idle_sessions import (
    PUBLICATION,
    holding,
    is_ended,
    recorded,
    waiting,
)
from switches import services
from switches.models import Switch
from switches.ramps.tests.ramp_helpers import SHELL, engage, get_state, release, seconds

pytestmark = pytest.mark.django_db(transaction=True)

WITHIN = 1.0
FINANCE = {"scope": "segment", "key": "finance", "actor": SHELL}
SWITCH = "SELECT FROM switches_switch WHERE id = 'segment:finance' FOR UPDATE"
EPISODE = "SELECT FROM switches_episode FOR UPDATE"
AUDIT = f"SELECT pg_advisory_xact_lock({audit.CHAIN_LOCK})"
SLOW = "SELECT pg_sleep(20)"
LOCKS = [
    pytest.param([PUBLICATION], marks=pytest.mark.faults, id="publication"),
    pytest.param([SWITCH], marks=pytest.mark.faults, id="switch"),
    pytest.param([EPISODE], marks=pytest.mark.faults, id="episode"),
    pytest.param([AUDIT], marks=pytest.mark.faults, id="audit"),
    pytest.param([PUBLICATION, SWITCH, EPISODE, AUDIT], id="all"),
]


def timed(act: Callable[[], Any]) -> float:
    started = time.monotonic()
    act()
    return time.monotonic() - started


def engage_finance() -> None:
    engage("segment:finance", db_now())


def given_a_ramp() -> None:
    engage_finance()
    release("segment:finance", db_now())


@pytest.mark.parametrize("locks", LOCKS)
def test_engage_goes_through_while_an_idle_session_holds_locks(locks):
    given_a_ramp()

    with holding(*locks) as frozen:
        took = timed(engage_finance)

        assert took < WITHIN
        assert is_ended(frozen)
    (entry,) = recorded()
    assert get_state("segment:finance") == "engaged"
    assert '"application_name":"frozen"' in entry.after
    assert audit.verify().intact


def test_engage_goes_through_while_a_session_that_it_waits_for_waits_for_an_idle_one():
    given_a_ramp()

    with holding(AUDIT) as frozen, waiting(PUBLICATION, AUDIT):
        took = timed(engage_finance)

        assert took < WITHIN
        assert is_ended(frozen)
    assert len(recorded()) == 1


def test_engage_with_a_key_goes_through_while_a_twin_is_frozen():
    api = with_token("switches:write")
    first = api.engage("feature:other", headers={"idempotency-key": "k1"})
    assert first.status_code == 200

    with holding("DELETE FROM core_idempotencykey"):
        again = api.engage("feature:other", headers={"idempotency-key": "k1"})

    assert again.status_code == 200
    assert again.json()["version"] == first.json()["version"]
    recorded()


def test_session_whose_one_statement_runs_too_long_is_ended_as_well():
    with waiting(PUBLICATION, SLOW) as busy:
        took = timed(engage_finance)

        assert took < 2 * WITHIN
        assert get_state("segment:finance") == "engaged"
        busy.join(1)
        assert not busy.is_alive()
    recorded()


def test_migration_is_left_alone():
    with holding(PUBLICATION, name="switchgear owner host:1") as migration:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '900ms'")
        with pytest.raises(OperationalError):
            engage_finance()
        connection.close()

        assert not is_ended(migration)
    assert not Switch.objects.exists()


@pytest.mark.faults
def test_reader_that_only_an_index_waits_for_is_left_alone():
    """The concurrent index build waits for the reader's snapshot, and no change does."""
    build = "CREATE INDEX CONCURRENTLY core_heartbeat_scratch ON core_heartbeat (at)"
    snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT FROM switches_publication"

    with psycopg.connect(places.source_url(), autocommit=True) as owner:
        try:
            with holding(*snapshot) as reader:
                thread = threading.Thread(target=owner.execute, args=(build,))
                thread.start()
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(1.5)")

                assert thread.is_alive()
                assert not is_ended(reader)
            thread.join(10)
        finally:
            owner.execute("DROP INDEX IF EXISTS core_heartbeat_scratch")


def _extend() -> None:
    services.extend(
        **FINANCE, expires_in="48h", reason="completions still fail, INC-4411", now=db_now()
    )


def _release() -> None:
    services.release(**FINANCE, justification="it is found and fixed", now=db_now())


def _undo() -> None:
    services.undo(**FINANCE, now=db_now())


def _expire() -> None:
    assert services.expire_due(db_now() + seconds(2 * 24 * 3600)) == 1


@pytest.mark.faults
@pytest.mark.parametrize("act", [_extend, _release, _undo, _expire])
def test_other_changes_go_through_while_an_idle_session_holds_the_publication(act):
    engage_finance()

    with holding(PUBLICATION):
        took = timed(act)

    assert took < WITHIN
    assert len(recorded()) == 1


def test_change_whose_session_was_ended_for_another_is_tried_once_more():
    """A session slow between two statements is ended while another waits for its lock."""
    api, slow = with_token("switches:write"), threading.Event()

    def pause_once(execute, sql, params, many, context):
        if "switches_episode" in sql and not slow.is_set():
            slow.set()
            time.sleep(1)
        return execute(sql, params, many, context)

    def engage_slowly():
        with connection.execute_wrapper(pause_once):
            return api.engage("feature:slow")

    def engage_meanwhile():
        assert slow.wait(10)
        return timed(engage_finance)

    response, took = at_once(engage_slowly, engage_meanwhile)

    assert took < WITHIN
    assert response.status_code == 200
    assert len(recorded()) == 1
    actions = AuditEntry.objects.filter(action="switch.engaged").values_list("target", flat=True)
    assert sorted(actions) == ["feature:slow", "segment:finance"]
