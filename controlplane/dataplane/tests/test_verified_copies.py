"""A client that verifies signatures sees what a data plane serves, as other clients do."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.signatures import SigningKey
from controlplane.dataplane.memory.served_copy import Copy, DrillSnapshot
from controlplane.dataplane.state import State
from switches.drills.patterns import Marks
from switches.emergency.orders import ENGAGE, Order, Orderer
from switches.snapshot import SnapshotVersion
from switches.tests.snapshots import make_entry
from switchgear.console.signatures import make_parser
from switchgear.evaluation.snapshot import MAX_SWITCHES

KEY = SigningKey.generate()
EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
SWITCHES = ["feature:chat", "feature:search", "segment:finance"]
NOW = datetime.now(UTC)


def make_order(number: int, switch: str) -> Order:
    return Order(
        id=UUID(int=number),
        action=ENGAGE,
        switch=switch,
        reason='정산 오류 "INC-7"',
        expires_in="24h",
        by=Orderer("user", "kim", 7),
        at=NOW + timedelta(seconds=number),
        plane="dp-1",
    )


ENTRIES = st.lists(
    st.builds(
        make_entry,
        st.sampled_from(SWITCHES),
        st.sampled_from(["0", "12.5", "100"]),
        reason=st.sampled_from(["정산 오류", '"signed":"{}"', "\\ \u2028"]),
        expires_at=st.sampled_from([None, NOW + timedelta(hours=1)]),
        on_expiry=st.sampled_from(["release", "hold", "ramp"]),
    ),
    unique_by=lambda each: each.id,
)


@given(
    ENTRIES, st.lists(st.sampled_from(SWITCHES)), st.lists(st.sampled_from(SWITCHES), unique=True)
)
def test_verified_and_unverified_client_have_the_same_switches_and_orders(
    entries, ordered, drilled
) -> None:
    state = State()
    state.install_keys([KEY], [])
    state.set_clock(NOW, state.now())
    ends = NOW + timedelta(minutes=5)
    drills = [make_entry(each, expires_at=ends, on_expiry="release") for each in drilled]
    copy = Copy.render(
        SnapshotVersion(EPOCH, 17, NOW),
        entries,
        drill_snapshot=DrillSnapshot(Marks.from_patterns(["core/*"]), drills) if drills else None,
    )
    state.install_copy(copy, state.now())
    state.add_orders([make_order(number, switch) for number, switch in enumerate(ordered, 1)])
    served = state.copy
    assert served is not None
    if served.drill_snapshot is not None:
        served = served.drill_snapshot.copy_for(b"core/a1", NOW, served)

    verified = make_parser([str(KEY.public)])(served.body, served.signature, {})
    plain = make_parser(None)(served.body, served.signature, {})

    assert verified.entries == plain.entries
    assert verified.open_orders == plain.open_orders
    assert verified.hidden_orders == plain.hidden_orders


@pytest.mark.slow
def test_largest_snapshot_with_an_order_is_within_the_limits_of_clients() -> None:
    state = State()
    state.install_keys([KEY], [])
    reason = "provider outage, 5xx on completions since 02:10"
    entries = [
        make_entry(f"feature:variant-of-the-checkout-{number:05}", reason=reason)
        for number in range(MAX_SWITCHES - 1)
    ]
    state.install_copy(Copy.render(SnapshotVersion(EPOCH, 17, NOW), entries), state.now())
    state.add_orders([make_order(1, "segment:finance")])
    assert state.copy is not None

    parse = make_parser([str(KEY.public)])
    verified = parse(state.copy.body, state.copy.signature, {})

    assert len(verified.entries) == MAX_SWITCHES
