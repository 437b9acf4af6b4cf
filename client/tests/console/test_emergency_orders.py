"""Emergency orders reach a client by every way, and stay in force behind planes that differ."""

import itertools
import json
import time
import uuid
from dataclasses import replace

import pytest

from controlplane.dataplane.ingest.report_merge import parse_report
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.file_cache import CachedDocument, SnapshotCache
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from tests import faults
from tests.console.follower_parts import following
from tests.fake_console import (
    SNAPSHOT,
    STREAM,
    TOKEN,
    Console,
    Exchange,
    Lie,
    console,
    document,
    entry,
    honest,
    honest_held,
    honest_stream,
)
from tests.quick_client import QUICK, PromptClient
from tests.wait_helpers import wait_until

EPOCH = str(uuid.UUID(int=1))
FIRST, SECOND = (str(uuid.UUID(int=number)) for number in (11, 12))
WAYS = pytest.mark.parametrize(
    ("way", "stream_lie", "held_lie"),
    [
        ("stream", None, None),
        ("held", faults.another_page, None),
        ("poll", faults.another_page, faults.errors),
    ],
)


def balanced(*planes: Console) -> Lie:
    """Send streams and other requests to one plane after the other."""
    turns = {STREAM: itertools.cycle(planes), SNAPSHOT: itertools.cycle(planes)}

    def answer(exchange: Exchange) -> None:
        plane = replace(exchange, console=next(turns[exchange.asked.path]))
        if exchange.asked.path == STREAM:
            honest_stream(plane)
        elif "wait" in exchange.asked.query:
            honest_held(plane)
        else:
            honest(plane)

    return answer


def honest_at(plane: Console) -> Lie:
    return balanced(plane)


def rate(there: Console, seconds: float = 2.0) -> float:
    """Return the requests for snapshots per second from now on."""
    before = len(there.requests_for(SNAPSHOT)) + len(there.requests_for(STREAM))
    time.sleep(seconds)
    after = len(there.requests_for(SNAPSHOT)) + len(there.requests_for(STREAM))
    return (after - before) / seconds


@WAYS
def test_order_and_its_end_arrive_without_a_new_version(way, stream_lie, held_lie):
    with console(stream_lie=stream_lie, held_lie=held_lie) as there, following(there) as here:
        wait_until(lambda: here.follower.way == way, 20, lambda: here.follower.way)

        there.order("feature:chat", FIRST)
        wait_until(lambda: here.blocks("chat"), 10)
        there.close_order("feature:chat", FIRST)
        wait_until(lambda: not here.blocks("chat"), 10)

        assert here.follower.way == way


@WAYS
@pytest.mark.parametrize("versions", [(5, 5), (5, 6), (6, 5)])
def test_planes_that_differ_release_nothing_and_are_not_asked_in_a_loop(
    way, stream_lie, held_lie, versions
):
    first, second = (Console(epoch=EPOCH, version=version) for version in versions)
    first.order("feature:chat", FIRST)
    second.order("feature:search", SECOND)
    lie = balanced(first, second)
    patience = replace(QUICK, max_poll=0.5)
    with (
        console(lie=lie, stream_lie=stream_lie, held_lie=held_lie) as there,
        following(there, patience=patience) as here,
    ):
        if way == "stream":
            wait_until(lambda: here.follower.way == way, 20)
            first.cut()
        wait_until(lambda: here.blocks("chat") and here.blocks("search"), 20)
        wait_until(lambda: here.follower.way == way, 20)

        assert rate(there) <= 5
        assert here.blocks("chat")
        assert here.blocks("search")
        assert here.follower.error is None


def test_plane_that_lacks_the_order_holds_a_poll_of_a_client_that_knows_it():
    knowing, other = (Console(epoch=EPOCH, version=5) for _ in range(2))
    knowing.order("feature:chat", FIRST)
    with (
        console(lie=balanced(knowing, other), stream_lie=faults.another_page) as there,
        following(there) as here,
    ):
        wait_until(lambda: here.blocks("chat") and here.follower.way == "held", 20)
        wait_until(lambda: ", " in there.asked[-1].headers.get("if-none-match", ""), 20)

        other.engage("feature:search")
        wait_until(lambda: here.blocks("search"), 10)

        assert here.blocks("chat")


def test_stream_of_a_plane_that_is_behind_brings_its_orders():
    ahead, behind = Console(epoch=EPOCH, version=6), Console(epoch=EPOCH, version=5)
    with (
        console(lie=honest_at(ahead), stream_lie=honest_at(behind)) as there,
        following(there) as here,
    ):
        wait_until(lambda: here.follower.way == "stream", 20)
        for number in range(3):
            behind.order(f"feature:f{number}", str(uuid.UUID(int=20 + number)))
            wait_until(lambda number=number: here.blocks(f"f{number}"), 10)

        behind.close_order("feature:f0", str(uuid.UUID(int=20)))
        behind.order("feature:last", FIRST)
        wait_until(lambda: here.blocks("last"), 10)
        assert here.blocks("f0")
        assert here.store.view.version == 6
        assert len(there.requests_for(STREAM)) == 1


def test_older_snapshot_without_orders_is_an_error():
    ahead, behind = Console(epoch=EPOCH, version=6), Console(epoch=EPOCH, version=5)
    with console(lie=honest_at(ahead)) as there, following(there, stream=False) as here:
        there.lie = lambda exchange: exchange.reply(200, behind.document)
        wait_until(lambda: here.follower.error == "outdated snapshot", 10)


def test_applied_orders_are_reported_and_acknowledged_soon():
    with console() as there, PromptClient(there.url, TOKEN, state_dir=None) as gear:
        wait_until(lambda: gear.status().way == "stream" and there.reports, 20)

        there.order("feature:chat", FIRST)
        wait_until(lambda: there.reports[-1].get("applied_orders") == [FIRST], 5)
        mark = there.etag.strip('"')
        assert mark.startswith(f"{there.epoch}.1-")
        wait_until(
            lambda: there.requests_for(SNAPSHOT)[-1].headers.get("switchgear-applied") == mark,
            5,
        )
        assert gear.status().orders == (FIRST,)

        there.close_order("feature:chat", FIRST)
        wait_until(lambda: there.reports[-1]["applied_orders"] == [], 5)
        reported = [parse_report(report) for report in there.reports]
        assert (FIRST,) in [report.applied_orders for report in reported]
        assert gear.status().orders == ()


@pytest.mark.parametrize("is_listed", [True, False])
def test_answer_that_nothing_is_new_renews_the_orders_that_are_listed(is_listed):
    with console() as there, following(there, stream=False) as here:
        there.order("feature:chat", FIRST)
        wait_until(lambda: here.blocks("chat"), 10)
        if not is_listed:  # A data plane that is behind keeps the client's newer version.
            there.lie = lambda exchange: exchange.reply(304, etag=f'"{there.epoch}.0"')
        time.sleep(0.3)
        listed_at = here.store._orders.kept[FIRST].listed_at
        asked = len(there.requests_for(SNAPSHOT))
        wait_until(lambda: len(there.requests_for(SNAPSHOT)) > asked + 3, 10)

        assert (here.store._orders.kept[FIRST].listed_at > listed_at) is is_listed


def test_answer_by_the_mark_of_all_orders_renews_those_of_other_data_planes():
    first, second = Console(epoch=EPOCH, version=5), Console(epoch=EPOCH, version=5)
    first.order("feature:chat", FIRST)
    second.order("feature:search", SECOND)
    with console(lie=honest_at(first)) as there, following(there, stream=False) as here:
        wait_until(lambda: here.blocks("chat"), 10)
        there.lie = honest_at(second)
        wait_until(lambda: here.blocks("search"), 10)
        time.sleep(0.3)
        before = here.store._orders.kept
        time.sleep(0.3)
        after, listed_at = here.store._orders.kept, before[FIRST].listed_at
        assert after[FIRST].listed_at == listed_at
        assert after[SECOND].listed_at > before[SECOND].listed_at

        second.order("feature:chat", FIRST)
        there.lie = lambda exchange: exchange.reply(304, etag=second.etag[:-1] + '-gzip"')
        wait_until(lambda: here.store._orders.kept[FIRST].listed_at > listed_at, 10)


def test_stream_is_opened_with_the_mark_of_the_orders_applied():
    with console() as there:
        there.order("feature:chat", FIRST)
        with following(there) as here:
            wait_until(lambda: here.follower.way == "stream", 10)
            [stream] = there.requests_for(STREAM)
            assert stream.headers["last-event-id"] == there.etag.strip('"')


def settings(folder):
    return Settings(url="https://there", token="t", state_dir=folder, service="core", instance="a1")


def store_with(*documents):
    store = SnapshotStore(ConsoleClock(SystemTime()))
    for each in documents:
        store.accept(parse_snapshot(each))
    return store


def listing(version, *, opened=(), closed=()):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    entries = {
        f"feature:{order}": entry(f"feature:{order}", emergency=order, engaged_at=at)
        for order in opened
    }
    return document(EPOCH, version, entries, orders=(tuple(opened), tuple(closed)))


def restored(folder):
    store = SnapshotStore(ConsoleClock(SystemTime()))
    SnapshotCache(settings(folder)).restore(store)
    return store


def test_orders_survive_a_restart_although_the_latest_snapshot_lacks_them(tmp_path):
    store = store_with(listing(5, opened=[FIRST]), listing(6, opened=[SECOND]))
    SnapshotCache(settings(tmp_path)).save(store)

    again = restored(tmp_path)

    assert again.view.orders.ids == (FIRST, SECOND)
    assert again.view.version == 6
    assert again.view.entries[f"feature:{FIRST}"] == store.view.entries[f"feature:{FIRST}"]


def test_orders_that_another_process_saved_stay_in_the_file(tmp_path):
    SnapshotCache(settings(tmp_path)).save(store_with(listing(5, opened=[FIRST])))

    SnapshotCache(settings(tmp_path)).save(store_with(listing(5, opened=[SECOND])))

    assert restored(tmp_path).view.orders.ids == (FIRST, SECOND)


def test_closed_order_is_removed_from_the_file_by_whichever_process_saves(tmp_path):
    SnapshotCache(settings(tmp_path)).save(store_with(listing(5, opened=[FIRST])))

    SnapshotCache(settings(tmp_path)).save(store_with(listing(6, closed=[FIRST])))
    SnapshotCache(settings(tmp_path)).save(store_with(listing(7)))

    assert restored(tmp_path).view.orders.ids == ()


def test_saved_order_that_nobody_closed_is_removed_after_two_days(tmp_path):
    old = document(
        *(EPOCH, 5, {"feature:chat": entry("feature:chat", emergency=FIRST)}),
        orders=((FIRST,), ()),
    )
    SnapshotCache(settings(tmp_path)).save(store_with(old))

    SnapshotCache(settings(tmp_path)).save(store_with(listing(6)))

    assert restored(tmp_path).view.orders.ids == ()


def test_no_file_of_orders_is_written_without_any(tmp_path):
    SnapshotCache(settings(tmp_path)).save(store_with(listing(5)))

    assert list(tmp_path.glob("*.orders")) == []


@pytest.mark.parametrize("content", [b"{}", b"[1]", b'[{"id":"feature:chat"}]', b"["])
def test_file_of_orders_with_other_content_is_not_used_and_written_anew(tmp_path, content, caplog):
    cache = SnapshotCache(settings(tmp_path))
    cache._orders.update(lambda _found: CachedDocument("", 0, (), content))

    assert restored(tmp_path).view.orders.ids == ()
    assert "was not read" in caplog.text
    cache.save(store_with(listing(5, opened=[FIRST])))
    assert restored(tmp_path).view.orders.ids == (FIRST,)


def test_missing_file_of_orders_is_written_again(tmp_path):
    cache, store = SnapshotCache(settings(tmp_path), 0.0), store_with(listing(5, opened=[FIRST]))
    cache.save(store)
    [file] = tmp_path.glob("*.orders")
    file.unlink()

    cache.save_if_missing(store)

    assert json.loads(file.read_bytes().partition(b"\n")[2])[0]["emergency"] == FIRST
