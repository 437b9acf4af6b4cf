"""The snapshots put in force, and the decisions by them."""

import itertools
import json
import logging
import threading
import uuid
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest

from switchgear.clock import ConsoleClock
from switchgear.evaluation import snapshot
from switchgear.evaluation.bucketing import bucket
from switchgear.evaluation.deduplicated_log import MAX_LINES
from switchgear.evaluation.keys import MAX_CACHED_KEYS
from switchgear.evaluation.snapshot_store import MAX_CACHED_QUERIES, MAX_EPOCHS, SnapshotStore
from switchgear.testing import FakeClock

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


def memory_of(clock: FakeClock | None = None, **more: Any) -> SnapshotStore:
    return SnapshotStore(ConsoleClock(clock or FakeClock()), **more)


def snapshot_of(
    *switches: str, epoch: str = FIRST, version: int = 1, **row: Any
) -> snapshot.Snapshot:
    rows = [
        {"id": switch, "state": "engaged", "reason": f"why {switch}", **row} for switch in switches
    ]
    document = {"schema": 1, "epoch": epoch, "version": version, "switches": rows}
    return snapshot.parse_snapshot(json.dumps(document).encode())


def is_allowed(store: SnapshotStore, feature: str, key: str | None = None) -> bool:
    return store.decide(None, feature, (), key).allowed


def test_call_without_a_snapshot_is_allowed_and_unknown() -> None:
    store = memory_of()

    decision = store.decide("finance", "chat", (), None)

    assert decision.allowed
    assert not decision.known
    store.switch_counts()
    assert store.counts.unknown == 1


def test_newer_version_is_accepted() -> None:
    store = memory_of()
    assert store.accept(snapshot_of("feature:chat", version=1))

    assert store.accept(snapshot_of(version=2))

    assert is_allowed(store, "chat")
    assert store.view.version == 2


def test_lower_version_is_refused_without_effect() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat", version=5))

    assert not store.accept(snapshot_of(version=4))

    assert not is_allowed(store, "chat")
    assert store.view.version == 5


def test_same_version_with_other_entries_is_accepted() -> None:
    """An instance that is marked for drills has a document of its own."""
    store = memory_of()
    store.accept(snapshot_of(version=5))

    assert store.accept(snapshot_of("feature:chat", version=5))

    assert not is_allowed(store, "chat")


def test_same_document_keeps_the_answers_that_were_found() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))
    is_allowed(store, "chat")
    before = store.cache

    assert store.accept(snapshot_of("feature:chat"))

    assert store.cache is before
    assert before


def test_new_epoch_begins_at_any_version() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat", version=500))

    assert store.accept(snapshot_of(epoch=SECOND, version=1))

    assert is_allowed(store, "chat")
    assert store.left_epochs == (FIRST,)


def test_epoch_that_was_left_is_refused_for_ever() -> None:
    store = memory_of()
    store.accept(snapshot_of(version=1))
    store.accept(snapshot_of("feature:chat", epoch=SECOND))

    assert not store.accept(snapshot_of(version=900))
    store.accept(snapshot_of("feature:chat", epoch=THIRD))
    assert not store.accept(snapshot_of(version=901))
    assert not store.accept(snapshot_of(epoch=SECOND, version=901))

    assert not is_allowed(store, "chat")


def test_epoch_left_before_the_restart_is_refused_as_the_first_one() -> None:
    store = memory_of()
    store.left_epochs = (FIRST,)

    assert not store.accept(snapshot_of("feature:chat"))

    assert store.snapshot is None


def test_epochs_that_were_left_are_bounded() -> None:
    store = memory_of()
    for number in range(MAX_EPOCHS + 50):
        store.accept(snapshot_of(epoch=str(uuid.UUID(int=number + 10))))

    assert len(store.left_epochs) == MAX_EPOCHS


def test_forced_switch_blocks_before_and_beside_the_snapshot() -> None:
    store = memory_of(forced={"segment:finance"})

    decision = store.decide("finance", None, (), None)
    store.accept(snapshot_of("feature:chat"))

    assert (decision.allowed, decision.switch) == (False, "segment:finance")
    assert decision.reason == "SWITCHGEAR_FORCE_ENGAGED"
    assert not store.decide("finance", None, (), None).allowed
    assert not is_allowed(store, "chat")
    assert is_allowed(store, "search")


def test_forced_switch_blocks_though_the_snapshot_ramps_it() -> None:
    store = memory_of(forced={"feature:chat"})
    store.accept(snapshot_of("feature:chat", state="ramping", allow_percent=100, salt="s"))

    assert not is_allowed(store, "chat", "user-1")


def test_snapshot_decides_again_when_a_switch_is_forced_no_more() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))
    store.force("feature:chat", "rehearsal")
    store.force("feature:search", "rehearsal")
    assert store.decide(None, "chat", (), None).reason == "rehearsal"

    store.unforce("feature:chat")
    store.unforce("feature:search")

    assert store.decide(None, "chat", (), None).reason == "why feature:chat"
    assert is_allowed(store, "search")


def test_engagement_lapses_five_seconds_past_its_expiry() -> None:
    clock = FakeClock(1_795_226_400.0)  # 2026-11-21T02:00:00Z
    store = memory_of(clock)
    store.clock.trust_local()
    store.accept(
        snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry="release")
    )
    assert not is_allowed(store, "chat")

    clock.advance(64.5)
    assert not is_allowed(store, "chat")
    clock.advance(0.5)

    assert is_allowed(store, "chat")


@pytest.mark.parametrize("policy", ["hold", "ramp", "something new", None])
def test_engagement_goes_on_past_its_expiry_by_any_other_policy(policy: str | None) -> None:
    clock = FakeClock(1_795_226_400.0)
    store = memory_of(clock)
    store.accept(snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry=policy))

    clock.advance(1e6)

    assert not is_allowed(store, "chat")


def test_console_s_clock_says_when_an_engagement_lapses() -> None:
    clock = FakeClock(1_795_226_400.0 + 3600)  # Ours is an hour fast.
    store = memory_of(clock)
    store.accept(
        snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry="release")
    )
    assert not is_allowed(store, "chat")

    for _ in range(3):
        store.clock.update({"date": "Sat, 21 Nov 2026 02:00:00 GMT"}, 0.0, 0.0)
    clock.advance(64)

    assert not is_allowed(store, "chat")
    clock.advance(2)
    assert is_allowed(store, "chat")


def test_without_a_targeting_key_each_call_draws_afresh() -> None:
    draws = iter([499, 500, 499])
    store = memory_of(draw=lambda: next(draws))
    store.accept(snapshot_of("feature:chat", state="ramping", allow_percent=5, salt="s"))

    answers = [is_allowed(store, "chat") for _ in range(3)]

    assert answers == [True, False, True]


def test_questions_kept_are_bounded() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))

    for number in range(3 * MAX_CACHED_QUERIES):
        assert is_allowed(store, f"f{number}")
        assert len(store.cache) <= MAX_CACHED_QUERIES

    assert not is_allowed(store, "chat")


def test_invalid_key_is_allowed_logged_and_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    store.accept(snapshot_of())

    with caplog.at_level(logging.WARNING, "switchgear"):
        decision = store.decide("fin ance", {"a": []}, object, None)

    assert decision.allowed
    assert not decision.known
    assert "segment 'fin ance'" in caplog.text


def test_complaints_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    store = memory_of()
    store.accept(snapshot_of())

    for number in range(200):
        store.decide(f"not a key {number}", None, (), None)

    assert len(caplog.records) == MAX_LINES


def test_frequent_key_does_not_hide_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = memory_of()
    store.accept(snapshot_of())

    for _ in range(200):
        store.decide("fin ance", None, (), None)
    store.decide(None, "ch at", (), None)

    assert [record.args for record in caplog.records] == [
        ("segment 'fin ance'",),
        ("feature 'ch at'",),
    ]


class Broken:
    """An object whose methods raise."""

    def _raise(self, *_: object) -> Any:
        raise ZeroDivisionError

    __hash__ = __eq__ = __str__ = __repr__ = __iter__ = _raise  # type: ignore[assignment]


def _broken_off() -> Iterator[str]:
    yield "blue"
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("experiments", "switch"),
    [
        (Broken(), None),
        ([Broken()], None),
        ({"green": Broken()}, "experiment:green"),
        (_broken_off(), "experiment:blue"),
        (itertools.count(), None),
        (itertools.repeat("blue"), "experiment:blue"),
    ],
)
def test_keys_that_raise_or_never_end_are_not_raised_and_the_others_count(
    experiments: object, switch: str | None
) -> None:
    store = memory_of()
    store.accept(snapshot_of("experiment:blue", "experiment:green"))

    decision = store.decide(None, None, experiments, None)
    whole = store.decide(Broken(), Broken(), (), Broken())

    assert decision.switch == switch
    assert decision.known is (switch is not None)
    assert (whole.allowed, whole.known) == (True, False)


def test_targeting_key_that_raises_leaves_it_to_chance(caplog: pytest.LogCaptureFixture) -> None:
    draws = iter([499, 500])
    store = memory_of(draw=lambda: next(draws))
    store.accept(snapshot_of("feature:chat", state="ramping", allow_percent=5, salt="s"))

    answers = [store.decide(None, "chat", (), Broken()).allowed for _ in range(2)]

    assert answers == [True, False]
    assert "targeting_key" in caplog.text


class User(str, Enum):  # noqa: UP042
    """A user with a tenant, like those of many services."""

    ACME = "acme-corporation"


@pytest.mark.parametrize("percent", range(5, 100, 10))
def test_targeting_key_of_an_enum_counts_by_its_value(percent: int) -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat", state="ramping", allow_percent=percent, salt="s"))

    answers = [store.decide(None, "chat", (), key).allowed for key in (User.ACME, User.ACME.value)]

    assert answers == [bucket("s", User.ACME.value) < percent * 100] * 2
    assert bucket("s", User.ACME) == bucket("s", User.ACME.value)


def test_questions_that_are_huge_are_answered_and_not_kept() -> None:
    store = memory_of()
    store.accept(snapshot_of("experiment:e7"))

    many = tuple(f"e{number}" for number in range(MAX_CACHED_KEYS + 1))
    blocked = [store.decide(None, None, many, None) for _ in range(2)]
    store.decide("x" * 1_000_000, None, (), None)
    store.decide(None, None, ("blue",) * 1_000_000, None)

    assert [each.switch for each in blocked] == ["experiment:e7"] * 2
    assert not store.cache
    assert store.switch_counts()["experiment:e7"] == (0, 2)


def test_oldest_question_makes_room_and_the_others_stay() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))
    for number in range(MAX_CACHED_QUERIES):
        is_allowed(store, f"f{number}")
    before = dict(store.cache)

    is_allowed(store, "chat")

    assert len(store.cache) == MAX_CACHED_QUERIES
    assert before.keys() - store.cache.keys() == {(None, "f0", ())}
    assert store.cache[None, "f1", ()] is before[None, "f1", ()]


def test_new_query_does_not_wait_for_the_counting_thread() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(is_allowed(store, "chat")), daemon=True)

    with store._lock:
        asking.start()
        asking.join(20)
        assert answers == [False]

    assert store.switch_counts()["feature:chat"] == (0, 1)


def test_invalid_key_does_not_hide_the_other_keys() -> None:
    store = memory_of()
    store.accept(snapshot_of("feature:chat"))

    decision = store.decide("fin ance", "chat", (), None)

    assert (decision.allowed, decision.switch) == (False, "feature:chat")


def test_several_experiments_are_evaluated_in_order() -> None:
    store = memory_of()
    store.accept(snapshot_of("experiment:blue", "experiment:green"))

    asked = [store.decide(None, None, each, None).switch for each in (
        ("green", "blue"), ["blue", "green"], {"green", "blue"}, iter(["red", "green"]), "blue",
    )]  # fmt: skip

    assert asked == [
        "experiment:green",
        "experiment:blue",
        "experiment:blue",
        "experiment:green",
        "experiment:blue",
    ]


def test_iterator_that_is_used_up_does_not_answer_for_the_next_call() -> None:
    store = memory_of()
    store.accept(snapshot_of("experiment:blue"))
    used_up = iter(["blue"])

    first = store.decide(None, None, used_up, None)
    second = store.decide(None, None, used_up, None)

    assert (first.allowed, second.allowed) == (False, True)


def test_listeners_get_the_view_before_and_after() -> None:
    store = memory_of()
    seen: list[tuple[int | None, int | None, list[str]]] = []
    store.listeners.append(
        lambda before, after: seen.append((before.version, after.version, sorted(after.entries)))
    )

    store.accept(snapshot_of("feature:chat"))
    store.force("feature:search", "rehearsal")

    assert seen == [(None, 1, ["feature:chat"]), (1, 1, ["feature:chat", "feature:search"])]
