"""Retrying, editing and discarding a single letter."""

import json

import pytest
from django.db import transaction

from breakers.dead_letters.letters import entries
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.removals import actions, intents
from breakers.tests.fleet import NOW
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once
from controlplane.core.roles import Role

from .removal_helpers import (
    KIM,
    LEE,
    REASON,
    actor,
    audited,
    dead,
    declare,
    departures,
    entry,
    origin,
)

pytestmark = pytest.mark.django_db


def retry(letters, letter, by=KIM, **more):
    arguments = {"stream": letters.stream(), "reason": REASON, "actor": by, "now": NOW, **more}
    return actions.retry(entry_id=letter, **arguments)


def prepare(action, stream, letter, **more):
    arguments = {"stream": stream, "entry_id": letter, "reason": REASON, "actor": KIM, "now": NOW}
    return actions.prepare_removal(actions.RemovalRequest(action=action, **arguments, **more))


def discard(letters, letter, by=KIM, **more):
    arguments = {"stream": letters.stream(), "reason": REASON, "actor": by, "now": NOW, **more}
    return actions.discard(entry_id=letter, **arguments)


def test_a_retry_answers_with_the_new_id_and_is_on_record(letters):
    letter = letters.add()

    result = retry(letters, letter)

    ((new_id, _),) = origin(letters)
    assert result == {
        "retried": True,
        "new_id": new_id.decode(),
        "repeated": False,
        "delivery": "exactly once",
    }
    (row,) = audited()
    assert (row.action, row.actor_name, row.reason) == ("dead_letter.retried", "kim", REASON)
    after = json.loads(row.after)
    assert (after["id"], after["new_id"]) == (letter, new_id.decode())
    assert after["archive"] == Departure.objects.get().pk


def test_a_retry_that_is_asked_for_again_answers_the_same_once_more(letters):
    letter = letters.add()
    first = retry(letters, letter)

    second = retry(letters, letter, by=LEE)

    assert second == {**first, "repeated": True}
    assert len(origin(letters)) == 1
    assert len(audited()) == 1


def test_a_retry_whose_maker_died_after_redis_is_finished_by_who_asks_again(letters):
    letter = letters.add()
    stream = letters.stream()
    prepare("retry", stream, letter)

    result = retry(letters, letter, by=LEE)

    assert (result["repeated"], result["new_id"]) == (True, origin(letters)[0][0].decode())
    assert departures() == [("retry", "done")]
    assert [row.actor_name for row in audited()] == ["kim"]


def test_a_retry_whose_maker_died_before_redis_is_taken_up_by_them(letters):
    letter = letters.add()
    declare(letters, letter)

    result = retry(letters, letter)

    assert result["repeated"] is False
    assert departures() == [("retry", "done")]


def test_a_letter_that_another_is_retrying_is_left_to_them(letters):
    letter = letters.add()
    declare(letters, letter, by=LEE)

    with pytest.raises(Conflict, match="is being retried by user:lee"):
        retry(letters, letter)
    with pytest.raises(Conflict, match="is being retried by user:lee"):
        discard(letters, letter)
    assert dead(letters) == [letter]


def test_an_edited_retry_keeps_the_original_and_says_so(letters):
    letter = letters.add()

    retry(letters, letter, edited_fields={"order": {"id": 18}})

    ((_, fields),) = origin(letters)
    departure = Departure.objects.get()
    assert fields[b"order"] == b'{"id":18}'
    assert dict(entries.unpack_pairs(departure.fields))[b"order"] == b"17"
    assert json.loads(audited()[0].after)["edited"] is True


def test_another_edit_of_what_is_being_retried_is_refused(letters):
    letter = letters.add()
    declare(letters, letter, edits={letter: ((b"order", b"18"),)})

    with pytest.raises(Conflict, match="is being retried"):
        retry(letters, letter, edited_fields={"order": "19"})
    result = retry(letters, letter, edited_fields={"order": "18"})

    assert result["retried"] is True
    assert origin(letters)[0][1][b"order"] == b"18"


def test_an_edited_retry_of_what_was_retried_as_it_was_is_refused(letters):
    letter = letters.add()
    retry(letters, letter)

    with pytest.raises(Conflict, match="was retried by user:kim"):
        retry(letters, letter, by=LEE, edited_fields={"order": "18"})
    assert len(origin(letters)) == 1


def test_the_same_edited_retry_answers_the_same_once_more_and_a_plain_one_is_refused(letters):
    letter = letters.add()
    first = retry(letters, letter, edited_fields={"order": "18"})

    second = retry(letters, letter, by=LEE, edited_fields={"order": "18"})

    assert second == {**first, "repeated": True}
    with pytest.raises(Conflict, match="was retried by user:kim"):
        retry(letters, letter, by=LEE)


@pytest.mark.parametrize(("edited", "is_told"), [({"order": "18"}, True), (None, False)])
def test_a_letter_that_leaves_while_another_retries_it_is_told_of(letters, edited, is_told):
    letter = letters.add()
    stream = letters.stream()
    whole = entry(stream, letter)
    first = retry(letters, letter)
    edits = {letter: ((b"order", b"18"),)} if edited else None
    arguments = {
        "stream": stream,
        "entries": [whole],
        "action": "retry",
        "reason": REASON,
        "now": NOW,
    }
    intents.declare_intents(actor=LEE, edits=edits, **arguments)

    result = outcome_of(lambda: retry(letters, letter, by=LEE, edited_fields=edited))

    if is_told:
        assert "was retried by user:kim" in result
    else:
        assert result == {**first, "repeated": True}
    assert departures() == [("retry", "done")]
    assert len(origin(letters)) == 1


def test_a_discard_of_what_another_discarded_meanwhile_names_what_is_in_the_archive(letters):
    letter = letters.add()
    stream = letters.stream()
    whole = entry(stream, letter)
    first = discard(letters, letter)
    arguments = {"stream": stream, "entries": [whole], "action": "discard", "reason": REASON}
    intents.declare_intents(actor=LEE, now=NOW, **arguments)

    result = discard(letters, letter, by=LEE)

    assert result == {**first, "repeated": True}
    assert Departure.objects.get().pk == first["departure"]


def outcome_of(call):
    try:
        return call()
    except Conflict as conflict:
        return conflict.detail


def test_an_edit_that_can_not_be_changes_nothing(letters):
    letter = letters.add()

    with pytest.raises(InvalidInput):
        retry(letters, letter, edited_fields={"order": "[redacted]"})
    assert (dead(letters), departures()) == ([letter], [])


def test_a_discard_is_archived_and_on_record(letters):
    letter = letters.add()

    result = discard(letters, letter)
    again = discard(letters, letter)

    departure = Departure.objects.get()
    assert result == {"discarded": True, "departure": departure.pk, "repeated": False}
    assert again == {**result, "repeated": True}
    assert (dead(letters), origin(letters)) == ([], [])
    assert [row.action for row in audited()] == ["dead_letter.discarded"]


def test_what_was_discarded_is_not_retried(letters):
    letter = letters.add()
    discard(letters, letter)

    with pytest.raises(Conflict, match="was discarded by user:kim") as refused:
        retry(letters, letter, by=LEE)
    assert refused.value.extra["gone"] is True


def test_what_was_retried_is_not_discarded(letters):
    letter = letters.add()
    new_id = retry(letters, letter)["new_id"]

    with pytest.raises(Conflict, match=f"was retried by user:kim. Its new id is {new_id}"):
        discard(letters, letter)


def test_a_letter_that_is_gone_before_anybody_looked_is_a_conflict(letters):
    letters.add()
    gone = letters.add()
    letters.redis.xdel(letters.name(), gone)

    with pytest.raises(Conflict, match="is gone"):
        retry(letters, gone)


def test_a_letter_of_an_odd_id_that_is_gone_is_a_conflict_if_it_was_known(letters):
    letters.fill(2)
    indexer.catch_up(letters.stream(), NOW)
    letters.redis.xdel(letters.name(), "1-0")

    with pytest.raises(Conflict, match="is gone"):
        discard(letters, "1-0")


@pytest.mark.parametrize("unknown", ["9999999999999-0", "5-5", "x", "", "1-2-3"])
def test_a_letter_that_never_was_is_not_found(letters, unknown):
    letters.add()

    with pytest.raises(NotFound):
        retry(letters, unknown)


@pytest.mark.parametrize("reason", ["", "  ", "a\x07b", "x" * 2001])
def test_a_reason_is_asked_for(letters, reason):
    letter = letters.add()

    with pytest.raises(InvalidInput) as refused:
        retry(letters, letter, reason=reason)
    assert list(refused.value.errors) == ["reason"]
    assert dead(letters) == [letter]


def test_a_viewer_may_not(letters):
    letter = letters.add()

    for act in (retry, discard):
        with pytest.raises(Forbidden):
            act(letters, letter, by=actor("vi", Role.VIEWER))
    assert dead(letters) == [letter]


def test_a_message_with_too_many_fields_is_discarded_but_not_retried(letters):
    letter = letters.add(**{f"f{n}": "x" for n in range(3501)})

    with pytest.raises(Conflict) as refused:
        retry(letters, letter)
    discard(letters, letter)

    assert refused.value.extra["why"] == "too_many_fields"
    assert departures() == [("discard", "done")]


def test_a_message_with_as_many_fields_as_can_be_is_retried(letters):
    letter = letters.add(**{f"f{n}": "x" for n in range(3499)})

    retry(letters, letter)

    assert len(origin(letters)[0][1]) == 3502


def test_a_dry_run_checks_and_does_nothing(letters):
    letter = letters.add()

    for action in ("retry", "discard"):
        prepared = prepare(action, letters.stream(), letter, dry_run=True)
        with transaction.atomic():
            prepared.record(NOW)

    assert (dead(letters), departures(), audited()) == ([letter], [], [])


def test_a_message_of_the_outbox_is_no_entry(letters):
    outbox = LetterStream.objects.create(
        source="outbox", server="default", name="outbox", found_at=NOW
    )

    with pytest.raises(NotFound):
        retry(letters, "1-1", stream=outbox)


@pytest.mark.django_db(transaction=True)
def test_of_many_operators_at_once_one_has_retried_and_the_others_are_told(letters):
    letter = letters.add()
    stream = letters.stream()
    people = [actor(f"operator-{n}") for n in range(6)]

    def call(act, by):
        def ask():
            try:
                return act(letters, letter, by=by, stream=stream)
            except Conflict as conflict:
                return conflict

        return ask

    calls = [call(retry if n % 2 else discard, by) for n, by in enumerate(people)]
    answers = at_once(*calls)

    assert len([one for one in departures() if one[1] == "done"]) == 1
    assert len(departures()) == 1
    assert len(audited()) == 1
    assert dead(letters) == []
    done = [one for one in answers if isinstance(one, dict) and not one["repeated"]]
    assert len(done) <= 1
    assert any(isinstance(one, dict) for one in answers)
