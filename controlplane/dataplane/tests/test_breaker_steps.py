"""Reports of any realistic size are accepted; of too many transitions the last are kept."""

import json
from typing import Any

import pytest

from breakers.models import Transition
from controlplane.core.errors import InvalidInput
from controlplane.core.http.tests.callers import person
from controlplane.core.protocol import MAX_REPORT_BODY_BYTES, max_body_bytes
from controlplane.dataplane.ingest.report_merge import (
    MAX_PER_BREAKER,
    MAX_TRANSITIONS,
    parse_report,
)
from controlplane.dataplane.tests.breaker_reports import (
    OPENED,
    Reporting,
    at_work,
    breaker,
    make_report,
)
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.served import REPORTER, ask, plane
from controlplane.dataplane.tests.test_following import make_token
from controlplane.dataplane.tests.test_ledger_sli import post
from controlplane.dataplane.tests.test_reports import WHOLE

__all__ = ["at_work"]


def steps(*numbers: int, **more: object) -> list[dict[str, object]]:
    return [{**OPENED, "n": number, **more} for number in numbers]


def build_document(*breakers: dict[str, object]) -> dict[str, Any]:
    return {**WHOLE, "breakers": list(breakers)}


def test_of_more_than_a_hundred_transitions_the_last_are_kept() -> None:
    few = breaker("core->redis", transitions=steps(1, 2))
    report = parse_report(build_document(breaker(transitions=steps(*range(250, 0, -1))), few))

    make_report = [step.n for step in report.steps if step.dependency == "core->oracle"]
    assert sorted(make_report) == list(range(151, 251))
    assert (len(report.steps), report.dropped) == (MAX_PER_BREAKER + 2, 150)


def test_of_very_many_breakers_each_keeps_its_last_ones() -> None:
    report = parse_report(
        build_document(*(breaker(f"core->s{n}", transitions=steps(*range(60))) for n in range(100)))
    )

    assert len(report.steps) == MAX_TRANSITIONS
    assert {step.n for step in report.steps} == set(range(40, 60))
    assert report.dropped == 4000


def test_up_to_that_nothing_is_dropped() -> None:
    report = parse_report(build_document(breaker(transitions=steps(*range(MAX_PER_BREAKER)))))

    assert (len(report.steps), report.dropped) == (MAX_PER_BREAKER, 0)


@pytest.mark.parametrize("odd", [7, None, {}, {**OPENED, "n": "1"}, {**OPENED, "n": True}])
def test_a_wrong_one_among_many_is_named(odd: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_report(build_document(breaker(transitions=[odd, *steps(*range(500))])))

    assert all(name.startswith("breakers[0].transitions[") for name in caught.value.errors)


@pytest.mark.parametrize("wrong", [7, [7], [{}], [{"transitions": 7}], [[]], "x"])
def test_breakers_of_any_shape_are_refused_by_name(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        parse_report({**WHOLE, "breakers": wrong})


@pytest.mark.parametrize("beginning", ["x", "timeout\x00"])
def test_a_long_cause_is_cut(beginning: str) -> None:
    report = parse_report(
        build_document(breaker(transitions=steps(1, cause=beginning + "y" * 5000)))
    )

    (step,) = report.steps
    assert len(step.cause) == 1000
    assert step.cause.startswith(beginning.replace("\x00", "\ufffd") + "y")


@pytest.mark.usefixtures("published")
def test_a_report_with_too_many_is_taken_in(at_work: Reporting) -> None:
    odd = make_report(breaker(state="open", transitions=steps(*range(1, 301), cause="a\x00b")))

    assert at_work.report(odd) is False

    assert Transition.objects.count() == MAX_PER_BREAKER
    assert max(Transition.objects.values_list("n", flat=True)) == 300


@pytest.mark.usefixtures("published")
def test_the_answer_says_how_many_were_dropped(idle: Following) -> None:
    make_token("reporter01", scopes=["report:write"], owner=person("operator", "kim"))
    idle.start()

    def dropped(seq: int, number: int) -> object:
        response = post(
            idle, {**build_document(breaker(transitions=steps(*range(number)))), "seq": seq}
        )
        assert response.status_code == 200
        return response.json().get("dropped_transitions", "not said")

    assert dropped(1, MAX_PER_BREAKER) == "not said"
    assert dropped(2, MAX_PER_BREAKER + 7) == 7


def test_a_report_of_hundreds_of_breakers_has_room() -> None:
    one = WHOLE["breakers"][0]
    many = [{**one, "dependency": f"document-service->backend-{n:03}"} for n in range(500)]
    body = json.dumps({**WHOLE, "breakers": many, "seq": "wrong"}).encode()

    assert 128 * 1024 < len(body) <= MAX_REPORT_BODY_BYTES
    headers = {"Authorization": f"Bearer {REPORTER}"}
    for path in ("/api/v1/report", "/api/v1/report/"):
        response = ask(plane(), "POST", path, headers, content=body)
        assert (response.status_code, set(response.json()["errors"])) == (400, {"seq"})

    too_much = ask(plane(), "POST", path, headers, content=b" " * MAX_REPORT_BODY_BYTES + body)
    assert too_much.status_code == 413
    assert "512 KiB" in too_much.json()["detail"]


@pytest.mark.parametrize("path", ["/api/v1/check", "/api/v1/reports/weekly/", "/api/v1/report/x"])
def test_other_bodies_have_no_more_room_than_before(path: str) -> None:
    assert max_body_bytes(path) == 64 * 1024
