"""The Redis commands that move a failed message to the dead letters. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from typing import Required, TypedDict

from switchgear.dlq import scripts
from switchgear.dlq.exchanges import Command, Exchange, has_error_code
from switchgear.dlq.messages import Pairs, pair_up, to_text
from switchgear.dlq.names import Names

MAX_ERROR_LENGTH = 2000  # characters
MAX_SEARCHED = 200  # of the last dead letters
Fields = Mapping[str, object] | Mapping[bytes, object] | Iterable[tuple[bytes | str, object]]
"""Field names and values: bytes, text or numbers."""


class DeadLetterArguments(TypedDict, total=False):
    """The arguments of :func:`dead_letter`, which describes them."""

    stream: Required[str]
    error: Required[BaseException | str]
    attempts: Required[int]
    group: str
    consumer: str
    entry_id: str
    fields: Fields | None
    names: Names | None
    dead_stream: str
    error_type: str
    failed_at: datetime | None


class Outcome(StrEnum):
    """The outcome of :func:`dead_letter`."""

    DEAD = "dead"
    """The message is a dead letter now, and acknowledged."""
    SETTLED = "settled"
    """The message is not pending in the group: acknowledged, or a dead letter already."""
    TAKEN = "taken"
    """Another consumer has reclaimed the message and will handle it."""


@dataclass(frozen=True)
class Result:
    """The result of :func:`dead_letter`.

    `new_id` is the dead letter's id if the outcome is `DEAD`, else empty.
    """

    outcome: Outcome
    new_id: str = ""


@dataclass(frozen=True)
class FailedMessage:
    """A message to bury as a dead letter; `group` is empty if no group delivered it."""

    stream: str
    dead_stream: str
    group: str
    consumer: str
    id: str
    metadata: tuple[bytes, ...]
    pairs: Pairs

    def bury(self, *, one_slot: bool) -> Exchange[Result]:
        """Add the message to the dead letters and acknowledge it, if this consumer still holds it.

        `one_slot` tells that one script may access both streams. Then this is atomic and
        idempotent, if the message has fewer than 3500 fields. Otherwise the dead letter is added
        before the acknowledgement, and a crash in between may add it twice. Raises
        :class:`ValueError` if the message's content is neither in `pairs` nor in the stream.
        """
        if one_slot:
            reply = yield self._script_command(() if self.group else self.pairs)
            if to_text(reply[0]) == "bare":
                reply = yield self._script_command(self.pairs)
        else:
            reply = (b"large",)
        if to_text(reply[0]) == "bare":
            raise ValueError(f"{self.id} is no longer in {self.stream}: pass fields=")
        if to_text(reply[0]) != "large":
            return Result(Outcome(to_text(reply[0])), to_text(reply[1]) if len(reply) > 1 else "")
        return (yield from self._bury_in_steps())

    def bury_or_save(self, *, one_slot: bool) -> Exchange[Result]:
        """Like :meth:`bury`, for a worker that holds the message.

        If the message or its stream was deleted meanwhile, the worker's copy of the message becomes
        the dead letter, unless the message is a dead letter already.
        """
        try:
            result = yield from self.bury(one_slot=one_slot)
        except Exception as error:
            if not has_error_code(error, "NOGROUP"):
                raise
            result = Result(Outcome.SETTLED)
        if result.outcome is not Outcome.SETTLED:
            return result
        if (yield ("EVAL", scripts.EXISTS, 1, self.stream, self.id)):
            return result
        own = (self.id, self.group, MAX_SEARCHED)
        if (yield ("EVAL", scripts.IS_DEAD, 1, self.dead_stream, *own)):
            return result
        return Result(Outcome.DEAD, to_text((yield self._add_command(self.pairs))))

    def _add_command(self, pairs: Pairs) -> Command:
        names = set(self.metadata[::2])
        fields = chain.from_iterable(pair for pair in pairs if pair[0] not in names)
        return ("XADD", self.dead_stream, "*", *fields, *self.metadata)

    def _script_command(self, pairs: Pairs) -> Command:
        head = (self.group, self.consumer, self.id, len(self.metadata))
        keys = (self.stream, self.dead_stream)
        return (
            "EVAL",
            scripts.DEAD_LETTER,
            2,
            *keys,
            *head,
            *self.metadata,
            *chain.from_iterable(pairs),
        )

    def _bury_in_steps(self) -> Exchange[Result]:
        pairs = self.pairs
        if self.group:
            own = (self.group, self.consumer, self.id)
            reply = yield ("EVAL", scripts.INSPECT, 1, self.stream, *own)
            if to_text(reply[0]) != "ours":
                return Result(Outcome(to_text(reply[0])))
            pairs = pair_up(reply[1]) or pairs
        if not pairs:
            raise ValueError(f"{self.id} is no longer in {self.stream}: pass fields=")
        new_id = yield self._add_command(pairs)
        if self.group:
            yield ("XACK", self.stream, self.group, self.id)
        return Result(Outcome.DEAD, to_text(new_id))


def make_letter(
    *,
    stream: str,
    error: BaseException | str,
    attempts: int,
    group: str = "",
    consumer: str = "",
    entry_id: str = "",
    fields: Fields | None = None,
    names: Names | None = None,
    dead_stream: str = "",
    error_type: str = "",
    failed_at: datetime | None = None,
) -> FailedMessage:
    """Return the :class:`FailedMessage` for the arguments of :func:`dead_letter`.

    Its metadata are the `dlq_…` fields of the dead letter, alternating names and values. Raise
    :class:`ValueError` or :class:`TypeError` for invalid arguments.
    """
    if group and not entry_id:
        raise ValueError("a message of a group needs an entry_id")
    dead_stream = dead_stream or (names or Names()).dead_of(stream)
    if isinstance(error, BaseException):
        error_type = error_type or error_type_name(error)
        error = error_text(error)
    moment = (failed_at or datetime.now(UTC)).astimezone(UTC)
    metadata = {
        "dlq_error": error[:MAX_ERROR_LENGTH],
        "dlq_error_type": error_type,
        "dlq_attempts": str(attempts),
        "dlq_original_id": entry_id,
        "dlq_group": group,
        "dlq_failed_at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    pairs = ((name, value) for name, value in metadata.items() if value)
    encoded = tuple(each.encode("utf-8", "backslashreplace") for each in chain.from_iterable(pairs))
    given = fields.items() if isinstance(fields, Mapping) else fields or ()
    content = tuple((_encode_value(name), _encode_value(value)) for name, value in given)
    return FailedMessage(stream, dead_stream, group, consumer, entry_id, encoded, content)


def error_type_name(error: BaseException) -> str:
    """Return the error's type, such as `ValueError` or `httpx.ConnectTimeout`."""
    kind = type(error)
    is_built_in = kind.__module__ == "builtins"
    return kind.__qualname__ if is_built_in else f"{kind.__module__}.{kind.__qualname__}"


def error_text(error: BaseException) -> str:
    """Return the error's message, or its type if the message is empty or can't be built."""
    try:
        return str(error) or error_type_name(error)
    except Exception:  # A faulty __str__ must not block the message.
        return error_type_name(error)


def _encode_value(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"fields must be bytes, text or numbers, not {type(value).__name__}")
    return str(value).encode("utf-8", "surrogateescape")
