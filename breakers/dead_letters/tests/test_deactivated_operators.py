"""Accounts that end while a letter is about to leave: refused before it does, recorded after."""

import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from django.db import connection

from breakers.dead_letters.models import Departure
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import actions
from controlplane.accounts.people import services as people
from controlplane.core import deadline
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Unavailable
from controlplane.core.http.tests.callers import person, signed_in
from controlplane.core.http.tests.sessions import another_session, until_waiting

from .removal_helpers import KIM, REASON, dead, origin

pytestmark = pytest.mark.django_db(transaction=True)


def message_path(letters, rest):
    return f"/dlq/streams/{quote(letters.name(), safe='')}/messages/{rest}"


def deactivated_while_waiting(user, call, session):
    """Return the answer of `call`, which waits for `session` until `user` is deactivated."""

    def send():
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(send)
        until_waiting(1)
        people.change_user(user=user, actor=system_actor("test"), now=db_now(), is_active=False)
        session.rollback()
        return answer.result(10)


def test_an_operator_deactivated_before_the_letter_left_retries_nothing(letters):
    olga = person("operator", "olga")
    caller = signed_in(olga)
    sent = letters.add()

    with another_session() as other:
        other.execute("LOCK TABLE breakers_departure IN SHARE MODE")
        result = deactivated_while_waiting(
            olga,
            lambda: caller.post(message_path(letters, f"{sent}/retry"), {"reason": REASON}),
            other,
        )

    assert result.status_code == 403
    assert (origin(letters), dead(letters)) == ([], [sent])
    assert not Departure.objects.exists()


def test_an_operator_deactivated_after_the_letter_left_is_told_so_and_it_is_on_record(letters):
    olga = person("operator", "olga")
    caller = signed_in(olga)
    sent = letters.add()
    indexer.catch_up(letters.stream(), db_now())  # So that only settling changes the index.

    with another_session() as other:
        other.execute("LOCK TABLE breakers_letter IN SHARE MODE")
        result = deactivated_while_waiting(
            olga,
            lambda: caller.post(message_path(letters, f"{sent}/retry"), {"reason": REASON}),
            other,
        )

    assert dead(letters) == []
    assert result.status_code == 200, result.json()
    (row,) = AuditEntry.objects.filter(action="dead_letter.retried")
    assert (row.actor_type, row.actor_name) == ("user", "olga")


def test_an_operator_deactivated_before_a_letter_was_put_back_restores_nothing(letters):
    olga = person("operator", "olga")
    caller = signed_in(olga)
    sent = letters.add()
    gone = caller.post(message_path(letters, f"{sent}/discard"), {"reason": REASON}).json()[
        "departure"
    ]

    with another_session() as other:
        other.execute("LOCK TABLE breakers_departure IN SHARE MODE")
        result = deactivated_while_waiting(
            olga, lambda: caller.post(f"/dlq/archive/{gone}/restore", {"reason": REASON}), other
        )

    assert result.status_code == 403
    assert dead(letters) == []
    assert Departure.objects.get().state == Departure.State.DONE


def test_a_retry_whose_caller_was_told_that_it_took_too_long_leaves_the_letter(letters):
    sent = letters.add()
    stream = letters.stream()

    with deadline.limit_writes(time.monotonic() - 1), pytest.raises(Unavailable):
        actions.retry(stream=stream, entry_id=sent, reason=REASON, actor=KIM, now=db_now())

    assert (origin(letters), dead(letters)) == ([], [sent])
    assert not Departure.objects.exists()
