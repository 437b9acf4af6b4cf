"""Verdicts of external gates: the latest observation stands, a change is on record."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from controlplane.core import canonical, retention
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Forbidden, InvalidInput, NotFound
from controlplane.core.gates import external, services
from controlplane.core.gates.models import EventCount, ExternalVerdict
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateQuestion
from controlplane.core.gates.retention_rules import EVENTS, VERDICTS
from controlplane.core.http.tests.callers import at_once
from controlplane.core.http.tests.sessions import another_session
from controlplane.core.tasks import purge_gates

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
A_TICK = timedelta(microseconds=1)
CI = system_actor("ci")
SMOKE = GateQuestion("ramp:12:1:0", {"type": "external", "gate": "smoke"}, NOW - 30 * SECOND)


def report(verdict: str = "ok", now: datetime = NOW, **more: Any) -> external.RecordedVerdict:
    fields = {"name": "smoke", "evidence": {"build": 412}, "actor": CI, **more}
    return external.record_verdict(verdict=verdict, now=now, **fields)


def audited() -> list[tuple[str | None, str]]:
    """The verdicts before and after, of each record about the gate."""
    rows = AuditEntry.objects.filter(action="gate.reported", target="gate:smoke").order_by("id")
    pictures = [(json.loads(one.before), json.loads(one.after)) for one in rows]
    return [(before and before["verdict"], after["verdict"]) for before, after in pictures]


def verdict_at(now: datetime) -> str:
    (found,) = services.evaluate_questions([SMOKE], now)
    return found.verdict


@pytest.mark.django_db
def test_what_is_reported_is_what_a_gate_sees() -> None:
    assert verdict_at(NOW) == NO_DATA

    report("ok")
    assert verdict_at(NOW + 60 * SECOND) == PASS
    assert verdict_at(NOW + 60 * SECOND + A_TICK) == NO_DATA

    report("fail", NOW + SECOND)
    assert verdict_at(NOW + SECOND) == FAIL


@pytest.mark.django_db
def test_a_verdict_seen_before_the_step_began_is_no_data() -> None:
    report("ok", observed_at=SMOKE.since - A_TICK)
    assert verdict_at(NOW) == NO_DATA

    report("ok", observed_at=SMOKE.since)
    assert verdict_at(NOW) == PASS


@pytest.mark.django_db
def test_an_older_observation_that_comes_late_changes_nothing() -> None:
    report("fail", observed_at=NOW - SECOND)

    late = report("ok", NOW + 5 * SECOND, observed_at=NOW - 2 * SECOND)

    assert not late.accepted
    assert (late.verdict.verdict, late.verdict.received_at) == ("fail", NOW)
    assert verdict_at(NOW) == FAIL
    assert len(audited()) == 1


@pytest.mark.django_db
def test_of_one_moment_the_word_that_came_last_stands() -> None:
    report("ok", observed_at=NOW)

    assert report("fail", NOW + SECOND, observed_at=NOW).accepted
    assert verdict_at(NOW) == FAIL


@pytest.mark.django_db
def test_an_observation_from_before_the_clock_was_set_back_shuts_out_no_later_one() -> None:
    report("fail", NOW + timedelta(hours=1))
    assert verdict_at(NOW) == NO_DATA

    assert report("ok", NOW).accepted
    assert verdict_at(NOW) == PASS


@pytest.mark.django_db
def test_an_observation_slightly_ahead_is_of_now() -> None:
    done = report("ok", observed_at=NOW + 60 * SECOND)

    assert done.verdict.observed_at == NOW


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "a b"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "정산"}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "smoke\n"}, "name"),
        ({"verdict": "pass"}, "verdict"),
        ({"verdict": "OK"}, "verdict"),
        ({"verdict": ""}, "verdict"),
        ({"evidence": {"log": "x" * 32 * 1024}}, "evidence"),
        ({"evidence": {"log": "정" * 6000}}, "evidence"),
        ({"observed_at": NOW + 60 * SECOND + A_TICK}, "observed_at"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_kept(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        report(**fields)

    assert set(caught.value.errors) == {wrong}
    assert not ExternalVerdict.objects.exists()


@pytest.mark.django_db
def test_a_name_and_evidence_may_be_as_long_as_that() -> None:
    evidence = {"log": ""}
    evidence["log"] = "x" * (canonical.MAX_EVIDENCE_BYTES - len(canonical.dumps(evidence)))

    report(name="x" * 120, evidence=evidence)

    assert external.get_verdict("x" * 120).evidence == evidence


@pytest.mark.django_db
def test_long_evidence_is_kept_whole_but_not_carried_into_every_look() -> None:
    report("fail", evidence={"log": "정산 " * 1000})

    (found,) = services.evaluate_questions([SMOKE], NOW)

    assert found.verdict == FAIL
    assert len(canonical.dumps(found.evidence)) < 1000
    assert "/api/v1/gates/smoke" in found.evidence["evidence"]["left_out"]


@pytest.mark.django_db
def test_only_a_change_is_on_record_but_every_report_keeps_who_it_was_by() -> None:
    other = system_actor("nightly")
    for number, verdict in enumerate(["ok", "ok", "fail", "fail", "ok"]):
        report(verdict, NOW + number * SECOND)
    report("ok", NOW + 5 * SECOND, actor=other)

    assert audited() == [(None, "ok"), ("ok", "fail"), ("fail", "ok")]
    assert external.get_verdict("smoke").by == "system:nightly"


@pytest.mark.django_db
def test_whoever_may_not_write_gates_is_told_so() -> None:
    viewer = Actor(type="token", name="reader", scopes=frozenset({"switches:read"}))

    with pytest.raises(Forbidden):
        report(actor=viewer)


@pytest.mark.django_db
def test_token_that_is_limited_to_some_resources_reports_no_gate() -> None:
    limited = Actor(
        type="token",
        name="ci",
        scopes=frozenset({"gates:write"}),
        patterns=frozenset({"experiment:*"}),
    )

    with pytest.raises(Forbidden, match="limited to experiment:"):
        report(actor=limited)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["unheard-of", "\x00", "x" * 500, ""])
def test_what_nobody_has_reported_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        external.get_verdict(name)


@pytest.mark.django_db(transaction=True)
def test_first_reports_at_once_leave_one_row_and_one_record() -> None:
    results = at_once(*[partial(report, "fail", NOW + n * SECOND) for n in range(6)])

    assert ExternalVerdict.objects.get().observed_at == NOW + 5 * SECOND
    assert len(audited()) == 1
    assert any(one.accepted for one in results)


@pytest.mark.django_db(transaction=True)
def test_two_reports_at_once_end_with_the_later_observation_whoever_writes_first() -> None:
    report("ok", NOW - SECOND)
    for number in range(5):
        at = NOW + 10 * number * SECOND
        at_once(partial(report, "fail", at + SECOND), partial(report, "ok", at))

        kept = external.get_verdict("smoke")
        assert (kept.verdict, kept.observed_at) == ("fail", at + SECOND)


@pytest.mark.django_db(transaction=True)
def test_housekeeping_forgets_old_events_in_steps_and_verdicts_nobody_renews() -> None:
    for age, number in ((timedelta(hours=47, minutes=59), 2), (timedelta(hours=48, minutes=1), 7)):
        for _ in range(number):
            ended = NOW - age
            EventCount.objects.create(
                slo="core", instance="a/1", began_at=ended, ended_at=ended, good=1, total=1
            )
    report(name="old", now=NOW - timedelta(days=30, minutes=1))
    report(name="new", now=NOW - timedelta(days=29))

    assert retention.purge([EVENTS, VERDICTS], NOW, at_once=2, most=4) == 4 + 1
    assert EventCount.objects.count() == 5
    assert purge_gates(NOW) == 3

    assert EventCount.objects.count() == 2
    assert ExternalVerdict.objects.get().name == "new"


@pytest.mark.django_db(transaction=True)
def test_housekeeping_passes_over_what_somebody_holds() -> None:
    old = NOW - timedelta(days=3)
    one, _ = (
        EventCount.objects.create(
            slo="core", instance="a/1", began_at=old, ended_at=old, good=1, total=1
        )
        for _ in range(2)
    )
    with another_session() as session:
        session.execute("SELECT FROM core_eventcount WHERE id = %s FOR UPDATE", [one.pk])
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '3s'")
        assert purge_gates(NOW) == 1

    assert EventCount.objects.get() == one
