"""ETags while a drill runs: the two documents are never confused."""

import asyncio

import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.ingest import presence_buffer
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, ask, plane
from controlplane.dataplane.tests.test_rehearsal import (
    BEGAN,
    MARKED,
    OTHER,
    SNAPSHOT,
    SOON,
    STREAM,
    copy,
    drilled,
    rehearsing,
)
from switches.snapshot import SnapshotVersion


def polled(served, headers: dict[str, str], etag: str, path: str = SNAPSHOT):
    return ask(served, "GET", path, {**headers, "If-None-Match": etag})


def test_ones_own_document_is_304_and_the_others_is_not() -> None:
    served = rehearsing()
    tags = [ask(served, "GET", SNAPSHOT, headers).headers["etag"] for headers in (MARKED, OTHER)]

    for headers, own, others in ((MARKED, *tags), (OTHER, *reversed(tags))):
        response = polled(served, headers, own)
        assert (response.status_code, response.content) == (304, b"")
        assert polled(served, headers, f"W/{others}, {own}").status_code == 304
        assert (
            polled(served, headers, others).content == ask(served, "GET", SNAPSHOT, headers).content
        )


def test_newer_version_is_kept_whichever_document_it_was() -> None:
    served = rehearsing()

    for headers in (MARKED, OTHER):
        for suffix in ("", "-0123abcd"):
            assert polled(served, headers, f'"{EPOCH}.18{suffix}"').status_code == 304
            assert polled(served, headers, f'"{EPOCH}.16{suffix}"').status_code == 200


@pytest.mark.parametrize("headers", [MARKED, OTHER, BEARER])
def test_caches_are_told_by_what_the_answers_differ(headers: dict[str, str]) -> None:
    served = rehearsing()
    response = ask(served, "GET", SNAPSHOT, headers)

    assert response.headers["vary"] == "Accept-Encoding, Switchgear-Instance"
    again = polled(served, headers, response.headers["etag"])
    assert again.headers["vary"] == "Accept-Encoding, Switchgear-Instance"
    assert ask(plane(), "GET", SNAPSHOT, headers).headers["vary"] == "Accept-Encoding"


def test_drill_that_ended_by_itself_is_no_304() -> None:
    during = ask(rehearsing(), "GET", SNAPSHOT, MARKED).headers["etag"]
    after = rehearsing(drills=(drilled(seconds=-1),))

    for path in (SNAPSHOT, f"{SNAPSHOT}?wait=20"):
        response = polled(after, MARKED, during, path)
        assert (response.status_code, response.content) == (200, copy(17).body)
        assert response.headers["etag"] == ETAG


def test_one_of_two_drills_that_ended_by_itself_is_no_304() -> None:
    late = drilled("feature:late")
    both = ask(rehearsing(drills=(drilled(), late)), "GET", SNAPSHOT, MARKED).headers["etag"]

    assert polled(rehearsing(drills=(late,)), MARKED, both).status_code == 200


def test_replica_that_has_only_its_disk_ends_no_drill() -> None:
    during = ask(rehearsing(), "GET", SNAPSHOT, MARKED).headers["etag"]
    restarted = plane()
    kept = Copy.render(SnapshotVersion(EPOCH, 17, BEGAN), [], is_kept=True)
    restarted.state.install_copy(kept, restarted.state.now())

    assert polled(restarted, MARKED, during).status_code == 304


def test_stream_goes_on_after_the_version_whichever_document_it_was() -> None:
    async def run() -> None:
        known = {**MARKED, "Last-Event-ID": f"{EPOCH}.17"}
        async with Exchange(Application(rehearsing()), STREAM, known) as stream:
            await stream.receive_status()
            await stream.part()
            with pytest.raises(TimeoutError):
                await stream.part(SOON)

    asyncio.run(run())


@pytest.mark.parametrize("suffix", ["", "-0123abcd"])
def test_either_etag_is_taken_for_the_version_that_is_applied(suffix: str) -> None:
    applied = f'"{EPOCH}.17{suffix}"'.encode()

    assert (
        presence_buffer._parse_mark(applied, None)
        == presence_buffer._parse_mark(applied, copy(17))
        == ((EPOCH, 17), suffix.removeprefix("-"))
    )
