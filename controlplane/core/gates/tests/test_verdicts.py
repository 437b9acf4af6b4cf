"""The verdict of each kind of gate, up to the last second and the last event."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core import canonical
from controlplane.core.gates import external, samples, verdicts
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateQuestion
from controlplane.core.gates.verdicts import Observation

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
A_TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
BEGAN = NOW - timedelta(minutes=5)


def question(type: str, since: datetime = BEGAN, **spec: Any) -> GateQuestion:
    return GateQuestion("ramp:12:1:0", {"type": type, **spec}, since)


def observe(verdict: str, seconds_ago: float = 0, **evidence: Any) -> Observation:
    return Observation(verdict, NOW - timedelta(seconds=seconds_ago), evidence, "token:ci")


SMOKE = question("external", gate="smoke")
BREAKER = question("breaker", dependency="core->oracle")
SAMPLES = question("samples", slo="core", min_events=100)
judge_app = partial(verdicts.evaluate_observation, missing="no observation yet")
JUDGED = [(external.evaluate, SMOKE, "ok"), (judge_app, BREAKER, "pass")]


@pytest.mark.parametrize(("given", "verdict"), [("ok", PASS), ("fail", FAIL)])
def test_what_an_outsider_says_is_the_verdict_of_its_gate(given: str, verdict: str) -> None:
    answer = external.evaluate(SMOKE, observe(given, 7, url="https://ci/412"), NOW)

    assert answer.verdict == verdict
    assert answer.evidence["by"] == "token:ci"
    assert answer.evidence["evidence"] == {"url": "https://ci/412"}
    assert answer.evidence["observed_at"] == "2026-11-21T11:59:53.000000Z"


def test_a_failing_external_gate_says_who_says_so() -> None:
    assert (
        external.evaluate(SMOKE, observe("fail"), NOW).evidence["why"] == "token:ci reported fail"
    )


@pytest.mark.parametrize(("judge", "asked", "_"), JUDGED)
def test_gate_without_a_verdict_has_no_data_and_says_so(
    judge: Any, asked: GateQuestion, _: str
) -> None:
    answer = judge(asked, None, NOW)

    assert answer.verdict == NO_DATA
    assert "no observation" in answer.evidence["why"]


@pytest.mark.parametrize(("judge", "asked", "fine"), JUDGED)
@pytest.mark.parametrize(
    ("age", "verdict", "why"),
    [
        (timedelta(0), PASS, None),
        (60 * SECOND, PASS, None),
        (60 * SECOND + A_TICK, NO_DATA, "more than 60 seconds ago"),
        (-60 * SECOND, PASS, None),
        (-60 * SECOND - A_TICK, NO_DATA, "in the future"),
    ],
)
def test_a_verdict_counts_for_sixty_seconds_and_not_from_a_clock_ahead(
    judge: Any, asked: GateQuestion, fine: str, age: timedelta, verdict: str, why: str | None
) -> None:
    answer = judge(asked, Observation(fine, NOW - age), NOW)

    assert answer.verdict == verdict
    assert why is None or why in answer.evidence["why"]


@pytest.mark.parametrize(("judge", "asked", "fine"), JUDGED)
@pytest.mark.parametrize(("before", "verdict"), [(timedelta(0), PASS), (A_TICK, NO_DATA)])
def test_a_verdict_from_before_the_step_does_not_count(
    judge: Any, asked: GateQuestion, fine: str, before: timedelta, verdict: str
) -> None:
    since = NOW - 30 * SECOND
    asked = GateQuestion(asked.key, asked.spec, since)

    answer = judge(asked, Observation(fine, since - before), NOW)

    assert answer.verdict == verdict
    assert verdict == PASS or "before the step began" in answer.evidence["why"]


@pytest.mark.parametrize(("judge", "asked", "_"), JUDGED)
def test_a_fail_that_is_too_old_fails_nothing(judge: Any, asked: GateQuestion, _: str) -> None:
    assert judge(asked, observe("fail", 0), NOW).verdict == FAIL
    assert judge(asked, observe("fail", 61), NOW).verdict == NO_DATA


@pytest.mark.parametrize(
    ("seen", "verdict"), [(0, NO_DATA), (99, NO_DATA), (100, PASS), (2**70, PASS)]
)
def test_samples_pass_once_there_are_enough_and_never_fail(seen: int, verdict: str) -> None:
    answer = samples.evaluate(SAMPLES, seen, NOW)

    assert answer.verdict == verdict
    assert (answer.evidence["seen"], answer.evidence["needed"]) == (seen, 100)
    assert answer.evidence["since"] == "2026-11-21T11:55:00.000000Z"


def test_too_few_samples_say_how_many_there_are() -> None:
    answer = samples.evaluate(question("samples", slo="core", min_events=1500), 1042, NOW)

    assert answer.evidence["why"] == "1,042 of 1,500 events since the step began"


def test_no_data_of_an_app_keeps_the_reason_it_gave() -> None:
    answer = judge_app(BREAKER, observe("no_data", why="no instance has reported it"), NOW)

    assert (answer.verdict, answer.evidence["why"]) == (NO_DATA, "no instance has reported it")


def test_no_data_without_a_reason_gets_one() -> None:
    answer = judge_app(BREAKER, observe("no_data", why=None), NOW)

    assert answer.evidence["why"] == "the source has no data"


def test_a_type_nobody_knows_is_no_data_that_says_so() -> None:
    answer = verdicts.evaluate_unknown_kind(question("weather"), None, NOW)

    assert answer.verdict == NO_DATA
    assert "weather" in answer.evidence["why"]


def test_short_evidence_is_kept_as_it_is_in_any_script() -> None:
    evidence = {"정산": "오류 없음 ✓", "rows": [1, 2, {"deep": None}]}

    assert verdicts.truncate_evidence(evidence) == evidence


def test_long_evidence_keeps_what_is_judged_by_and_says_how_long_it_was() -> None:
    long = {"log": "x" * 30_000, **{f"n{i}": i for i in range(50)}, "why": "w", "total": 9}

    kept = verdicts.truncate_evidence({**long, "good": 8})

    assert (kept["good"], kept["total"], kept["why"]) == (8, 9, "w")
    assert "log" not in kept
    assert "bytes" in kept["left_out"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
names = st.sampled_from(["good", "total", "why", "since", "observed_at", "question"]) | st.text()


@given(
    st.dictionaries(names, json_values | st.text(min_size=3000, max_size=3100), max_size=6),
    st.sampled_from(["pass", "fail", "no_data", "ok", ""]),
    st.integers(-100, 100),
)
def test_whatever_is_said_gives_a_verdict_and_plain_evidence(
    evidence: dict[str, Any], verdict: str, seconds: int
) -> None:
    one = observe(verdict, seconds)
    one = Observation(one.verdict, one.observed_at, verdicts.truncate_evidence(evidence), one.by)
    for judge, asked, _ in JUDGED:
        answer = judge(asked, one, NOW)

        assert answer.verdict in (PASS, FAIL, NO_DATA)
        assert answer.verdict != NO_DATA or isinstance(answer.evidence["why"], str)
        assert len(canonical.dumps(answer.evidence)) < 2 * verdicts.MAX_KEPT_BYTES
        json.dumps(answer.evidence)
