"""Tests of gates on breakers: verdicts and evidence from the reports of instances."""

import pytest

from breakers import gate_kinds as gates
from breakers.gate_options import list_dependencies
from breakers.tests.fleet import NOW, ORACLE, SECOND, dependency, minute, reports
from controlplane.core.gates import services
from controlplane.core.gates.models import Gate
from controlplane.core.gates.questions import GateQuestion

pytestmark = pytest.mark.django_db
BEGAN = NOW - 10 * SECOND


def store_question(name=ORACLE, since=BEGAN, key="ramp:1:0:0"):
    question = GateQuestion(key, {"type": "breaker", "dependency": name}, since)
    services.store_questions([question])
    return question


def verdict(question, now=NOW):
    """Return the verdict after a run, as a ramp reads it."""
    gates.answer_gates(now)
    (answer,) = services.evaluate_questions([question], now)
    return answer.verdict, answer.evidence.get("why", "")


def test_all_closed_since_the_question_passes():
    dependency()
    reports("core/a1")
    reports("core/a2")

    assert verdict(store_question()) == ("pass", "")


def test_one_fresh_open_breaker_fails_and_is_named():
    dependency()
    reports("core/a1")
    reports("core/a2", "open")

    assert verdict(store_question()) == ("fail", "open in 1 of 2 instances")
    assert Gate.objects.get().evidence["open_in"] == ["core/a2"]


def test_an_instance_that_has_not_reported_since_the_question_holds():
    dependency()
    reports("core/a1")
    reports("core/a2", at=BEGAN - SECOND)
    question = store_question()

    said, why = verdict(question)
    reports("core/a2", at=NOW)

    assert (said, why) == (
        "no_data",
        "not all of 2 instances have reported since the step began",
    )
    assert verdict(question, NOW + SECOND) == ("pass", "")


def test_only_instance_that_has_not_reported_since_the_question_holds():
    dependency()
    reports("core/a1", at=BEGAN - SECOND)

    assert verdict(store_question()) == (
        "no_data",
        "the only reporting instance has not reported since the step began",
    )


@pytest.mark.parametrize(
    ("report", "why"),
    [
        ({"state": "half_open"}, "half-open in the only reporting instance"),
        ({"mode": "forced_closed"}, "an override hides the state in the only reporting instance"),
        (
            {"state": "open", "stopped": True},
            "no reporting instance has a breaker for core → oracle",
        ),
        (
            {"at": NOW - 31 * SECOND, "state": "open"},
            "no reporting instance has a breaker for core → oracle",
        ),
    ],
)
def test_what_proves_nothing_is_no_data(report, why):
    dependency()
    reports("core/a1", **report)

    answer, because = verdict(store_question())

    assert answer == "no_data"
    assert because.startswith(why)


@pytest.mark.parametrize("name", ["core->nobody", "no dependency", ""])
def test_an_unknown_name_is_no_data(name):
    assert verdict(store_question(name))[0] == "no_data"


def test_reasons_and_options_name_the_dependency_as_screens_do():
    dependency()

    assert "reporting instance has a breaker for core → oracle" in verdict(store_question())[1]
    (option,) = list_dependencies(NOW, 5)
    assert option.value == ORACLE
    assert str(option) == "core → oracle · No data"


def test_dependencies_that_were_reported_come_before_those_without_data():
    dependency("canvas->core")
    dependency()
    gone = dependency("worker->mail")
    reports("core/a1")
    minute(gone)

    options = [str(one) for one in list_dependencies(NOW, 5)]

    assert options == [
        "core → oracle · Closed",
        "worker → mail · Not reported",
        "canvas → core · No data",
    ]
    assert [one.value for one in list_dependencies(NOW, 1)] == [ORACLE]


def test_what_an_earlier_boot_said_does_not_count():
    dependency()
    reports("core/a1", "open")
    reports("core/a1", "closed", boot="2b7b0a5e-6f2b-4a2b-8a9c-0c8f6f1f2a11")

    assert verdict(store_question()) == ("pass", "")


def test_the_same_answer_is_written_again_only_after_a_while():
    dependency()
    reports("core/a1", at=NOW + 20 * SECOND)
    store_question()

    written = [gates.answer_gates(NOW + n * SECOND) for n in (0, 1, 14, 15)]

    assert written == [1, 0, 0, 1]


def test_a_change_is_written_at_once():
    dependency()
    reports("core/a1")
    question = store_question()
    verdict(question)

    reports("core/a1", "open", at=NOW + SECOND)

    assert verdict(question, NOW + SECOND)[0] == "fail"


def test_many_gates_on_few_breakers_take_two_reads(django_assert_num_queries):
    dependency()
    reports("core/a1")
    for number in range(20):
        store_question(key=f"ramp:{number}:0:0")
    gates.answer_gates(NOW)

    with django_assert_num_queries(2):
        assert gates.answer_gates(NOW + SECOND) == 0
