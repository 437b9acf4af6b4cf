"""Whatever is added to signed snapshots on the way: a client blocks all that they block."""

import json
import uuid

from hypothesis import given
from hypothesis import strategies as st

from switchgear.clock import ConsoleClock, SystemTime
from switchgear.evaluation.decisions import blocks
from switchgear.evaluation.signed_snapshot import parse_signed_snapshot
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from tests.fake_console import document, entry

EPOCHS = [str(uuid.UUID(int=number)) for number in (1, 2)]
SWITCHES = ["feature:chat", "feature:search", "segment:finance"]
ORDERS = [str(uuid.UUID(int=number)) for number in (11, 12)]
TIMES = {"2026-11-22T03:00:00Z": 1795316400.0, "2026-11-23T03:00:00Z": 1795402800.0}
MOMENTS = [None, *(at + after for at in TIMES.values() for after in (-60.0, 60.0))]

KINDS = st.one_of(
    st.fixed_dictionaries(
        {
            "state": st.just("engaged"),
            "expires_at": st.sampled_from([None, *TIMES]),
            "on_expiry": st.sampled_from(["release", "hold"]),
        }
    ),
    st.fixed_dictionaries(
        {"state": st.just("ramping"), "allow_percent": st.sampled_from([0, 50, 100])}
    ),
)
PUBLISHED = st.dictionaries(st.sampled_from(SWITCHES), KINDS)
SERVED = st.dictionaries(
    st.sampled_from(SWITCHES),
    st.builds(
        lambda kind, order: kind if order is None else {**kind, "emergency": order},
        KINDS,
        st.sampled_from([None, *ORDERS]),
    ),
)
SOME_ORDERS = st.lists(st.sampled_from(ORDERS), unique=True)
HIDDEN = st.dictionaries(st.sampled_from(ORDERS), st.sampled_from(SWITCHES))
ANSWERS = st.tuples(
    st.tuples(st.sampled_from(EPOCHS), st.integers(1, 4), PUBLISHED, SOME_ORDERS),
    st.none() | st.tuples(SERVED, SOME_ORDERS, SOME_ORDERS, HIDDEN),
)


def no_check(signature: str, content: bytes) -> None:
    """Accept all content: what is signed is the text by construction."""


def make_store() -> SnapshotStore:
    return SnapshotStore(ConsoleClock(SystemTime()))


def rows(kinds: dict[str, dict]) -> dict[str, dict]:
    return {switch: entry(switch, **fields) for switch, fields in kinds.items()}


def allowing_draws(store: SnapshotStore, switch: str, moment: float | None) -> set[int]:
    """Return the draws, of some, for which the switch allows a call at `moment`."""
    found = store.view.entries.get(switch)
    draws = (0, 4999, 5000, 9999)
    if found is None:
        return set(draws)
    return {
        each for each in draws if not blocks(found, None, now=moment, draw=lambda each=each: each)
    }


@given(st.lists(ANSWERS, min_size=1, max_size=5))
def test_no_addition_releases_what_the_signed_snapshots_block(answers) -> None:
    plain, verified = make_store(), make_store()
    for (epoch, version, kinds, closed), addition in answers:
        text = document(epoch, version, rows(kinds), orders=((), tuple(closed)))
        plain.accept(parse_snapshot(text))
        body = text
        if addition is not None:
            served, opened, ended, hidden = addition
            emergency = {"open": opened, "closed": ended, "hidden": hidden}
            outer = {"switches": [*rows(served).values()], "emergency": emergency}
            body = json.dumps({**json.loads(text), **outer, "signed": text.decode()}).encode()
        before = {} if verified.snapshot is None else verified.snapshot.entries
        verified.accept(parse_signed_snapshot(body, "", before, no_check))

        for switch in SWITCHES:
            for moment in MOMENTS:
                allowed = allowing_draws(verified, switch, moment)
                assert allowed <= allowing_draws(plain, switch, moment), (switch, moment)
        assert verified.view.orders.closed == plain.view.orders.closed
