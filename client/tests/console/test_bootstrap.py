"""A fresh process starts from its bootstrap until the console has answered, and no longer."""

import json
import logging
import multiprocessing
import os
import threading
import time
from collections import ChainMap
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest

from switchgear import Switchgear
from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.timings import Timings
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from tests import faults
from tests.fake_console import SNAPSHOT, TOKEN, console, document, entry
from tests.quick_client import QUICK, QuickClient
from tests.wait_helpers import wait_until

EPOCH, OTHER = "0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b41", "0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b42"
NOWHERE = "http://127.0.0.1:9"


def snapshot(version=7, *features, epoch=EPOCH, hours_old=3):
    switches = {f"feature:{each}": entry(f"feature:{each}") for each in features or ("chat",)}
    published_at = datetime.now(UTC) - timedelta(hours=hours_old)
    return document(epoch, version, switches, published_at=published_at.isoformat())


def client(url=NOWHERE, **arguments):
    return QuickClient(url, TOKEN, **{"service": "core", "state_dir": None, **arguments})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_bytes(snapshot())
    return path


def errors(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.fixture
def store():
    """An object store, which has the snapshot at any path and wants no token."""
    with console(lie=lambda asked: asked.reply(200, snapshot())) as made:
        made.answer = lambda exchange: made.lie(exchange)
        yield made


@pytest.mark.parametrize("kind", ["path", "text", "mapping"])
def test_first_answer_of_a_fresh_process_is_by_its_bootstrap(file, kind):
    sources = {"path": file, "text": str(file), "mapping": json.loads(snapshot())}
    with client(bootstrap=sources[kind]) as gear:
        decision, status = gear.check(feature="chat"), gear.status()

        assert (decision.allowed, decision.known, decision.version) == (False, True, 7)
        assert (status.source, status.age_seconds) == ("bootstrap", None)
        assert status.bootstrap_age_seconds == pytest.approx(3 * 3600, abs=60)
        assert not gear.wait_ready(0.05)


def test_url_is_fetched_before_the_first_answer_and_without_the_token(store):
    with client(bootstrap=f"{store.url}{SNAPSHOT}?signature=hunter2") as gear:
        assert not gear.allowed(feature="chat")
        assert gear.status().source == "bootstrap"

    [asked] = store.asked
    assert asked.query == {"signature": "hunter2"}
    assert "authorization" not in asked.headers
    assert TOKEN not in repr(asked)


def test_url_that_hangs_delays_the_start_by_no_more_than_its_time(store):
    store.lie = faults.hangs
    began = time.monotonic()
    with client(bootstrap=f"{store.url}/a") as gear:
        took = time.monotonic() - began
        assert gear.allowed(feature="chat")

    assert took < QUICK.bootstrap + 1


def test_start_waits_for_a_url_no_longer_than_two_seconds():
    assert Timings().bootstrap <= 2


def test_url_delays_no_start_that_the_console_is_quicker_for(store):
    store.lie = faults.hangs
    with console() as there:
        began = time.monotonic()
        with Switchgear(there.url, TOKEN, state_dir=None, bootstrap=f"{store.url}/a"):
            assert time.monotonic() - began < 1.5


def test_url_that_answers_late_counts_unless_the_console_has_answered(store):
    go = threading.Event()

    def late(exchange):
        go.wait(20)
        exchange.reply(200, snapshot())

    store.lie = late
    with client(bootstrap=f"{store.url}/a") as gear:
        go.set()
        wait_until(lambda: not gear.allowed(feature="chat"))


@pytest.mark.parametrize("where", ["file", "url"])
@pytest.mark.parametrize("version", [1, 99])
@pytest.mark.parametrize("epoch", [EPOCH, OTHER])
def test_console_s_answer_counts_whatever_the_bootstrap_says(store, file, where, version, epoch):
    body = snapshot(version, "chat", epoch=epoch)
    file.write_bytes(body)
    store.lie = lambda asked: asked.reply(200, body)
    with console(epoch=EPOCH, version=5) as there:
        there.engage("feature:search")
        source = file if where == "file" else f"{store.url}/a"
        with client(there.url, bootstrap=source) as gear:
            assert gear.wait_ready(20)
            status = gear.status()

            assert (gear.allowed(feature="chat"), gear.allowed(feature="search")) == (True, False)
            assert (status.source, status.version) == ("console", there.version)
            assert status.bootstrap_age_seconds is None
            assert gear.status().error is None


def test_bootstrap_that_comes_after_the_console_is_not_taken():
    store = SnapshotStore(ConsoleClock(SystemTime()))
    store.accept(parse_snapshot(snapshot(5, "search")))

    assert not store.bootstrap(parse_snapshot(snapshot(99)))
    assert store.snapshot.version == 5


def test_bootstrap_that_comes_after_the_console_has_confirmed_the_copy_is_not_taken():
    store = SnapshotStore(ConsoleClock(SystemTime()))
    body = snapshot(5, "search")
    store.accept(parse_snapshot(body), is_live=False)
    assert store.confirm(body)

    assert not store.bootstrap(parse_snapshot(snapshot(99)))


@pytest.mark.parametrize(
    ("version", "epoch", "source"),
    [(6, EPOCH, "bootstrap"), (5, EPOCH, "disk"), (4, EPOCH, "disk"), (99, OTHER, "disk")],
)
def test_copy_on_disk_gives_way_to_a_newer_version_of_its_epoch_alone(
    tmp_path, file, version, epoch, source
):
    with console(epoch=EPOCH, version=4) as there:
        there.engage("feature:search")
        with client(there.url, state_dir=tmp_path / "state") as gear:
            wait_until(lambda: gear.status().way == "stream")
    file.write_bytes(snapshot(version, epoch=epoch))

    with client(there.url, state_dir=tmp_path / "state", bootstrap=file) as gear:
        assert gear.status().source == source
        assert gear.allowed(feature="chat") == (source == "disk")


def test_console_that_says_the_same_as_the_bootstrap_confirms_it(file):
    with console(epoch=EPOCH) as there:
        there.engage("feature:chat")
        file.write_bytes(there.document)
        with client(there.url, bootstrap=file) as gear:
            assert gear.wait_ready(20)
            assert gear.status().source == "console"


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\x00", b"[" * 100_000, b'{"schema": 1}', b" " * (2**24 + 1)],
    ids=["empty", "object", "bytes", "deep", "half", "large"],
)
def test_file_that_is_no_snapshot_is_logged_once_and_the_client_goes_on(file, content, caplog):
    file.write_bytes(content)
    with client(bootstrap=file) as gear:
        assert gear.allowed(feature="chat")
        assert gear.status().source == "none"
        [problem] = gear.status().problems

    assert [each for each in errors(caplog) if "bootstrap" in each] == [f"switchgear: {problem}"]


@pytest.mark.parametrize("source", ["/nonexistent/file", "/", "/dev/zero", "ftp://there/a", "\0"])
def test_source_that_can_not_be_read_is_logged_once(source, caplog):
    with client(bootstrap=source) as gear:
        assert gear.allowed(feature="chat")
        assert len(gear.status().problems) == 1

    assert len(errors(caplog)) == 1


def test_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, caplog):
    os.mkfifo(tmp_path / "pipe")
    with client(bootstrap=tmp_path / "pipe"):
        assert len(errors(caplog)) == 1


@pytest.mark.parametrize("kind", [MappingProxyType, ChainMap])
def test_mapping_may_be_of_any_type(kind):
    document = json.loads(snapshot(7, "chat"))
    document["switches"] = [kind(row) for row in document["switches"]]

    with client(bootstrap=kind(document)) as gear:
        assert not gear.allowed(feature="chat")


class Broken(dict):
    def items(self):
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    "mapping", [{}, {"schema": object()}, {"a": {1: {2}}}, Broken({"schema": 1})]
)
def test_mapping_that_is_no_snapshot_is_logged_once(mapping, caplog):
    with client(bootstrap=mapping):
        assert len(errors(caplog)) == 1


@pytest.mark.parametrize(
    "lie",
    [
        faults.errors,
        faults.redirects,
        faults.another_page,
        faults.cut_off,
        faults.endless_body,
    ],
)
def test_url_that_gives_no_snapshot_is_logged_once_without_its_query(store, lie, caplog):
    store.lie = lie
    with client(bootstrap=f"{store.url}/a?signature=hunter2") as gear:
        wait_until(lambda: gear.status().problems)
        assert gear.allowed(feature="chat")

    assert len(errors(caplog)) == 1
    assert "hunter2" not in caplog.text


def test_credentials_in_the_url_are_refused_and_not_shown(caplog):
    with client(bootstrap="https://kim:hunter2@there/a") as gear:
        [problem] = gear.status().problems

    assert "hunter2" not in caplog.text + problem


def test_bootstrap_of_a_wrong_type_raises():
    with pytest.raises(TypeError, match="bootstrap"):
        client(bootstrap=7)


def test_bootstrap_counts_without_a_console(store):
    with Switchgear(None, bootstrap=f"{store.url}/a") as gear:
        assert not gear.allowed(feature="chat")


def test_environment_names_the_bootstrap(monkeypatch, file):
    monkeypatch.delenv("SWITCHGEAR_URL", raising=False)
    monkeypatch.setenv("SWITCHGEAR_BOOTSTRAP", f" {file}\n")

    with Switchgear.from_env() as gear:
        assert not gear.allowed(feature="chat")


def test_forked_child_goes_by_the_bootstrap_of_its_parent(file):
    with client(bootstrap=file) as gear:
        answers = multiprocessing.get_context("fork").SimpleQueue()
        child = multiprocessing.get_context("fork").Process(
            target=lambda: answers.put((gear.allowed(feature="chat"), gear.status().source))
        )
        child.start()
        child.join(20)

        assert answers.get() == (False, "bootstrap")


def test_child_forked_while_its_parent_fetches_fetches_itself(store):
    is_forked = threading.Event()

    def late(exchange):
        is_forked.wait(20)
        exchange.reply(200, snapshot())

    store.lie = late
    with client(bootstrap=f"{store.url}/a") as gear:
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()

        def ask():
            wait_until(lambda: not gear.allowed(feature="chat"))
            answers.put(gear.status().source)

        child = context.Process(target=ask)
        child.start()
        is_forked.set()
        child.join(40)

        assert child.exitcode == 0
        assert answers.get() == "bootstrap"


def test_thread_that_fetches_ends_with_the_client(store):
    store.lie = faults.hangs
    gear = client(bootstrap=f"{store.url}/a")
    gear.close(1)

    wait_until(
        lambda: not [one for one in threading.enumerate() if one.name == "switchgear-bootstrap"]
    )


def test_engagement_of_a_bootstrap_does_not_end_by_the_local_clock():
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    row = entry("feature:chat", on_expiry="release", expires_at=past)
    with client(bootstrap=json.loads(document(EPOCH, 7, {"feature:chat": row}))) as gear:
        assert not gear.allowed(feature="chat")
