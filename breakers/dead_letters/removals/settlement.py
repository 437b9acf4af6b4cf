"""Settlement of removal intents: records outcomes, and updates the index and the counters.

:func:`declare_intents` commits intents with whole letters, :func:`execute_intents` executes them in
Redis and may be repeated, :func:`settle_intents` records the outcomes. After a crash in between,
`breakers.dead_letters.intent_sweeper` settles the intents.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from breakers.dead_letters.models import POSITION, Departure, Gap, Letter, LetterStream
from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.errors import InvalidInput
from controlplane.core.live import change_notices
from controlplane.core.sql import execute

from .execution import Outcomes, RemovalOutcome

SCOPE = "dlq:write"
REQUIRED = {
    Departure.Action.RETRY: Action.REPLAY,
    Departure.Action.DISCARD: Action.PURGE,
    Departure.Action.PURGE: Action.PURGE,
}
"""Actions on the stream as which removals of letters count."""
MAX_FIELDS = 3500
"""Maximum number of fields that a script can add to a stream, limited by the Lua stack."""
MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of an entry that can be archived."""
_ADVICE = "Say what was wrong and what has changed, or give the incident number."

State = Departure.State
KINDS = ("done", "gone", "refused", "repeated")
LEFT = (State.DONE, State.RESTORING, State.RESTORED)

log = structlog.get_logger(__name__)

_CAME = """
    UPDATE breakers_departure AS departure
    SET state = came.state, new_id = came.new_id, done_at = %s
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS came (id, state, new_id)
    WHERE departure.id = came.id
"""


def require_authority(actor: Actor, removal: str, stream: LetterStream) -> None:
    """Raise :class:`Forbidden` unless the actor may retry, discard or purge letters of a stream."""
    actor.require(SCOPE)
    authority.require(actor, REQUIRED[Departure.Action(removal)], stream.resource)


def settle_intents(
    stream: LetterStream, departures: Sequence[Departure], outcomes: Outcomes, now: datetime
) -> dict[str, list[Departure]]:
    """Record the outcomes of removal intents in the current transaction; return intents by kind.

    Kinds are `done`, `gone`, `refused` (withdrawn, as nothing was done) and `repeated` (withdrawn,
    as another intent removed the letter). Intents without an outcome stay open. Intents that are
    settled already are left out, so settling twice is harmless.
    """
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    wanted = [one.pk for one in departures if one.pk in outcomes]
    mine = Departure.objects.filter(pk__in=wanted, state=State.INTENDED).order_by("position")
    rows = list(mine.without_payload().select_for_update())
    late = _recreate_executed(locked, departures, outcomes)
    rows += late
    earlier = _earlier_removals(locked, rows)
    Departure.objects.bulk_create(late)
    found: dict[str, list[Departure]] = {kind: [] for kind in KINDS}
    for row in rows:
        row.stream = locked
        outcome = outcomes[row.pk]
        found[_classify(outcome, earlier.get(row.position))].append(row)
        row.new_id, row.done_at = outcome.new_id[:POSITION], now
    for kind, state in (("done", State.DONE), ("gone", State.GONE)):
        for row in found[kind]:
            row.state = state
    taken_back = [row.pk for row in (*found["refused"], *found["repeated"])]
    Departure.objects.filter(pk__in=taken_back).delete()
    settled = [*found["done"], *found["gone"]]
    columns = ([getattr(row, name) for row in settled] for name in ("pk", "state", "new_id"))
    execute(_CAME, [now, *columns])
    _remove_from_index(locked, found["done"], found["gone"], now)
    transaction.on_commit(lambda: _log_retries(locked, found["done"]))
    return found


def _log_retries(stream: LetterStream, done: Sequence[Departure]) -> None:
    for row in done:
        if row.action == Departure.Action.RETRY:
            log.info(
                "dlq_message_reprocessed",
                stream=str(stream),
                origin=stream.origin,
                letter=row.entry_id,
                new_id=row.new_id,
            )


def require_reason(reason: str) -> str:
    """Return the stripped reason. Raises :class:`InvalidInput` if the reason is not meaningful."""
    problems = reasons.find_text_problems(reason, called="reason", advice=_ADVICE)
    if problems:
        raise InvalidInput({"reason": problems})
    return reason.strip()


def _recreate_executed(
    stream: LetterStream, departures: Sequence[Departure], outcomes: Outcomes
) -> list[Departure]:
    """Return the rows to insert again for executed intents whose rows were deleted.

    A row is missing if another process withdrew the intent while this one was suspended, and this
    one then executed it. The stream's row must be locked.
    """
    moved = {one.pk: one for one in departures if one.pk in outcomes}
    moved = {pk: one for pk, one in moved.items() if outcomes[pk].kind in ("done", "again")}
    known = set(Departure.objects.filter(pk__in=moved).values_list("pk", flat=True))
    lost = [one for pk, one in moved.items() if pk not in known]
    if not lost:
        return []
    about_to = Departure.objects.filter(
        stream=stream, position__in=[one.position for one in lost], state=State.INTENDED
    )
    others = set(about_to.values_list("position", flat=True))
    earlier = _earlier_removals(stream, lost)
    late = []
    for one in lost:
        outcome = outcomes[one.pk]
        is_theirs = outcome.kind == "again" and one.position in others
        if not is_theirs and _classify(outcome, earlier.get(one.position)) == "done":
            one.state = State.DONE
            late.append(one)
    return late


def _earlier_removals(stream: LetterStream, rows: Sequence[Departure]) -> dict[str, set[str]]:
    """Return the `new_id` values of the letters' removals settled before, by position."""
    found: dict[str, set[str]] = {}
    positions = [row.position for row in rows]
    left = Departure.objects.filter(stream=stream, position__in=positions, state__in=LEFT)
    for position, new_id, state in left.values_list("position", "new_id", "state"):
        # After a restore, `new_id` is the letter's id in the stream; its removal had none.
        found.setdefault(position, set()).add(new_id if state == State.DONE else "")
    return found


def _classify(outcome: RemovalOutcome, earlier: set[str] | None) -> str:
    """Return the kind, as in :func:`settle_intents`, of an intent with this outcome.

    `earlier` are the `new_id` values of other settled removals of the letter, None without any.
    """
    if outcome.kind in ("refused", "done"):
        return outcome.kind
    if outcome.kind == "again":
        return "repeated" if earlier and outcome.new_id in earlier else "done"
    return "gone" if earlier is None else "repeated"


def _remove_from_index(
    stream: LetterStream, done: Sequence[Departure], gone: Sequence[Departure], now: datetime
) -> None:
    """Delete the index rows of removed letters and update the stream's counters.

    Letters that another client removed are recorded as a gap, unless :mod:`monitoring.gaps` has
    done that before.
    """
    if not done and not gone:
        return
    letters = Letter.objects.filter(stream=stream)
    letters.filter(position__in=[row.position for row in done]).delete()
    missing = [row.position for row in gone]
    vanished, _ = letters.filter(position__in=missing).delete()
    if vanished:
        Gap.objects.create(
            stream=stream, first=missing[0], last=missing[-1], count=vanished, noticed_at=now
        )
    retried = sum(row.action == Departure.Action.RETRY for row in done)
    LetterStream.objects.filter(pk=stream.pk).update(
        depth=Greatest(F("depth") - (len(done) + vanished), Value(0)),
        retried_total=F("retried_total") + retried,
        vanished_total=F("vanished_total") + vanished,
    )
    change_notices.notify_changed("dlq", str(stream))
