"""Polling of Prometheus: what is queried when, once, and recorded."""

from datetime import timedelta

import pytest

from slo.arithmetic.minutes import end_of
from slo.ingest.prometheus import poller

from .polled_slos import BEGAN, FIRST, MINUTE, asked_minutes, asked_slo, counts

pytestmark = pytest.mark.django_db


def test_what_is_said_first_is_what_is_counted_from(counting):
    sli = asked_slo(counting)

    poller.poll_due(BEGAN)
    poller.poll_due(BEGAN + MINUTE)
    poller.poll_due(BEGAN + 2 * MINUTE)

    assert asked_minutes(counting) == [FIRST, FIRST + 1, FIRST + 2]
    values = counts(sli, [FIRST, FIRST + 1, FIRST + 2])
    assert [(one.good, one.total) for one in values] == [(0, 0), (9, 10), (18, 20)]
    assert values[2].covered - values[0].covered == 2


def test_a_minute_is_asked_for_once(counting):
    asked_slo(counting)

    turns = [poller.poll_due(BEGAN + seconds * timedelta(seconds=1)) for seconds in (0, 5, 10, 45)]

    assert turns == [1, 0, 0, 0]
    assert asked_minutes(counting) == [FIRST]


def test_a_minute_is_asked_for_only_once_it_has_settled(counting):
    asked_slo(counting)
    poller.poll_due(BEGAN)

    assert poller.poll_due(end_of(FIRST + 1) + timedelta(seconds=4)) == 0
    assert poller.poll_due(end_of(FIRST + 1) + timedelta(seconds=5)) == 1


def test_minutes_that_were_missed_are_asked_for_the_oldest_first(counting):
    sli = asked_slo(counting)
    poller.poll_due(BEGAN)

    poller.poll_due(BEGAN + 50 * MINUTE)
    poller.poll_due(BEGAN + 50 * MINUTE + timedelta(seconds=5))

    assert asked_minutes(counting) == list(range(FIRST, FIRST + 51))
    (last,) = counts(sli, [FIRST + 50])
    assert (last.good, last.total, last.covered) == (450, 500, 50)


def test_no_more_than_a_day_is_asked_for_afterwards(counting):
    asked_slo(counting)
    poller.poll_due(BEGAN)

    poller.poll_due(BEGAN + timedelta(days=3))

    minutes = asked_minutes(counting)[1:]
    assert len(minutes) == poller.MAX_MINUTES_PER_POLL
    assert BEGAN + timedelta(days=2) < end_of(minutes[0]) < BEGAN + timedelta(days=2, minutes=5)


def test_minute_without_data_is_not_covered_and_not_asked_for_again(counting):
    sli = asked_slo(counting)
    total = counting.values["total"]
    gap = range(FIRST + 2, FIRST + 5)
    counting.says(total=lambda at: None if at // 60 in gap else total(at))

    poller.poll_due(BEGAN)
    for minute in range(1, 8):
        poller.poll_due(BEGAN + minute * MINUTE)

    assert asked_minutes(counting) == list(range(FIRST, FIRST + 8))
    sli.refresh_from_db()
    assert sli.source_error == ""
    first, last = counts(sli, [FIRST, FIRST + 7])
    assert (last - first).total == 70
    assert (last - first).covered == 3


def test_a_drop_counts_from_zero_again(counting):
    sli = asked_slo(counting)
    good, total = counting.values["good"], counting.values["total"]
    poller.poll_due(BEGAN)
    counting.says(
        good=lambda at: good(at) - good(BEGAN.timestamp()),
        total=lambda at: total(at) - total(BEGAN.timestamp()),
    )

    poller.poll_due(BEGAN + MINUTE)

    (values,) = counts(sli, [FIRST + 1])
    assert (values.good, values.total) == (9, 10)


def test_what_is_wrong_is_kept_with_when_it_began_until_it_is_right_again(counting):
    sli = asked_slo(counting)
    total = counting.values["total"]
    poller.poll_due(BEGAN)
    counting.says(total="NaN")

    poller.poll_due(BEGAN + MINUTE)
    poller.poll_due(BEGAN + 2 * MINUTE)
    sli.refresh_from_db()
    assert sli.source_error.startswith("total: its value is NaN")
    assert sli.source_error_since == BEGAN + MINUTE

    counting.says(total=total)
    poller.poll_due(BEGAN + 3 * MINUTE)
    sli.refresh_from_db()
    assert (sli.source_error, sli.source_error_since) == ("", None)


def test_server_that_fails_is_asked_again_for_the_same_minutes_but_not_at_once(counting):
    sli = asked_slo(counting)
    poller.poll_due(BEGAN)
    counting.status = 503

    failed = BEGAN + MINUTE
    assert poller.poll_due(failed) == 0
    sli.refresh_from_db()
    assert sli.source_error.startswith("good: status 503")
    counting.status, before = 200, len(counting.requests)
    poller.poll_due(failed + timedelta(seconds=5))
    assert len(counting.requests) == before

    poller.poll_due(failed + poller.RETRY_AFTER)

    assert counts(sli, [FIRST + 1])[0].total == 10


def test_one_that_is_away_stops_no_other(counting):
    away = asked_slo(counting, "away", url="http://127.0.0.1:9")
    reachable = asked_slo(counting, "there")

    poller.poll_due(BEGAN)

    away.refresh_from_db()
    reachable.refresh_from_db()
    assert (away.source_error, away.polled_to) == ("connection failed", None)
    assert (reachable.source_error, reachable.polled_to) == ("", FIRST)


def test_inside_of_the_house_is_named_as_the_error(counting, settings):
    settings.PROMETHEUS_ALLOW = ()
    sli = asked_slo(counting)

    poller.poll_due(BEGAN)

    sli.refresh_from_db()
    assert "https://" in sli.source_error
    assert counting.requests == []


def test_many_are_kept_up_with_in_one_turn(counting, monkeypatch):
    monkeypatch.setattr(poller, "BATCH_SIZE", 10)
    for number in range(poller.BATCH_SIZE + 5):
        asked_slo(counting, f"api-{number}")

    assert poller.poll_due(BEGAN) == poller.BATCH_SIZE + 5


@pytest.mark.parametrize(
    ("polled_to", "minutes"),
    [
        (None, [FIRST]),
        (FIRST, []),
        (FIRST - 1, [FIRST]),
        (FIRST - 3, [FIRST - 2, FIRST - 1, FIRST]),
        (FIRST + 60, []),
    ],
)
def test_moments_are_the_ends_of_minutes(polled_to, minutes):
    assert poller.due_moments(polled_to, BEGAN) == tuple(map(end_of, minutes))


def test_minute_that_has_not_settled_is_not_among_those_that_were_missed():
    just_after = end_of(FIRST + 1) + poller.SCRAPE_DELAY - timedelta(seconds=1)

    assert poller.due_moments(FIRST - 1, just_after) == (end_of(FIRST),)
