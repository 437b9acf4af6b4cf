"""Membership in a ramp's share is stable, and equal in `/check`, OFREP and the snapshot."""

import json
from hashlib import sha256
from typing import Any

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, with_token
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.serving import ofrep
from controlplane.dataplane.state import State
from switches.api.snapshot import read_snapshot
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import CHAT, SHELL, release, seconds, start_ramp
from switches.snapshot import render

KEYS = [f"user-{number}" for number in range(400)]
pytestmark = pytest.mark.django_db


def sample(allowed: set[str]) -> set[str]:
    """Return up to ten keys inside and ten outside: `/check` takes 10 ms a key."""
    return {*sorted(allowed)[:10], *sorted(set(KEYS) - allowed)[:10]}


def by_the_contract() -> tuple[float, set[str]]:
    """Return the share in the snapshot, and the keys inside by its documented formula."""
    document = json.loads(render(*read_snapshot()))
    entry = next((one for one in document["switches"] if one["id"] == CHAT), None)
    if entry is None:
        return 100, set(KEYS)
    share: float = entry["allow_percent"]
    assert entry["state"] == ("ramping" if share else "engaged")
    found = set()
    for key in KEYS:
        digest = sha256(f"{entry['salt']}:{key}".encode()).digest()
        if int.from_bytes(digest[:8], "big") % 10_000 < share * 100:
            found.add(key)
    return share, found


def by_check(program: Api, keys: set[str]) -> set[str]:
    return {
        key
        for key in keys
        if program.post("/check", {"features": ["chat"], "targeting_key": key}).json()["allowed"]
    }


def by_ofrep() -> set[str]:
    now = db_now()
    state = State(monotonic=lambda: 1000.0)
    state.set_clock(now, 1000.0)
    publication, entries = read_snapshot()
    state.install_copy(Copy.render(publication, entries), confirmed_at=999.5)
    state.install_known(1, frozenset({CHAT}))

    def value(key: str) -> Any:
        body = json.dumps({"context": {"targetingKey": key}}).encode()
        return json.loads(ofrep.answer_flag(state, body, CHAT)[2])["value"]

    return {key for key in KEYS if value(key)}


def test_the_same_keys_are_in_everywhere_and_stay_in_as_it_grows() -> None:
    now, program = db_now(), with_token("switches:read")
    ramp = start_ramp(now, [{"percent": percent} for percent in (5, 25, 100)])
    verb = {"ramp_id": ramp.pk, "reason": "looks good so far", "actor": SHELL, "now": now}
    admitted_by_share: dict[float, set[str]] = {}

    def look() -> None:
        share, keys = by_the_contract()
        assert by_ofrep() == keys
        assert by_check(program, sample(keys)) == keys & sample(keys)
        admitted_by_share[share] = keys

    look()
    for _ in range(2):
        actions.advance(**verb)
        look()
    actions.abort(**verb)
    look()

    assert list(admitted_by_share) == [5, 25, 100, 0]
    assert admitted_by_share[0] == set()
    assert (
        set() < admitted_by_share[5] < admitted_by_share[25] < admitted_by_share[100] == set(KEYS)
    )
    assert 5 <= len(admitted_by_share[5]) <= 40
    assert 70 <= len(admitted_by_share[25]) <= 130

    again = release(CHAT, now + seconds(1), plan=[{"percent": 25}, {"percent": 100}])
    assert by_the_contract() == (25, admitted_by_share[25])
    assert again.ramp is not None
