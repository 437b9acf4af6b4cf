"""Removed breakers disappear, and are not counted twice if they return."""

import pytest

from breakers.models import BreakerState, Minute
from controlplane.core.models import Instance
from controlplane.dataplane.tests.breaker_reports import Reporting, at_work, breaker, make_report
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import COPY, NOW

__all__ = ["at_work"]
pytestmark = pytest.mark.usefixtures("published")


def stand() -> set[str]:
    return {one.dependency.callee for one in BreakerState.objects.select_related("dependency")}


def test_a_breaker_left_out_of_a_report_stands_no_more(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(state="open"), breaker("core->redis")))

    at_work.report(make_report(breaker("core->redis"), seq=2), after=5)

    assert stand() == {"redis"}


def test_one_that_comes_back_stands_as_it_did_and_counts_what_it_counted_since(
    at_work: Reporting,
) -> None:
    first = breaker(state="open", counters={"failure": 3})
    at_work.report(make_report(first, breaker("core->redis"), started_at=None))
    at_work.report(make_report(breaker("core->redis"), seq=2), after=5)

    at_work.report(make_report(breaker(state="open", counters={"failure": 4}), seq=3), after=5)
    at_work.flushed()

    assert stand() == {"oracle"}
    assert sum(Minute.objects.values_list("failure", flat=True)) == 1
    assert Instance.objects.get(id="core/a1").resilience["breakers"].keys() == {
        "core->oracle",
        "core->redis",
    }


def test_without_the_list_all_stands_as_it_was(at_work: Reporting) -> None:
    llm = [{"name": "llm", "in_flight": 3, "limit": 50}]
    at_work.report(make_report(breaker(), bulkheads=llm))

    at_work.report(make_report(seq=2, breakers=None), after=5)
    assert stand() == {"oracle"}
    assert set(Instance.objects.get().resilience["bulkheads"]) == {"llm"}

    at_work.report(make_report(seq=3, bulkheads=[]), after=5)
    assert stand() == set()
    assert Instance.objects.get().resilience["bulkheads"] == {}


def test_an_older_report_takes_no_breaker_away(at_work: Reporting) -> None:
    at_work.report(make_report(breaker(), seq=5))

    at_work.report(make_report(seq=4), after=1)

    assert stand() == {"oracle"}


@pytest.mark.parametrize(("last", "expected"), [(breaker(state="open"), "open"), (None, None)])
def test_of_many_reports_at_once_the_newest_stands(
    at_work: Reporting, idle: Following, last: dict[str, object] | None, expected: str | None
) -> None:
    at_work.report(make_report(breaker()))
    between = [make_report(seq=2), make_report(breaker(state="half_open"), seq=3)]
    at_once = [*between, make_report(seq=4), make_report(*([last] if last else []), seq=5)]

    async def sent() -> None:
        waiting = [idle.loop.loop.create_task(at_work.ledger.report(one, COPY)) for one in at_once]
        for one in waiting:
            await one

    idle.loop.run(sent())

    assert list(BreakerState.objects.values_list("state", flat=True)) == (
        [expected] if expected else []
    )
    assert not BreakerState.objects.filter(changed_at__lt=NOW).exists()
