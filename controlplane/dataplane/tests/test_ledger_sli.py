"""Counts travel from reports to gates exactly once, whatever fails in between."""

import asyncio
import json
import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from django.db import connection
from structlog.testing import capture_logs

from controlplane.core.clock import db_now
from controlplane.core.errors import Unavailable
from controlplane.core.gates import services as gates
from controlplane.core.gates.models import EventCount
from controlplane.core.gates.questions import NO_DATA, PASS, GateAnswer, GateQuestion
from controlplane.core.http.tests.callers import person
from controlplane.core.models import Instance
from controlplane.dataplane import metrics
from controlplane.dataplane.application import Application
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
from controlplane.dataplane.ingest.pending_reports import ROW_WEIGHT
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import COPY, NOW, Clock, report, writing
from controlplane.dataplane.tests.test_following import make_token
from controlplane.dataplane.tests.test_ledger_refusals import execute, send_all
from slo.models import ReportedEvents
from slo.tests.ingest.sample_helpers import objective

pytestmark = pytest.mark.usefixtures("published")

STARTED = NOW - timedelta(minutes=5)
TOKEN = {"X-API-Key": "sg_reporter01_secret"}
BEHIND = timedelta(seconds=0.25)
"""At most so much is the plane's clock behind PostgreSQL's."""


def counted() -> list[tuple[str, str, datetime, datetime, int, int]]:
    rows = EventCount.objects.order_by("ended_at", "instance", "slo", "began_at")
    return list(rows.values_list("slo", "instance", "began_at", "ended_at", "good", "total"))


def reported() -> list[tuple[str, str, datetime, datetime, int, int]]:
    """Return the counts that wait to be added to the minutes of SLOs."""
    rows = ReportedEvents.objects.order_by("ended_at", "instance", "slo", "began_at")
    return list(rows.values_list("slo", "instance", "began_at", "ended_at", "good", "total"))


def samples(since: datetime, needed: int = 100, slo: str = "core-availability") -> GateAnswer:
    spec = {"type": "samples", "slo": slo, "min_events": needed}
    (found,) = gates.evaluate_questions([GateQuestion("ramp:1:0:0", spec, since)], db_now())
    return found


class Service:
    """A process of a service that reports to the plane's own application."""

    def __init__(self, following: Following, instance: str = "a1") -> None:
        self._following = following
        self._instance = instance
        self.restart()

    def restart(self) -> None:
        self._boot, self._seq = uuid4(), 0
        self._good = self._total = 0
        self._started_at = db_now()
        time.sleep(0.3)  # Startup time; the plane's clock may be that much behind.

    def serve(self, events: int, bad: int = 0) -> None:
        self._good, self._total = self._good + events - bad, self._total + events

    def report(self, *, lost: bool = False, again: bool = False) -> httpx.Response | None:
        self._seq += not again
        body = {
            "service": "core",
            "instance": self._instance,
            "boot": str(self._boot),
            "started_at": self._started_at.isoformat(),
            "sent_at": db_now().isoformat(),
            "seq": self._seq,
            "sli": [{"slo": "core-availability", "good": self._good, "total": self._total}],
        }
        return None if lost else post(self._following, body)


def post(following: Following, body: Any) -> httpx.Response:
    async def posted() -> httpx.Response:
        transport = httpx.ASGITransport(Application(following.plane))
        async with httpx.AsyncClient(transport=transport, base_url="http://plane") as client:
            return await client.post("/api/v1/report", headers=TOKEN, content=json.dumps(body))

    return following.loop.run(posted())


def scrape(following: Following) -> str:
    """Return the metrics of a standalone data plane."""
    _, _, content = metrics.render_metrics(following.state, "text/plain")
    return bytes(content).decode()


@pytest.fixture
def service(idle: Following) -> Service:
    make_token("reporter01", scopes=["report:write"], owner=person("operator", "kim"))
    idle.start()
    return Service(idle)


def test_a_step_has_enough_samples_once_services_have_reported_them(service: Service) -> None:
    service.serve(5000)
    service.report()
    since = db_now()
    assert samples(since).verdict == NO_DATA

    time.sleep(BEHIND.total_seconds())
    service.serve(1000)
    service.report()  # May arrive before the step began.
    assert samples(since).evidence["seen"] == 0

    service.serve(60, bad=2)
    service.report()
    assert (samples(since).verdict, samples(since).evidence["seen"]) == (NO_DATA, 60)
    service.serve(40)
    service.report()
    assert samples(since).verdict == PASS


def test_a_restarted_service_adds_to_what_it_counted_before(service: Service) -> None:
    service.report()
    since = db_now() - BEHIND
    service.report()
    service.serve(60)
    service.report()

    service.restart()
    service.serve(40)
    service.report()

    assert samples(since).evidence["seen"] == 100
    assert samples(since).verdict == PASS


def test_lost_and_repeated_reports_neither_lose_nor_add_events(service: Service) -> None:
    service.report()
    since = db_now() - BEHIND
    service.report()
    service.serve(30)
    service.report(lost=True)
    service.serve(30)

    responses = [service.report(), service.report(again=True)]

    assert [one.json()["duplicate"] for one in responses if one] == [False, True]
    assert samples(since).evidence["seen"] == 60


def test_several_instances_are_added_up(service: Service, idle: Following) -> None:
    since = db_now() - timedelta(seconds=2)  # The plane's clock lags further on a busy machine.
    for number in range(4):
        other = Service(idle, f"b{number}")
        other.serve(25)
        other.report()

    assert samples(since).verdict == PASS


@pytest.mark.parametrize(
    ("sli", "field"),
    [
        ([{"slo": "core", "good": 2, "total": 1}], "sli[0].good"),
        ([{"slo": "core", "good": 1, "total": 1}] * 2, "sli[1].slo"),
        ([{"slo": "a\x00", "good": 1, "total": 1}], "sli[0].slo"),
    ],
)
def test_wrong_counts_are_refused_by_name_and_nothing_is_kept(
    service: Service, idle: Following, sli: list[Any], field: str
) -> None:
    body = {"service": "core", "instance": "a1", "boot": str(uuid4()), "seq": 1, "sli": sli}

    refused = post(idle, body)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, [field])
    assert not Instance.objects.exists()


def test_counts_are_written_with_the_row_they_came_from(idle: Following) -> None:
    clock = Clock()
    ledger = InstanceLedger(clock.wall)
    with writing(idle, ledger):
        idle.loop.run(ledger.report(report(1, sli={"core": (98, 100), "정산": (1, 1)}), COPY))
        clock.later(10)
        idle.loop.run(ledger.report(report(2, sli={"core": (99, 103)}), COPY))

    later = NOW + timedelta(seconds=10)
    assert counted() == [
        ("core", "core/a1", STARTED, NOW, 98, 100),
        ("정산", "core/a1", STARTED, NOW, 1, 1),
        ("core", "core/a1", NOW, later, 1, 3),
    ]
    assert reported() == counted()
    assert Instance.objects.get().reported["sli"] == {"core": [99, 103], "정산": [1, 1]}


@pytest.mark.parametrize("owner", ["gateway", ""], ids=["another service's", "no service's"])
def test_limited_token_counts_only_for_slos_of_its_services(idle: Following, owner: str) -> None:
    objective("own", service="core")
    objective("foreign", service=owner)
    ledger = InstanceLedger(Clock().wall)
    one = report(1, sli={"own": (8, 10), "foreign": (0, 10**12), "unknown": (1, 2)})
    with writing(idle, ledger), capture_logs() as logs:
        idle.loop.run(ledger.report(one, COPY, services=frozenset({"core"})))

    assert [(slo, total) for slo, *_, total in counted()] == [("own", 10), ("unknown", 2)]
    assert [(slo, total) for slo, *_, total in reported()] == [("own", 10)]
    (record,) = [each for each in logs if each["event"] == "ledger.sli_refused"]
    assert (record["instance"], record["slo"]) == ("core/a1", "foreign")
    assert ledger.refused_sli == 1


def test_refused_counts_are_logged_once_a_minute(idle: Following) -> None:
    objective("foreign", service="gateway")
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger), capture_logs() as logs:
        for seq in (1, 2, 3):
            one = report(seq, sli={"foreign": (0, seq)})
            idle.loop.run(ledger.report(one, COPY, services=frozenset({"core"})))

    assert [each["event"] for each in logs].count("ledger.sli_refused") == 1
    assert ledger.refused_sli == 3


def test_token_without_a_limit_counts_for_any_slo(idle: Following) -> None:
    objective("foreign", service="gateway")
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger):
        idle.loop.run(ledger.report(report(1, sli={"foreign": (1, 2), "unknown": (1, 2)}), COPY))

    assert [slo for slo, *_ in counted()] == ["foreign", "unknown"]
    assert reported() == counted()
    assert ledger.refused_sli == 0


def test_report_by_a_limited_token_counts_nothing_for_a_foreign_slo(idle: Following) -> None:
    objective("core-availability", service="gateway")
    fields = {"scopes": ["report:write"], "owner": person("operator", "kim")}
    make_token("reporter01", services=["core"], **fields)
    idle.start()
    service = Service(idle)
    service.serve(10)

    response = service.report()

    assert response is not None
    assert response.status_code == 200
    assert not counted()
    assert 'switchgear_dataplane_sli_refused_total{worker="' in scrape(idle)


def test_two_ledgers_that_get_the_same_reports_count_them_once(idle: Following) -> None:
    ledgers = [InstanceLedger(Clock().wall) for _ in range(2)]
    reports = [report(seq, sli={"core": (10 * seq, 10 * seq)}) for seq in range(1, 31)]

    async def sent() -> None:
        await asyncio.gather(*(ledger.report(one) for one in reports for ledger in ledgers))

    with writing(idle, *ledgers):
        idle.loop.run(sent())

    assert sum(row[-1] for row in counted()) == 300
    assert reported() == counted()


@pytest.mark.parametrize("table", ["core_eventcount", "slo_reported"])
def test_counts_that_cannot_be_written_leave_the_report_to_be_sent_again(
    idle: Following, table: str
) -> None:
    ledger = InstanceLedger(Clock().wall)
    with writing(idle, ledger):
        idle.loop.run(ledger.report(report(1, sli={"core": (10, 10)}), COPY))
        execute(f"ALTER TABLE {table} ADD CONSTRAINT refused CHECK (slo <> 'bad')")
        try:
            found = send_all(
                idle,
                ledger,
                report(2, sli={"core": (20, 20), "bad": (1, 1)}),
                report(1, instance="b1", boot=UUID(int=7), sli={"core": (5, 5)}),
            )
            assert isinstance(found[0], Unavailable)
            assert found[1] is False
            assert Instance.objects.get(id="core/a1").seq == 1
        finally:
            execute(f"ALTER TABLE {table} DROP CONSTRAINT refused")

        repeated = report(2, sli={"core": (20, 20), "bad": (1, 1)})
        assert idle.loop.run(ledger.report(repeated, COPY)) is False

    totals = dict.fromkeys(("core", "bad"), 0)
    for slo, *_, total in counted():
        totals[slo] += total
    assert totals == {"core": 25, "bad": 1}
    assert reported() == counted()


def test_a_batch_of_many_counts_is_one_statement(idle: Following) -> None:
    ledger = InstanceLedger(Clock().wall)
    sli = {f"slo-{number}": (1, 2) for number in range(200)}
    reports = [report(1, instance=f"i{n}", boot=uuid4(), sli=sli) for n in range(9)]
    assert ROW_WEIGHT + reports[0].size == 220
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE statements (); "
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN INSERT INTO statements DEFAULT VALUES; RETURN NULL; END'; "
            "CREATE TRIGGER noted AFTER INSERT ON core_eventcount "
            "FOR EACH STATEMENT EXECUTE FUNCTION note()"
        )
    try:
        with writing(idle, ledger):
            assert send_all(idle, ledger, *reports) == [False] * 9
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM statements")
            assert cursor.fetchone() == (1,)
    finally:
        execute("DROP TRIGGER noted ON core_eventcount; DROP FUNCTION note; DROP TABLE statements")

    assert len(counted()) == 1800
