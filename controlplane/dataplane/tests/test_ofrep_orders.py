"""OFREP, checks and drills with emergency orders: clients that know nothing of them obey them."""

import asyncio
import json
from datetime import timedelta
from uuid import UUID

import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.order_set import ClosedOrder
from controlplane.dataplane.serving import ofrep
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, ask, plane
from controlplane.dataplane.tests.test_ofrep import KNOWN, NOW, body_for, entry, every, one
from controlplane.dataplane.tests.test_ofrep import state_of as published
from controlplane.dataplane.tests.test_ofrep_validators import bulk, etag_of
from controlplane.dataplane.tests.test_order_set import order, withdrawal
from controlplane.dataplane.tests.test_rehearsal import (
    CHECK,
    MARKED,
    OTHER,
    SNAPSHOT,
    SOON,
    drilled,
    rehearsing,
    switches,
)
from switches.emergency.orders import Order
from switches.snapshot import SnapshotEntry

FLAGS, EVENTS = "/ofrep/v1/evaluate/flags", "/ofrep/v1/events"
EXPORT = order(1, "feature:export")
WITHDRAWAL = withdrawal(9, 1, "feature:export")


def state_of(*orders: Order, entries: tuple[SnapshotEntry, ...] = (), version: int = 17) -> State:
    """Return the state of a plane that serves `entries` and `orders`."""
    state = published(*entries, version=version)
    state.add_orders(orders)
    return state


def make_query(state: State) -> bytes:
    return b"flagConfigEtag=" + str(ofrep.current_mark(state)).encode()


@pytest.mark.parametrize("allow_percent", [None, "50"])
def test_flag_that_an_order_blocks_is_off_and_names_the_order(allow_percent: str | None) -> None:
    entries = () if allow_percent is None else (entry("feature:export", allow_percent),)
    state = state_of(EXPORT, entries=entries)

    found = one(state, "feature:export", "u1")

    assert found == every(state, "u1")["feature:export"]
    assert found == {
        "key": "feature:export",
        "value": False,
        "variant": "off",
        "reason": "DISABLED",
        "metadata": {
            "switch": "feature:export",
            "version": 17,
            "cause": "OpenAI 5xx on completions",
            "emergency": str(UUID(int=1)),
        },
    }


def test_flag_that_is_engaged_already_keeps_its_cause() -> None:
    state = state_of(EXPORT, entries=(entry("feature:export"),))
    assert one(state, "feature:export")["metadata"]["cause"] == "정산 오류 in feature:export"
    assert "emergency" not in one(state, "feature:export")["metadata"]


def test_engagement_that_ends_by_itself_does_not_end_an_order() -> None:
    ends_soon = entry("feature:export", expires_at=NOW, on_expiry="release")
    state = state_of(EXPORT, entries=(ends_soon,))

    state.set_clock(NOW + timedelta(seconds=6), 1000.0)

    assert one(state, "feature:export")["value"] is False


def test_order_for_everything_turns_each_flag_off() -> None:
    found = every(state_of(order(1, "global:all")))
    assert found.keys() == {*KNOWN, "global:all"}
    assert {flag["metadata"]["switch"] for flag in found.values()} == {"global:all"}


def test_switch_that_only_an_order_knows_is_a_flag_until_it_is_withdrawn() -> None:
    state = state_of(order(1, "feature:chat"))
    assert one(state, "feature:chat")["value"] is False
    assert every(state)["feature:chat"]["value"] is False

    state.add_orders([withdrawal(2, 1)])

    assert ofrep.answer_flag(state, body_for(None), "feature:chat")[0] == 404
    assert "feature:chat" not in every(state)


def test_validator_changes_with_the_orders_though_nothing_was_published() -> None:
    state = state_of(entries=(entry("segment:finance", "50"),))
    found = []
    for news in ([], [EXPORT], [order(2, "feature:search")], [WITHDRAWAL]):
        state.add_orders(news)
        found.append((ofrep.refetch_event(state), etag_of(state, "u1"), etag_of(state, "u2")))
        assert bulk(state, found[-1][1], key="u1", query=make_query(state))[0] == 304
        assert bulk(state, found[-1][1], key="u2")[0] == 200

    assert len({each for triple in found for each in triple}) == 12
    for _, outdated, _ in found[:-1]:
        assert bulk(state, outdated, key="u1")[0] == 200


def test_validator_without_orders_is_as_ever() -> None:
    state = state_of()
    plain = etag_of(state)
    assert b"-" not in plain.partition(b".")[2]

    state.add_orders([EXPORT])
    closed = {EXPORT.id: ClosedOrder(NOW, EXPORT.subject)}
    taken_over = published(entry("feature:export"), version=18).published
    assert taken_over is not None
    state.install_copy(taken_over, confirmed_at=999.5, closed=closed)

    assert etag_of(state) == plain.replace(b".17.", b".18.")


def test_newer_version_of_another_plane_is_kept_whatever_its_orders() -> None:
    behind = state_of(EXPORT)
    for orders in ([], [EXPORT], [order(2, "feature:search")]):
        ahead = state_of(*orders, entries=(entry("segment:finance"),), version=18)
        assert bulk(behind, etag_of(ahead))[0] == 304
        assert bulk(ahead, etag_of(behind))[0] == 200


def test_plane_that_has_heard_of_no_order_takes_none_back() -> None:
    ordered, unaware = state_of(EXPORT), state_of()

    assert bulk(unaware, etag_of(ordered))[0] == 304
    assert bulk(unaware, etag_of(ordered), query=make_query(ordered))[0] == 304
    assert bulk(ordered, etag_of(unaware))[0] == 200


def test_plane_with_an_order_of_its_own_serves_it() -> None:
    other, ours = state_of(EXPORT), state_of(order(2, "feature:search"))
    assert bulk(ours, etag_of(other))[0] == 200


def test_orders_of_another_plane_are_waited_for_and_those_that_were_served_are_not() -> None:
    state, ahead = state_of(), state_of(EXPORT, order(2, "feature:search"))
    assert ofrep.is_behind(state, make_query(ahead))

    state.add_orders([EXPORT])
    first = make_query(state)
    assert ofrep.is_behind(state, make_query(ahead))
    state.add_orders([order(2, "feature:search")])

    assert not ofrep.is_behind(state, make_query(ahead))
    assert not ofrep.is_behind(state, first)
    assert not ofrep.is_behind(state, make_query(state_of()))
    assert not ofrep.is_behind(state_of(version=18), make_query(ahead))
    assert ofrep.is_behind(state, make_query(state_of(version=18)))


def test_orders_are_waited_for_though_another_switch_was_registered_here() -> None:
    state, ahead = state_of(), state_of(EXPORT)
    state.install_known(len(KNOWN) + 1, frozenset({*KNOWN, "segment:retail"}))
    assert ofrep.is_behind(state, make_query(ahead))


def test_refetch_is_held_until_the_order_arrives() -> None:
    served = plane()
    ordered = plane()
    ordered.state.add_orders([EXPORT])
    mark = ofrep.current_mark(ordered.state)
    path = f"{FLAGS}?flagConfigEtag={mark}"

    async def run() -> dict[str, bool]:
        async with Exchange(Application(served), path, BEARER, method="POST") as held:
            with pytest.raises(TimeoutError):
                await held.receive_status(SOON)
            served.state.add_orders([EXPORT])
            await held.receive_status()
            flags = json.loads(await held.part())["flags"]
            return {flag["key"]: flag["value"] for flag in flags}

    assert asyncio.run(run()) == {"feature:export": False}


def test_events_name_each_new_set_of_orders() -> None:
    served = plane()

    async def run() -> list[str]:
        found = []
        headers = {**BEARER, "Last-Event-ID": str(ofrep.current_mark(served.state))}
        async with Exchange(Application(served), EVENTS, headers) as stream:
            await stream.receive_status()
            await stream.part()  # The reconnection time.
            for news in (EXPORT, WITHDRAWAL):
                served.state.add_orders([news])
                found.append((await stream.part()).decode().splitlines()[0])
                assert found[-1] == f"id: {ofrep.current_mark(served.state)}"
        return found

    assert len(set(asyncio.run(run()))) == 2


def test_check_obeys_an_order_and_its_withdrawal() -> None:
    served = plane()
    question = b'{"features":["export"]}'

    served.state.add_orders([EXPORT])
    blocked = ask(served, "POST", CHECK, BEARER, content=question).json()
    served.state.add_orders([WITHDRAWAL])
    allowed = ask(served, "POST", CHECK, BEARER, content=question).json()

    reason = "OpenAI 5xx on completions"
    assert blocked == {
        "allowed": False, "switch": "feature:export", "reason": reason, "version": 17,
    }  # fmt: skip
    assert allowed["allowed"] is True


@pytest.mark.parametrize("headers", [MARKED, OTHER])
def test_order_blocks_instances_in_a_drill_and_all_others(headers: dict[str, str]) -> None:
    served = rehearsing(drills=(drilled("segment:finance"), drilled("segment:retail")))
    before = ask(served, "GET", SNAPSHOT, headers).headers["etag"]

    served.state.add_orders([order(1, "segment:finance")])

    response = ask(served, "GET", SNAPSHOT, {**headers, "If-None-Match": before})
    assert response.status_code == 200
    found = switches(response)
    assert found["segment:finance"]["emergency"] == str(UUID(int=1))
    assert found["segment:finance"]["on_expiry"] == "hold"
    assert ("segment:retail" in found) is (headers is MARKED)
    assert response.json()["emergency"] == {"open": [str(UUID(int=1))], "closed": []}
    question = b'{"segments":["finance"]}'
    assert ask(served, "POST", CHECK, headers, content=question).json()["allowed"] is False


def test_order_outlives_the_drill_of_its_switch() -> None:
    served = rehearsing(drills=(drilled("segment:finance", seconds=-1),))
    served.state.add_orders([order(1, "segment:finance")])
    assert "segment:finance" in switches(ask(served, "GET", SNAPSHOT, MARKED))
