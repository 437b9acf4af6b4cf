"""Helpers of delivery tests: write messages, run the senders, wait for results."""

import threading
import time

from django.db import connection

from controlplane.core.clock import db_now
from controlplane.core.outbox import services
from controlplane.core.outbox.models import OutboxMessage, Pace
from controlplane.notify.delivery import claims, sender, sender_pool


def announce(count=1, first=1, to=("slack",), event="switch.engaged", subject="", **more):
    for number in range(first, first + count):
        services.announce(
            event=event,
            event_key=f"audit:{number}",
            facts={"switch": f"segment:s{number}", "reason": "provider outage", **more},
            subject=subject,
            now=db_now(),
            to=to,
        )


STORM = """
INSERT INTO core_outboxmessage (event, event_key, destination, subject, severity, payload, state,
    attempts, next_attempt_at, fence, last_error, created_at)
SELECT CASE WHEN n < %(subjects)s THEN 'switch.engaged' ELSE 'switch.extended' END,
    'storm:' || n, 'slack', 'episode:' || n %% %(subjects)s,
    CASE WHEN n < %(subjects)s THEN 'critical' ELSE 'info' END,
    jsonb_build_object('switch', 'segment:s' || n %% %(subjects)s), 'pending',
    0, %(at)s, 0, '', %(at)s
FROM generate_series(0, %(count)s - 1) AS n ORDER BY n
"""


def storm(count, subjects, at):
    """Write `count` messages at once: each subject is engaged, then extended again and again."""
    with connection.cursor() as cursor:
        cursor.execute(STORM, {"count": count, "subjects": subjects, "at": at})


def wait_until(condition, seconds=5.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, list(OutboxMessage.objects.values())
        time.sleep(0.01)


def message(**which):
    return OutboxMessage.objects.get(**which)


def attempted(attempts=1):
    """Wait until the only message has had `attempts` and is not leased; return it."""
    wait_until(lambda: message().attempts >= attempts and message().lease_until is None)
    return message()


def nobody_sends():
    return not any(thread.name.startswith("outbox:") for thread in threading.enumerate())


def make_due():
    wait_until(nobody_sends, 15)
    pending = OutboxMessage.objects.filter(state="pending")
    pending.exclude(lease_until__gt=db_now()).update(next_attempt_at=db_now(), lease_until=None)
    Pace.objects.update(keep_away_until=None)


def sweep():
    """Send what is due; return the number of destinations that were not being served yet.

    Within a test's transaction, which sender threads don't see, the test's own thread sends. That
    also saves the threads' connections to PostgreSQL.
    """
    if not connection.in_atomic_block:
        return sender.start_sending(db_now())
    destinations = claims.due_destinations(db_now())
    for destination in destinations:
        while (pause := sender.send_one(destination)) is not None:
            if pause > sender_pool.MAX_WAIT_SECONDS:
                break
            time.sleep(pause)
    return len(destinations)


def deliver(rounds=8):
    """Sweep until every message is sent or failed, skipping the pauses between attempts."""
    for _ in range(rounds):
        make_due()
        sweep()
        wait_until(nobody_sends, 15)
        if not OutboxMessage.objects.filter(state="pending").exists():
            return
    raise AssertionError(list(OutboxMessage.objects.values()))


def states():
    return list(OutboxMessage.objects.order_by("id").values_list("state", flat=True))
