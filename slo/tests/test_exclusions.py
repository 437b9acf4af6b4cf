"""Exclusions: their effect on the budget, and their removal."""

from datetime import timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from slo.arithmetic.minutes import end_of, last_ended
from slo.models import Exclusion

from .factories import counted, slo

pytestmark = pytest.mark.django_db

EXCLUSIONS = "/slos/core-availability/exclusions/"
WHY = "Database moved, announced as CHG-7"


@pytest.fixture
def last():
    """Count four hours; return the last minute.

    In the first ten minutes of the last two hours a tenth was bad; in the last five minutes
    nothing came, so that a minute that ends meanwhile changes no budget.
    """
    last = last_ended(db_now())
    came = [(last - 240 + n, min(n, 235)) for n in range(241)]
    rows = [(minute, n * 100 - min(max(n - 120, 0), 10) * 10, n * 100) for minute, n in came]
    counted(slo(window_days=1), rows)
    return last


def span(first, second, **fields):
    """Return from the end of one minute to the end of another."""
    body = {"starts_at": timestamp(end_of(first)), "ends_at": timestamp(end_of(second))}
    return {**body, "reason": WHY, **fields}


def budget_left(response):
    budget = response.json()["budget"]
    return budget["before"]["remaining_ratio"], budget["after"]["remaining_ratio"]


def test_span_does_not_count_and_the_answer_tells_what_that_does(operator, last):
    response = operator.post(EXCLUSIONS, span(last - 120, last - 110))

    assert response.status_code == 201
    before, after = budget_left(response)
    assert before < -3
    assert after == 1.0
    status = operator.get("/slos/core-availability/status").json()
    assert status["budget"]["remaining_ratio"] == 1.0
    row = AuditEntry.objects.order_by("-id").first()
    assert (row.action, row.target) == ("slo.exclusion_added", "slo:core-availability")
    assert row.reason == WHY


def test_part_of_a_span_counts_as_far_as_it_is_not_excluded(operator, last):
    before, after = budget_left(operator.post(EXCLUSIONS, span(last - 120, last - 115)))

    assert 0 > after > before


def test_span_taken_back_counts_again(operator, last):
    exclusion = operator.post(EXCLUSIONS, span(last - 120, last - 110)).json()

    response = operator.send("delete", f"{EXCLUSIONS}{exclusion['id']}/", {"reason": "It was us"})

    assert response.status_code == 200
    assert budget_left(response) == (exclusion["budget"]["after"]["remaining_ratio"],
                            exclusion["budget"]["before"]["remaining_ratio"])  # fmt: skip
    assert response.json()["removed_by"] == "user:a-operator"
    assert operator.get(EXCLUSIONS).json()["results"] == []
    (exclusion,) = operator.get(f"{EXCLUSIONS}?removed=true").json()["results"]
    assert exclusion["id"] == exclusion["id"]
    assert operator.send("delete", f"{EXCLUSIONS}{exclusion['id']}/", {}).status_code == 404


def test_spans_that_overlap_are_subtracted_once(operator, last):
    operator.post(EXCLUSIONS, span(last - 100, last - 60))
    before, after = budget_left(operator.post(EXCLUSIONS, span(last - 100, last - 60)))

    assert after == before


def test_dry_run_tells_the_same_and_does_nothing(operator, last):
    response = operator.post(EXCLUSIONS, span(last - 120, last - 110, dry_run=True))

    assert budget_left(response)[1] == 1.0
    assert not Exclusion.objects.exists()


def test_span_grows_to_the_minutes_it_touches(operator, last):
    start = end_of(last - 100) + timedelta(seconds=30)
    body = span(0, 0, starts_at=timestamp(start), ends_at=timestamp(start + timedelta(seconds=31)))

    saved = operator.post(EXCLUSIONS, body).json()

    assert saved["starts_at"] == timestamp(end_of(last - 100))
    assert saved["ends_at"] == timestamp(end_of(last - 98))


def test_span_to_come_may_be_announced(operator, last):
    response = operator.post(EXCLUSIONS, span(last + 600, last + 700))

    assert response.status_code == 201
    assert budget_left(response)[0] == budget_left(response)[1]


def test_what_can_t_be_a_span_is_refused_and_named(operator, last):
    def wrong(**fields):
        return operator.post(EXCLUSIONS, span(last - 10, last, **fields)).json()["errors"].keys()

    assert wrong(reason=" ") == {"reason"}
    assert wrong(ends_at=timestamp(end_of(last - 10))) == {"ends_at"}
    assert wrong(starts_at="2020-01-01T00:00:00Z") == {"starts_at", "ends_at"}
    assert wrong(ends_at=timestamp(end_of(last) + timedelta(days=91))) == {"ends_at"}
    assert wrong(starts_at="yesterday") == {"starts_at"}
    assert wrong(starts_at="2026-01-01T00:00:00") == {"starts_at"}
    assert not Exclusion.objects.exists()


def test_viewers_look_and_do_not_exclude(last):
    viewer = as_role("viewer")

    assert viewer.get(EXCLUSIONS).status_code == 200
    assert viewer.post(EXCLUSIONS, span(last - 10, last)).status_code == 403


def test_exclusion_of_another_slo_is_not_found(operator, last):
    exclusion = operator.post(EXCLUSIONS, span(last - 10, last)).json()
    slo("other")

    assert (
        operator.send("delete", f"/slos/other/exclusions/{exclusion['id']}/", {}).status_code == 404
    )
    assert operator.send("delete", f"{EXCLUSIONS}{'9' * 40}/", {}).status_code == 404
    assert operator.send("delete", f"{EXCLUSIONS}x/", {}).status_code == 404
    assert operator.get("/slos/nobody/exclusions/").status_code == 404
