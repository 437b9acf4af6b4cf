"""The configured sources of dead letters: Redis servers, and patterns of stream names.

They come from the environment (`DLQ_SERVERS`, `DLQ_PATTERNS`). Streams that no pattern matches are
never read.
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
"""Name of the stream of the outbox's failed messages."""
_IS_PART = re.compile(r"\*[^*?\[\]]+\*")
"""Globs that match a text anywhere."""


@dataclass(frozen=True)
class StreamPattern:
    """A pattern of stream names: `dead` matches streams of dead letters, `origin` their origins.

    `{stream}` stands for the same text in both.
    """

    dead: str
    origin: str

    def origin_of(self, name: str) -> str | None:
        """Return the origin of a stream of this name; None if it does not match."""
        found = self._expression.fullmatch(name)
        return None if found is None else self.origin.replace(STREAM_PLACEHOLDER, found.group(1))

    @property
    def glob(self) -> str:
        """The pattern for SCAN."""
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return "*".join(re.sub(r"([\\*?\[\]])", r"\\\1", part) for part in (before, after))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)


@dataclass(frozen=True)
class DeadLetterSources:
    """The configuration of dead letters.

    It has URLs by server name, patterns, retention limits, and globs of hidden payload keys
    (case-insensitive).
    """

    servers: Mapping[str, str]
    patterns: Sequence[StreamPattern]
    kept_days: int
    most_kept: int
    hidden_keys: Sequence[str]

    def origin_of(self, name: str) -> str | None:
        """Return the origin of a stream; None if no pattern matches its name."""
        if name == OUTBOX_NAME:
            return None
        found = (pattern.origin_of(name) for pattern in self.patterns)
        return next((origin for origin in found if origin is not None), None)


def build_key_matcher(hidden_keys: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells if the values under a key are hidden."""
    parts = [key[1:-1] for key in hidden_keys if _IS_PART.fullmatch(key)]
    others = [fnmatch.translate(key) for key in hidden_keys if not _IS_PART.fullmatch(key)]
    # Most look for a part anywhere: as one expression that is far quicker than glob by glob.
    anywhere = re.compile("|".join(map(re.escape, parts)) or r"(?!)")
    whole = re.compile("|".join(others) or r"(?!)")

    def hides(key: str) -> bool:
        lowered = key.lower()
        return bool(anywhere.search(lowered) or whole.match(lowered))

    return hides


def configured_sources() -> DeadLetterSources:
    """Return the sources that this process was started with (`settings.DEAD_LETTERS`)."""
    given = settings.DEAD_LETTERS
    return DeadLetterSources(
        servers=given.servers,
        patterns=tuple(StreamPattern(dead, origin) for dead, origin in given.patterns),
        kept_days=given.kept_days,
        most_kept=given.most_kept,
        hidden_keys=given.hidden_keys,
    )
