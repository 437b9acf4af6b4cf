r"""Redaction of values under hidden keys.

It works on text (:mod:`breakers.dead_letters.letters.secrets`), so that invalid JSON is redacted as
well. Everything else is unchanged byte for byte, except that escapes like `\u0022` may be resolved
in redacted values.
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
    """Redaction of the values under keys for which `hides` returns True."""

    hides: Callable[[str], bool]
    _known: dict[bytes, bool] = field(default_factory=dict, compare=False, repr=False)

    def redact_entry(self, entry: LetterEntry) -> LetterEntry:
        """Return the entry redacted.

        `sizes` are larger than the values only for those that were truncated when read and are not
        wholly hidden.
        """
        pairs = tuple((name, self.redact_value(name, value)) for name, value in entry.pairs)
        true = entry.sizes or tuple(len(value) for _, value in entry.pairs)
        sizes = tuple(
            size if size > len(old) and new != secrets.REDACTED else len(new)
            for size, (_, old), (_, new) in zip(true, entry.pairs, pairs, strict=True)
        )
        return replace(entry, pairs=pairs, sizes=sizes)

    def error(self, entry: LetterEntry) -> str:
        """Return the redacted error."""
        return self._own(entry, ERROR)

    def error_type(self, entry: LetterEntry) -> str:
        """Return the redacted type of the error."""
        return self._own(entry, ERROR_TYPE)

    def group(self, entry: LetterEntry) -> str:
        """Return the redacted name of the consumer group."""
        return self._own(entry, GROUP)

    def fingerprint(self, entry: LetterEntry) -> Fingerprint:
        """Return the fingerprint of the redacted error and its type.

        A digest of a hidden value would confirm a guess of it.
        """
        kind, said = fingerprints.significant_parts(entry.error_type, entry.error)
        return fingerprints.fingerprint_parts(
            self._shown_text(ERROR_TYPE, kind), self._shown_text(ERROR, said)
        )

    def _shown_text(self, name: bytes, said: str) -> str:
        return to_text(self.redact_value(name, said.encode())) if said else ""

    def redact_value(self, name: bytes, value: bytes) -> bytes:
        """Return the redacted value of a field of this name."""
        return secrets.REDACTED if self.is_hidden(name) else self.redact_text(value)

    def redact_text(self, value: bytes) -> bytes:
        """Return a text with the values under hidden keys redacted."""
        return secrets.redact_values(value, self.is_hidden)

    def is_hidden(self, key: bytes) -> bool:
        """Return True if values under this key are hidden.

        `user.password` and `user[password]` also match as `password`.
        """
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
        return "" if given is None else to_text(self.redact_value(name, given))


def configured_redaction() -> Redaction:
    """Return the redaction that this installation is configured with."""
    return _cached_redaction(tuple(configured_sources().hidden_keys))


@functools.lru_cache(maxsize=4)
def _cached_redaction(keys: tuple[str, ...]) -> Redaction:
    """Return a redaction, cached with its knowledge of keys."""
    return Redaction(build_key_matcher(keys))
