"""A description of the server under test: its address, credentials and known flags."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CREDENTIAL_HEADERS = frozenset({"authorization", "x-api-key"})
FIELDS = frozenset(
    {"url", "headers", "context", "other_context", "flags", "unknown", "timeout", "origin"}
)
FLAG_FIELDS = frozenset({"key", "value", "requires_targeting_key", "in_bulk"})
MAX_FLAGS = 100
MAX_TIMEOUT_SECONDS = 60.0


class ManifestError(Exception):
    """The manifest or an option is invalid; the message names the field."""


@dataclass(frozen=True)
class KnownFlag:
    """A flag that exists on the server.

    `value` is the expected value for the manifest's context. A flag with `requires_targeting_key`
    can't be evaluated without one. `in_bulk` is False if bulk responses leave the flag out.
    """

    key: str
    value: Any
    requires_targeting_key: bool = False
    in_bulk: bool = True


@dataclass(frozen=True)
class Manifest:
    """The address, credentials and known flags of a server.

    `unknown` is a key that no flag has. `other_context` should give some flag another value than
    `context` does. `origin` is the browser origin that CORS checks use.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=lambda: {"targetingKey": "user-1"})
    other_context: Mapping[str, Any] = field(default_factory=lambda: {"targetingKey": "user-2"})
    flags: Sequence[KnownFlag] = ()
    unknown: str = "ofrep-conformance-unknown"
    timeout: float = 5.0
    origin: str = "https://app.example"

    @property
    def has_credentials(self) -> bool:
        return any(name.lower() in CREDENTIAL_HEADERS for name in self.headers)


def load_manifest(path: Path, url: str = "") -> Manifest:
    """Read a TOML or JSON manifest; raise :class:`ManifestError` if it is invalid."""
    try:
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: {error}") from error
    return parse_manifest(raw, url)


def parse_manifest(raw: Any, url: str = "") -> Manifest:
    """Return the manifest of a document; `url` replaces the address in it."""
    if not isinstance(raw, Mapping):
        raise ManifestError("The manifest must be an object.")
    _refuse_unknown(raw, FIELDS, "manifest")
    fields = {name: raw[name] for name in FIELDS - {"flags"} if name in raw}
    if url:
        fields["url"] = url
    listed = raw.get("flags", [])
    if not isinstance(listed, list) or len(listed) > MAX_FLAGS:
        raise ManifestError(f"flags must be a list of at most {MAX_FLAGS} flags.")
    if "url" not in fields:
        raise ManifestError("Name the server's URL, as an argument or in the manifest.")
    return validate(Manifest(**fields, flags=tuple(map(_parse_flag, listed))))


def validate(manifest: Manifest) -> Manifest:
    """Return the manifest; raise :class:`ManifestError` if a field is invalid."""
    for name in ("url", "unknown", "origin"):
        if not isinstance(getattr(manifest, name), str):
            raise ManifestError(f"{name} must be a string.")
    address = urlsplit(manifest.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ManifestError(f"{manifest.url} is not an http or https URL.")
    for name in ("headers", "context", "other_context"):
        if not isinstance(getattr(manifest, name), Mapping):
            raise ManifestError(f"{name} must be an object.")
    if not all(isinstance(value, str) for value in manifest.headers.values()):
        raise ManifestError("headers must have strings as values.")
    timeout = manifest.timeout
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ManifestError("timeout must be a number of seconds.")
    if not 0 < timeout <= MAX_TIMEOUT_SECONDS:
        raise ManifestError(f"timeout must be above 0 and at most {MAX_TIMEOUT_SECONDS:g} seconds.")
    return manifest


def add_flags(manifest: Manifest, flags: Iterable[KnownFlag]) -> Manifest:
    """Return the manifest with these flags, which replace those of the same key."""
    found = {flag.key: flag for flag in (*manifest.flags, *flags)}
    if len(found) > MAX_FLAGS:
        raise ManifestError(f"At most {MAX_FLAGS} flags.")
    return replace(manifest, flags=tuple(found.values()))


def parse_flag_option(text: str) -> KnownFlag:
    """Return the flag of an option `KEY=VALUE`; the value is JSON, else a string."""
    key, separator, written = text.partition("=")
    if not key or not separator:
        raise ManifestError(f"{text} must be KEY=VALUE, such as dark-mode=true.")
    try:
        value = json.loads(written)
    except ValueError:
        value = written
    return KnownFlag(key, value)


def _parse_flag(raw: Any) -> KnownFlag:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("key"), str):
        raise ManifestError("Each of flags must be an object with a key.")
    _refuse_unknown(raw, FLAG_FIELDS, f"flag {raw['key']}")
    if "value" not in raw:
        raise ManifestError(f"The flag {raw['key']} needs its expected value.")
    for name in ("requires_targeting_key", "in_bulk"):
        if not isinstance(raw.get(name, False), bool):
            raise ManifestError(f"{name} of the flag {raw['key']} must be true or false.")
    return KnownFlag(**raw)


def _refuse_unknown(raw: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    if unknown := sorted(set(raw) - known):
        names = ", ".join(sorted(known))
        raise ManifestError(f"Unknown field in the {place}: {', '.join(unknown)}. Known: {names}.")
