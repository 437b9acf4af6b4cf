"""Marked instances get the drill copy while a drill runs, and no other instance does."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.policies import Policies
from controlplane.dataplane.memory.served_copy import MAX_NAMES, Copy, DrillSnapshot
from controlplane.dataplane.sync.snapshot_keeper import collect_state
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, ask, plane
from switches.drills.patterns import Marks
from switches.emergency.orders import Order, Orderer, plan_order
from switches.snapshot import SnapshotEntry, SnapshotVersion
from switches.tests.snapshots import make_entry

SNAPSHOT, STREAM, CHECK = "/api/v1/snapshot", "/api/v1/snapshot/stream", "/api/v1/check"
MARKS = Marks.from_patterns(["core/canary-1", "chat/*"])
MARKED = {**BEARER, "Switchgear-Instance": "core/canary-1"}
OTHER = {**BEARER, "Switchgear-Instance": "core/canary-2"}
BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SOON = 0.15


def drilled(switch_id: str = "segment:finance", seconds: float = 300) -> SnapshotEntry:
    return make_entry(
        switch_id,
        salt="d",
        reason="Drill: before the sale",
        engaged_at=BEGAN,
        expires_at=datetime.now(UTC) + timedelta(seconds=seconds),
        on_expiry="release",
    )


def copy(version: int, *switch_ids: str, drills: tuple[SnapshotEntry, ...] = ()) -> Copy:
    return Copy.render(
        SnapshotVersion(EPOCH, version, BEGAN),
        [make_entry(switch_id) for switch_id in switch_ids],
        drill_snapshot=DrillSnapshot(MARKS, drills) if drills else None,
    )


def rehearsing(*switch_ids: str, drills: tuple[SnapshotEntry, ...] = ()):
    """A plane at version 17 with a drill of `segment:finance`."""
    made = plane()
    made.state.install_copy(copy(17, *switch_ids, drills=drills or (drilled(),)), made.state.now())
    return made


def make_order(switch: str) -> Order:
    by = Orderer("user", "kim", 7)
    request = {"switch": switch, "reason": "OpenAI 5xx on completions"}
    return plan_order(request, id=uuid4(), by=by, at=datetime.now(UTC), plane="dp-1")


def switches(response) -> dict[str, dict[str, object]]:
    return {each["id"]: each for each in response.json()["switches"]}


def test_marked_instance_gets_the_drilled_switch_too() -> None:
    served = rehearsing("feature:search")

    response = ask(served, "GET", SNAPSHOT, MARKED)

    found = switches(response)
    assert list(found) == ["feature:search", "segment:finance"]
    entry = found["segment:finance"]
    assert (entry["state"], entry["allow_percent"], entry["on_expiry"]) == ("engaged", 0, "release")
    assert entry["reason"] == "Drill: before the sale"
    assert entry["expires_at"] is not None
    assert int(response.headers["content-length"]) == len(response.content)


def test_both_documents_have_the_same_version_and_etags_of_their_own() -> None:
    served = rehearsing()

    ours, theirs = ask(served, "GET", SNAPSHOT, MARKED), ask(served, "GET", SNAPSHOT, OTHER)

    assert theirs.headers["etag"] == ETAG
    assert re.fullmatch(rf'"{EPOCH}\.17-[0-9a-f]{{8}}"', ours.headers["etag"])
    assert ours.headers["switchgear-version"] == theirs.headers["switchgear-version"] == "17"
    assert ours.json()["version"] == theirs.json()["version"] == 17
    assert ours.json()["published_at"] == theirs.json()["published_at"]
    assert ours.content != theirs.content


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "core/canary-2",
        "core/canary-10",
        "core/canary",
        "Core/canary-1",
        "core/canary-1/x",
        "core/",
        "core",
        "chat",
        "chat/",
        "chat/a/b",
        "chats/a",
        "token:chat",
        "*",
        "*/*",
        "core/*",
    ],
)
def test_everybody_else_gets_the_normal_document(name: str | None) -> None:
    served = rehearsing("feature:search")
    headers = BEARER if name is None else {**BEARER, "Switchgear-Instance": name}

    response = ask(served, "GET", SNAPSHOT, headers)

    assert response.content == copy(17, "feature:search").body


@pytest.mark.parametrize("name", ["core/canary-1", "chat/a", "chat/*", "chat/b-2"])
def test_names_and_whole_services_are_marked(name: str) -> None:
    response = ask(rehearsing(), "GET", SNAPSHOT, {**BEARER, "Switchgear-Instance": name})

    assert "segment:finance" in switches(response)


def test_switch_that_is_really_stopped_is_told_as_it_is_to_all() -> None:
    served = rehearsing("segment:finance")

    ours, theirs = ask(served, "GET", SNAPSHOT, MARKED), ask(served, "GET", SNAPSHOT, OTHER)

    assert ours.content == theirs.content == copy(17, "segment:finance").body


def test_past_its_end_it_is_served_to_nobody_whoever_is_down() -> None:
    async def run() -> None:
        served = rehearsing(drills=(drilled(seconds=0.3), drilled("feature:late", 60)))
        app = Application(served)
        for within, expected in ((0.0, [b"finance", b"late"]), (0.4, [b"late"])):
            await asyncio.sleep(within)
            async with Exchange(app, SNAPSHOT, MARKED) as poll:
                await poll.receive_status()
                body = await poll.part()
                assert [each for each in (b"finance", b"late") if each in body] == expected

    asyncio.run(run())


def test_all_ended_is_the_normal_document_again() -> None:
    served = rehearsing("feature:search", drills=(drilled(seconds=-1),))

    assert ask(served, "GET", SNAPSHOT, MARKED).content == copy(17, "feature:search").body


def test_any_number_of_names_is_told_apart_within_bounds() -> None:
    made = DrillSnapshot(MARKS, (drilled(),))
    normal, now = copy(17), datetime.now(UTC)

    for _ in range(2):
        for number in range(MAX_NAMES + 100):
            assert made.copy_for(b"core/x%d" % number, now, normal) is normal
            assert len(made._names) <= MAX_NAMES
        assert made.copy_for(b"core/canary-1", now, normal) is not normal


def test_document_is_made_once_for_all_marked_instances() -> None:
    served = rehearsing()
    normal, now = served.state.copy, served.state.wall()

    first = normal.drill_snapshot.copy_for(b"core/canary-1", now, normal)

    assert normal.drill_snapshot.copy_for(b"chat/a", now, normal) is first
    assert first is not normal


def test_an_emergency_order_reaches_marked_instances_during_the_drill() -> None:
    served = rehearsing("feature:search")
    before = ask(served, "GET", SNAPSHOT, MARKED)

    served.state.add_orders([make_order("feature:mail")])

    known = {**MARKED, "If-None-Match": before.headers["etag"]}
    during = ask(served, "GET", SNAPSHOT, known)
    assert during.status_code == 200
    assert list(switches(during)) == ["feature:mail", "feature:search", "segment:finance"]


@pytest.mark.parametrize(("headers", "is_drilled"), [(MARKED, True), (OTHER, False)])
def test_held_poll_wakes_with_the_document_that_is_its_own(
    headers: dict[str, str], is_drilled: bool
) -> None:
    async def run() -> None:
        served = plane()
        app = Application(served)
        known = {**headers, "If-None-Match": ETAG}
        async with Exchange(app, f"{SNAPSHOT}?wait=20", known) as poll:
            await asyncio.sleep(SOON)
            served.state.install_copy(copy(18, drills=(drilled(),)), served.state.now())
            assert await poll.receive_status() == 200
            assert poll.headers["switchgear-version"] == "18"
            assert (b"finance" in await poll.part()) is is_drilled
            known["If-None-Match"] = poll.headers["etag"]

        async with Exchange(app, f"{SNAPSHOT}?wait=20", known) as poll:
            await asyncio.sleep(SOON)
            assert not poll.task.done()
            served.state.install_copy(copy(19), served.state.now())
            assert await poll.receive_status() == 200
            assert b"finance" not in await poll.part()

    asyncio.run(run())


@pytest.mark.parametrize(("headers", "is_drilled"), [(MARKED, True), (OTHER, False)])
def test_stream_sends_the_document_that_is_its_own(
    headers: dict[str, str], is_drilled: bool
) -> None:
    async def run() -> None:
        served = plane()
        async with Exchange(Application(served), STREAM, headers) as stream:
            await stream.receive_status()
            await stream.part()
            assert b"finance" not in await stream.part()
            for version, drills in ((18, (drilled(),)), (19, ())):
                served.state.install_copy(copy(version, drills=drills), served.state.now())
                event = await stream.part()
                assert event.startswith(b"id: %b.%d\n" % (str(EPOCH).encode(), version))
                assert (b"finance" in event) is (is_drilled and version == 18)

    asyncio.run(run())


def test_stream_is_sent_the_same_document_once() -> None:
    async def run() -> None:
        served = rehearsing()
        async with Exchange(Application(served), STREAM, MARKED) as stream:
            await stream.receive_status()
            await stream.part()
            assert b"finance" in await stream.part()
            served.state.install_tokens(2, dict(served.state.tokens or {}))
            with pytest.raises(TimeoutError):
                await stream.part(SOON)

    asyncio.run(run())


@pytest.mark.parametrize(("headers", "allowed"), [(MARKED, False), (OTHER, True), (BEARER, True)])
def test_check_is_decided_by_the_callers_document(headers: dict[str, str], allowed: bool) -> None:
    question = json.dumps({"segments": ["finance"]}).encode()

    response = ask(rehearsing(), "POST", CHECK, headers, content=question)

    assert response.json()["allowed"] is allowed
    assert response.json()["version"] == 17
    if not allowed:
        assert response.json()["reason"] == "Drill: before the sale"


def test_openfeature_flags_are_those_of_the_normal_document() -> None:
    served = rehearsing()
    served.state.install_known(1, frozenset({"segment:finance"}))

    response = ask(
        served,
        "POST",
        "/ofrep/v1/evaluate/flags/segment:finance",
        MARKED,
        content=b'{"context":{"targetingKey":"u1"}}',
    )

    assert response.json()["value"] is True


def test_disk_keeps_the_normal_document_only() -> None:
    served = rehearsing("feature:search")
    served.state.confirm(served.state.now())
    served.state.install_known(1, frozenset())
    served.state.install_causes(0, ())
    served.state.install_policies(Policies.build(EPOCH, 0, ()))

    saved = collect_state(served.state)

    assert [entry.id for entry in saved.entries] == ["feature:search"]
