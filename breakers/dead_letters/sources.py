"""Which streams are streams of dead letters: on which Redis servers, by which patterns.

The environment says it (`DLQ_SERVERS`, `DLQ_PATTERNS`). A name that no pattern matches is not ours
to read, whatever is stored under it.
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
"""The name under which failed messages of our own outbox are among the dead letters."""
_IS_PART = re.compile(r"\*[^*?\[\]]+\*")
"""A glob that looks for a text anywhere."""


@dataclass(frozen=True)
class StreamPattern:
    """`dead` names the streams of dead letters, `origin` where they came from; both have one
    `{stream}`, which stands for the same text in both."""

    dead: str
    origin: str

    def origin_of(self, name: str) -> str | None:
        """The origin of a stream of this name; None if the pattern is another's."""
        found = self._expression.fullmatch(name)
        return None if found is None else self.origin.replace(STREAM_PLACEHOLDER, found.group(1))

    @property
    def glob(self) -> str:
        """The pattern as SCAN takes it."""
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return "*".join(re.sub(r"([\\*?\[\]])", r"\\\1", part) for part in (before, after))

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        before, _, after = self.dead.partition(STREAM_PLACEHOLDER)
        return re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)


@dataclass(frozen=True)
class DeadLetterSources:
    """What the environment says: URLs by the server's name, patterns, limits of retention, and
    which keys of payloads are shown to nobody (globs, not case-sensitive)."""

    servers: Mapping[str, str]
    patterns: Sequence[StreamPattern]
    kept_days: int
    most_kept: int
    hidden_keys: Sequence[str]

    def origin_of(self, name: str) -> str | None:
        """The origin of a stream of dead letters; None if the name is none of one."""
        if name == OUTBOX_NAME:
            return None
        found = (pattern.origin_of(name) for pattern in self.patterns)
        return next((origin for origin in found if origin is not None), None)


def build_key_matcher(hidden_keys: Sequence[str]) -> Callable[[str], bool]:
    """Tells of a key whether its value is for those only who may reveal it."""
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
