"""Switches as OpenFeature flags: every value, reason and error in the protocol's format."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.serving import ofrep
from controlplane.dataplane.serving.responses import Response
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.served import EPOCH
from switches.snapshot import SnapshotEntry, SnapshotVersion
from switches.tests.snapshots import make_entry

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
KNOWN = ("feature:export", "feature:search", "segment:finance", "experiment:blue")
SALT = "0123456789abcdef0123456789abcdef"  # "u1" falls into bucket 1094 with it


def entry(switch_id: str, allow_percent: str = "0", **fields: Any) -> SnapshotEntry:
    reason = f"정산 오류 in {switch_id}"
    return make_entry(switch_id, allow_percent, **{"salt": SALT, "reason": reason, **fields})


def state_of(
    *entries: SnapshotEntry, version: int = 17, now: datetime = NOW, known: tuple[str, ...] = KNOWN
) -> State:
    """Return a state that serves `entries` at `now` by the database's clock."""
    made = State(monotonic=lambda: 1000.0)
    made.set_clock(now, 1000.0)
    made.install_copy(
        Copy.render(SnapshotVersion(EPOCH, version, NOW), entries), confirmed_at=999.5
    )
    made.install_known(len(known), frozenset(known))
    return made


def body_for(targeting_key: str | None) -> bytes:
    context = {} if targeting_key is None else {"targetingKey": targeting_key}
    return json.dumps({"context": context}).encode()


def content(response: Response) -> Any:
    _, headers, body = response
    assert (b"content-type", b"application/json") in headers
    assert (b"content-length", str(len(body)).encode()) in headers
    return json.loads(body)


def one(state: State, flag: str, targeting_key: str | None = None) -> dict[str, Any]:
    response = ofrep.answer_flag(state, body_for(targeting_key), flag)
    assert response[0] == 200
    return content(response)


def every(state: State, targeting_key: str | None = None) -> dict[str, dict[str, Any]]:
    response = ofrep.answer_flags(state, {}, body_for(targeting_key))
    assert response[0] == 200
    found = content(response)["flags"]
    assert [flag["key"] for flag in found] == sorted(flag["key"] for flag in found)
    return {flag["key"]: flag for flag in found}


def get_headers(response: Response) -> Mapping[bytes, bytes]:
    return dict(response[1])


def test_released_flag_is_on_and_static() -> None:
    assert one(state_of(), "feature:export", "u1") == {
        "key": "feature:export",
        "value": True,
        "variant": "on",
        "reason": "STATIC",
        "metadata": {"switch": "feature:export", "version": 17},
    }


def test_engaged_flag_is_off_and_disabled_with_its_cause() -> None:
    assert one(state_of(entry("feature:export")), "feature:export") == {
        "key": "feature:export",
        "value": False,
        "variant": "off",
        "reason": "DISABLED",
        "metadata": {
            "switch": "feature:export",
            "version": 17,
            "cause": "정산 오류 in feature:export",
        },
    }


@pytest.mark.parametrize(
    ("allow_percent", "targeting_key", "value"),
    [
        ("10.95", "u1", True),
        ("10.94", "u1", False),
        ("0.01", None, False),
        ("99.99", None, False),
        ("100", None, False),
        ("100", "", True),
    ],
)
def test_ramping_flag_splits_by_the_targeting_key(
    allow_percent: str, targeting_key: str | None, value: bool
) -> None:
    state = state_of(entry("feature:export", allow_percent))

    for found in (
        one(state, "feature:export", targeting_key),
        every(state, targeting_key)["feature:export"],
    ):
        assert found["value"] is value
        assert found["variant"] == ("on" if value else "off")
        assert found["reason"] == "SPLIT"
        assert ("cause" in found["metadata"]) is not value


@pytest.mark.parametrize(
    "targeting_key", ["user@example.com", "사용자-7", "👩‍👩‍👧", "é", "e\u0301"]
)
def test_any_text_is_a_targeting_key(targeting_key: str) -> None:
    taken = int.from_bytes(sha256(f"{SALT}:{targeting_key}".encode()).digest()[:8], "big") % 10_000
    for percent in (Decimal(taken) / 100, Decimal(taken + 1) / 100):
        state = state_of(entry("segment:finance", str(percent)))
        if percent:
            assert one(state, "segment:finance", targeting_key)["value"] is (percent * 100 > taken)


def test_global_engagement_turns_every_flag_off() -> None:
    state = state_of(entry("global:all"), entry("feature:export", "50"))

    found = every(state, "u1")

    assert found.keys() == {*KNOWN, "global:all"}
    for flag, evaluation in found.items():
        assert evaluation == one(state, flag, "u1")
        assert (evaluation["value"], evaluation["reason"]) == (False, "DISABLED")
        assert evaluation["metadata"]["switch"] == "global:all"
        assert evaluation["metadata"]["cause"] == "정산 오류 in global:all"


def test_global_ramp_stops_whoever_is_not_in_its_share() -> None:
    state = state_of(entry("global:all", "10.94"), entry("feature:export"))

    for flag, evaluation in every(state, "u1").items():
        assert evaluation == one(state, flag, "u1")
        assert (evaluation["value"], evaluation["reason"]) == (False, "SPLIT")
        assert evaluation["metadata"]["switch"] == "global:all"


def test_whoever_is_in_the_global_share_still_meets_each_switch() -> None:
    state = state_of(
        entry("global:all", "10.95"), entry("feature:export"), entry("feature:search", "10.94")
    )

    found = every(state, "u1")

    assert {flag: (one["value"], one["reason"]) for flag, one in found.items()} == {
        "experiment:blue": (True, "SPLIT"),
        "feature:export": (False, "DISABLED"),
        "feature:search": (False, "SPLIT"),
        "global:all": (True, "SPLIT"),
        "segment:finance": (True, "SPLIT"),
    }
    assert found["feature:export"]["metadata"]["switch"] == "feature:export"


@pytest.mark.parametrize(
    ("late", "on_expiry", "value"),
    [
        (timedelta(seconds=4.999999), "release", False),
        (timedelta(seconds=5), "release", True),
        (timedelta(days=3), "hold", False),
        (timedelta(days=3), "ramp", False),
    ],
)
def test_engagement_that_lapsed_is_as_good_as_released(
    late: timedelta, on_expiry: str, value: bool
) -> None:
    for switch_id in ("feature:export", "global:all"):
        state = state_of(entry(switch_id, expires_at=NOW - late, on_expiry=on_expiry))
        for found in (one(state, "feature:export"), every(state)["feature:export"]):
            assert found["value"] is value
            assert found["reason"] == ("STATIC" if value else "DISABLED")


def test_ramp_outlives_its_expiry() -> None:
    over = entry("feature:export", "50", expires_at=NOW - timedelta(days=1), on_expiry="release")
    assert one(state_of(over), "feature:export")["reason"] == "SPLIT"


def test_engaged_flag_is_known_before_the_list_of_known_keys_tells() -> None:
    state = state_of(entry("segment:new"), known=())

    assert one(state, "segment:new")["value"] is False
    assert every(state).keys() == {"segment:new"}


def test_answers_say_which_version_they_are_and_how_old() -> None:
    state = state_of()

    for response in (
        ofrep.answer_flag(state, b"", "feature:export"),
        ofrep.answer_flags(state, {}, b""),
    ):
        assert get_headers(response)[b"switchgear-version"] == b"17"
        assert get_headers(response)[b"switchgear-age"] == b"0.5"


def test_bulk_lists_where_changes_are_told() -> None:
    assert content(ofrep.answer_flags(state_of(known=()), {}, b"")) == {
        "flags": [],
        "eventStreams": [
            {
                "type": "sse",
                "endpoint": {"requestUri": "/ofrep/v1/events"},
                "inactivityDelaySec": 120,
            }
        ],
        "metadata": {"version": 17},
    }


@pytest.mark.parametrize(
    ("entries", "key", "blocked_by"),
    [
        ((), "feature:search", None),
        ((entry("feature:search"),), "feature:search", "feature:search"),
        ((entry("feature:export"),), "feature:search", None),
        ((entry("global:all"),), "feature:search", "global:all"),
        ((entry("feature:search", "5"),), "feature:search", "feature:search"),
        ((entry("feature:search", "99.99"),), "feature:search", None),
    ],
)
def test_what_blocks_a_flag_is_told(
    entries: tuple[SnapshotEntry, ...], key: str, blocked_by: str | None
) -> None:
    notified: list[str | None] = []

    ofrep.answer_flag(state_of(*entries), body_for("u1"), key, notified.append)

    assert notified == [blocked_by]
