r"""Redaction of the values under hidden keys, which `DLQ_HIDDEN_KEYS` defines.

It searches text (:mod:`breakers.dead_letters.letters.secrets`) instead of parsing JSON, so that
invalid JSON is redacted too. All other bytes stay unchanged, except for escapes such as `\u0022`
near redacted values.
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
_MAX_CACHED, _MAX_CACHED_LENGTH = 10_000, 100


@dataclass(frozen=True)
class Redaction:
    """Redacts the values under keys for which `hides(key)` is True, and caches these decisions."""

    hides: Callable[[str], bool]
    _cache: dict[bytes, bool] = field(default_factory=dict, compare=False, repr=False)

    def redact_entry(self, entry: LetterEntry) -> LetterEntry:
        """Return the entry with hidden values redacted, and with `sizes`.

        A size is the value's length after redaction, or the full length of a truncated value.
        """
        pairs = tuple((name, self.redact_value(name, value)) for name, value in entry.pairs)
        true = entry.sizes or tuple(len(value) for _, value in entry.pairs)
        sizes = tuple(
            size if size > len(old) and new != secrets.REDACTED else len(new)
            for size, (_, old), (_, new) in zip(true, entry.pairs, pairs, strict=True)
        )
        return replace(entry, pairs=pairs, sizes=sizes)

    def error(self, entry: LetterEntry) -> str:
        return self._redact_metadata(ERROR, entry.value(ERROR))

    def error_type(self, entry: LetterEntry) -> str:
        return self._redact_metadata(ERROR_TYPE, entry.value(ERROR_TYPE))

    def group(self, entry: LetterEntry) -> str:
        return self._redact_metadata(GROUP, entry.value(GROUP))

    def fingerprint(self, entry: LetterEntry) -> Fingerprint:
        """Return the fingerprint of the redacted error and its type.

        A digest of the unredacted error could be used to verify guesses of a hidden value.
        """
        error_type, error = fingerprints.significant_parts(entry.error_type, entry.error)
        return fingerprints.fingerprint_parts(
            self._redact_metadata(ERROR_TYPE, error_type.encode() or None),
            self._redact_metadata(ERROR, error.encode() or None),
        )

    def redact_value(self, name: bytes, value: bytes) -> bytes:
        """Return the redacted value of the field `name`."""
        return secrets.REDACTED if self.is_hidden(name) else self.redact_text(value)

    def redact_text(self, value: bytes) -> bytes:
        """Return a text with the values under hidden keys redacted."""
        return secrets.redact_values(value, self.is_hidden)

    def is_hidden(self, key: bytes) -> bool:
        """Return True if values under this key are hidden.

        `user.password` and `user[password]` also match as `password`.
        """
        is_hidden = self._cache.get(key)
        if is_hidden is None:
            text = to_text(key)
            parts = [part for part in _SEPARATORS.split(text) if part]
            is_hidden = self.hides(text) or (bool(parts) and self.hides(parts[-1]))
            if len(key) <= _MAX_CACHED_LENGTH and len(self._cache) < _MAX_CACHED:
                self._cache[key] = is_hidden
        return is_hidden

    def _redact_metadata(self, name: bytes, value: bytes | None) -> str:
        return "" if value is None else to_text(self.redact_value(name, value))


def configured_redaction() -> Redaction:
    """Return the redaction for the configured `DLQ_HIDDEN_KEYS`."""
    return _cached_redaction(tuple(configured_sources().hidden_keys))


@functools.lru_cache(maxsize=4)
def _cached_redaction(keys: tuple[str, ...]) -> Redaction:
    return Redaction(build_key_matcher(keys))
