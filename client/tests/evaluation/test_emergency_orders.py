"""Emergency orders stay in force until a snapshot lists them as closed."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.clock import ConsoleClock
from switchgear.evaluation.emergency_orders import MAX_CLOSED, MAX_ORDERS, UNLISTED_SECONDS
from switchgear.evaluation.snapshot import MAX_SWITCHES, Snapshot, parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import FakeClock
from tests.hypothesis_examples import examples

EPOCH, NEXT_EPOCH = (str(uuid.UUID(int=number)) for number in (1, 2))
FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (11, 12, 13))
NOW = 1_795_226_400.0  # 2026-11-21T02:00:00Z
ORDERED_AT = {FIRST: "2026-11-21T01:00:00Z", SECOND: "2026-11-21T01:30:00Z"}


def store_of(clock: FakeClock | None = None) -> SnapshotStore:
    console_clock = ConsoleClock(clock or FakeClock(NOW))
    console_clock.trust_local()
    return SnapshotStore(console_clock)


def order_row(order: str, switch: str = "feature:chat") -> dict[str, Any]:
    at = ORDERED_AT.get(order, "2026-11-21T01:45:00Z")
    return {
        "id": switch,
        "state": "engaged",
        "reason": f"order {order}",
        "engaged_at": at,
        "expires_at": "2026-11-22T01:00:00Z",
        "on_expiry": "hold",
        "emergency": order,
    }


def episode_row(switch: str = "feature:chat", **fields: Any) -> dict[str, Any]:
    return {"id": switch, "state": "engaged", "reason": "episode", "on_expiry": "hold", **fields}


def snapshot_of(
    *rows: Mapping[str, Any],
    opened: Iterable[str] | None = None,
    closed: Iterable[str] = (),
    hidden: object = None,
    version: int = 1,
    epoch: str = EPOCH,
) -> Snapshot:
    listed = [row["emergency"] for row in rows if "emergency" in row] if opened is None else opened
    document = {
        "schema": 1,
        "epoch": epoch,
        "version": version,
        "switches": rows,
        "emergency": {"open": list(listed), "closed": list(closed), "hidden": hidden},
    }
    return parse_snapshot(json.dumps(document).encode())


def reason(store: SnapshotStore, feature: str = "chat") -> str | None:
    return store.decide(None, feature, (), None).reason


@pytest.mark.parametrize(
    "other",
    [
        snapshot_of(version=5),
        snapshot_of(version=4),
        snapshot_of(version=6),
        snapshot_of(version=1, epoch=NEXT_EPOCH),
    ],
    ids=["same version", "older version", "newer version", "new epoch"],
)
def test_order_that_another_plane_does_not_list_stays(other: Snapshot) -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))

    store.accept(other)

    assert reason(store) == f"order {FIRST}"
    assert store.view.orders.ids == (FIRST,)


def test_closed_order_is_dropped_and_not_taken_again_from_a_plane_that_lists_it() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))

    store.accept(snapshot_of(closed=[FIRST], version=5))
    assert reason(store) is None

    for version in (4, 5, 6):
        store.accept(snapshot_of(order_row(FIRST), version=version))
        assert reason(store) is None
    assert store.view.orders.ids == ()


def test_order_listed_as_open_and_closed_is_closed() -> None:
    store = store_of()

    store.accept(snapshot_of(order_row(FIRST), closed=[FIRST]))

    assert reason(store) is None


def test_ramp_behind_a_closed_order_goes_on_where_the_plane_still_lists_the_order() -> None:
    store = store_of()
    ramp = episode_row(state="ramping", allow_percent=50, salt="s")
    store.accept(snapshot_of(ramp, closed=[FIRST], version=5))

    store.accept(snapshot_of(order_row(FIRST), version=5))

    assert store.view.entries["feature:chat"].state == "ramping"


def test_order_closed_in_an_earlier_epoch_can_be_open_again() -> None:
    """A restored backup may lack its episode."""
    store = store_of()
    store.accept(snapshot_of(closed=[FIRST], version=5))

    store.accept(snapshot_of(order_row(FIRST), epoch=NEXT_EPOCH))

    assert reason(store) == f"order {FIRST}"


def test_older_version_contributes_its_open_orders_alone() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))

    is_accepted = store.accept(
        snapshot_of(
            order_row(SECOND, "feature:search"),
            episode_row("feature:other"),
            closed=[FIRST],
            version=4,
        )
    )

    assert not is_accepted
    assert store.view.version == 5
    assert reason(store) == f"order {FIRST}"
    assert reason(store, "search") == f"order {SECOND}"
    assert reason(store, "other") is None


def test_epoch_that_was_left_contributes_its_open_orders_alone() -> None:
    store = store_of()
    store.accept(snapshot_of(version=5))
    store.accept(snapshot_of(epoch=NEXT_EPOCH))

    assert not store.accept(snapshot_of(order_row(FIRST), episode_row("feature:x"), version=6))

    assert reason(store) == f"order {FIRST}"
    assert reason(store, "x") is None
    assert store.snapshot is not None
    assert store.snapshot.epoch == NEXT_EPOCH


def test_published_engagement_stands_and_the_order_blocks_after_its_release() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))

    store.accept(snapshot_of(episode_row(), opened=[FIRST], version=6))
    assert reason(store) == "episode"

    store.accept(snapshot_of(version=7))
    assert reason(store) == f"order {FIRST}"


def test_order_known_by_its_id_alone_blocks_once_a_snapshot_has_its_switch() -> None:
    store = store_of()
    store.accept(snapshot_of(episode_row(), opened=[FIRST], version=5))
    assert store.view.orders.ids == (FIRST,)

    store.accept(snapshot_of(order_row(FIRST), version=6))
    store.accept(snapshot_of(version=7))

    assert reason(store) == f"order {FIRST}"


def test_order_known_by_its_id_alone_is_not_applied_once_it_is_not_listed() -> None:
    store = store_of()
    store.accept(snapshot_of(episode_row(), opened=[FIRST], version=5))

    store.accept(snapshot_of(version=6))

    assert store.view.orders.ids == ()


def test_order_hidden_by_an_engagement_blocks_after_its_release() -> None:
    store = store_of()
    shown = episode_row(expires_at="2026-11-22T01:00:00Z", on_expiry="ramp")
    hidden = {FIRST: "feature:chat"}
    store.accept(snapshot_of(shown, opened=[FIRST], hidden=hidden, version=5))

    store.accept(snapshot_of(version=6))
    assert reason(store) == "episode"
    assert store.view.orders.ids == (FIRST,)

    store.accept(snapshot_of(closed=[FIRST], version=7))
    assert reason(store) is None


@pytest.mark.parametrize(
    "hidden",
    [[FIRST], {FIRST: "chat"}, {"x": "feature:chat"}, {FIRST: 7}, {FIRST: "feature:other"}],
)
def test_malformed_hidden_order_is_ignored(hidden: object) -> None:
    store = store_of()
    store.accept(snapshot_of(episode_row(), opened=[FIRST], hidden=hidden, version=5))

    store.accept(snapshot_of(version=6))

    assert reason(store) is None


def test_engagement_that_ends_by_itself_gives_way_to_an_order() -> None:
    clock = FakeClock(NOW)
    store = store_of(clock)
    store.accept(snapshot_of(order_row(FIRST), version=5))
    drill = episode_row(expires_at="2026-11-21T02:01:00Z", on_expiry="release")
    store.accept(snapshot_of(drill, version=5))

    clock.advance(120)

    assert reason(store) == f"order {FIRST}"


def test_ramp_gives_way_to_an_order() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))

    store.accept(
        snapshot_of(episode_row(state="ramping", allow_percent=99.99, salt="s"), version=6)
    )

    assert reason(store) == f"order {FIRST}"


def test_earliest_of_several_orders_decides_and_the_others_follow() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(SECOND)))
    store.accept(snapshot_of(order_row(FIRST), opened=[FIRST]))
    assert reason(store) == f"order {FIRST}"

    store.accept(snapshot_of(closed=[FIRST]))

    assert reason(store) == f"order {SECOND}"


@pytest.mark.parametrize(
    ("age_seconds", "version", "is_dropped"),
    [
        (UNLISTED_SECONDS + 1, 6, True),
        (UNLISTED_SECONDS + 1, 5, False),
        (UNLISTED_SECONDS - 1, 6, False),
    ],
    ids=["old and newer", "old and same version", "recent and newer"],
)
def test_unlisted_order_is_dropped_if_it_is_old_and_the_snapshot_newer(
    age_seconds: float, version: int, is_dropped: bool
) -> None:
    clock = FakeClock(NOW)
    store = store_of(clock)
    store.accept(snapshot_of(order_row(FIRST), version=5))
    clock.advance(age_seconds)

    store.accept(snapshot_of(version=version))

    assert (reason(store) is None) is is_dropped


def test_order_that_was_listed_lately_is_not_old() -> None:
    clock = FakeClock(NOW)
    store = store_of(clock)
    store.accept(snapshot_of(order_row(FIRST), version=5))
    clock.advance(UNLISTED_SECONDS)
    store.accept(snapshot_of(order_row(FIRST), order_row(SECOND, "feature:mail"), version=5))
    clock.advance(60)

    store.accept(snapshot_of(version=6))

    assert reason(store) == f"order {FIRST}"


def test_order_with_a_wrong_time_is_not_old() -> None:
    """The clock of the data plane that accepted it may be wrong."""
    store = store_of()
    store.accept(snapshot_of({**order_row(FIRST), "engaged_at": "2026-01-01T00:00:00Z"}))

    store.accept(snapshot_of(version=6))

    assert reason(store) == f"order {FIRST}"


def test_order_of_an_old_bootstrap_is_old() -> None:
    store = store_of()
    old = replace(snapshot_of(order_row(FIRST)), published_at=NOW - UNLISTED_SECONDS - 1)
    store.bootstrap(old)
    assert reason(store) == f"order {FIRST}"

    store.accept(snapshot_of(version=6))

    assert reason(store) is None


def test_old_order_stays_while_snapshots_list_it() -> None:
    clock = FakeClock(NOW)
    store = store_of(clock)
    store.accept(snapshot_of(order_row(FIRST), version=5))
    clock.advance(30 * 24 * 3600)

    store.accept(snapshot_of(order_row(FIRST), version=6))

    assert reason(store) == f"order {FIRST}"


def test_order_of_a_bootstrap_stays() -> None:
    store = store_of()
    store.bootstrap(snapshot_of(order_row(FIRST), version=5))

    store.accept(snapshot_of(version=6))

    assert reason(store) == f"order {FIRST}"


def test_bootstrap_keeps_the_orders_in_force() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5), is_live=False)

    store.bootstrap(snapshot_of(version=6))

    assert reason(store) == f"order {FIRST}"


def test_orders_stay_in_a_forked_child_and_beside_forced_switches() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(FIRST), version=5))
    store.after_fork()
    store.force("feature:other", "forced in a test")

    store.accept(snapshot_of(version=6))
    store.unforce("feature:other")

    assert reason(store) == f"order {FIRST}"
    assert reason(store, "other") is None


def test_mark_identifies_the_orders_applied() -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(SECOND, "feature:x"), order_row(FIRST), version=5))

    digest = hashlib.sha256(f"{FIRST},{SECOND}".encode()).hexdigest()[:8]
    assert store.view.mark == f"{EPOCH}.5-{digest}"

    store.accept(snapshot_of(closed=[FIRST, SECOND], version=6))
    assert store.view.mark == f"{EPOCH}.6"


@pytest.mark.parametrize(
    "emergency",
    [None, [], "open", {"open": "x"}, {"open": {"a": 1}}, {"open": [1, None, "x"], "closed": [[]]}],
)
@pytest.mark.parametrize("order", [FIRST, 5, "x", FIRST.upper(), [FIRST], None])
def test_malformed_fields_release_nothing(emergency: object, order: object) -> None:
    store = store_of()
    store.accept(snapshot_of(order_row(SECOND, "feature:search"), version=5))
    document = {
        "schema": 1,
        "epoch": EPOCH,
        "version": 6,
        "switches": [{**order_row(FIRST), "emergency": order}],
        "emergency": emergency,
    }

    store.accept(parse_snapshot(json.dumps(document).encode()))

    assert reason(store) == f"order {FIRST}"
    assert reason(store, "search") == f"order {SECOND}"


def test_kept_orders_are_limited_and_others_block_while_they_are_listed() -> None:
    store = store_of()
    ids = [str(uuid.UUID(int=number)) for number in range(1000, 1001 + MAX_ORDERS)]
    rows = [order_row(order, f"feature:f{number}") for number, order in enumerate(ids)]

    store.accept(snapshot_of(*rows, version=5))

    assert len(store.view.orders.ids) == MAX_ORDERS
    assert all(reason(store, f"f{number}") for number in range(len(ids)))
    store.accept(snapshot_of(version=5))
    assert sum(reason(store, f"f{number}") is not None for number in range(len(ids))) == MAX_ORDERS


def test_closed_ids_are_limited() -> None:
    store = store_of()
    for block in range(3):
        first = block * MAX_SWITCHES
        ids = [str(uuid.UUID(int=number)) for number in range(first, first + MAX_SWITCHES)]
        store.accept(snapshot_of(closed=ids, version=block))

    assert len(store.view.orders.closed) == MAX_CLOSED


ORDERS = {str(uuid.UUID(int=100 + n)): f"feature:f{n % 3}" for n in range(5)}
SWITCHES = sorted(set(ORDERS.values()))


@st.composite
def documents(draw: Any) -> tuple[Snapshot, float]:
    """Return what any plane may send, and the seconds until it arrives."""
    opened = draw(st.sets(st.sampled_from(sorted(ORDERS))))
    closed = draw(st.sets(st.sampled_from(sorted(ORDERS)), max_size=1)) - opened
    rows = {}
    for switch in SWITCHES:
        state = draw(st.sampled_from(["released", "engaged", "ramping", "ends"]))
        orders = sorted(order for order in opened if ORDERS[order] == switch)
        if state == "engaged":
            rows[switch] = episode_row(switch)
        elif orders:
            rows[switch] = order_row(orders[0], switch)
        elif state == "ramping":
            rows[switch] = episode_row(switch, state="ramping", allow_percent=50, salt="s")
        elif state == "ends":
            rows[switch] = episode_row(
                switch, expires_at="2026-11-21T02:01:00Z", on_expiry="release"
            )
    snapshot = snapshot_of(
        *rows.values(),
        opened=opened,
        closed=closed,
        version=draw(st.integers(1, 4)),
        epoch=draw(st.sampled_from([EPOCH, EPOCH, EPOCH, NEXT_EPOCH])),
    )
    return snapshot, draw(st.sampled_from([0.0, 60.0, 3600.0, UNLISTED_SECONDS]))


@examples(400)
@given(st.lists(documents(), max_size=12))
def test_applied_order_stays_until_a_snapshot_in_force_closes_it(
    arriving: list[tuple[Snapshot, float]],
) -> None:
    clock = FakeClock(NOW)
    store = store_of(clock)
    applied: dict[str, tuple[str, int]] = {}
    """The snapshot that listed each order last, by epoch and version."""
    listed_at: dict[str, float] = {}
    closed: set[str] = set()
    for snapshot, later in arriving:
        clock.advance(later)
        epoch = None if store.snapshot is None else store.snapshot.epoch
        is_accepted = store.accept(snapshot)
        shown = {entry.emergency for entry in snapshot.entries.values()}
        if is_accepted:
            closed = (closed if epoch == snapshot.epoch else set()) | set(snapshot.closed_orders)
            for order in closed:
                applied.pop(order, None)
            for order, origin in list(applied.items()):
                is_newer = snapshot.epoch != origin[0] or snapshot.version > origin[1]
                is_old = clock.wall() - listed_at[order] > UNLISTED_SECONDS
                if order in snapshot.open_orders:
                    applied[order] = (snapshot.epoch, snapshot.version)
                elif is_newer and is_old:
                    del applied[order]
        for order in snapshot.open_orders:
            if order in shown and order not in closed and order not in applied:
                applied[order] = (snapshot.epoch, snapshot.version)
        known = store.view.orders.ids
        renewed = snapshot.open_orders if is_accepted else ()
        listed_at = {
            order: clock.wall() if order in renewed else listed_at.get(order, clock.wall())
            for order in known
        }

        for order in applied:
            entry = store.view.entries.get(ORDERS[order])
            assert entry is not None
            assert entry.state == "engaged"
            assert entry.lapses_at is None
        assert applied.keys() <= set(store.view.orders.ids)
        assert closed.isdisjoint(store.view.orders.ids)
        assert closed.isdisjoint(each.emergency for each in store.view.entries.values())
