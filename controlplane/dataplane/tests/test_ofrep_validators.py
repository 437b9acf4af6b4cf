"""Bulk evaluations equal single ones, and their validator changes when they do."""

import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.dataplane.serving import ofrep
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.served import EPOCH
from controlplane.dataplane.tests.test_ofrep import (
    KNOWN,
    NOW,
    body_for,
    content,
    entry,
    every,
    get_headers,
    one,
    state_of,
)
from switches.snapshot import SnapshotEntry

KEYS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ENTRIES = st.builds(
    entry,
    st.sampled_from(["global:all", *KNOWN]),
    st.integers(0, 10_000).map(lambda points: str(Decimal(points) / 100)),
    salt=st.sampled_from(["", "a3f1", "솔트"]),
    expires_at=st.none() | st.integers(-10, 10).map(lambda s: NOW - timedelta(seconds=s)),
    on_expiry=st.sampled_from(["hold", "release", "ramp"]),
)
PUBLISHED = st.lists(ENTRIES, max_size=5, unique_by=lambda entry: entry.id)


def blocks(entry: SnapshotEntry, targeting_key: str | None, now: datetime) -> bool:
    """Return True if the entry blocks the caller, by an independent copy of the contract."""
    if entry.allow_percent > 0:
        if targeting_key is None:
            return True
        digest = hashlib.sha256((entry.salt + ":" + targeting_key).encode()).hexdigest()
        return int(digest[:16], 16) % 10_000 >= entry.allow_percent * 100
    over = entry.expires_at is not None and (now - entry.expires_at).total_seconds() >= 5
    return not (over and entry.on_expiry == "release")


def ended(entries: list[SnapshotEntry], now: datetime) -> int:
    """Return the number of engagements that have expired at `now`."""
    return sum(not entry.allow_percent and not blocks(entry, None, now) for entry in entries)


def expected(
    flag: str, entries: list[SnapshotEntry], targeting_key: str | None
) -> tuple[bool, str, str]:
    """Return value, reason and switch of a flag, the global switch first."""
    bearing = [
        entry for switch_id in ("global:all", flag) for entry in entries if entry.id == switch_id
    ]
    for found in bearing:
        if blocks(found, targeting_key, NOW):
            return False, "SPLIT" if found.allow_percent else "DISABLED", found.id
    return True, "SPLIT" if any(found.allow_percent for found in bearing) else "STATIC", flag


@given(PUBLISHED, KEYS)
def test_bulk_and_single_agree_with_the_contract(
    entries: list[SnapshotEntry], key: str | None
) -> None:
    state = state_of(*entries)

    found = every(state, key)

    assert found.keys() == {*KNOWN, *(entry.id for entry in entries)}
    for flag, evaluation in found.items():
        assert evaluation == one(state, flag, key)
        metadata = evaluation["metadata"]
        assert (evaluation["value"], evaluation["reason"], metadata["switch"]) == expected(
            flag, entries, key
        )
        assert all(isinstance(value, str | int) for value in metadata.values())


@given(PUBLISHED, KEYS, KEYS, st.integers(0, 12), st.booleans())
def test_validator_changes_when_the_answer_does(
    entries: list[SnapshotEntry],
    key: str | None,
    other: str | None,
    seconds: int,
    later_version: bool,
) -> None:
    before = ofrep.answer_flags(state_of(*entries), {}, body_for(key))
    passed = timedelta(seconds=seconds)
    later = state_of(*entries, version=18 if later_version else 17, now=NOW + passed)

    after = ofrep.answer_flags(later, {}, body_for(key))
    asked_for_another = ofrep.answer_flags(later, {}, body_for(other))
    conditional = ofrep.answer_flags(
        later, {b"if-none-match": get_headers(before)[b"etag"]}, body_for(key)
    )

    # An expired engagement changes the validator, even if a global switch hides it.
    is_same = not later_version and ended(entries, NOW) == ended(entries, NOW + passed)
    assert (get_headers(before)[b"etag"] == get_headers(after)[b"etag"]) is is_same
    assert conditional[0] == (304 if is_same else 200)
    assert before[2] == after[2] or not is_same
    if after[2] != asked_for_another[2]:
        assert get_headers(after)[b"etag"] != get_headers(asked_for_another)[b"etag"]


def bulk(
    state: State, etag: bytes | None = None, *, key: str | None = None, **more: Any
) -> Response:
    headers = {} if etag is None else {b"if-none-match": etag}
    return ofrep.answer_flags(state, headers, body_for(key), **more)


def etag_of(state: State, key: str | None = None) -> bytes:
    return get_headers(bulk(state, key=key))[b"etag"]


def test_unchanged_answer_is_304_without_a_body() -> None:
    state = state_of(entry("feature:export", "50"))

    status, headers, body = bulk(state, etag_of(state, "u1"), key="u1")

    assert (status, body) == (304, b"")
    assert dict(headers)[b"etag"] == etag_of(state, "u1")
    assert b"content-type" not in dict(headers)


@pytest.mark.parametrize("form", [b"W/%b", b'"other", %b', b'W/"x" ,W/%b'])
def test_validator_is_found_in_every_form_it_may_take(form: bytes) -> None:
    state = state_of()
    assert bulk(state, form % etag_of(state))[0] == 304


@pytest.mark.parametrize("known", [b"", b"nonsense", b'"%b.17"' % str(EPOCH).encode(), b"\xff"])
def test_other_validator_gets_the_answer(known: bytes) -> None:
    assert bulk(state_of(), known)[0] == 200


def test_validator_is_the_same_for_everybody_where_nothing_splits() -> None:
    state = state_of(entry("feature:export"))
    assert etag_of(state, "u1") == etag_of(state, "u2") == etag_of(state)


def test_validator_tells_no_key_from_an_empty_one() -> None:
    state = state_of(entry("feature:export", "50"))
    assert etag_of(state) != etag_of(state, "")


def test_validator_changes_when_a_key_is_registered() -> None:
    state = state_of()
    before = etag_of(state)

    state.install_known(len(KNOWN) + 1, frozenset({*KNOWN, "segment:retail"}))

    assert bulk(state, before)[0] == 200
    assert "segment:retail" in every(state)


def test_validator_changes_when_an_engagement_lapses_though_nothing_was_published() -> None:
    over_soon = entry("feature:export", expires_at=NOW, on_expiry="release")
    state = state_of(over_soon, now=NOW + timedelta(seconds=4.9))
    before, frame = etag_of(state), ofrep.refetch_event(state)

    state.set_clock(NOW + timedelta(seconds=5), 1000.0)

    assert bulk(state, before)[0] == 200
    assert every(state)["feature:export"]["value"] is True
    assert ofrep.refetch_event(state) != frame


def test_replica_that_is_behind_does_not_take_back_what_a_newer_one_said() -> None:
    ahead = state_of(entry("feature:export"), version=18)
    behind = state_of(version=17)

    assert bulk(behind, etag_of(ahead))[0] == 304
    assert bulk(ahead, etag_of(behind))[0] == 200


def test_newer_validator_of_somebody_else_is_not_the_callers() -> None:
    ahead = state_of(entry("feature:export", "50"), version=18)
    behind = state_of(version=17)

    assert bulk(behind, etag_of(ahead, "u1"), key="u1")[0] == 304
    assert bulk(behind, etag_of(ahead, "u1"), key="u2")[0] == 200


def test_validator_of_another_epoch_gets_the_answer() -> None:
    state = state_of()
    other = etag_of(state).replace(str(EPOCH).encode(), str(uuid4()).encode())
    assert bulk(state, other)[0] == 200


def event(state: State) -> dict[str, Any]:
    lines = ofrep.refetch_event(state).decode().split("\n")
    assert lines[0] == f"id: {ofrep.current_mark(state)}"
    assert lines[1] == "event: message"
    assert lines[3:] == ["", ""]
    return json.loads(lines[2].removeprefix("data: "))


def test_event_asks_to_refetch_and_names_what_there_is() -> None:
    state = state_of(entry("feature:export"))
    assert event(state) == {"type": "refetchEvaluation", "etag": etag_of(state).decode()}


@pytest.mark.parametrize("form", ["{}", "%22{}%22", "W/%22{}%22"])
def test_refetch_for_an_event_is_conditional_as_any_other(form: str) -> None:
    state = state_of(entry("feature:export", "50"))
    query = b"flagConfigEtag=" + form.format(ofrep.current_mark(state)).encode()

    assert bulk(state, etag_of(state, "u1"), key="u1", query=query)[0] == 304
    assert bulk(state, b'"stale"', key="u1", query=query)[0] == 200
    assert bulk(state, key="u1", query=query)[0] == 200
    assert not ofrep.is_behind(state, query)


@pytest.mark.parametrize("query", [b"differs", b"", b"%22x%22", b"%ff"])
def test_refetch_for_an_event_that_is_not_the_present_gets_the_answer(query: bytes) -> None:
    state = state_of()
    assert bulk(state, etag_of(state), query=b"flagConfigEtag=" + query)[0] == 200
    assert not ofrep.is_behind(state, b"flagConfigEtag=" + query)


def test_process_knows_that_another_one_told_of_something_newer() -> None:
    state = state_of(version=17)
    more_known = state_of(version=17, known=(*KNOWN, "segment:retail"))

    def told_by(other: State) -> bytes:
        return b"a=b&flagConfigEtag=" + str(ofrep.current_mark(other)).encode()

    assert ofrep.is_behind(state, told_by(state_of(version=18)))
    assert ofrep.is_behind(state, told_by(more_known))
    assert not ofrep.is_behind(state, told_by(state_of(version=16)))
    assert not ofrep.is_behind(state, b"")


def test_epoch_that_was_left_is_not_waited_for() -> None:
    state, other = state_of(), uuid4()
    query = (
        b"flagConfigEtag=" + str(ofrep.current_mark(state)).replace(str(EPOCH), str(other)).encode()
    )

    assert ofrep.is_behind(state, query)
    state.left_epochs |= {other}
    assert not ofrep.is_behind(state, query)


def cheapest(work: Callable[[], Response], times: int) -> float:
    """Return the processor seconds of the fastest of several calls."""
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def test_ten_thousand_flags_are_written_once_and_then_only_copied() -> None:
    known = tuple(f"feature:flag-{number}" for number in range(10_000))
    entries = [
        entry(flag, "50" if number % 100 == 0 else "0") for number, flag in enumerate(known[:1000])
    ]
    state = state_of(*entries, known=known)
    etag = etag_of(state, "u1")

    def written_anew() -> Response:
        state.install_known(len(known), frozenset(known))
        return bulk(state, key="u1")

    assert len(content(bulk(state, key="u2"))["flags"]) == 10_000
    assert bulk(state, etag, key="u1")[0] == 304
    first = cheapest(written_anew, 5)
    assert cheapest(lambda: bulk(state, key="u2"), 20) < first / 3
    assert cheapest(lambda: bulk(state, etag, key="u1"), 50) < first / 50


def test_time_is_the_databases_and_not_this_machines() -> None:
    over = entry("feature:export", expires_at=datetime.now(UTC), on_expiry="release")
    state = state_of(over, now=datetime.now(UTC) - timedelta(minutes=5))
    assert one(state, "feature:export")["value"] is False
