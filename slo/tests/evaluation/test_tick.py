"""The tick evaluates every minute once, in order, however late it runs."""

import logging
from threading import Barrier, Thread

import pytest
from django.db import IntegrityError, connection, transaction

from slo.arithmetic.minutes import end_of
from slo.evaluation import tick
from slo.models import Alert, EvaluatedMinute, Exclusion, Slo, SloStatus
from slo.tests import factories

from .scenarios import (
    BAD,
    GOOD,
    MINUTE,
    NONE,
    NOON,
    SECOND,
    alert,
    create_burning_slo,
    due_at,
    evaluate_minutes,
    list_messages,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured_targets")]


def test_a_minute_is_judged_twenty_seconds_after_its_end_and_only_once():
    create_burning_slo()

    assert tick.evaluate_due_minutes(due_at(NOON)) == 1
    assert tick.evaluate_due_minutes(due_at(NOON) + 5 * SECOND) == 0
    assert tick.evaluate_due_minutes(due_at(NOON + 1) - SECOND) == 0
    assert tick.evaluate_due_minutes(due_at(NOON + 1)) == 1

    assert list(EvaluatedMinute.objects.values_list("minute", "slos").order_by("minute")) == [
        (NOON, 1),
        (NOON + 1, 1),
    ]


def test_how_an_slo_stands_is_kept_with_since_when():
    create_burning_slo(after=[BAD] * 3)

    evaluate_minutes(NOON, NOON + 3)

    status = SloStatus.objects.get()
    assert (status.minute, status.state, status.since) == (NOON + 3, "firing", end_of(NOON + 2))
    assert status.burn_rates["5m"] == pytest.approx(300, abs=0.1)
    assert status.coverage["1h"] == 1
    assert [one["state"] for one in status.rules] == ["firing"]
    assert status.remaining_ratio is None


def test_an_slo_without_any_events_is_unknown():
    factories.slo()

    evaluate_minutes(NOON)

    status = SloStatus.objects.get()
    assert (status.state, status.burn_rates["1h"]) == ("unknown", None)


def test_an_slo_is_kept_as_unknown_once_its_samples_end():
    create_burning_slo(after=[*[GOOD] * 2, *[NONE] * 8])

    evaluate_minutes(NOON, NOON + 4)
    before = SloStatus.objects.get().state
    evaluate_minutes(NOON + 5, NOON + 10)

    status = SloStatus.objects.get()
    assert (before, status.state, [one["state"] for one in status.rules]) == (
        "ok",
        "unknown",
        ["ok"],
    )


def test_an_alert_opens_at_once_and_resolves_two_minutes_after_its_rule_fired_last():
    create_burning_slo(after=[*[BAD] * 2, *[GOOD] * 10])

    evaluate_minutes(NOON, NOON + 1)
    assert not Alert.objects.exists()
    evaluate_minutes(NOON + 2)
    assert alert().opened_at == end_of(NOON + 2)
    evaluate_minutes(NOON + 3, NOON + 12)

    one = alert()
    assert one.firing_at == end_of(NOON + 6)  # The last minute of which 5 m have a bad one.
    assert one.resolved_at == end_of(NOON + 8)


def test_unknown_neither_opens_nor_resolves():
    create_burning_slo(after=[*[BAD] * 2, *[NONE] * 30])

    evaluate_minutes(NOON, NOON + 30)

    assert SloStatus.objects.get().state == "unknown"
    assert alert().resolved_at is None
    assert alert().firing_at == end_of(NOON + 30)


def test_minutes_that_nobody_judged_are_judged_in_order_and_what_still_fires_is_told():
    create_burning_slo(after=[BAD] * 10)
    evaluate_minutes(NOON)

    assert tick.evaluate_due_minutes(due_at(NOON + 10)) == 10

    assert alert().opened_at == end_of(NOON + 2)
    (message,) = list_messages("slo.alert")
    assert message.created_at == due_at(NOON + 10)


def test_what_came_and_went_while_nobody_judged_is_told_once_and_calls_nobody():
    create_burning_slo(after=[*[BAD] * 3, *[GOOD] * 30])
    evaluate_minutes(NOON)

    tick.evaluate_due_minutes(due_at(NOON + 33))
    tick.evaluate_due_minutes(due_at(NOON + 34))

    assert alert().resolved_at is not None
    (message,) = list_messages("slo.alerts_missed")
    assert message.severity == "info"
    assert not list_messages("slo.alert")
    assert not list_messages("slo.alert_over")


def test_no_more_than_an_hour_of_missed_minutes_is_judged():
    create_burning_slo()
    evaluate_minutes(NOON - 200)

    assert tick.evaluate_due_minutes(due_at(NOON)) == 61

    assert not EvaluatedMinute.objects.filter(minute=NOON - 61).exists()


def test_a_clock_that_was_set_back_does_not_stop_judging():
    create_burning_slo(after=[BAD] * 10)
    evaluate_minutes(NOON + 9)
    EvaluatedMinute.objects.create(minute=NOON + 500, evaluated_at=due_at(NOON + 500))
    Alert.objects.update(firing_at=end_of(NOON + 500))

    assert tick.evaluate_due_minutes(due_at(NOON + 10)) == 1

    assert list(EvaluatedMinute.objects.order_by("minute").values_list("minute", flat=True)) == [
        NOON + 9,
        NOON + 10,
    ]
    assert alert().firing_at == end_of(NOON + 10)


def test_a_call_that_was_late_by_a_little_judges_nothing_anew():
    create_burning_slo()
    evaluate_minutes(NOON, NOON + 2)

    assert tick.evaluate_due_minutes(due_at(NOON + 1)) == 0
    assert EvaluatedMinute.objects.count() == 3


@pytest.mark.parametrize("wrong", [{"rules": [{"long": "1h"}]}, {"rules": [{"long": "x"}]}])
def test_an_slo_that_cannot_be_judged_is_unknown_logged_and_in_no_others_way(wrong, caplog):
    create_burning_slo("broken", after=[BAD] * 5)
    evaluate_minutes(NOON + 3)
    Slo.objects.filter(name="broken").update(**wrong)
    create_burning_slo("sound", after=[BAD] * 5)

    with caplog.at_level(logging.ERROR):
        evaluate_minutes(NOON + 4)

    states = dict(SloStatus.objects.values_list("slo__name", "state"))
    assert states == {"broken": "unknown", "sound": "firing"}
    assert "broken" in caplog.text
    assert set(Alert.objects.filter(resolved_at=None).values_list("subject", flat=True)) == {
        "broken",
        "sound",
    }


def test_alerts_of_an_slo_that_was_removed_or_a_rule_taken_out_resolve_with_the_reason():
    removed = create_burning_slo("removed", after=[BAD] * 5)
    other = create_burning_slo("other", after=[BAD] * 5)
    evaluate_minutes(NOON + 3)
    assert Alert.objects.filter(resolved_at=None).count() == 2

    Slo.objects.filter(pk=removed.pk).update(removed_at=due_at(NOON + 3))
    Slo.objects.filter(pk=other.pk).update(rules=[])
    evaluate_minutes(NOON + 4)

    why = dict(Alert.objects.values_list("subject", "resolved_because"))
    assert why == {"removed": tick.SLO_REMOVED, "other": tick.RULE_REMOVED}


def test_what_is_excluded_does_not_page():
    slo = create_burning_slo(after=[*[BAD] * 3, *[GOOD] * 10])
    Exclusion.objects.create(
        slo=slo,
        starts_at=end_of(NOON),
        ends_at=end_of(NOON + 3),
        reason="database upgrade",
        created_by="user:ada",
        created_at=end_of(NOON),
    )

    evaluate_minutes(NOON, NOON + 10)

    assert not Alert.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_beats_at_the_same_moment_judge_each_minute_once_and_leave_none_out():
    create_burning_slo(after=[BAD] * 5)
    evaluate_minutes(NOON - 25)
    together = Barrier(4)
    done = []

    def beat():
        together.wait()
        done.append(tick.evaluate_due_minutes(due_at(NOON + 5)))
        connection.close()

    threads = [Thread(target=beat) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert (len(done), sum(done)) == (4, 30)
    judged = list(EvaluatedMinute.objects.order_by("minute").values_list("minute", flat=True))
    assert judged == list(range(NOON - 25, NOON + 6))
    assert Alert.objects.count() == 1
    assert len(list_messages("slo.alert")) == 1


def test_a_turn_that_fails_is_taken_again():
    create_burning_slo(after=[BAD] * 5)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE slo_standing ADD CONSTRAINT no CHECK (minute = 0)")
    with pytest.raises(IntegrityError, match="violates check"), transaction.atomic():
        tick.evaluate_due_minutes(due_at(NOON + 3))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE slo_standing DROP CONSTRAINT no")

    assert tick.evaluate_due_minutes(due_at(NOON + 3)) == 1
    assert alert().notified_at == due_at(NOON + 3)


def test_turns_of_long_ago_are_forgotten():
    create_burning_slo()
    EvaluatedMinute.objects.create(
        minute=NOON - 40 * 24 * 60, evaluated_at=end_of(NOON) - 40 * 24 * 60 * MINUTE
    )

    evaluate_minutes(NOON)

    assert not EvaluatedMinute.objects.filter(minute__lt=NOON - 60).exists()
