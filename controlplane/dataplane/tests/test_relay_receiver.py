"""A data plane stores the batches of relays, and counts each once."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from breakers.models import BreakerState
from controlplane.core.errors import Unavailable
from controlplane.core.fleet.models import DataPlane
from controlplane.core.instances import queries
from controlplane.core.models import CheckCount
from controlplane.core.protocol import RELAY_BATCH
from controlplane.dataplane.ingest.counted_batches import CountedBatches
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.relay_message import RelayBatch, RelayMessage
from controlplane.dataplane.ingest.report_merge import REMEMBERED
from controlplane.dataplane.relay import batch
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import (
    A_BATCH,
    COPY,
    NOW,
    Clock,
    acks,
    applies,
    hear,
    report,
    row,
    writing,
)
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.relay_messages import (
    EAST,
    WEST,
    make_ack,
    make_batch,
    make_counts,
    make_message,
    make_presence,
    make_report,
    make_status,
)
from controlplane.dataplane.tests.served import EPOCH, READER, ask, credential, plane

pytestmark = pytest.mark.usefixtures("published")
RELAY_TOKEN = "sg_relaytoken_" + "r" * 32
LATER = NOW + timedelta(seconds=1)
QUICK = Timing(batch=0.05, max_pause=0.05, write=0.5, report=1.0)


class Upstream:
    """A ledger that receives messages, at a time that the test sets."""

    def __init__(self, idle: Following) -> None:
        self.clock = Clock()
        self.ledger = InstanceLedger(self.clock.wall, timing=QUICK)
        self._idle = idle

    def receive(self, message: RelayMessage) -> int:
        return self._idle.loop.run(self.ledger.receive(message))

    def take(self, *batches: RelayBatch) -> int:
        return self.receive(make_message(*batches))


@pytest.fixture
def upstream(idle: Following) -> Iterator[Upstream]:
    made = Upstream(idle)
    with writing(idle, made.ledger):
        yield made


def count_checks() -> dict[int, tuple[int, int]]:
    """Return the checks of the switch by the length of the span in seconds."""
    found = CheckCount.objects.filter(switch="segment:a")
    return {
        seconds: tuple(
            sum(getattr(each, name) for each in found if each.seconds == seconds)
            for name in ("allowed", "blocked")
        )
        for seconds in (60, 3600)
    }


def test_notes_are_stored_with_the_relay_before_the_answer(upstream: Upstream) -> None:
    sent = make_batch(
        presences=[make_presence()],
        acks=[make_ack()],
        reports=[make_report(applied_version=17)],
        checks=[make_counts()],
    )
    assert upstream.take(sent) == 0

    found = row()
    assert (found.relay, found.seq, found.applied_version) == ("east", 1, 17)
    assert acks() == {17: NOW}
    assert count_checks() == {60: (3, 1), 3600: (3, 1)}
    (caller,), _ = queries.list_callers("segment:a", NOW)
    assert caller.id == "token:billing"


def test_repeated_batch_counts_nothing_twice(upstream: Upstream) -> None:
    sent = make_batch(5, checks=[make_counts()], reports=[make_report(sli=[SLI])])
    for _ in range(3):
        upstream.take(sent)
    assert count_checks()[60] == (3, 1)

    upstream.take(make_batch(6, checks=[make_counts()]))
    upstream.take(sent)
    assert count_checks()[60] == (6, 2)


def test_batch_that_another_overtook_is_counted_unless_it_is_too_old(upstream: Upstream) -> None:
    for seq in (100, 99, 38, 99, 100, 37, 38):
        upstream.take(make_batch(seq, checks=[make_counts()]))

    assert count_checks()[60] == (9, 3)  # 37 is so old that it may be a repetition.


@given(st.lists(st.integers(1, 200)))
def test_no_number_is_counted_twice_and_only_old_ones_are_left_out(numbers: list[int]) -> None:
    counted, found = CountedBatches(0, 0), list[int]()
    for seq in numbers:
        if (after := counted.add(seq)) is not None:
            counted = after
            found.append(seq)
        else:
            assert seq in found or seq < counted.seq - REMEMBERED
        assert 0 <= counted.bits < 2**63

    assert len(set(found)) == len(found)


def test_effect_and_board_show_instances_behind_relays_as_others(upstream: Upstream) -> None:
    now = upstream.clock.now = timezone.now()
    breaker = {"dependency": "core->bank", "state": "open"}
    upstream.take(
        make_batch(
            presences=[make_presence(version=18, at=now), make_presence("core/a2", at=now)],
            reports=[make_report(at=now, instance="a3", applied_version=18, breakers=[breaker])],
        )
    )

    head = queries.Head(EPOCH, 99)
    live, _ = queries.count_versions(head, now)
    assert (live.total, live.below(18)) == (3, 1)
    (late,) = queries.list_lagging_instances(18, head, now, most=9)
    assert (late.id, late.version, late.relay) == ("core/a2", 17, "east")
    (state,) = BreakerState.objects.filter(instance="core/a3")
    assert state.state == "open"


SLI = {"slo": "orders", "good": 9, "total": 10}


def test_batches_of_one_message_count_each_in_order(upstream: Upstream) -> None:
    other = replace(make_batch(1, checks=[make_counts()]), relay="west", process=WEST)
    one, two = make_batch(1, checks=[make_counts()]), make_batch(2, checks=[make_counts()])
    upstream.take(two, one, other, two)

    assert count_checks()[3600] == (9, 3)
    counted = dict(DataPlane.objects.values_list("process", "counted_seq"))
    assert counted == {EAST: 2, WEST: 1}


def test_batch_by_two_ledgers_at_once_counts_once(idle: Following) -> None:
    first, second = Upstream(idle), Upstream(idle)
    sent = make_message(*(make_batch(n, checks=[make_counts()]) for n in range(1, 20)))

    async def receive_both() -> None:
        await asyncio.gather(first.ledger.receive(sent), second.ledger.receive(sent))

    with writing(idle, first.ledger, second.ledger):
        idle.loop.run(receive_both())

    assert count_checks()[60] == (57, 19)


def test_status_makes_a_row_of_each_relay(upstream: Upstream) -> None:
    behind = make_status(WEST, "west", upstream="east", held=7, heard_at=NOW - timedelta(seconds=2))
    status = make_status(upstream="dp-1", held=3, version=17, heard_at=NOW - timedelta(days=1))
    upstream.receive(make_message(status=status, relays=(behind,)))

    east, west = DataPlane.objects.order_by("name")
    assert (east.name, east.upstream, east.is_relay, east.held) == ("east", "dp-1", True, 3)
    assert (west.name, west.upstream, west.is_relay, west.held) == ("west", "east", True, 7)
    assert (east.heard_at, west.heard_at) == (NOW, NOW - timedelta(seconds=2))


def test_relay_does_not_replace_the_status_of_a_data_plane(upstream: Upstream) -> None:
    at = NOW - timedelta(seconds=1)
    own = DataPlane.objects.create(
        process=WEST, name="dp-1", is_relay=False, held=1, instances=1, started_at=at, heard_at=at
    )
    upstream.receive(make_message(relays=(make_status(WEST, "dp-1", held=7, version=99),)))

    own.refresh_from_db()
    assert (own.is_relay, own.held, own.version, own.heard_at) == (False, 1, None, at)


def test_stop_and_start_of_a_relay_are_written_at_once(upstream: Upstream) -> None:
    for is_stopped in (False, True, False):
        upstream.clock.later(0.1)
        upstream.receive(make_message(status=make_status(is_stopped=is_stopped)))
        assert DataPlane.objects.get(process=EAST).is_stopped is is_stopped


def test_unchanged_status_is_written_every_few_seconds(upstream: Upstream) -> None:
    written = []
    for _ in range(10):
        upstream.clock.later(1)
        upstream.receive(make_message())
        written.append(DataPlane.objects.get(process=EAST).heard_at)

    assert len(set(written)) == 3


def test_times_after_now_count_as_now(upstream: Upstream) -> None:
    ahead = NOW + timedelta(hours=2)
    upstream.take(
        make_batch(
            presences=[make_presence("core/a2", at=ahead)],
            acks=[make_ack("core/a2", at=ahead)],
            reports=[make_report(at=ahead)],
            checks=[make_counts(until=ahead)],
        )
    )

    assert (row("core/a2").heard_at, acks("core/a2")) == (NOW, {17: NOW})
    assert (row().heard_at, row().reported_at) == (NOW, NOW)
    assert count_checks()[60] == (3, 1)


def test_report_counts_at_its_arrival_at_the_relay(upstream: Upstream) -> None:
    upstream.clock.later(600)
    upstream.take(make_batch(reports=[make_report(at=LATER)]))

    assert row().reported_at == LATER


def test_relay_is_that_of_the_last_contact(idle: Following, upstream: Upstream) -> None:
    upstream.clock.later(2)
    upstream.take(make_batch(1, presences=[make_presence(at=LATER)]))
    upstream.take(make_batch(2, presences=[make_presence(at=NOW, relay="east")]))
    assert row().relay == "east"

    hear(idle, upstream.ledger, "core/a1", "18")
    wait_until(lambda: row().relay == "", A_BATCH)
    upstream.take(make_batch(3, reports=[make_report(1, at=LATER)]))
    assert row().relay == ""  # Received before it was heard here.

    upstream.clock.later(1)
    upstream.take(make_batch(4, reports=[make_report(2, at=NOW + timedelta(seconds=3))]))
    assert row().relay == "east"
    upstream.clock.later(1)
    idle.loop.run(upstream.ledger.report(report(3), COPY))
    assert row().relay == ""


def test_two_presences_of_an_instance_in_one_message_are_both_stored(upstream: Upstream) -> None:
    upstream.clock.later(2)
    upstream.take(
        make_batch(
            presences=[make_presence(version=18, at=LATER), make_presence(version=17, at=NOW)]
        )
    )

    assert applies("core/a1", 18)
    assert (row().first_heard_at, row().heard_at) == (NOW, LATER)


def test_invalid_report_is_refused_and_the_others_are_stored(upstream: Upstream) -> None:
    refused = upstream.take(make_batch(reports=[make_report(1, color="red"), make_report(2)]))

    assert refused == 1
    assert row().seq == 2


def test_database_away_stores_nothing_and_says_so(idle: Following, upstream: Upstream) -> None:
    upstream.take(make_batch(1))
    idle.database.cut()
    with pytest.raises(Unavailable):
        upstream.take(make_batch(2, checks=[make_counts()]))
    with pytest.raises(Unavailable):
        upstream.take(make_batch(2, reports=[make_report()]))
    idle.database.mend()
    wait_until(lambda: _is_taken(upstream, make_batch(2, checks=[make_counts()])), 10)

    assert count_checks()[60] == (3, 1)


def _is_taken(upstream: Upstream, sent: RelayBatch) -> bool:
    try:
        upstream.take(sent)
    except Unavailable:
        return False
    return True


def test_orders_applied_behind_relays_are_known_for_a_while(upstream: Upstream) -> None:
    order = "3f2b7c1e-0000-4000-8000-000000000001"
    status = make_status(applied_orders={order: 4}, polling=5)
    upstream.receive(make_message(status=status))

    (found,) = upstream.ledger.relay_statuses.list_recent()
    assert (found.applied_orders, found.polling) == ({order: 4}, 5)
    upstream.clock.later(31)
    assert upstream.ledger.relay_statuses.list_recent() == []


def post(token: str, body: bytes) -> httpx.Response:
    served = plane()
    served.state.tokens |= {b"relaytoken": credential(RELAY_TOKEN, "relay")}
    headers = {"authorization": f"Bearer {token}"}
    return ask(served, "POST", RELAY_BATCH, headers, content=body)


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        (READER, b"{}", 403),
        (RELAY_TOKEN, b"{}", 400),
        (RELAY_TOKEN, b"[]", 400),
        (RELAY_TOKEN, b" " * (4 * 1024 * 1024 + 1), 413),
        ("sg_nobody_" + "x" * 32, b"{}", 401),
    ],
)
def test_endpoint_refuses(token: str, body: bytes, status: int) -> None:
    assert post(token, body).status_code == status


def test_endpoint_answers_503_while_nothing_is_written() -> None:
    body = batch.assemble_message(make_status(), [], [batch.dump_batch(make_batch())])

    response = post(RELAY_TOKEN, body)

    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
