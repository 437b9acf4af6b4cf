"""Properties of every snapshot and query, and agreement with the console's own decision."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from switches import bucketing as theirs
from switches.evaluate import CallQuestion
from switches.evaluate import evaluate as console_says
from switches.snapshot import SnapshotEntry, SnapshotVersion, render
from switchgear.clock import ConsoleClock
from switchgear.evaluation import snapshot
from switchgear.evaluation.bucketing import BUCKETS, bucket
from switchgear.evaluation.decisions import blocks
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.testing import FakeClock
from tests.hypothesis_examples import examples

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
KEYS = st.sampled_from(["all", "finance", "retail", "a.b-c_D", "x" * 120])
POINTS = st.integers(1, BUCKETS - 1)
MOMENTS = st.integers(-20_000, 20_000).map(lambda tenths: NOW + timedelta(seconds=tenths / 1000))


@st.composite
def entries(draw: Any) -> SnapshotEntry:
    scope = draw(st.sampled_from(["global", "segment", "feature", "experiment"]))
    key = "all" if scope == "global" else draw(KEYS)
    ramps = draw(st.booleans())
    return SnapshotEntry(
        id=f"{scope}:{key}",
        scope=scope,
        key=key,
        allow_percent=Decimal(draw(POINTS)) / 100 if ramps else Decimal(0),
        salt=draw(st.text(max_size=5)),
        reason=draw(st.text(max_size=8)),
        engaged_at=NOW,
        expires_at=draw(st.none() | MOMENTS),
        on_expiry=draw(st.sampled_from(["hold", "ramp", "release"])),
    )


def unique(entries: list[SnapshotEntry]) -> list[SnapshotEntry]:
    return sorted({entry.id: entry for entry in entries}.values(), key=lambda entry: entry.id)


_SEVERAL = st.lists(KEYS, max_size=3, unique=True).map(tuple)


@examples(150)
@given(
    st.lists(entries(), max_size=8).map(unique),
    _SEVERAL,
    _SEVERAL,
    _SEVERAL,
    st.none() | st.text(max_size=5),
    st.integers(0, BUCKETS - 1),
)
def test_every_question_is_decided_as_the_console_decides_it(
    stopped: list[SnapshotEntry],
    segments: tuple[str, ...],
    features: tuple[str, ...],
    experiments: tuple[str, ...],
    key: str | None,
    drawn: int,
) -> None:
    published = render(SnapshotVersion(uuid.UUID(int=1), 7, NOW), stopped)
    store = SnapshotStore(ConsoleClock(FakeClock(NOW.timestamp())), draw=lambda: drawn)
    store.clock.trust_local()
    store.accept(snapshot.parse_snapshot(published))

    # Twice: the second answer may be one that was kept.
    ours = [store.decide(segments, features, experiments, key) for _ in range(2)]

    keys = {"segments": segments, "features": features, "experiments": experiments}
    question = CallQuestion.naming(keys, key)
    decided = console_says(
        question, {entry.id: entry for entry in stopped}, now=NOW, draw=lambda: drawn
    )
    for decision in ours:
        expected = (decision.allowed, decision.switch, decision.reason)
        assert expected == (decided.allowed, decided.switch, decided.reason)


@given(st.text(), st.text())
def test_every_key_falls_into_the_console_s_bucket(salt: str, key: str) -> None:
    assert bucket(salt, key) == theirs.bucket(salt, key)


@given(st.text(), st.text(), POINTS, POINTS)
def test_key_that_is_in_stays_in_as_the_share_grows(
    salt: str, key: str, one: int, other: int
) -> None:
    smaller, larger = sorted((one, other))

    def is_in(points: int) -> bool:
        entry = snapshot.SwitchEntry("feature:chat", "ramping", points, salt, "", None, "ramp")
        return not blocks(entry, key, now=0, draw=lambda: 0)

    assert is_in(larger) or not is_in(smaller)


@given(st.characters(categories=["Cs"]), st.text())
def test_lone_surrogate_in_a_key_has_a_bucket(half: str, rest: str) -> None:
    assert 0 <= bucket("salt", half + rest) < BUCKETS


_ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.lists(st.text(max_size=4) | st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
    | st.sets(st.text(max_size=3) | st.integers(), max_size=3)
)


@given(_ANYTHING, _ANYTHING, _ANYTHING, _ANYTHING)
def test_no_query_raises(
    segment: object, feature: object, experiments: object, key: object
) -> None:
    store = SnapshotStore(ConsoleClock(FakeClock()))
    document = {
        "schema": 1,
        "epoch": str(uuid.UUID(int=1)),
        "version": 1,
        "switches": [
            {"id": "segment:a", "state": "ramping", "salt": "s", "allow_percent": 50},
            {"id": "feature:a", "state": "engaged"},
        ],
    }
    store.accept(snapshot.parse_snapshot(json.dumps(document).encode()))

    decision = store.decide(segment, feature, experiments, key)

    assert decision.allowed is (decision.switch is None)


def test_share_of_the_keys_is_that_of_the_ramp() -> None:
    entry = snapshot.SwitchEntry("feature:chat", "ramping", 2500, "salt", "", None, "ramp")

    flowing = sum(
        not blocks(entry, f"user-{number}", now=0, draw=lambda: 0) for number in range(20_000)
    )

    assert 4_700 < flowing < 5_300  # 5,000 expected; five standard deviations are 306.
