"""Dead letters as commands for Redis and what their answers mean. Pure: whoever asks, asks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from switchgear.dlq import scripts
from switchgear.dlq.exchanges import Command, Exchange, says
from switchgear.dlq.messages import Message, Pairs, paired, text
from switchgear.dlq.names import Names

MAX_ERROR_LENGTH = 2000  # characters
LOOKED_AT = 200  # of the last dead letters
Fields = Mapping[str, object] | Mapping[bytes, object] | Iterable[tuple[bytes | str, object]]
"""Names and values: bytes, text or numbers."""


class Outcome(StrEnum):
    """What became of a message that was to be a dead letter."""

    DEAD = "dead"
    """It is one now, and acknowledged."""
    SETTLED = "settled"
    """The group has it no more: it was acknowledged, or is a dead letter already."""
    TAKEN = "taken"
    """Another consumer reclaimed it, and will come to an end with it."""


@dataclass(frozen=True)
class Result:
    """`new_id` is the dead letter's id in its stream; empty unless the outcome is `DEAD`."""

    outcome: Outcome
    new_id: str = ""


@dataclass(frozen=True)
class Letter:
    """A message about to be a dead letter. Without a group it is one that never came out of one."""

    stream: str
    dead_stream: str
    group: str
    consumer: str
    id: str
    metadata: tuple[bytes, ...]
    pairs: Pairs

    def bury(self, *, one_slot: bool) -> Exchange[Result]:
        """Acknowledge it and add it to the dead letters, if it is ours still.

        That is one step, and safe to repeat, where both streams are in `one_slot` and it has less
        than 3500 fields. Otherwise it is added first: whoever dies in between leaves it to be added
        again. Raises :class:`ValueError` if its content is neither here nor in the stream.
        """
        if one_slot:
            reply = yield self._script(() if self.group else self.pairs)
            if text(reply[0]) == "bare":
                reply = yield self._script(self.pairs)
        else:
            reply = (b"large",)
        if text(reply[0]) == "bare":
            raise ValueError(f"{self.id} is not in {self.stream} any more: fields= is needed")
        if text(reply[0]) != "large":
            return Result(Outcome(text(reply[0])), text(reply[1]) if len(reply) > 1 else "")
        return (yield from self._in_steps())

    def bury_or_save(self, *, one_slot: bool) -> Exchange[Result]:
        """The same for a worker that has the message in hand. Whoever deletes it from the stream
        meanwhile, or all of the stream, has the group forget it: then nobody else can come to an
        end with it, and it is added as the worker has it, unless it was."""
        try:
            found = yield from self.bury(one_slot=one_slot)
        except Exception as error:
            if not says(error, "NOGROUP"):
                raise
            found = Result(Outcome.SETTLED)
        if found.outcome is not Outcome.SETTLED:
            return found
        if (yield ("EVAL", scripts.IS_THERE, 1, self.stream, self.id)):
            return found
        own = (self.id, self.group, LOOKED_AT)
        if (yield ("EVAL", scripts.IS_DEAD, 1, self.dead_stream, *own)):
            return found
        return Result(Outcome.DEAD, text((yield self._added(self.pairs))))

    def _added(self, pairs: Pairs) -> Command:
        names = set(self.metadata[::2])
        kept = flat(tuple(pair for pair in pairs if pair[0] not in names))
        return ("XADD", self.dead_stream, "*", *kept, *self.metadata)

    def _script(self, pairs: Pairs) -> Command:
        head = (self.group, self.consumer, self.id, len(self.metadata))
        keys = (self.stream, self.dead_stream)
        return ("EVAL", scripts.DEAD_LETTER, 2, *keys, *head, *self.metadata, *flat(pairs))

    def _in_steps(self) -> Exchange[Result]:
        pairs = self.pairs
        if self.group:
            reply = yield ("EVAL", scripts.LOOK, 1, self.stream, self.group, self.consumer, self.id)
            if text(reply[0]) != "ours":
                return Result(Outcome(text(reply[0])))
            pairs = paired(reply[1]) or pairs
        if not pairs:
            raise ValueError(f"{self.id} is not in {self.stream} any more: fields= is needed")
        new_id = yield self._added(pairs)
        if self.group:
            yield ("XACK", self.stream, self.group, self.id)
        return Result(Outcome.DEAD, text(new_id))


def of_message(
    message: Message, *, dead_stream: str, consumer: str, error: BaseException, attempts: int
) -> Letter:
    """The letter of a message whose last attempt is behind it."""
    said = metadata(error=error, attempts=attempts, group=message.group, entry_id=message.id)
    return Letter(
        stream=message.stream,
        dead_stream=dead_stream,
        group=message.group,
        consumer=consumer,
        id=message.id,
        metadata=said,
        pairs=message.pairs,
    )


def given(
    *,
    stream: str,
    dead_stream: str,
    names: Names | None,
    group: str,
    consumer: str,
    entry_id: str,
    fields: Fields | None,
    error: BaseException | str,
    error_type: str,
    attempts: int,
    failed_at: datetime | None,
) -> Letter:
    """The letter of a message that somebody else read. Raises :class:`ValueError`."""
    if group and not entry_id:
        raise ValueError("a message of a group has an entry_id")
    return Letter(
        stream=stream,
        dead_stream=dead_stream or (names or Names()).dead_of(stream),
        group=group,
        consumer=consumer,
        id=entry_id,
        metadata=metadata(
            error=error,
            error_type=error_type,
            attempts=attempts,
            group=group,
            entry_id=entry_id,
            failed_at=failed_at,
        ),
        pairs=pairs_of(fields),
    )


def metadata(
    *,
    error: BaseException | str,
    attempts: int,
    group: str,
    entry_id: str,
    failed_at: datetime | None = None,
    error_type: str = "",
) -> tuple[bytes, ...]:
    """What a dead letter says beside the message's own fields: names and values in turns."""
    if isinstance(error, BaseException):
        error_type = error_type or type_of(error)
        error = described(error)
    moment = (failed_at or datetime.now(UTC)).astimezone(UTC)
    said = {
        "dlq_error": error[:MAX_ERROR_LENGTH],
        "dlq_error_type": error_type,
        "dlq_attempts": str(attempts),
        "dlq_original_id": entry_id,
        "dlq_group": group,
        "dlq_failed_at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return tuple(
        one.encode("utf-8", "backslashreplace")
        for name, value in said.items()
        if value
        for one in (name, value)
    )


def type_of(error: BaseException) -> str:
    """`ValueError`, `httpx.ConnectTimeout`."""
    kind = type(error)
    is_built_in = kind.__module__ == "builtins"
    return kind.__qualname__ if is_built_in else f"{kind.__module__}.{kind.__qualname__}"


def described(error: BaseException) -> str:
    """What the exception says; its kind if that is nothing, or goes wrong itself."""
    try:
        return str(error) or type_of(error)
    except Exception:  # Whatever a foreign __str__ does, the message must not be stuck for it.
        return type_of(error)


def pairs_of(fields: Fields | None) -> Pairs:
    """Names and values as bytes, in order. Raises :class:`TypeError` for a value that is neither
    bytes, text nor a number."""
    given = fields.items() if isinstance(fields, Mapping) else fields or ()
    return tuple((_bytes(name), _bytes(value)) for name, value in given)


def flat(pairs: Pairs) -> tuple[bytes, ...]:
    return tuple(one for pair in pairs for one in pair)


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"fields are bytes, text or numbers, not {type(value).__name__}")
    return str(value).encode("utf-8", "surrogateescape")
