"""Configured Redis servers and stream name patterns (`DLQ_SERVERS`, `DLQ_PATTERNS`).

Streams that match no pattern are never read.
"""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings

STREAM_PLACEHOLDER = "{stream}"
DEFAULT_SERVER = "default"
OUTBOX_NAME = "outbox"
"""Name of the stream that stands for the outbox's failed messages."""
_IS_PART = re.compile(r"\*[^*?\[\]]+\*")
"""Globs such as `*token*`, which match a text anywhere in a key."""


@dataclass(frozen=True)
class StreamPattern:
    """A name pattern for dead letter streams (`dead`), and one for their origins (`origin`).

    `{stream}` stands for the same text in both.
    """

    dead: str
    origin: str

    def origin_of(self, name: str) -> str | None:
        """Return the origin of the stream `name`; None if the name does not match."""
        match = self._expression.fullmatch(name)
        return None if match is None else self.origin.replace(STREAM_PLACEHOLDER, match[1])

    @property
    def glob(self) -> str:
        """The `dead` pattern as a glob for the Redis command SCAN."""
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return "*".join(re.sub(r"([\\*?\[\]])", r"\\\1", part) for part in (before, after))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)


@dataclass(frozen=True)
class DeadLetterSources:
    """Configuration of dead letters: servers, stream patterns, retention and redaction.

    `servers` are Redis URLs by server name. A stream keeps letters for `kept_days`, and at most
    `most_kept` of them. `hidden_keys` are case-insensitive globs of payload keys to redact.
    """

    servers: Mapping[str, str]
    patterns: Sequence[StreamPattern]
    kept_days: int
    most_kept: int
    hidden_keys: Sequence[str]

    def origin_of(self, name: str) -> str | None:
        """Return the origin of a stream; None if its name matches no pattern."""
        if name == OUTBOX_NAME:
            return None
        origins = (pattern.origin_of(name) for pattern in self.patterns)
        return next((origin for origin in origins if origin is not None), None)


def build_key_matcher(hidden_keys: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells if the value under a payload key is to be redacted."""
    parts = [key[1:-1] for key in hidden_keys if _IS_PART.fullmatch(key)]
    others = [fnmatch.translate(key) for key in hidden_keys if not _IS_PART.fullmatch(key)]
    # Most globs match a part anywhere: one expression for these is faster than many globs.
    anywhere = re.compile("|".join(map(re.escape, parts)) or r"(?!)")
    whole = re.compile("|".join(others) or r"(?!)")

    def hides(key: str) -> bool:
        lowered = key.lower()
        return bool(anywhere.search(lowered) or whole.match(lowered))

    return hides


def configured_sources() -> DeadLetterSources:
    """Return the dead letter configuration of this process (`settings.DEAD_LETTERS`)."""
    fields = vars(settings.DEAD_LETTERS)
    patterns = tuple(StreamPattern(*pair) for pair in fields["patterns"])
    return DeadLetterSources(**{**fields, "patterns": patterns})
