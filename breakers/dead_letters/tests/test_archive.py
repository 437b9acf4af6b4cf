"""The archive: restoring for thirty days, audited revealing, purging."""

import json
from datetime import timedelta

import pytest

from breakers.dead_letters import intent_sweeper
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.removals import (
    actions,
    archive,
    restoration,
    reveal,
)
from breakers.tests.fleet import MINUTE, NOW
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once
from controlplane.core.roles import Role

from .removal_helpers import KIM, LEE, REASON, actor, audited, dead, declare, departures, origin

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
ADMIN = actor("root", Role.ADMIN)


def discarded(letters, *added):
    stream = letters.stream()
    arguments = {"stream": stream, "reason": REASON, "actor": KIM, "now": NOW}
    return [actions.discard(entry_id=one, **arguments)["departure"] for one in added]


def restore(pk, *, by=LEE, now=NOW, reason="INC-4412 it was needed"):
    return restoration.restore_letter(departure_id=pk, reason=reason, actor=by, now=now)


def test_a_discarded_letter_comes_back_with_all_that_it_had(letters):
    letter = letters.add(dlq_attempts="3", dlq_retry_count="1")
    before = letters.redis.xrange(letters.name())[0][1]
    (pk,) = discarded(letters, letter)

    result = restore(pk)

    ((new_id, fields),) = letters.redis.xrange(letters.name())
    assert fields == before
    assert result == {"restored": True, "new_id": new_id.decode(), "departure": pk}
    departure = Departure.objects.get()
    assert (departure.state, departure.restored_by) == ("restored", "user:lee")
    row = audited("dead_letter.restored")[0]
    assert (row.actor_name, row.reason) == ("lee", "INC-4412 it was needed")
    assert json.loads(row.before)["id"] == letter
    assert json.loads(row.after) == {"id": new_id.decode()}


def test_what_was_restored_is_a_letter_like_any_other(letters):
    (pk,) = discarded(letters, letters.add())
    new_id = restore(pk)["new_id"]

    actions.retry(stream=letters.stream(), entry_id=new_id, reason=REASON, actor=KIM, now=NOW)

    assert len(origin(letters)) == 1
    assert departures() == [("discard", "restored"), ("retry", "done")]


def test_restoring_twice_is_refused(letters):
    (pk,) = discarded(letters, letters.add())
    new_id = restore(pk)["new_id"]

    with pytest.raises(Conflict, match=f"already restored, as {new_id}"):
        restore(pk)
    assert len(dead(letters)) == 1


def test_a_stream_that_is_gone_comes_back_with_the_letter(letters):
    (pk,) = discarded(letters, letters.add())
    letters.redis.delete(letters.name())
    LetterStream.objects.update(gone_at=NOW)

    restore(pk)

    assert len(dead(letters)) == 1
    assert LetterStream.objects.get().gone_at is None


def test_what_was_retried_is_not_restored(letters):
    letter = letters.add()
    arguments = {"stream": letters.stream(), "reason": REASON, "actor": KIM, "now": NOW}
    actions.retry(entry_id=letter, **arguments)

    with pytest.raises(Conflict, match="would duplicate it"):
        restore(Departure.objects.get().pk)


def test_what_was_gone_before_it_could_be_retried_is_restored(letters):
    letter = letters.add()
    declare(letters, letter)
    letters.redis.xdel(letters.name(), letter)
    intent_sweeper.sweep_intents(NOW + MINUTE)

    restore(Departure.objects.get().pk)

    assert len(dead(letters)) == 1


def test_what_left_too_long_ago_is_not_restored(letters):
    (pk,) = discarded(letters, letters.add())

    with pytest.raises(Conflict, match="for 30 days"):
        restore(pk, now=NOW + 30 * DAY)


def test_what_is_about_to_leave_is_not_restored(letters):
    (departure,) = declare(letters, letters.add())

    with pytest.raises(Conflict, match="is being removed"):
        restore(departure.pk)


def test_a_letter_with_more_fields_than_a_script_takes_is_not_restored(letters):
    (pk,) = discarded(letters, letters.add(**{f"f{n}": "x" for n in range(3600)}))

    with pytest.raises(Conflict, match="fields"):
        restore(pk)
    assert departures() == [("discard", "done")]


def test_a_refused_restoring_is_as_if_it_was_not_asked_for(letters):
    (pk,) = discarded(letters, letters.add())
    letters.redis.delete(letters.name())
    letters.redis.set(letters.name(), "no stream")

    with pytest.raises(Conflict, match="WRONGTYPE"):
        restore(pk)

    departure = Departure.objects.get()
    assert (departure.state, departure.restored_by, departure.restored_at) == ("done", "", None)


def begin_restore(pk, at=NOW):
    """Begin a restore like somebody who dies before Redis is called."""
    Departure.objects.filter(pk=pk).update(
        state="restoring", restored_at=at, restored_by="user:lee", restore_reason="INC-1 needed"
    )


def test_a_letter_that_was_gone_is_so_again_after_a_refused_restoring(letters):
    letters.add()
    letter = letters.add()
    declare(letters, letter, action="discard")
    letters.redis.xdel(letters.name(), letter)
    intent_sweeper.sweep_intents(NOW + MINUTE)
    letters.redis.delete(letters.name())
    letters.redis.set(letters.name(), "no stream")

    with pytest.raises(Conflict, match="WRONGTYPE"):
        restore(Departure.objects.get().pk)

    assert departures() == [("discard", "gone")]


def test_a_restoring_that_is_refused_for_good_ends_on_record(letters):
    (pk,) = discarded(letters, letters.add())
    begin_restore(pk)
    letters.redis.delete(letters.name())
    letters.redis.set(letters.name(), "no stream")

    settled = [
        intent_sweeper.sweep_intents(NOW + MINUTE),
        intent_sweeper.sweep_intents(NOW + 2 * MINUTE),
    ]

    assert settled == [1, 0]
    assert departures() == [("discard", "done")]
    (row,) = audited("dead_letter.withdrawn")
    assert "WRONGTYPE" in row.after


def test_a_restoring_whose_note_is_forgotten_is_not_repeated(letters):
    (pk,) = discarded(letters, letters.add())
    begin_restore(pk)

    intent_sweeper.sweep_intents(NOW + 8 * DAY)

    assert dead(letters) == []
    assert departures() == [("discard", "done")]
    assert len(audited("dead_letter.withdrawn")) == 1


def test_what_may_have_been_retried_long_ago_is_not_restored(letters):
    letter = letters.add()
    declare(letters, letter)
    letters.redis.xdel(letters.name(), letter)
    intent_sweeper.sweep_intents(NOW + 8 * DAY)

    with pytest.raises(Conflict, match="unknown whether"):
        restore(Departure.objects.get().pk, now=NOW + 8 * DAY)


def test_restoring_asks_for_a_reason_a_scope_and_a_letter(letters):
    (pk,) = discarded(letters, letters.add())

    with pytest.raises(InvalidInput):
        restore(pk, reason=" ")
    with pytest.raises(Forbidden):
        restore(pk, by=actor("vi", Role.VIEWER))
    with pytest.raises(NotFound):
        restore(pk + 1)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_restore_at_once_one_does(letters):
    (pk,) = discarded(letters, letters.add())

    def call():
        try:
            return restore(pk)
        except Conflict:
            return None

    at_once(*[call] * 6)

    assert len(dead(letters)) == 1
    assert len(audited("dead_letter.restored")) == 1


def test_an_admin_sees_all_of_a_letter_and_that_is_on_record(letters):
    letter = letters.add(password="hunter2")
    stream = letters.stream()

    entry = reveal.reveal_letter(
        stream=stream, entry_id=letter, actor=ADMIN, now=NOW, reason="INC-1 check"
    )

    assert entry.value(b"password") == b"hunter2"
    (row,) = audited()
    assert (row.action, row.target, row.reason) == (
        "dead_letter.revealed",
        f"dlq:{stream}",
        "INC-1 check",
    )
    assert json.loads(row.after) == {"id": letter}


def test_an_admin_sees_all_of_what_is_archived(letters):
    (pk,) = discarded(letters, letters.add(password="hunter2"))

    departure = reveal.reveal_archived(departure_id=pk, actor=ADMIN, now=NOW, reason="INC-1 check")

    assert (departure.pk, departure.edited_pairs) == (pk, None)
    assert departure.entry.value(b"password") == b"hunter2"
    assert json.loads(audited("dead_letter.revealed")[0].after)["archive"] == pk


WRITER = frozenset({"dlq:read", "dlq:write"})


@pytest.mark.parametrize(
    ("by", "may"),
    [
        (ADMIN, True),
        (KIM, False),
        (actor("vi", Role.VIEWER), False),
        (Actor(type="token", name="t", role=Role.ADMIN, scopes=WRITER), True),
        (Actor(type="token", name="t", role=Role.ADMIN, scopes=frozenset({"dlq:read"})), False),
        (Actor(type="token", name="t", role=Role.OPERATOR, scopes=WRITER), False),
        (Actor(type="system", name="clock"), False),
    ],
)
def test_who_may_see_what_is_hidden(letters, by, may):
    letter = letters.add()
    arguments = {
        "stream": letters.stream(),
        "entry_id": letter,
        "now": NOW,
        "reason": "INC-1 check",
    }

    if may:
        reveal.reveal_letter(actor=by, **arguments)
    else:
        with pytest.raises(Forbidden):
            reveal.reveal_letter(actor=by, **arguments)

    assert reveal.may_reveal(by) is may
    assert len(audited()) == may


def test_revealing_what_is_gone_is_a_conflict_and_leaves_no_trace(letters):
    letters.add()
    letter = letters.add()
    letters.redis.xdel(letters.name(), letter)
    arguments = {"stream": letters.stream(), "actor": ADMIN, "now": NOW, "reason": "INC-1 check"}

    with pytest.raises(Conflict):
        reveal.reveal_letter(entry_id=letter, **arguments)
    with pytest.raises(NotFound):
        reveal.reveal_letter(entry_id="9999999999999-9", **arguments)
    assert audited() == []


def test_what_left_thirty_days_ago_is_forgotten_on_record(letters):
    discarded(letters, letters.add(), letters.add())
    declare(letters, letters.add())

    early = archive.purge_batch(NOW + 30 * DAY - MINUTE)
    due = archive.purge_batch(NOW + 30 * DAY)

    assert (early, due) == (0, 2)
    assert departures() == [("retry", "intended")]
    row = audited("dead_letter.archived")[-1]
    assert json.loads(row.after) == {"forgotten": 2, "streams": {str(letters.stream()): 2}}
