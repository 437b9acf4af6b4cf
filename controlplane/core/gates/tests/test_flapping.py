"""A fail followed by an `ok` between two evaluations still counts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.gates import external, services
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateAnswer, GateQuestion
from controlplane.core.gates.verdicts import Observation

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
A_TICK = timedelta(microseconds=1)
SINCE = NOW - 30 * SECOND


def report(verdict: str, now: datetime = NOW, **more: Any) -> external.RecordedVerdict:
    fields = {"name": "smoke", "evidence": {"build": 412}, "actor": system_actor("ci"), **more}
    return external.record_verdict(verdict=verdict, now=now, **fields)


def build_question(since: datetime = SINCE) -> GateQuestion:
    return GateQuestion("ramp:12:1:0", {"type": "external", "gate": "smoke"}, since)


def evaluate(now: datetime = NOW, since: datetime = SINCE) -> GateAnswer:
    (found,) = services.evaluate_questions([build_question(since)], now)
    return found


def failed_at() -> datetime | None:
    return ExternalVerdict.objects.get().failed_at


@pytest.mark.django_db
def test_a_later_ok_does_not_undo_a_fail() -> None:
    report("fail", NOW)
    report("ok", NOW + SECOND)

    found = evaluate(NOW + 2 * SECOND)

    assert found.verdict == FAIL
    assert found.evidence["said"] == "ok"
    assert found.evidence["failed_at"] == "2026-11-21T12:00:00.000000Z"
    assert "12:00:00" in found.evidence["why"]


@pytest.mark.django_db
def test_a_standing_fail_says_who_said_so() -> None:
    report("ok", NOW - SECOND)
    report("fail", NOW)

    assert evaluate().evidence["why"] == "system:ci reported fail"
    assert "failed_at" not in evaluate().evidence


@pytest.mark.django_db
def test_it_counts_however_long_nobody_looked() -> None:
    report("fail", NOW)
    assert evaluate(NOW + 10 * MINUTE).verdict == FAIL

    report("ok", NOW + 10 * MINUTE)
    assert evaluate(NOW + 10 * MINUTE).verdict == FAIL


@pytest.mark.django_db
def test_a_step_that_begins_after_it_is_free_of_it() -> None:
    report("fail", NOW)
    report("ok", NOW + SECOND)

    assert evaluate(NOW + SECOND, since=NOW).verdict == FAIL
    assert evaluate(NOW + SECOND, since=NOW + A_TICK).verdict == PASS


@pytest.mark.django_db
def test_the_last_of_several_counts() -> None:
    report("fail", NOW - 20 * SECOND)
    report("fail", NOW)
    report("ok", NOW + SECOND)

    assert failed_at() == NOW


@pytest.mark.django_db
def test_a_fail_that_arrives_after_a_later_ok_counts_and_is_on_record() -> None:
    report("ok", NOW)
    assert evaluate().verdict == PASS

    late = report("fail", NOW + SECOND, observed_at=NOW - SECOND)

    assert not late.accepted
    assert late.verdict.verdict == "ok"
    assert evaluate(NOW + SECOND).verdict == FAIL
    rows = AuditEntry.objects.filter(action="gate.reported").order_by("id")
    assert [('"fail"' in row.after) for row in rows] == [False, True]


@pytest.mark.django_db
def test_a_late_fail_that_is_older_than_the_last_changes_nothing() -> None:
    report("fail", NOW - SECOND)
    report("ok", NOW)
    recorded = AuditEntry.objects.count()

    report("fail", NOW, observed_at=NOW - 2 * SECOND)

    assert failed_at() == NOW - SECOND
    assert AuditEntry.objects.count() == recorded


@pytest.mark.django_db
@pytest.mark.parametrize(("age", "verdict"), [(MINUTE, FAIL), (MINUTE + A_TICK, NO_DATA)])
def test_one_that_was_too_old_when_it_was_reported_fails_nothing(
    age: timedelta, verdict: str
) -> None:
    report("fail", NOW, observed_at=NOW - age)

    assert evaluate(since=NOW - 5 * MINUTE).verdict == verdict


@pytest.mark.django_db
def test_one_from_before_the_clock_was_set_back_is_forgotten_with_the_next_word() -> None:
    report("fail", NOW + 60 * MINUTE)
    assert evaluate().verdict == NO_DATA

    report("ok", NOW)

    assert failed_at() is None
    assert evaluate().verdict == PASS


@pytest.mark.django_db
def test_an_ok_that_is_the_first_word_has_no_fail_behind_it() -> None:
    report("ok")

    assert failed_at() is None


def test_a_fail_from_a_clock_far_ahead_does_not_count_yet() -> None:
    observation = Observation("ok", NOW, {}, "token:ci", failed_at=NOW + MINUTE + A_TICK)

    assert external.evaluate(build_question(), observation, NOW).verdict == PASS
    assert external.evaluate(build_question(), observation, NOW + A_TICK).verdict == FAIL
