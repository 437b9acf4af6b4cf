"""Old rows are deleted in small transactions; locked rows wait for the next run."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction

from controlplane.core import retention
from controlplane.core.models import Attempt, Escalation, OutboxMessage, Pace, Thread
from controlplane.core.outbox.retention_rules import MESSAGES, PACES, THREADS
from controlplane.core.retention.rules import measure_table
from controlplane.notify.retention_rules import ESCALATIONS

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
MANY = 200_000


def message(key, finished_at, state="sent", **fields):
    return OutboxMessage.objects.create(
        event="switch.engaged",
        event_key=key,
        destination="slack",
        payload={},
        state=state,
        next_attempt_at=finished_at,
        created_at=finished_at,
        finished_at=finished_at,
        **fields,
    )


def call(at, **fields):
    return Escalation.objects.create(
        subject=f"episode:{at}", event="e", severity="info", opened_at=at, closed_at=at, **fields
    )


@pytest.mark.django_db
def test_a_message_goes_with_its_attempts_and_a_failed_one_stays():
    old = message("old", NOW - 31 * DAY)
    Attempt.objects.create(message=old, number=1, started_at=NOW - 31 * DAY)
    message("failed", NOW - 31 * DAY, state="failed")

    assert retention.purge([MESSAGES], NOW) == 1

    assert [row.event_key for row in OutboxMessage.objects.all()] == ["failed"]
    assert not Attempt.objects.exists()


@pytest.mark.django_db
def test_a_thread_stays_while_messages_have_its_subject():
    for subject in ("episode:1", "episode:2"):
        Thread.objects.create(
            destination="slack", subject=subject, channel="C", ts="1", created_at=NOW - 500 * DAY
        )
    message("weekly", NOW - DAY, subject="episode:2")

    assert retention.purge([THREADS], NOW) == 1

    assert Thread.objects.get().subject == "episode:2"


@pytest.mark.django_db
def test_a_pace_that_keeps_away_for_long_stays():
    Pace.objects.create(destination="old", paced_until=NOW - 8 * DAY)
    Pace.objects.create(destination="shy", paced_until=NOW - 8 * DAY, keep_away_until=NOW - 6 * DAY)

    assert retention.purge([PACES], NOW) == 1
    assert Pace.objects.get().destination == "shy"


@pytest.mark.django_db
def test_a_call_that_is_open_stays_however_old_it_is():
    call(NOW - 401 * DAY)
    stays = [call(NOW - 399 * DAY), call(NOW - 500 * DAY)]
    Escalation.objects.filter(pk=stays[1].pk).update(closed_at=None)

    assert retention.purge([ESCALATIONS], NOW) == 1
    assert list(Escalation.objects.order_by("pk")) == stays


@pytest.mark.django_db
def test_no_more_than_asked_goes_and_the_rest_is_counted_as_due():
    for number in range(5):
        call(NOW - (401 + number) * DAY)

    assert retention.purge([ESCALATIONS], NOW, at_once=2, most=3) == 3

    found = measure_table(ESCALATIONS, NOW)
    assert (found.rows, found.due) == (2, 2)
    assert found.oldest == Escalation.objects.earliest("opened_at").opened_at


@pytest.mark.django_db
def test_every_rule_can_be_counted_and_the_command_shows_it(capsys):
    call(NOW - 4000 * DAY)

    call_command("retention")
    whole = capsys.readouterr().out
    call_command("retention", "--dry-run")
    due = capsys.readouterr().out

    assert whole.startswith("escalations ")  # The rule with the most rows due.
    assert whole.endswith("1 rows are due for deletion.\n")
    assert all(f"{name} " in whole for name in retention.RETENTION_RULES)
    assert "core.AuditEntry" in whole
    assert due.endswith("1 rows are due for deletion.\n")
    assert due.startswith("escalations ")


@pytest.mark.django_db
def test_the_command_deletes_by_the_ticks(capsys):
    call(NOW - 4000 * DAY)

    call_command("retention", "--now", "--only", "escalations")

    assert "escalation.purge: 1 deleted" in capsys.readouterr().out
    assert not Escalation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_holds_is_left_without_waiting():
    held, free = call(NOW - 401 * DAY), call(NOW - 402 * DAY)
    holding, done = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            Escalation.objects.select_for_update().get(pk=held.pk)
            holding.set()
            done.wait(20)
        connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert holding.wait(10)
        assert retention.purge([ESCALATIONS], NOW) == 1
    finally:
        done.set()
        holder.join()

    assert not Escalation.objects.filter(pk=free.pk).exists()
    assert retention.purge([ESCALATIONS], NOW) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_two_hundred_thousand_rows_go_while_others_write_to_the_table():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_escalation (subject, event, severity, scope, facts, opened_at, step,"
            " notices, acknowledged_by, closed_at) SELECT 'episode:' || n, 'e', 'info', '', '{}',"
            " %(at)s, 0, 0, '', %(at)s FROM generate_series(1, %(many)s) n",
            {"at": NOW - 401 * DAY, "many": MANY},
        )
    waits, stop = [], threading.Event()

    def write():
        while not stop.is_set():
            began = time.monotonic()
            call(NOW + len(waits) * DAY)
            waits.append(time.monotonic() - began)
            stop.wait(0.02)
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        began = time.monotonic()
        deleted = retention.purge([ESCALATIONS], NOW)
        took = time.monotonic() - began
    finally:
        stop.set()
        writer.join()

    assert deleted == MANY
    assert Escalation.objects.count() == len(waits) > 10
    assert max(waits) < max(2, took / 3)
