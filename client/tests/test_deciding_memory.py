"""Which snapshots are put in force, and what is answered then."""

import json
import logging
import uuid
from typing import Any

import pytest

from switchgear.clock import ConsoleClock
from switchgear.deciding import memory as memories
from switchgear.deciding import snapshot
from switchgear.deciding.memory import MOST_CELLS, MOST_EPOCHS, Memory
from switchgear.testing import FakeClock

FIRST, SECOND, THIRD = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


def memory_of(clock: FakeClock | None = None, **more: Any) -> Memory:
    return Memory(ConsoleClock(clock or FakeClock()), **more)


def snapshot_of(
    *switches: str, epoch: str = FIRST, version: int = 1, **row: Any
) -> snapshot.Snapshot:
    rows = [
        {"id": switch, "state": "engaged", "reason": f"why {switch}", **row} for switch in switches
    ]
    document = {"schema": 1, "epoch": epoch, "version": version, "switches": rows}
    return snapshot.read(json.dumps(document).encode())


def is_allowed(memory: Memory, feature: str, key: str | None = None) -> bool:
    return memory.decide(None, feature, (), key).allowed


def test_nothing_known_is_allowed_and_says_so() -> None:
    memory = memory_of()

    decision = memory.decide("finance", "chat", (), None)

    assert decision.allowed
    assert not decision.known
    assert memory.counts.unknown == 1


def test_newer_version_is_accepted() -> None:
    memory = memory_of()
    assert memory.accept(snapshot_of("feature:chat", version=1))

    assert memory.accept(snapshot_of(version=2))

    assert is_allowed(memory, "chat")
    assert memory.view.version == 2


def test_lower_version_is_refused_and_changes_nothing() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat", version=5))

    assert not memory.accept(snapshot_of(version=4))

    assert not is_allowed(memory, "chat")
    assert memory.view.version == 5


def test_same_version_with_other_entries_is_accepted() -> None:
    """An instance that is marked for a drill has a document of its own."""
    memory = memory_of()
    memory.accept(snapshot_of(version=5))

    assert memory.accept(snapshot_of("feature:chat", version=5))

    assert not is_allowed(memory, "chat")


def test_same_document_keeps_the_answers_that_were_found() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat"))
    is_allowed(memory, "chat")
    before = memory.cells

    assert memory.accept(snapshot_of("feature:chat"))

    assert memory.cells is before
    assert before


def test_new_epoch_begins_at_any_version() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat", version=500))

    assert memory.accept(snapshot_of(epoch=SECOND, version=1))

    assert is_allowed(memory, "chat")
    assert memory.left_epochs == (FIRST,)


def test_epoch_that_was_left_is_refused_for_ever() -> None:
    memory = memory_of()
    memory.accept(snapshot_of(version=1))
    memory.accept(snapshot_of("feature:chat", epoch=SECOND))

    assert not memory.accept(snapshot_of(version=900))
    memory.accept(snapshot_of("feature:chat", epoch=THIRD))
    assert not memory.accept(snapshot_of(version=901))
    assert not memory.accept(snapshot_of(epoch=SECOND, version=901))

    assert not is_allowed(memory, "chat")


def test_epoch_left_before_the_restart_is_refused_as_the_first_one() -> None:
    memory = memory_of()
    memory.left_epochs = (FIRST,)

    assert not memory.accept(snapshot_of("feature:chat"))

    assert memory.snapshot is None


def test_epochs_that_were_left_are_bounded() -> None:
    memory = memory_of()
    for number in range(MOST_EPOCHS + 50):
        memory.accept(snapshot_of(epoch=str(uuid.UUID(int=number + 10))))

    assert len(memory.left_epochs) == MOST_EPOCHS


def test_forced_switch_blocks_before_and_beside_the_snapshot() -> None:
    memory = memory_of(forced={"segment:finance"})

    decision = memory.decide("finance", None, (), None)
    memory.accept(snapshot_of("feature:chat"))

    assert (decision.allowed, decision.switch) == (False, "segment:finance")
    assert decision.reason == "SWITCHGEAR_FORCE_ENGAGED"
    assert not memory.decide("finance", None, (), None).allowed
    assert not is_allowed(memory, "chat")
    assert is_allowed(memory, "search")


def test_forced_switch_blocks_though_the_snapshot_ramps_it() -> None:
    memory = memory_of(forced={"feature:chat"})
    memory.accept(snapshot_of("feature:chat", state="ramping", allow_percent=100, salt="s"))

    assert not is_allowed(memory, "chat", "user-1")


def test_snapshot_decides_again_when_a_switch_is_forced_no_more() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat"))
    memory.force("feature:chat", "rehearsal")
    memory.force("feature:search", "rehearsal")
    assert memory.decide(None, "chat", (), None).reason == "rehearsal"

    memory.unforce("feature:chat")
    memory.unforce("feature:search")

    assert memory.decide(None, "chat", (), None).reason == "why feature:chat"
    assert is_allowed(memory, "search")


def test_engagement_lapses_five_seconds_past_its_expiry() -> None:
    clock = FakeClock(1_795_226_400.0)  # 2026-11-21T02:00:00Z
    memory = memory_of(clock)
    memory.accept(
        snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry="release")
    )
    assert not is_allowed(memory, "chat")

    clock.advance(64.5)
    assert not is_allowed(memory, "chat")
    clock.advance(0.5)

    assert is_allowed(memory, "chat")


@pytest.mark.parametrize("policy", ["hold", "ramp", "something new", None])
def test_engagement_goes_on_past_its_expiry_by_any_other_policy(policy: str | None) -> None:
    clock = FakeClock(1_795_226_400.0)
    memory = memory_of(clock)
    memory.accept(snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry=policy))

    clock.advance(1e6)

    assert not is_allowed(memory, "chat")


def test_console_s_clock_says_when_an_engagement_lapses() -> None:
    clock = FakeClock(1_795_226_400.0 + 3600)  # Ours is an hour fast.
    memory = memory_of(clock)
    memory.accept(
        snapshot_of("feature:chat", expires_at="2026-11-21T02:01:00Z", on_expiry="release")
    )
    assert is_allowed(memory, "chat")

    memory.clock.heard("Sat, 21 Nov 2026 02:00:00 GMT", 0.0, 0.0)

    assert not is_allowed(memory, "chat")
    clock.advance(66)
    assert is_allowed(memory, "chat")


def test_without_a_targeting_key_each_call_draws_afresh() -> None:
    draws = iter([499, 500, 499])
    memory = memory_of(draw=lambda: next(draws))
    memory.accept(snapshot_of("feature:chat", state="ramping", allow_percent=5, salt="s"))

    answers = [is_allowed(memory, "chat") for _ in range(3)]

    assert answers == [True, False, True]


def test_questions_kept_are_bounded() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat"))

    for number in range(3 * MOST_CELLS):
        assert is_allowed(memory, f"f{number}")
        assert len(memory.cells) <= MOST_CELLS

    assert not is_allowed(memory, "chat")


def test_what_can_be_no_key_is_allowed_named_in_the_log_and_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = memory_of()
    memory.accept(snapshot_of())

    with caplog.at_level(logging.WARNING, "switchgear"):
        decision = memory.decide("fin ance", {"a": []}, object, None)

    assert decision.allowed
    assert not decision.known
    assert "segment 'fin ance'" in caplog.text


def test_complaints_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    memory = memory_of()
    memory.accept(snapshot_of())

    for number in range(200):
        memory.decide(f"not a key {number}", None, (), None)

    assert len(caplog.records) == memories.MOST_COMPLAINTS


def test_impossible_key_does_not_hide_what_the_others_say() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("feature:chat"))

    decision = memory.decide("fin ance", "chat", (), None)

    assert (decision.allowed, decision.switch) == (False, "feature:chat")


def test_several_experiments_are_asked_in_their_order() -> None:
    memory = memory_of()
    memory.accept(snapshot_of("experiment:blue", "experiment:green"))

    asked = [memory.decide(None, None, each, None).switch for each in (
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
    memory = memory_of()
    memory.accept(snapshot_of("experiment:blue"))
    used_up = iter(["blue"])

    first = memory.decide(None, None, used_up, None)
    second = memory.decide(None, None, used_up, None)

    assert (first.allowed, second.allowed) == (False, True)


def test_watchers_are_told_what_was_and_what_is() -> None:
    memory = memory_of()
    seen: list[tuple[int | None, int | None, list[str]]] = []
    memory.watchers.append(
        lambda before, after: seen.append((before.version, after.version, sorted(after.entries)))
    )

    memory.accept(snapshot_of("feature:chat"))
    memory.force("feature:search", "rehearsal")

    assert seen == [(None, 1, ["feature:chat"]), (1, 1, ["feature:chat", "feature:search"])]
