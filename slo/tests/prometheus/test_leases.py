"""Leases of polls: one process at a time, and only results of the present source."""

import threading

import pytest
from django.db import connection, transaction

from slo.ingest.prometheus import client, poller
from slo.models import Sli, Slo
from slo.objectives import services
from slo.tests.factories import ADMIN, slo

from .polled_slos import BEGAN, FIRST, MINUTE, asked_minutes, asked_slo, counts, source

pytestmark = pytest.mark.django_db


def test_removed_and_pushed_ones_are_not_asked_for(counting):
    asked_slo(counting)
    services.remove_slo(name="api", actor=ADMIN, now=BEGAN)
    slo("pushed")

    assert poller.poll_due(BEGAN) == 0
    assert counting.requests == []


def test_no_more_are_taken_at_once_than_may_be(counting, monkeypatch, believed_empty):
    monkeypatch.setattr(poller, "MAX_SLIS", 2)
    asked_slo(counting, "gone")
    believed_empty(Sli)
    believed_empty(Slo)
    for name in ("api", "search", "mail"):
        asked_slo(counting, name)

    assert (poller.poll_due(BEGAN), poller.poll_due(BEGAN), poller.poll_due(BEGAN)) == (2, 1, 0)


def test_answer_of_a_source_that_was_changed_meanwhile_is_not_counted(counting, monkeypatch):
    sli = asked_slo(counting)
    poller.poll_due(BEGAN)
    ask_all = client.query_all

    def changed_meanwhile(questions, **more):
        found = ask_all(questions, **more)
        Slo.objects.update(source=source(counting, total="good"))
        return found

    monkeypatch.setattr(client, "query_all", changed_meanwhile)

    assert poller.poll_due(BEGAN + MINUTE) == 0
    sli.refresh_from_db()
    assert sli.polled_to == FIRST
    assert counts(sli, [FIRST + 1])[0].total == 0


def test_other_query_begins_anew_and_what_was_counted_stays(counting):
    sli = asked_slo(counting)
    poller.poll_due(BEGAN)
    poller.poll_due(BEGAN + MINUTE)
    counting.says(more=lambda at: counting.values["total"](at) + 1_000_000)

    slo("api", source=source(counting, total="more"))
    poller.poll_due(BEGAN + 2 * MINUTE)
    poller.poll_due(BEGAN + 3 * MINUTE)

    found = counts(sli, [FIRST + 1, FIRST + 2, FIRST + 3])
    assert [one.total for one in found] == [10, 10, 20]


def test_answer_that_comes_when_another_asks_already_is_not_counted(counting, monkeypatch):
    sli = asked_slo(counting)
    ask_all = client.query_all

    def taken_meanwhile(questions, **more):
        found = ask_all(questions, **more)
        Sli.objects.update(poll_after=BEGAN + 2 * poller.LEASE)
        return found

    monkeypatch.setattr(client, "query_all", taken_meanwhile)

    assert poller.poll_due(BEGAN) == 0
    sli.refresh_from_db()
    assert (sli.polled_to, sli.poll_after) == (None, BEGAN + 2 * poller.LEASE)


@pytest.mark.django_db(transaction=True)
def test_one_that_somebody_else_claims_just_now_is_passed_over(counting):
    asked_slo(counting)
    held, finished = threading.Event(), threading.Event()

    def claim():
        with transaction.atomic():
            list(Sli.objects.select_for_update())
            held.set()
            finished.wait(10)
        connection.close()

    other = threading.Thread(target=claim)
    other.start()
    held.wait(10)
    try:
        assert poller.poll_due(BEGAN) == 0
    finally:
        finished.set()
        other.join()
    assert counting.requests == []


@pytest.mark.django_db(transaction=True)
def test_turns_at_the_same_time_ask_once(counting):
    sli = asked_slo(counting)
    counting.hangs = 0.1
    barrier = threading.Barrier(4)

    def run():
        barrier.wait()
        try:
            poller.poll_due(BEGAN)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert asked_minutes(counting) == [FIRST]
    sli.refresh_from_db()
    assert sli.polled_to == FIRST


def test_lease_of_one_who_died_ends(counting):
    sli = asked_slo(counting)
    Sli.objects.update(poll_after=BEGAN + poller.LEASE)

    assert poller.poll_due(BEGAN) == 0
    assert poller.poll_due(BEGAN + poller.LEASE) == 1
    assert counts(sli, [FIRST + 1])[0].total == 0
