"""The decision: order of scopes, admitted shares and the named switch."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.evaluate import CallDecision, CallQuestion, evaluate
from switches.snapshot import SnapshotEntry
from switches.tests.snapshots import make_entry

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
EVERYTHING = CallQuestion.naming(
    {
        "segments": ["finance", "retail"],
        "features": ["export", "search"],
        "experiments": ["blue", "green"],
    },
    targeting_key="u1",
)
DECISION_ORDER = [
    "global:all",
    "segment:finance",
    "segment:retail",
    "feature:export",
    "feature:search",
    "experiment:blue",
    "experiment:green",
]
SALT_OF_1094 = "0123456789abcdef0123456789abcdef"  # "u1" falls into bucket 1094 with it


def entry(
    switch_id: str,
    *,
    expires_at: datetime | None = NOW + timedelta(hours=24),
    **fields: str,
) -> SnapshotEntry:
    reason = f"because of {switch_id}"
    return make_entry(switch_id, reason=reason, expires_at=expires_at, **fields)  # type: ignore[arg-type]


def decide(question: CallQuestion, *entries: SnapshotEntry, draw: int = 0) -> CallDecision:
    published = {entry.id: entry for entry in entries}
    return evaluate(question, published, now=NOW, draw=lambda: draw)


def test_nothing_published_lets_everything_through() -> None:
    assert decide(EVERYTHING) == CallDecision(allowed=True)


@given(st.sets(st.sampled_from(DECISION_ORDER), min_size=1))
def test_first_engaged_switch_in_order_is_named_with_its_reason(engaged: set[str]) -> None:
    first = min(engaged, key=DECISION_ORDER.index)
    decision = decide(EVERYTHING, *(entry(switch_id) for switch_id in engaged))
    assert decision == CallDecision(False, first, f"because of {first}")


@pytest.mark.parametrize("other", ["segment:energy", "feature:finance", "experiment:export"])
def test_switch_that_was_not_asked_about_does_not_block(other: str) -> None:
    assert decide(EVERYTHING, entry(other)).allowed


def test_global_switch_blocks_a_question_about_nothing() -> None:
    assert decide(CallQuestion(), entry("global:all")).switch == "global:all"


def test_ramping_switch_lets_its_share_through_and_blocks_the_rest() -> None:
    question = CallQuestion.naming({"features": ["export"]}, "u1")
    out = entry("feature:export", allow_percent="10.94", salt=SALT_OF_1094)
    into = entry("feature:export", allow_percent="10.95", salt=SALT_OF_1094)
    assert decide(question, out).switch == "feature:export"
    assert decide(question, into).allowed


def test_call_inside_the_share_still_meets_the_switches_after_it() -> None:
    ramping = entry("segment:finance", allow_percent="10.95", salt=SALT_OF_1094)
    assert decide(EVERYTHING, ramping, entry("feature:search")).switch == "feature:search"


def test_ramping_switch_without_a_key_is_decided_by_the_draw() -> None:
    question = CallQuestion.naming({"segments": ["finance"]})
    ramping = entry("segment:finance", allow_percent="5")
    assert decide(question, ramping, draw=499).allowed
    assert not decide(question, ramping, draw=500).allowed


@pytest.mark.parametrize(
    ("past", "on_expiry", "allowed"),
    [
        (timedelta(seconds=4.999), "release", False),
        (timedelta(seconds=5), "release", True),
        (timedelta(days=3), "hold", False),
        (timedelta(days=3), "ramp", False),
    ],
)
def test_expiry_by_policy_lets_traffic_flow_five_seconds_late(
    past: timedelta, on_expiry: str, allowed: bool
) -> None:
    expired = entry("feature:export", expires_at=NOW - past, on_expiry=on_expiry)
    assert decide(EVERYTHING, expired).allowed is allowed


def test_ramping_switch_ignores_its_expiry() -> None:
    ramping = entry(
        "feature:export",
        allow_percent="10.94",
        salt=SALT_OF_1094,
        expires_at=NOW - timedelta(days=1),
        on_expiry="release",
    )
    assert not decide(EVERYTHING, ramping).allowed


def test_permanent_switch_never_lapses() -> None:
    assert not decide(EVERYTHING, entry("feature:export", expires_at=None)).allowed
