"""Invalid documents are refused as a whole, with the reason."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.evaluation.snapshot import (
    MAX_SERVED_BYTES,
    MAX_SWITCHES,
    InvalidSnapshot,
    is_switch_id,
    parse_snapshot,
    resolve_switch_id,
)

EPOCH = "8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11"
ENGAGED = {
    "id": "segment:finance",
    "scope": "segment",
    "key": "finance",
    "state": "engaged",
    "allow_percent": 0,
    "salt": "s",
    "reason": "data leak suspected",
    "engaged_at": "2026-11-21T02:00:00.000000Z",
    "expires_at": "2026-11-22T03:00:00.000000Z",
    "on_expiry": "hold",
}
GOOD = {"schema": 1, "epoch": EPOCH, "version": 17, "poll_seconds": 5, "switches": [ENGAGED]}


def document(**other: Any) -> bytes:
    return json.dumps({**GOOD, **other}).encode()


def with_row(**other: Any) -> bytes:
    return document(switches=[{**ENGAGED, **other}])


def test_snapshot_is_read_as_it_was_published() -> None:
    snapshot = parse_snapshot(document())

    assert (snapshot.epoch, snapshot.version, snapshot.poll_seconds) == (EPOCH, 17, 5.0)
    assert snapshot.mark == f"{EPOCH}.17"
    assert snapshot.document == document()
    [entry] = snapshot.entries.values()
    assert (entry.id, entry.state, entry.reason) == (
        "segment:finance",
        "engaged",
        "data leak suspected",
    )
    assert entry.expires_at == 1795316400.0
    assert entry.engaged_at == 1795226400.0
    assert entry.lapses_at is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe{}",
        b"<html>502 Bad Gateway</html>",
        b"[" * 100_000,
        b'{"schema":1,"version":' + b"9" * 5000 + b"}",
        document(schema=2),
        document(schema=None),
        document(epoch=None),
        document(epoch="not-a-uuid"),
        document(epoch=7),
        document(version=None),
        document(version=-1),
        document(version=1.5),
        document(version=True),
        document(version="17"),
        document(version=2**63),
        document(switches=None),
        document(switches={}),
        document(switches=["segment:finance"]),
        document(switches=[ENGAGED, ENGAGED]),
        with_row(id=None),
        with_row(id=7),
        with_row(id="finance"),
        with_row(id="planet:mars"),
        with_row(id="global:some"),
        with_row(id="segment:" + "a" * 121),
        with_row(id="segment:fin ance"),
        with_row(state="ramping", salt=None),
        with_row(state="ramping", allow_percent=None),
        with_row(state="ramping", allow_percent="5"),
        with_row(state="ramping", allow_percent=True),
        with_row(state="ramping", allow_percent=-0.01),
        with_row(state="ramping", allow_percent=100.01),
        with_row(expires_at="tomorrow"),
        with_row(expires_at=1795316400),
        with_row(expires_at="2026-11-22T03:00:00"),
        with_row(engaged_at="9999-99-99T00:00:00Z"),
        b'{"schema":1,"epoch":"' + EPOCH.encode() + b'","version":NaN,"switches":[]}',
    ],
)
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(InvalidSnapshot):
        parse_snapshot(garbage)


def test_document_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidSnapshot, match="bytes"):
        parse_snapshot(b" " * (MAX_SERVED_BYTES + 1))


@pytest.mark.parametrize(
    "filling",
    [
        b"{}," * 2_000_000,
        b"[]," * 2_000_000,
        b"0," * 2_000_000,
        b"0.1," * (MAX_SWITCHES + 2),
        b'"",' * 2_000_000,
    ],
)
def test_document_that_would_fill_the_memory_is_refused_before_it_does(filling: bytes) -> None:
    swollen = document().replace(b"{", b'{"more": [' + filling + b"0], ", 1)

    tracemalloc.start()
    with pytest.raises(InvalidSnapshot, match="more"):
        parse_snapshot(swollen)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 2 * MAX_SERVED_BYTES


def test_document_of_as_many_switches_as_there_may_be_is_read() -> None:
    reason = "leak {a}, [b], c"
    row = {**ENGAGED, "state": "ramping", "allow_percent": 12.5, "reason": reason}
    for name in ("scope", "key", "engaged_at", "salt"):
        del row[name]
    rows = [{**row, "id": f"feature:f{number}", "salt": "s"} for number in range(MAX_SWITCHES)]

    snapshot = parse_snapshot(document(switches=rows, poll_seconds=2.5))

    assert len(snapshot.entries) == MAX_SWITCHES
    assert snapshot.entries["feature:f7"].allow_points == 1250


def test_entries_that_have_not_changed_are_the_same_objects() -> None:
    rows = [{**ENGAGED, "id": f"segment:{key}"} for key in ("a", "b", "c")]
    before = parse_snapshot(document(switches=rows)).entries

    after = parse_snapshot(
        document(switches=[rows[0], {**rows[1], "reason": "worse"}]), before
    ).entries

    assert after["segment:a"] is before["segment:a"]
    assert after["segment:b"] != before["segment:b"]
    assert (
        after
        == parse_snapshot(document(switches=[rows[0], {**rows[1], "reason": "worse"}])).entries
    )


def test_reading_many_switches_takes_no_more_memory_than_their_entries() -> None:
    rows = [{**ENGAGED, "id": f"feature:f{number}"} for number in range(5_000)]
    large = document(switches=rows)

    tracemalloc.start()
    snapshot = parse_snapshot(large)
    kept_bytes, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(snapshot.entries) == 5_000
    assert most < 1.2 * kept_bytes + len(large)


@pytest.mark.parametrize("other", [ENGAGED, {"id": "segment:mars:7"}, {"id": 7, "a": [ENGAGED]}])
def test_switch_like_object_elsewhere_is_ignored(other: Any) -> None:
    snapshot = parse_snapshot(
        document(switches=[{**ENGAGED, "later": other}], later=other, id="feature:chat")
    )

    assert list(snapshot.entries) == ["segment:finance"]


@pytest.mark.parametrize(
    ("name", "switch"),
    [("global", "global:all"), ("global:all", "global:all"), ("feature:chat", "feature:chat")],
)
def test_switch_id_is_resolved_from_its_name(name: str, switch: str) -> None:
    assert resolve_switch_id(name) == switch


@pytest.mark.parametrize("name", ["", "chat", "feature;chat", "global:some", "feature:"])
def test_invalid_switch_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="is not a switch"):
        resolve_switch_id(name)


@pytest.mark.parametrize("hint", ["0", "301", "-5", '"5"', "null", "true", "[]", "1e400"])
def test_poll_hint_that_makes_no_sense_is_left_aside(hint: str) -> None:
    hinted = document().replace(b'"poll_seconds": 5', f'"poll_seconds": {hint}'.encode())

    assert parse_snapshot(hinted).poll_seconds == 5.0


def test_unknown_fields_are_ignored() -> None:
    snapshot = parse_snapshot(document(switches=[{**ENGAGED, "colour": "red"}], later={"a": [1]}))

    assert list(snapshot.entries) == ["segment:finance"]


@pytest.mark.parametrize(
    ("field", "given", "parsed"),
    [
        pytest.param("reason", "a \ud83d b", "a ? b", id="half a surrogate pair"),
        pytest.param("state", "quarantined", "engaged", id="the state of a later console"),
    ],
)
def test_unusual_values_are_read_safely(field: str, given: str, parsed: str) -> None:
    [entry] = parse_snapshot(with_row(**{field: given})).entries.values()

    assert getattr(entry, field) == parsed


def test_missing_optional_fields_are_no_reason_to_refuse() -> None:
    document = {**GOOD, "switches": [{"id": "feature:chat", "state": "engaged"}]}

    [entry] = parse_snapshot(json.dumps(document).encode()).entries.values()

    assert (entry.reason, entry.expires_at, entry.lapses_at) == ("", None, None)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(garbage: bytes) -> None:
    try:
        parse_snapshot(garbage)
    except InvalidSnapshot as error:
        assert str(error)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(sorted(GOOD)), _JSON, max_size=3),
    st.dictionaries(st.sampled_from(sorted(ENGAGED)), _JSON, max_size=4),
)
def test_no_json_raises_anything_else(fields: dict[str, Any], row: dict[str, Any]) -> None:
    switches = {"switches": [{**ENGAGED, **row}]}
    text = json.dumps({**GOOD, **switches, **fields})
    try:
        snapshot = parse_snapshot(text.encode())
    except InvalidSnapshot as error:
        assert str(error)
    else:
        assert all(is_switch_id(switch) for switch in snapshot.entries)
        assert all(0 <= entry.allow_points <= 10_000 for entry in snapshot.entries.values())
