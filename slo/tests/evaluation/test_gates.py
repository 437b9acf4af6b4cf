"""Answers to the gates of ramps: whole minutes from the counters, the rest from reports."""

import random
from datetime import timedelta

import pytest

from controlplane.core.gates import services as gates
from controlplane.core.gates.models import EventCount, Gate
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateQuestion
from slo.arithmetic.minutes import end_of
from slo.arithmetic.windows import CounterValues
from slo.evaluation import gates as judging
from slo.models import CounterMinute, ReportedEvents, Sli
from slo.tests import factories

from .scenarios import MINUTE, NOON, SECOND

pytestmark = pytest.mark.django_db

NOW = end_of(NOON) + 30 * SECOND
SPEC = {
    "type": "slo", "slo": "core", "window": "5m", "max_burn_rate": 1.0, "min_events": 100,
    "min_bad": 3,
}  # fmt: skip
KEY = "ramp:1:0:0"


def create_gate(since=NOW - 10 * MINUTE, **more):
    question = GateQuestion(KEY, {**SPEC, **more}, since)
    gates.store_questions([question])
    return question


def report(began, ended, good, total, slo="core"):
    """Store reported events, also in the counters of minutes."""
    EventCount.objects.create(
        slo=slo, instance="core/a1", began_at=began, ended_at=ended, good=good, total=total
    )


def events(at, good, total, seconds=10):
    report(at - seconds * SECOND, at, good, total)


def write_minutes(rows):
    """Store the counters of minutes: (minute, good, total) of each."""
    sli = Sli.objects.get(slo__name="core")
    sum_ = CounterValues(0, 0, 0)
    for minute, good, total in rows:
        sum_ = CounterValues(sum_.good + good, sum_.total + total, sum_.covered + 1)
        CounterMinute.objects.create(
            sli=sli, minute=minute, good=sum_.good, total=sum_.total, covered=sum_.covered
        )
    sli.first, sli.last = rows[0][0], rows[-1][0]
    sli.save()


def read_answer(question, now=NOW):
    judging.answer_open_gates(now)
    (observation,) = gates.evaluate_questions([question], now)
    return observation


def test_an_slo_that_nobody_has_made_is_no_data_and_says_so():
    observation = read_answer(create_gate())

    assert observation.verdict == NO_DATA
    assert observation.evidence["why"] == "the SLO core doesn't exist"


def test_an_slo_that_was_removed_is_none():
    factories.slo("core")
    Sli.objects.get().slo.__class__.objects.update(removed_at=NOW)

    assert read_answer(create_gate()).evidence["why"] == "the SLO core doesn't exist"


def test_without_events_there_is_no_data():
    factories.slo("core")

    observation = read_answer(create_gate())

    assert (observation.verdict, observation.evidence["why"]) == (
        NO_DATA,
        "no events in the last 5 min of the step",
    )


def test_young_step_without_events_names_the_step_and_not_the_window():
    factories.slo("core")

    observation = read_answer(create_gate(since=NOW - 15 * SECOND))

    assert observation.verdict == NO_DATA
    assert observation.evidence["why"] == "no events reported yet in this step"
    assert observation.evidence["window"] == "15 s"


@pytest.mark.parametrize(("bad", "verdict"), [(5, PASS), (6, FAIL)])
def test_it_passes_while_the_burn_rate_is_at_most_that_of_the_gate(bad, verdict):
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000 - bad, 5000)])

    observation = read_answer(create_gate())

    assert observation.verdict == verdict
    assert observation.evidence["burn_rate"] == bad / 5
    assert (observation.evidence["good"], observation.evidence["total"]) == (5000 - bad, 5000)
    assert observation.evidence["window"] == "5 min"


def test_a_window_never_begins_before_its_step_did():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 2, 0, 9000), (NOON, 1000, 1000)])

    observation = read_answer(create_gate(since=end_of(NOON - 1) - 10 * SECOND))

    assert (observation.verdict, observation.evidence["total"]) == (PASS, 1000)
    assert observation.evidence["window"] == "1 min 40 s"


def test_what_was_reported_across_the_beginning_of_a_step_does_not_count():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON, 900, 1000)])
    since = end_of(NOON - 1) - 10 * SECOND
    report(since - 5 * SECOND, since + 15 * SECOND, 100, 200)

    assert read_answer(create_gate(since=since)).evidence["total"] == 800


def test_the_ends_of_a_window_are_counted_from_reports():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON, 100, 100)])
    since = end_of(NOON - 3) + 20 * SECOND
    events(since + 15 * SECOND, 20, 21)
    events(since - 15 * SECOND, 500, 500)
    events(end_of(NOON) + 15 * SECOND, 30, 32)
    report(end_of(NOON) - 5 * SECOND, end_of(NOON) + 5 * SECOND, 3, 4)
    events(NOW + 5 * SECOND, 900, 900)

    observation = read_answer(create_gate(since=since))

    assert observation.evidence["total"] == 21 + 100 + 32 + 4
    assert observation.evidence["good"] == 20 + 100 + 30 + 3


def test_a_step_of_less_than_a_minute_is_judged_by_reports_alone():
    factories.slo("core")
    since = NOW - 20 * SECOND
    events(NOW - 5 * SECOND, 150, 200)
    events(since + 5 * SECOND, 50, 50)

    observation = read_answer(create_gate(since=since))

    assert (observation.verdict, observation.evidence["total"]) == (FAIL, 200)


def test_a_minute_that_ends_within_a_short_step_is_not_counted_twice():
    factories.slo("core")
    since = end_of(NOON) - 20 * SECOND
    write_minutes([(NOON - 20, 0, 0), (NOON, 500, 500)])
    events(end_of(NOON) - 5 * SECOND, 100, 100)
    events(end_of(NOON) + 15 * SECOND, 60, 60)

    assert read_answer(create_gate(since=since)).evidence["total"] == 160


def test_what_was_reported_and_not_added_to_the_minutes_yet_counts():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000, 5000)])
    span = (end_of(NOON) - 15 * SECOND, end_of(NOON) - 5 * SECOND)
    report(*span, 0, 900)
    for slo in ("core", "other"):
        ReportedEvents.objects.create(
            slo=slo, instance="core/a1", began_at=span[0], ended_at=span[1], good=0, total=900
        )

    observation = read_answer(create_gate())

    assert (observation.verdict, observation.evidence["total"]) == (FAIL, 5900)


def test_a_minute_is_not_taken_as_whole_before_it_is_judged():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000, 5000)])
    report(end_of(NOON) - 15 * SECOND, end_of(NOON) - 5 * SECOND, 0, 900)

    assert read_answer(create_gate(), end_of(NOON) + 10 * SECOND).evidence["total"] == 5900


def test_the_same_answer_is_not_written_every_second():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000, 5000)])
    create_gate()

    assert judging.answer_open_gates(NOW) == 1
    assert judging.answer_open_gates(NOW + SECOND) == 0
    assert judging.answer_open_gates(NOW + 16 * SECOND) == 1


def test_a_window_that_can_not_be_read_is_five_minutes_long():
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000, 5000)])

    assert read_answer(create_gate(window="soon")).evidence["window"] == "5 min"


def test_however_many_gates_ask_the_database_is_asked_a_few_times(django_assert_max_num_queries):
    factories.slo("core")
    write_minutes([(NOON - 20, 0, 0), (NOON - 1, 5000, 5000)])
    gates.store_questions(
        [GateQuestion(f"ramp:{n}:0:0", SPEC, NOW - 10 * MINUTE) for n in range(50)]
    )
    judging.answer_open_gates(NOW)
    Gate.objects.update(observed_at=NOW)

    with django_assert_max_num_queries(5):
        assert judging.answer_open_gates(NOW + SECOND) == 0


@pytest.mark.parametrize("seed", range(6))
def test_every_window_has_exactly_the_reports_that_lie_in_it(seed):
    """Compare with single reports every few seconds that also feed the minutes."""
    chance = random.Random(seed)
    factories.slo("core")
    began, spans, minutes = end_of(NOON - 15), [], {}
    while began < NOW:
        ended = began + timedelta(seconds=chance.randint(1, 40))
        total = chance.randint(0, 30)
        good = chance.randint(0, total)
        spans.append((began, ended, good, total))
        minute = NOON - int((end_of(NOON) - ended) // MINUTE)
        was = minutes.get(minute, (0, 0))
        minutes[minute] = (was[0] + good, was[1] + total)
        began = ended
    write_minutes([(minute, *minutes.get(minute, (0, 0))) for minute in range(NOON - 20, NOON + 1)])
    for one in spans:
        report(*one)
    since = NOW - timedelta(seconds=chance.randint(1, 800))

    observation = read_answer(create_gate(since=since, window="5m", min_events=1))

    start = max(since, NOW - 5 * MINUTE)
    inside = [(good, total) for b, e, good, total in spans if b >= start and e <= NOW]
    assert observation.evidence.get("total", 0) == sum(total for _, total in inside)
    assert observation.evidence.get("good", 0) == sum(good for good, _ in inside)
