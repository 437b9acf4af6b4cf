"""What of a payload is for nobody to see: values under keys that the installation hides. Pure.

It works on the text as it stands (:mod:`breakers.dead_letters.letters.secrets`), so that what is
no JSON is looked through as well. What is not hidden stays as it was, byte for byte, but that
where something is hidden, an escape like `\\u0022` may stand there as what it says.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from breakers.dead_letters.letters import fingerprints, secrets
from breakers.dead_letters.letters.entries import ERROR, ERROR_TYPE, GROUP, LetterEntry, to_text
from breakers.dead_letters.letters.fingerprints import Fingerprint
from breakers.dead_letters.sources import build_key_matcher, configured_sources

REDACTED = secrets.REDACTED.decode()
_SEPARATORS = re.compile(r"[.:/\[\]\s]+")
_MAX_KNOWN, _MAX_KNOWN_LENGTH = 10_000, 100


@dataclass(frozen=True)
class Redaction:
    """Takes out what is under keys that `hides` says yes to."""

    hides: Callable[[str], bool]
    _known: dict[bytes, bool] = field(default_factory=dict, compare=False, repr=False)

    def entry(self, entry: LetterEntry) -> LetterEntry:
        """The same entry without what is hidden. Its `sizes` tell only of values of which the
        beginning was read, and which are not hidden wholly, that they are longer."""
        pairs = tuple((name, self.value(name, value)) for name, value in entry.pairs)
        true = entry.sizes or tuple(len(value) for _, value in entry.pairs)
        sizes = tuple(
            size if size > len(old) and new != secrets.REDACTED else len(new)
            for size, (_, old), (_, new) in zip(true, entry.pairs, pairs, strict=True)
        )
        return replace(entry, pairs=pairs, sizes=sizes)

    def error(self, entry: LetterEntry) -> str:
        """What went wrong, by the entry itself."""
        return self._own(entry, ERROR)

    def error_type(self, entry: LetterEntry) -> str:
        """The type of that."""
        return self._own(entry, ERROR_TYPE)

    def group(self, entry: LetterEntry) -> str:
        """The consumer group that failed."""
        return self._own(entry, GROUP)

    def fingerprint(self, entry: LetterEntry) -> Fingerprint:
        """Return the fingerprint of the error type and the error, without what is hidden in them.

        A digest of a hidden value would confirm a guess of it.
        """
        kind, said = fingerprints.significant_parts(entry.error_type, entry.error)
        return fingerprints.fingerprint_parts(
            self._shown_text(ERROR_TYPE, kind), self._shown_text(ERROR, said)
        )

    def _shown_text(self, name: bytes, said: str) -> str:
        return to_text(self.value(name, said.encode())) if said else ""

    def value(self, name: bytes, value: bytes) -> bytes:
        """The value of a field of this name."""
        return secrets.REDACTED if self.is_hidden(name) else self.within(value)

    def within(self, value: bytes) -> bytes:
        """A text without the values under hidden keys in it."""
        return secrets.redact_values(value, self.is_hidden)

    def is_hidden(self, key: bytes) -> bool:
        """Whether what is under this key is hidden; of `user.password` and `user[password]` also as
        `password`."""
        known = self._known.get(key)
        if known is None:
            known = self._is_hidden(to_text(key))
            if len(key) <= _MAX_KNOWN_LENGTH and len(self._known) < _MAX_KNOWN:
                self._known[key] = known
        return known

    def _is_hidden(self, key: str) -> bool:
        if self.hides(key):
            return True
        parts = [part for part in _SEPARATORS.split(key) if part]
        return bool(parts) and parts[-1] != key and self.hides(parts[-1])

    def _own(self, entry: LetterEntry, name: bytes) -> str:
        given = entry.value(name)
        return "" if given is None else to_text(self.value(name, given))


def configured_redaction() -> Redaction:
    """As this installation hides."""
    return _cached_redaction(tuple(configured_sources().hidden_keys))


@functools.lru_cache(maxsize=4)
def _cached_redaction(keys: tuple[str, ...]) -> Redaction:
    """Kept, with what it has learned of keys."""
    return Redaction(build_key_matcher(keys))
