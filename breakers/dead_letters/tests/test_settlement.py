"""Letters that leave: declared, carried out, settled, by whoever is there to do it."""

import json

import pytest
from django.db import transaction

from breakers.dead_letters import intent_sweeper
from breakers.dead_letters.letters import entries
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.models import Departure, Gap, Letter
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import execution, intents, settlement
from breakers.tests.fleet import HOUR, MINUTE, NOW, SECOND
from controlplane.core.http.tests.callers import at_once

from .removal_helpers import (
    KIM,
    LEE,
    REASON,
    audited,
    dead,
    declare,
    departures,
    entry,
    origin,
    settle_and_count,
)

pytestmark = pytest.mark.django_db
LATER = NOW + 31 * SECOND


def settle(stream, declared, outcomes):
    with transaction.atomic():
        return settle_and_count(stream, declared, outcomes, NOW)


def test_a_retry_puts_the_message_back_and_says_what_it_was(letters):
    letter = letters.add(dlq_attempts="3", dlq_group="mailers", dlq_retry_count="1", to_be="kept")
    declared = declare(letters, letter)

    outcomes = execution.execute_intents(letters.stream(), declared)

    ((new_id, fields),) = origin(letters)
    assert outcomes[declared[0].pk] == execution.RemovalOutcome("done", new_id.decode())
    assert fields == {
        b"order": b"17",
        b"to_be": b"kept",
        b"dlq_retry_of": letter.encode(),
        b"dlq_retry_count": b"2",
    }
    assert dead(letters) == []


def test_a_retry_is_said_in_the_log_once_it_is_committed(
    letters, caplog, django_capture_on_commit_callbacks
):
    caplog.set_level("INFO")
    letter = letters.add()
    declared = declare(letters, letter)
    outcomes = execution.execute_intents(letters.stream(), declared)

    with django_capture_on_commit_callbacks() as then:
        settle(letters.stream(), declared, outcomes)
    before = [one for one in caplog.records if one.name == settlement.__name__]
    for call in then:
        call()

    events = [one.msg for one in caplog.records if one.name == settlement.__name__]
    assert before == []
    assert [line["event"] for line in events] == ["dlq_message_reprocessed"]
    assert events[0]["letter"] == letter


def test_a_payload_of_any_bytes_and_names_that_come_twice_come_through(letters):
    blob = bytes(range(256)) * 8
    pairs = ["n\xe9".encode("latin-1"), blob, b"tag", b"a", b"tag", b"b", b"", b"", b"dlq_error"]
    letter = letters.redis.execute_command("XADD", letters.name(), "*", *pairs, b"\xff\xfe")
    declared = declare(letters, letter.decode())

    execution.execute_intents(letters.stream(), declared)

    raw = letters.redis.eval("return redis.call('XRANGE', KEYS[1], '-', '+')", 1, _origin(letters))
    assert raw[0][1] == [*pairs[:8], b"dlq_retry_of", letter, b"dlq_retry_count", b"1"]
    assert entries.unpack_pairs(declared[0].fields)[-1] == (b"dlq_error", b"\xff\xfe")


def test_five_megabytes_come_through(letters):
    letter = letters.add(payload="x" * 5_000_000)
    declared = declare(letters, letter)

    execution.execute_intents(letters.stream(), declared)

    ((_, fields),) = origin(letters)
    assert len(fields[b"payload"]) == 5_000_000
    assert declared[0].size_bytes > 5_000_000


def test_an_edited_message_goes_and_the_original_is_kept(letters):
    letter = letters.add()
    edits = {letter: ((b"order", b"18"), (b"dlq_retry_count", b"9"))}
    (declared,) = declare(letters, letter, edits=edits)

    execution.execute_intents(letters.stream(), [declared])

    ((_, fields),) = origin(letters)
    assert fields == {
        b"order": b"18",
        b"dlq_retry_of": letter.encode(),
        b"dlq_retry_count": b"1",
    }
    assert dict(entries.unpack_pairs(declared.fields))[b"order"] == b"17"


def test_settling_takes_the_letter_out_of_the_index_and_counts_it(letters):
    kept, left = letters.add(), letters.add()
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    declared = declare(letters, left)

    counts = settle(stream, declared, execution.execute_intents(stream, declared))

    stream.refresh_from_db()
    assert counts == {"done": 1}
    assert (stream.depth, stream.retried_total, stream.vanished_total) == (1, 1, 0)
    assert Letter.objects.get(stream=stream).position == LetterEntry(kept, ()).position
    departure = Departure.objects.get()
    assert (departure.state, departure.done_at, departure.by) == ("done", NOW, "user:kim")
    assert departure.new_id == origin(letters)[0][0].decode()


def test_what_is_carried_out_or_settled_twice_happens_once(letters):
    letter = letters.add()
    stream, declared = letters.stream(), declare(letters, letter)

    first = execution.execute_intents(stream, declared)
    second = execution.execute_intents(stream, declared)
    counts = [settle(stream, declared, second), settle(stream, declared, first)]

    assert len(origin(letters)) == 1
    assert [first[declared[0].pk].kind, second[declared[0].pk].kind] == ["done", "again"]
    assert first[declared[0].pk].new_id == second[declared[0].pk].new_id
    assert counts == [{"done": 1}, {}]


@pytest.mark.parametrize("action", ["discard", "purge", "age", "length"])
def test_what_is_dropped_is_gone_from_redis_and_whole_in_the_archive(letters, action):
    letter = letters.add()
    stream, declared = letters.stream(), declare(letters, letter, action=action)

    outcomes = [execution.execute_intents(stream, declared) for _ in range(2)]

    assert [one[declared[0].pk].kind for one in outcomes] == ["done", "again"]
    assert (dead(letters), origin(letters)) == ([], [])
    assert dict(entries.unpack_pairs(declared[0].fields))[b"order"] == b"17"


@pytest.mark.parametrize("action", ["retry", "discard"])
@pytest.mark.parametrize("died", ["before Redis", "after Redis"])
def test_what_its_maker_did_not_finish_is_finished_by_the_clockwork(letters, action, died):
    letter = letters.add()
    stream, declared = letters.stream(), declare(letters, letter, action=action)
    if died == "after Redis":
        execution.execute_intents(stream, declared)

    settled = [
        intent_sweeper.sweep_intents(NOW + 29 * SECOND),
        intent_sweeper.sweep_intents(LATER),
        intent_sweeper.sweep_intents(LATER),
    ]

    assert settled == [0, 1, 0]
    assert departures() == [(action, "done")]
    assert len(origin(letters)) == (action == "retry")
    (row,) = audited()
    assert (row.action, row.actor_name, row.reason) == (
        {"retry": "dead_letter.retried", "discard": "dead_letter.discarded"}[action],
        "kim",
        REASON,
    )
    assert row.target == f"dlq:{stream}"
    assert json.loads(row.after)["id"] == letter


def test_what_retention_did_not_finish_is_one_audit_row(letters):
    ids = [letters.add() for _ in range(3)]
    declare(letters, *ids, action="age")

    settled = intent_sweeper.sweep_intents(LATER)

    assert settled == 3
    (row,) = audited()
    assert (row.action, json.loads(row.after)) == ("dead_letter.archived", {"age": 3})


def test_a_letter_that_somebody_else_took_away_is_a_gap(letters):
    letter = letters.add()
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    declared = declare(letters, letter)
    letters.redis.xdel(letters.name(), letter)

    counts = settle(stream, declared, execution.execute_intents(stream, declared))

    stream.refresh_from_db()
    assert counts == {"gone": 1}
    assert departures() == [("retry", "gone")]
    assert (stream.vanished_total, stream.retried_total) == (1, 0)
    assert Gap.objects.get().count == 1


def test_one_intent_is_open_of_each_letter(letters):
    letter = letters.add()
    declare(letters, letter, by=KIM)

    other = declare(letters, letter, by=LEE)
    discard = declare(letters, letter, by=KIM, action="discard")
    again = declare(letters, letter, by=KIM)

    assert (other, discard) == ([], [])
    assert [one.by for one in again] == ["user:kim"]
    assert departures() == [("retry", "intended")]


def test_an_intent_of_who_read_the_letter_before_it_left_is_taken_back(letters):
    letter = letters.add()
    stream = letters.stream()
    read = entry(stream, letter)
    first = declare(letters, letter)
    settle(stream, first, execution.execute_intents(stream, first))

    late = intents.declare_intents(
        stream=stream, entries=[read], action="retry", actor=LEE, reason=REASON, now=NOW
    )
    counts = settle(stream, late, execution.execute_intents(stream, late))

    assert counts == {"repeated": 1}
    assert departures() == [("retry", "done")]
    assert len(origin(letters)) == 1


def test_an_entry_of_the_same_id_in_a_stream_made_anew_is_another_letter(letters):
    stream = letters.stream() if letters.add(id="7-1") else None
    first = declare(letters, "7-1")
    settle(stream, first, execution.execute_intents(stream, first))
    letters.redis.delete(letters.name())
    letters.add(id="7-1", order="99")

    second = declare(letters, "7-1")
    outcomes = execution.execute_intents(stream, second)
    repeated = execution.execute_intents(stream, second)
    counts = settle(stream, second, repeated)

    assert outcomes[second[0].pk].kind == "done"
    assert [fields[b"order"] for _, fields in origin(letters)] == [b"17", b"99"]
    assert counts == {"done": 1}


def test_what_the_server_refuses_is_taken_back_and_nothing_has_changed(letters):
    letters.redis.set(_origin(letters), "no stream")
    letter = letters.add()
    stream, declared = letters.stream(), declare(letters, letter)

    outcomes = execution.execute_intents(stream, declared)
    counts = settle(stream, declared, outcomes)

    assert "WRONGTYPE" in outcomes[declared[0].pk].why
    assert counts == {"refused": 1}
    assert (dead(letters), departures()) == ([letter], [])
    assert letters.redis.hlen(execution.notes_key(stream, NOW)) == 0


@pytest.mark.parametrize(
    ("message", "is_temporary"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", True),
        ("BUSY Redis is busy running a script.", True),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'.", True),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", False),
    ],
)
def test_what_a_server_says_of_itself_will_pass(message, is_temporary):
    assert execution.RemovalOutcome("refused", why=message).is_temporary is is_temporary


def test_a_refused_intent_that_was_left_is_taken_back_on_record(letters):
    letters.redis.set(_origin(letters), "no stream")
    letter = letters.add()
    declare(letters, letter)

    intent_sweeper.sweep_intents(LATER)

    assert (dead(letters), departures()) == ([letter], [])
    (row,) = audited()
    assert (row.action, json.loads(row.after)["id"]) == ("dead_letter.withdrawn", letter)


@pytest.mark.parametrize("lost_answer", [False, True])
def test_what_its_maker_carries_out_after_it_was_taken_back_is_in_the_archive(letters, lost_answer):
    letter = letters.add()
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    declared = declare(letters, letter)
    letters.redis.set(_origin(letters), "no stream")
    intent_sweeper.sweep_intents(LATER)
    letters.redis.delete(_origin(letters))

    outcomes = execution.execute_intents(stream, declared)
    if lost_answer:
        outcomes = execution.execute_intents(stream, declared)
    counts = settle(stream, declared, outcomes)
    again = settle(stream, declared, outcomes)

    ((new_id, _),) = origin(letters)
    (departure,) = Departure.objects.all()
    assert (counts, again) == ({"done": 1}, {})
    assert (departure.state, departure.new_id) == ("done", new_id.decode())
    assert dict(entries.unpack_pairs(departure.fields))[b"order"] == b"17"
    assert not Letter.objects.filter(stream=stream).exists()


def test_what_was_taken_back_and_left_by_another_is_in_the_archive_once(letters):
    letter = letters.add()
    stream = letters.stream()
    late = declare(letters, letter)
    letters.redis.set(_origin(letters), "no stream")
    intent_sweeper.sweep_intents(LATER)
    letters.redis.delete(_origin(letters))
    other = declare(letters, letter, by=LEE)
    outcomes = execution.execute_intents(stream, other)

    counts = [settle(stream, late, execution.execute_intents(stream, late))]
    counts += [settle(stream, other, outcomes)]
    counts += [settle(stream, late, execution.execute_intents(stream, late))]

    assert counts == [{}, {"done": 1}, {}]
    assert [one.by for one in Departure.objects.all()] == ["user:lee"]


def test_one_that_is_refused_keeps_no_other_back(letters):
    good, wide = letters.add(), letters.add(**{f"f{n}": "x" for n in range(4000)})
    stream, declared = letters.stream(), declare(letters, good, wide)

    outcomes = execution.execute_intents(stream, declared)

    assert sorted(one.kind for one in outcomes.values()) == ["done", "refused"]
    assert dead(letters) == [wide]


def test_notes_are_kept_for_a_week(letters):
    letter = letters.add()
    stream, declared = letters.stream(), declare(letters, letter)

    outcomes = execution.execute_intents(stream, declared)

    key = execution.notes_key(stream, NOW)
    assert letters.redis.hget(key, letter).decode() == outcomes[declared[0].pk].new_id
    assert 0 <= 7 * 24 * 3600 - letters.redis.ttl(key) < 60
    assert execution.notes_key(stream, NOW + 24 * HOUR) != key


def test_who_may_not_go_on_declares_nothing(letters):
    letter = letters.add()

    def raise_lease_lost():
        raise RuntimeError("the lease is lost")

    with pytest.raises(RuntimeError):
        declare(letters, letter, check=raise_lease_lost)

    assert departures() == []


def test_a_letter_that_was_cut_is_not_declared(letters):
    cut = LetterEntry("1-1", ((b"a", b"be"),), sizes=(9,))
    letters.add()

    with pytest.raises(ValueError, match="not read completely"):
        intents.declare_intents(
            stream=letters.stream(), entries=[cut], action="age", actor=KIM, reason="r", now=NOW
        )


def test_a_stream_with_more_than_a_turn_settles_is_settled_in_order(letters):
    ids = letters.fill(120)
    declare(letters, *ids, action="discard")

    settled = intent_sweeper.sweep_intents(NOW + MINUTE)

    assert settled == 120
    assert dead(letters) == []


@pytest.mark.django_db(transaction=True)
def test_of_many_who_declare_and_carry_out_at_once_one_does(letters):
    letter = letters.add()
    stream = letters.stream()
    whole = entry(stream, letter)

    def leave(action, by):
        def call():
            declared = intents.declare_intents(
                stream=stream, entries=[whole], action=action, actor=by, reason=REASON, now=NOW
            )
            outcomes = execution.execute_intents(stream, declared)
            with transaction.atomic():
                return settle_and_count(stream, declared, outcomes, NOW)

        return call

    calls = [leave("retry", KIM), leave("retry", LEE), leave("discard", LEE), leave("discard", KIM)]
    counts = at_once(*calls, *calls)

    assert sum(one.get("done", 0) for one in counts) == 1
    assert [state for _, state in departures()] == ["done"]
    (action,) = [action for action, _ in departures()]
    assert len(origin(letters)) == (action == "retry")
    assert dead(letters) == []


def _origin(letters):
    return f"{letters.prefix}:events"
