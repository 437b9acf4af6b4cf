"""Events reported by clients, and deltas."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest

from controlplane.accounts.tokens.services import create_token as create_token
from controlplane.core.actors import system_actor
from controlplane.core.gates.models import EventCount
from controlplane.core.http.tests.callers import person
from controlplane.core.models import Instance
from slo.ingest import client_reports, points
from slo.ingest.push_body import Delta
from slo.models import ReportedEvents, Sli

from .sample_helpers import MINUTE, NOW, load_counters, moment_at, objective

pytestmark = pytest.mark.django_db


def report(
    began: float, ended: float, good: int, total: int, slo: str = "core-availability"
) -> None:
    ReportedEvents.objects.create(
        slo=slo,
        instance="core/a1",
        began_at=moment_at(began),
        ended_at=moment_at(ended),
        good=good,
        total=total,
    )


def accept(batch_id: str, *deltas: Delta) -> dict[str, Any]:
    return points.accept_batch(
        batch_id=batch_id, deltas=deltas, actor=system_actor("test"), now=NOW
    )


def create_limited_token(*services: str) -> int:
    token, _ = create_token(
        name="core",
        owner=person("operator", "olga"),
        scopes=["report:write"],
        limit_to=services,
        actor=system_actor("test"),
        now=NOW,
    )
    return token.pk


def instance(name: str, reported_at: datetime, **counts: list[int]) -> None:
    Instance.objects.update_or_create(
        id=f"core/{name}",
        defaults={
            "service": "core",
            "boot": uuid4(),
            "reported_at": reported_at,
            "reported": {"sli": counts} if counts else {},
        },
    )


def test_reported_growth_is_added_and_covers_its_span(sli: Sli) -> None:
    report(-70, -60, 8, 10)
    report(-60, 0, 9, 10)

    assert client_reports.add_reported(NOW, most=100) == 2

    assert load_counters(sli, MINUTE - 1, MINUTE) == [(8, 10, 1), (17, 20, 2)]
    assert not ReportedEvents.objects.exists()
    assert not EventCount.objects.exists()  # The data plane has noted it already.


def test_instance_that_was_silent_for_long_spreads_what_it_counted(sli: Sli) -> None:
    report(-600, 0, 50, 100)

    client_reports.add_reported(NOW, most=100)

    assert load_counters(sli, MINUTE - 5, MINUTE - 5) == [(25, 50, 0)]
    assert load_counters(sli, MINUTE, MINUTE) == [(50, 100, 0)]


def test_what_is_of_no_slo_here_is_left_out(sli: Sli) -> None:
    objective("read", source={"type": "prometheus"})
    for slo in ("nobody-knows", "read", "core-availability"):
        report(-10, 0, 1, 1, slo)

    assert client_reports.add_reported(NOW, most=100) == 3

    assert load_counters(sli, MINUTE, MINUTE) == [(1, 1, 1)]
    assert Sli.objects.get(slo__name="read").first is None


def test_minutes_without_events_are_covered_while_somebody_would_count_them(sli: Sli) -> None:
    counts = {"core-availability": [5, 5]}
    for seconds in range(-300, 1, 30):
        instance("a1", moment_at(seconds - 3), **counts)
        instance("b1", moment_at(-3600), **counts)
        instance("c1", moment_at(seconds))
        assert client_reports.record_presence(moment_at(seconds)) == 1

    assert load_counters(sli, MINUTE, MINUTE)[0] == (0, 0, 6)


def test_nobody_who_counts_covers_nothing(sli: Sli) -> None:
    instance("a1", moment_at(-130), **{"core-availability": [5, 5]})
    instance("b1", moment_at(0), other=[5, 5])

    assert client_reports.record_presence(NOW) == 0
    assert load_counters(sli, MINUTE, MINUTE)[0][2] == 0


@pytest.mark.parametrize(
    ("limit", "owner", "slos"),
    [
        (["core"], "core", 1),
        (["core"], "gateway", 0),
        (["core"], "", 0),
        ([], "gateway", 1),
        (None, "gateway", 1),
    ],
    ids=["own", "foreign", "no service", "no limit", "unknown token"],
)
def test_instance_of_a_limited_token_covers_only_slos_of_its_services(
    limit: list[str] | None, owner: str, slos: int
) -> None:
    objective(service=owner)
    token_id = 10**9 if limit is None else create_limited_token(*limit)
    instance("a1", NOW, **{"core-availability": [0, 0]})
    tokens = [[10**9 + 1, NOW.isoformat()], [token_id, NOW.isoformat()]]
    row = Instance.objects.get()
    row.reported["tokens"] = tokens
    row.save()

    assert client_reports.record_presence(NOW) == slos


def test_deltas_are_of_their_moment_and_their_sender_is_there_in_between(sli: Sli) -> None:
    accept("1", Delta("core-availability", 3, 4, "cron", moment_at(-120)))
    accept("2", Delta("core-availability", 5, 5, "cron", moment_at(-60)))
    accept("3", Delta("core-availability", 0, 1, "cron"))

    assert load_counters(sli, MINUTE - 2, MINUTE) == [(3, 4, 0), (8, 9, 1), (8, 10, 2)]


def test_deltas_of_one_moment_all_count(sli: Sli) -> None:
    accept("1", *[Delta("core-availability", 3, 4, "cron", moment_at(-60))] * 3)
    accept("2", Delta("core-availability", 3, 4, "cron", moment_at(-60)))

    assert load_counters(sli, MINUTE, MINUTE)[0][:2] == (12, 16)


def test_late_deltas_are_put_where_they_belong(sli: Sli) -> None:
    accept("2", Delta("core-availability", 5, 5, "cron", moment_at(0)))
    accept("1", Delta("core-availability", 1, 2, "cron", moment_at(-90)))

    assert load_counters(sli, MINUTE - 1, MINUTE) == [(1, 2, 1), (6, 7, 2)]


def test_gates_count_a_delta_since_the_one_before(sli: Sli) -> None:
    accept("1", Delta("core-availability", 3, 4, "cron", moment_at(-90)))
    accept(
        "2",
        Delta("core-availability", 5, 5, "cron", moment_at(-20)),
        Delta("core-availability", 1, 1, "cron"),
    )

    rows = EventCount.objects.order_by("ended_at").values_list("began_at", "ended_at", "total")
    assert list(rows) == [
        (moment_at(-150), moment_at(-90), 4),
        (moment_at(-90), moment_at(-20), 5),
        (moment_at(-20), moment_at(0), 1),
    ]
