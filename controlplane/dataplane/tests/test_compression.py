"""Gzip forms of polled documents: negotiated, tagged, and made once per version."""

import asyncio
import gzip
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import orjson
import pytest

from controlplane.core.signatures import SigningKey
from controlplane.dataplane.application import Application
from controlplane.dataplane.memory import compression
from controlplane.dataplane.memory.compression import GzipForm
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, ask, copy, plane
from switches.snapshot import SnapshotVersion
from switches.tests.snapshots import make_entry

SNAPSHOT = "/api/v1/snapshot"
CONFIG = "/api/v1/config?service=core"
FLAGS = "/ofrep/v1/evaluate/flags"
IDS = [f"segment:team-{number}" for number in range(200)]
GZIP = {**BEARER, "Accept-Encoding": "gzip"}
IDENTITY = {**BEARER, "Accept-Encoding": "identity"}
GZIP_ETAG = ETAG[:-1] + '-gzip"'


def with_policies(made):
    text = orjson.dumps({"override": None, "breaker": {"notes": "x" * 2000}})
    policies = Policies.build(EPOCH, 9, [DependencyPolicy("core", "oracle", 7, text)])
    made.state.install_policies(policies)
    return made


def ramping(version, ids, at_50_percent):
    """A copy in which one switch lets half of the traffic through."""
    entries = {switch_id: make_entry(switch_id) for switch_id in ids}
    entries[at_50_percent] = replace(entries[at_50_percent], allow_percent=Decimal(50))
    publication = SnapshotVersion(EPOCH, version, datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    return Copy.render(publication, entries.values())


def raw(served, method, path, headers, content=b""):
    """Return the answer as sent, without decoding."""

    async def requested():
        exchange = Exchange(Application(served), path, headers, method=method, body=content)
        async with exchange:
            await exchange.receive_status()
            return exchange.status, exchange.headers, await exchange.part()

    return asyncio.run(requested())


@pytest.mark.parametrize(("method", "path"), [("GET", SNAPSHOT), ("GET", CONFIG), ("POST", FLAGS)])
def test_what_is_polled_comes_in_both_forms_under_etags_of_their_own(method, path):
    served = with_policies(plane(*IDS))

    status, plain, body = raw(served, method, path, IDENTITY)
    _, packed, compressed = raw(served, method, path, GZIP)

    assert status == 200
    assert "content-encoding" not in plain
    assert packed["content-encoding"] == "gzip"
    assert gzip.decompress(compressed) == body
    assert packed["content-length"] == str(len(compressed))
    assert len(compressed) < len(body) / 4
    assert plain["vary"] == packed["vary"] == "Accept-Encoding"
    assert packed["etag"] == plain["etag"][:-1] + '-gzip"'


@pytest.mark.parametrize(("method", "path"), [("GET", SNAPSHOT), ("GET", CONFIG), ("POST", FLAGS)])
def test_a_gzip_form_is_made_once_per_version(method, path):
    served = with_policies(plane(*IDS))

    first, second = (raw(served, method, path, GZIP)[2] for _ in range(2))

    assert first is second


def test_a_snapshot_that_is_signed_again_keeps_its_gzip_form():
    served = plane(*IDS)
    _, _, compressed = raw(served, "GET", SNAPSHOT, GZIP)

    served.state.install_keys([SigningKey.generate()], ())

    _, headers, again = raw(served, "GET", SNAPSHOT, GZIP)
    assert again is compressed
    assert "switchgear-signature" in headers


@pytest.mark.parametrize(("method", "path"), [("GET", SNAPSHOT), ("GET", CONFIG), ("POST", FLAGS)])
@pytest.mark.parametrize("had", [IDENTITY, GZIP])
@pytest.mark.parametrize("encoding", [IDENTITY, GZIP])
def test_whoever_has_either_form_is_told_that_nothing_changed(method, path, had, encoding):
    served = with_policies(plane(*IDS))
    etag = ask(served, method, path, had).headers["etag"]

    response = ask(served, method, path, {**encoding, "If-None-Match": etag})

    assert response.status_code == 304
    assert "content-encoding" not in response.headers


def test_without_the_header_nothing_is_encoded_and_the_etag_stays():
    _, headers, body = raw(plane(*IDS), "GET", SNAPSHOT, BEARER)

    assert "content-encoding" not in headers
    assert headers["etag"] == ETAG
    assert len(orjson.loads(body)["switches"]) == len(IDS)


def test_an_answer_of_few_bytes_is_left_as_it_is():
    _, headers, _ = raw(plane(), "GET", SNAPSHOT, GZIP)

    assert "content-encoding" not in headers
    assert headers["etag"] == ETAG


def test_head_says_what_get_would():
    served = plane(*IDS)

    _, headers, body = raw(served, "HEAD", SNAPSHOT, GZIP)

    assert body == b""
    assert headers["content-encoding"] == "gzip"
    assert headers["etag"] == GZIP_ETAG


def test_an_instance_may_acknowledge_by_the_etag_of_the_gzip_form():
    served = plane(*IDS)
    headers = {**GZIP, "Switchgear-Instance": "core/a1", "Switchgear-Applied": GZIP_ETAG}

    ask(served, "GET", SNAPSHOT, headers)

    presences, _ = served.state.ledger.presence_buffer.take_due(0, 10, 0)
    assert [(each.id, each.epoch, each.version) for each in presences] == [("core/a1", EPOCH, 17)]


def test_a_held_poll_gets_the_gzip_form_of_the_next_version():
    async def polled():
        served = plane(*IDS)
        headers = {**GZIP, "If-None-Match": GZIP_ETAG}
        async with Exchange(Application(served), f"{SNAPSHOT}?wait=20", headers) as exchange:
            await asyncio.sleep(0)
            served.state.install_copy(copy(18, *IDS), confirmed_at=served.state.now())
            await exchange.receive_status()
            return exchange.headers, await exchange.part()

    headers, body = asyncio.run(polled())

    assert headers["content-encoding"] == "gzip"
    assert orjson.loads(gzip.decompress(body))["version"] == 18


def test_a_stream_is_never_encoded():
    async def streamed():
        async with Exchange(Application(plane(*IDS)), f"{SNAPSHOT}/stream", GZIP) as exchange:
            await exchange.receive_status()
            return exchange.headers, await exchange.part()

    headers, part = asyncio.run(streamed())

    assert "content-encoding" not in headers
    assert part.startswith(b"retry: ")


def test_many_at_once_wait_for_one_compression_and_one_may_leave():
    body = b"%b" % orjson.dumps([f"segment:{number}" for number in range(20_000)])
    assert len(body) > compression.MAX_INLINE_BYTES

    async def gathered():
        form = GzipForm(body)
        leaving = asyncio.ensure_future(form.get())
        staying = [asyncio.ensure_future(form.get()) for _ in range(50)]
        await asyncio.sleep(0)
        leaving.cancel()
        made = await asyncio.gather(*staying)
        return made, await form.get()

    made, later = asyncio.run(gathered())

    assert gzip.decompress(later) == body
    assert all(each is later for each in made)


def test_callers_for_whom_ramps_decide_alike_share_a_form():
    served = plane(*IDS)
    served.state.install_copy(ramping(18, IDS, at_50_percent="segment:team-7"), confirmed_at=0.0)
    bodies = {}
    for number in range(40):
        content = orjson.dumps({"context": {"targetingKey": f"user-{number}"}})
        _, headers, packed = raw(served, "POST", FLAGS, GZIP, content)
        _, _, plain = raw(served, "POST", FLAGS, IDENTITY, content)
        assert headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed) == plain
        bodies[packed] = headers["etag"]

    assert len(bodies) == 2


def test_form_made_before_the_time_was_known_is_not_served_after():
    """Before the database's time is known no engagement lapses, whatever the local clock shows."""
    served = plane(*IDS)
    publication = SnapshotVersion(EPOCH, 18, datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    over = replace(
        make_entry(IDS[0]), on_expiry="release", expires_at=datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
    )
    served.state.install_copy(
        Copy.render(publication, [over, *map(make_entry, IDS[1:])]), confirmed_at=0.0
    )
    raw(served, "POST", FLAGS, GZIP)

    served.state.set_clock(datetime.now(UTC), served.state.now())
    _, _, plain = raw(served, "POST", FLAGS, IDENTITY)
    _, _, packed = raw(served, "POST", FLAGS, GZIP)

    assert plain.count(b'"value":true') == 1
    assert gzip.decompress(packed) == plain


def test_when_groups_are_too_many_the_rest_is_served_unencoded():
    served = plane(*IDS)
    publication = SnapshotVersion(EPOCH, 18, datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    half = [replace(make_entry(one), allow_percent=Decimal(50), salt=one) for one in IDS]
    served.state.install_copy(Copy.render(publication, half), confirmed_at=0.0)

    kinds = set()
    for number in range(40):
        content = orjson.dumps({"context": {"targetingKey": f"user-{number}"}})
        status, headers, _ = raw(served, "POST", FLAGS, GZIP, content)
        assert status == 200
        kinds.add(headers.get("content-encoding"))

    assert kinds == {"gzip", None}


def test_httpx_reads_the_document_without_knowing_of_it():
    response = ask(plane(*IDS), "GET", SNAPSHOT, BEARER)

    assert isinstance(response, httpx.Response)
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.json()["switches"]) == len(IDS)


class FailsOnce(ThreadPoolExecutor):
    """An executor whose first task raises MemoryError."""

    failed = False

    def submit(self, fn, /, *args, **kwargs):
        if self.failed:
            return super().submit(fn, *args, **kwargs)
        self.failed = True
        future = Future()
        future.set_exception(MemoryError())
        return future


def test_body_whose_compression_failed_is_compressed_for_the_next_caller():
    body = b"switchgear" * compression.MAX_INLINE_BYTES
    form = GzipForm(body)

    async def ask_twice():
        asyncio.get_running_loop().set_default_executor(FailsOnce(1))
        with pytest.raises(MemoryError):
            await form.get()
        return await form.get()

    assert gzip.decompress(asyncio.run(ask_twice())) == body
