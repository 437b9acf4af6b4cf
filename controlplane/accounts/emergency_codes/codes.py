"""Text and hash of emergency codes, without Django: data planes check the codes, too.

A code has 25 base32 characters (RFC 4648), about 123 bits. The hash is scrypt with a salt; it takes
some 50 ms and 16 MiB, so call it outside the event loop.
"""

import hashlib
import secrets
from hmac import compare_digest

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
LENGTH = 25
GROUP_LENGTH = 5
SALT_BYTES = 16
DIGEST_BYTES = 32
MAX_INPUT_LENGTH = 200

DUMMY_SALT = bytes(SALT_BYTES)
DUMMY_DIGEST = bytes(DIGEST_BYTES)
"""Salt and digest to check the code of an unknown person against; it takes as long, and fails."""

# Digits that are not in the alphabet count as the letters they look like, and L counts as I.
_LOOKALIKES = str.maketrans("01L8", "OIIB")


def generate_code() -> str:
    """Return a new random code in groups: `ABCDE-FGHIJ-KLMNO-PQRST-UVWXY`."""
    text = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return "-".join(text[at : at + GROUP_LENGTH] for at in range(0, LENGTH, GROUP_LENGTH))


def generate_salt() -> bytes:
    return secrets.token_bytes(SALT_BYTES)


def normalize_code(text: str) -> str:
    """Return the characters of a typed code that count, with lookalikes replaced.

    Case, spaces and dashes don't matter; 0 counts as O, 8 as B, and 1 and L as I.
    """
    letters = (char for char in text[:MAX_INPUT_LENGTH].upper() if char.isalnum())
    return "".join(letters).translate(_LOOKALIKES)


def hash_code(code: str, salt: bytes) -> bytes:
    """Return the scrypt hash of a code as typed or generated."""
    return hashlib.scrypt(
        normalize_code(code).encode(),
        salt=salt,
        n=2**14,
        r=8,
        p=1,
        maxmem=64 * 1024 * 1024,
        dklen=DIGEST_BYTES,
    )


def is_correct(code: str, salt: bytes, digest: bytes) -> bool:
    """Return True if `digest` is the hash of the typed code, compared in constant time."""
    return compare_digest(hash_code(code, salt), digest)
