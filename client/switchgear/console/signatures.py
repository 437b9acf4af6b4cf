"""Verification of snapshots' Ed25519 signatures, by the extra `switchgear[signed]`.

A signature is a header `keyid=…;sig=…`, or two of them, separated by a comma, while the console
replaces its key. A key's id is the start of the SHA-256 of its 32 bytes. The package `cryptography`
is imported only if a public key is configured.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from types import ModuleType

from switchgear.evaluation.signed_snapshot import parse_signed_snapshot
from switchgear.evaluation.snapshot import InvalidSnapshot, Snapshot, SwitchEntry, parse_snapshot

HEADER = "switchgear-signature"
MAX_SIGNATURES = 8
MAX_HEADER_LENGTH = 2000
MISSING_EXTRA = "signatures need the extra switchgear[signed]: pip install 'switchgear[signed]'"
_SIGNATURE = re.compile(r"keyid=([0-9a-f]{16});sig=([A-Za-z0-9+/]{86}==)", re.ASCII)

SnapshotParser = Callable[[bytes, str, Mapping[str, SwitchEntry]], Snapshot]
"""A function of a document, its signature and the entries of the previous snapshot.

It returns the snapshot that may be put in force, or raises :class:`InvalidSnapshot`.
"""


class InvalidSignature(InvalidSnapshot):
    """Raised for content without a valid signature; the message starts with `signature:`."""


class Verifier:
    """Public keys, by which signatures are verified. Without any key, no signature is valid."""

    def __init__(self, public_keys: Iterable[str]) -> None:
        raw_keys = [base64.b64decode(key, validate=True) for key in public_keys]
        self._keys = {}
        if raw_keys:
            load = _import_ed25519().Ed25519PublicKey.from_public_bytes
            self._keys = {sha256(raw).hexdigest()[:16]: load(raw) for raw in raw_keys}

    def verify(self, signature: str, content: bytes) -> None:
        """Raise :class:`InvalidSignature` unless a known key has signed `content`."""
        if not self._keys:
            raise InvalidSignature("signature: no usable public key to verify it")
        if not signature:
            raise InvalidSignature("signature: missing")
        signatures = _SIGNATURE.findall(signature[:MAX_HEADER_LENGTH])[:MAX_SIGNATURES]
        known = [(self._keys[key], text) for key, text in signatures if key in self._keys]
        if not known:
            ids = ", ".join(key for key, _text in signatures)
            raise InvalidSignature(f"signature: {f'unknown key ({ids})' if ids else 'invalid'}")
        from cryptography.exceptions import InvalidSignature as WrongSignature

        for key, text in known:
            try:
                key.verify(base64.b64decode(text), content)
            except WrongSignature:
                continue
            return
        raise InvalidSignature("signature: wrong; the document was changed on the way")


def has_extra() -> bool:
    """Return True if the package for signatures can be imported."""
    try:
        _import_ed25519()
    except ImportError:
        return False
    return True


def make_parser(public_keys: Iterable[str] | None) -> SnapshotParser:
    """Return a parser that verifies snapshots by `public_keys`, or does not if they are None."""
    if public_keys is None:
        return _parse_unverified
    return partial(_parse_verified, Verifier(public_keys))


def _parse_verified(
    verifier: Verifier, document: bytes, signature: str, before: Mapping[str, SwitchEntry]
) -> Snapshot:
    return parse_signed_snapshot(document, signature, before, verifier.verify)


def _parse_unverified(
    document: bytes, signature: str, before: Mapping[str, SwitchEntry]
) -> Snapshot:
    """Keep the signature: a later start, with a public key, verifies it in the cached copy."""
    return replace(parse_snapshot(document, before), signature=signature[:MAX_HEADER_LENGTH])


def _import_ed25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ImportError(MISSING_EXTRA) from error
    return ed25519
