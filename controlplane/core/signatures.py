"""Ed25519 signatures of what the control plane publishes. Pure.

A header `keyid=…;sig=…` holds a signature; while a key is being replaced, the signatures of both
keys, separated by a comma. Public keys are 32 bytes in base64, and a key's id is the start of the
SHA-256 of its bytes.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from cryptography.exceptions import InvalidSignature as WrongSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

HEADER = "Switchgear-Signature"
KEY_BYTES = 32
MAX_SIGNATURES = 8
_SIGNATURE = re.compile(r"keyid=([0-9a-f]{16});sig=([A-Za-z0-9+/]{86}==)", re.ASCII)


class InvalidKey(ValueError):
    """A text that is not 32 bytes in base64."""


class InvalidSignature(ValueError):
    """No signature of a header is valid; the text is the reason, for the log."""


@dataclass(frozen=True)
class PublicKey:
    """A public key: 32 bytes."""

    raw: bytes

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Return the key in base64; raise :class:`InvalidKey` for any other text."""
        return cls(_decode_key(text))

    def __str__(self) -> str:
        return base64.b64encode(self.raw).decode()

    @cached_property
    def id(self) -> str:
        return sha256(self.raw).hexdigest()[:16]

    def accepts(self, signature: bytes, content: bytes) -> bool:
        try:
            self._key.verify(signature, content)
        except WrongSignature:
            return False
        return True

    @cached_property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


@dataclass(frozen=True)
class SigningKey:
    """A private key: 32 bytes, which don't appear in its `repr`."""

    raw: bytes

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """Return the key in base64; raise :class:`InvalidKey` for any other text."""
        return cls(_decode_key(text))

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.id}>"

    @property
    def secret_text(self) -> str:
        """The private key in base64."""
        return base64.b64encode(self.raw).decode()

    @cached_property
    def public(self) -> PublicKey:
        return PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, content: bytes) -> bytes:
        return self._key.sign(content)

    @cached_property
    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.raw)


def sign(content: bytes, keys: Iterable[SigningKey]) -> str:
    """Return the header value with the signatures of `content`; "" without keys."""
    return ", ".join(
        f"keyid={key.public.id};sig={base64.b64encode(key.sign(content)).decode()}" for key in keys
    )


def verify(header: str, content: bytes, keys: Mapping[str, PublicKey]) -> PublicKey:
    """Return the first of `keys`, which are by id, whose signature in `header` is valid.

    Raises :class:`InvalidSignature`.
    """
    signatures = _SIGNATURE.findall(header)[:MAX_SIGNATURES]
    if not signatures:
        raise InvalidSignature("there is no signature" if not header else "it has another form")
    known = [(keys[key_id], text) for key_id, text in signatures if key_id in keys]
    if not known:
        ids = ", ".join(key_id for key_id, _ in signatures)
        raise InvalidSignature(f"it is signed with an unknown key ({ids})")
    for key, text in known:
        if key.accepts(base64.b64decode(text), content):
            return key
    raise InvalidSignature("the signature is wrong")


def read_public_keys(text: str) -> dict[str, PublicKey]:
    """Return the keys in a text, separated by spaces or commas, by id; may raise `InvalidKey`."""
    keys = (PublicKey.parse(each) for each in text.replace(",", " ").split())
    return {key.id: key for key in keys}


def _decode_key(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidKey("must be 32 bytes in base64") from error
    if len(raw) != KEY_BYTES:
        raise InvalidKey("must be 32 bytes in base64")
    return raw
