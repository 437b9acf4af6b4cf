"""Questions are stored once, answered by their app, and evaluated together."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from controlplane.core.gates import services
from controlplane.core.gates.models import EventCount, ExternalVerdict, Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateQuestion

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BEGAN = NOW - timedelta(minutes=5)
SPECS: list[dict[str, Any]] = [
    {"type": "slo", "slo": "core", "min_events": 100, "min_bad": 3},
    {"type": "breaker", "dependency": "core->oracle"},
    {"type": "samples", "slo": "core", "min_events": 100},
    {"type": "external", "gate": "smoke"},
]
ENOUGH = {"good": 990, "total": 990}


def question(number: int = 0, *, key: str | None = None, since: datetime = BEGAN) -> GateQuestion:
    return GateQuestion(key or f"ramp:12:0:{number}", SPECS[number], since)


def events(slo: str = "core", began: datetime = BEGAN, total: int = 50, **more: Any) -> EventCount:
    fields = {"ended_at": began + 10 * SECOND, "good": total, "instance": "core/a1", **more}
    return EventCount.objects.create(slo=slo, began_at=began, total=total, **fields)


def reply(key: str, verdict: str = PASS, at: datetime = NOW, **evidence: Any) -> bool:
    return services.record_answer(
        key=key, verdict=verdict, evidence=evidence or ENOUGH, observed_at=at, now=NOW
    )


def verdict_of(one: GateQuestion, now: datetime = NOW) -> str:
    (found,) = services.evaluate_questions([one], now)
    return found.verdict


def test_only_what_apps_answer_is_written_down_and_once() -> None:
    questions = [question(number) for number in range(4)]

    services.store_questions(questions)
    services.store_questions(questions)

    assert set(Gate.objects.values_list("type", flat=True)) == {"slo", "breaker"}
    (open_one,) = services.find_open_gates("slo")
    assert (open_one.key, open_one.spec, open_one.since) == ("ramp:12:0:0", SPECS[0], BEGAN)


def test_asking_again_keeps_the_answer() -> None:
    services.store_questions([question()])
    reply("ramp:12:0:0")

    services.store_questions([question()])

    assert verdict_of(question()) == PASS


def test_a_withdrawn_question_is_gone_and_can_be_answered_no_more() -> None:
    services.store_questions([question(0), question(1)])

    services.withdraw_questions([question(0), question(2), question(1, key="nobody:asked")])

    assert [gate.key for gate in services.find_open_gates("breaker")] == ["ramp:12:0:1"]
    assert not services.find_open_gates("slo")
    assert not reply("ramp:12:0:0")


@pytest.mark.parametrize("verdict", [PASS, FAIL, NO_DATA])
def test_an_answer_is_what_the_next_look_sees(verdict: str) -> None:
    services.store_questions([question(1)])

    assert verdict_of(question(1)) == NO_DATA
    assert reply("ramp:12:0:1", verdict)
    assert verdict_of(question(1)) == verdict


def test_a_verdict_that_is_none_is_a_mistake_of_the_app() -> None:
    with pytest.raises(ValueError, match="waiting"):
        reply("ramp:12:0:1", "waiting")


def test_an_older_observation_does_not_replace_a_later_one() -> None:
    services.store_questions([question(1)])
    reply("ramp:12:0:1", FAIL, NOW)

    assert not reply("ramp:12:0:1", PASS, NOW - SECOND)
    assert verdict_of(question(1)) == FAIL


def test_what_was_answered_before_the_clock_was_set_back_does_not_shut_out_answers() -> None:
    services.store_questions([question(1)])
    Gate.objects.update(verdict=FAIL, observed_at=NOW + timedelta(hours=1))
    assert verdict_of(question(1)) == NO_DATA

    assert reply("ramp:12:0:1", PASS, NOW)
    assert verdict_of(question(1)) == PASS


def test_long_evidence_of_an_app_is_shortened_and_still_judged() -> None:
    services.store_questions([question()])

    reply("ramp:12:0:0", PASS, series=[0.1] * 5000, **ENOUGH)

    (found,) = services.evaluate_questions([question()], NOW)
    assert found.verdict == PASS
    assert "series" not in found.evidence


def test_events_count_from_the_moment_that_the_step_began() -> None:
    events(began=BEGAN, total=60)
    events(began=BEGAN + SECOND, total=39)
    events(began=BEGAN - timedelta(microseconds=1), total=1000)
    events("other", total=1000)
    (before,) = services.evaluate_questions([question(2)], NOW)

    events(began=BEGAN, total=1)
    (after,) = services.evaluate_questions([question(2)], NOW)

    assert (before.verdict, before.evidence["seen"]) == (NO_DATA, 99)
    assert (after.verdict, after.evidence["seen"]) == (PASS, 100)


def test_events_from_before_the_clock_was_set_back_do_not_count() -> None:
    events(began=NOW + timedelta(minutes=50), total=1000)

    assert verdict_of(question(2)) == NO_DATA


def test_more_events_than_any_number_has_room_for_are_enough() -> None:
    for _ in range(3):
        events(total=2**63 - 1)

    assert verdict_of(question(2)) == PASS


def test_two_steps_that_need_the_same_events_each_get_their_own() -> None:
    events(began=BEGAN, total=150)
    late = question(2, key="ramp:13:0:2", since=BEGAN + SECOND)

    found = services.evaluate_questions([late, question(2), late], NOW)

    assert [one.verdict for one in found] == [NO_DATA, PASS, NO_DATA]


def test_answers_come_in_the_order_of_the_questions_whatever_their_types() -> None:
    services.store_questions([question(0), question(1)])
    reply("ramp:12:0:0", PASS)
    reply("ramp:12:0:1", FAIL)
    weather = GateQuestion("ramp:12:0:9", {"type": "weather"}, BEGAN)

    found = services.evaluate_questions(
        [question(3), question(1), weather, question(2), question(0)], NOW
    )

    assert [one.verdict for one in found] == [NO_DATA, FAIL, NO_DATA, NO_DATA, PASS]
    assert "weather" in found[2].evidence["why"]
    assert services.evaluate_questions([], NOW) == []


def test_any_number_of_questions_takes_one_query_for_each_type(
    django_assert_num_queries: Any,
) -> None:
    questions = [
        question(number, key=f"ramp:{ramp}:0:{number}") for ramp in range(99) for number in range(4)
    ]
    with django_assert_num_queries(1):
        services.store_questions(questions)
    assert Gate.objects.count() == 198

    with django_assert_num_queries(4):
        services.evaluate_questions(questions, NOW)
    with django_assert_num_queries(1):
        services.evaluate_questions(questions[2::4], NOW)
    with django_assert_num_queries(1):
        services.withdraw_questions(questions)
    assert Gate.objects.count() == 0


def test_a_thousand_ramps_are_looked_up_together_in_a_fraction_of_a_second() -> None:
    since = [BEGAN + timedelta(milliseconds=ramp) for ramp in range(1000)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_eventcount (slo, instance, began_at, ended_at, good, total)"
            " SELECT 'slo-' || n %% 20, 'i', %s + n * interval '3 ms', %s, 1, 1"
            " FROM generate_series(1, 100000) AS n",
            [BEGAN, NOW],
        )
        cursor.execute("ANALYZE core_eventcount")
    ExternalVerdict.objects.bulk_create(
        ExternalVerdict(
            name=f"smoke-{ramp}",
            verdict="ok",
            evidence={"log": "x" * (20_000 if ramp % 20 == 0 else 200)},
            observed_at=NOW,
            received_at=NOW,
            by="token:ci",
        )
        for ramp in range(1000)
    )
    questions = []
    for ramp in range(1000):
        specs = [*SPECS]
        specs[2] = {"type": "samples", "slo": f"slo-{ramp % 20}", "min_events": 100}
        specs[3] = {"type": "external", "gate": f"smoke-{ramp}"}
        questions += [GateQuestion(f"ramp:{ramp}:0:{n}", specs[n], since[ramp]) for n in range(4)]
    services.store_questions(questions)
    Gate.objects.update(verdict=PASS, evidence=ENOUGH, observed_at=NOW)

    took = {}
    for number, kind in [*enumerate(spec["type"] for spec in SPECS), (None, "all")]:
        some = questions if number is None else questions[number::4]
        began = time.perf_counter()
        found = services.evaluate_questions(some, NOW)
        took[kind] = (time.perf_counter() - began) * 1000
        assert {one.verdict for one in found} == {PASS}

    print("1,000 ramps: " + ", ".join(f"{kind} {ms:.0f} ms" for kind, ms in took.items()))
    assert took["all"] < 10000  # Some 100 ms on an idle machine; this one may be busy.
