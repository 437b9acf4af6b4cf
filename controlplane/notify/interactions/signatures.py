"""Whether a request is Slack's: its signature, version 0, over the body as it came. Pure.

After Slack's "Verifying requests from Slack": HMAC-SHA256 of `v0:timestamp:body`.
"""

import hashlib
import hmac

VERSION = "v0"
WINDOW_SECONDS = 300
"""How far the request's time may be from ours, both ways: older ones may be replays."""
MAX_TIMESTAMP_LENGTH = 15


def genuine(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> bool:
    """Whether whoever knows the secret signed this body within five minutes of `now` (Unix time).

    Without a secret nobody did.
    """
    if not secret or not _fresh(timestamp, now):
        return False
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), signature.encode())


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a body: `v0=` and 64 hexadecimal digits."""
    signed = b":".join((VERSION.encode(), timestamp.encode(), body))
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def digest(timestamp: str, body: bytes) -> str:
    """What tells this signed request from every other, and says nothing about it."""
    return hashlib.sha256(b":".join((timestamp.encode(), body))).hexdigest()


def _fresh(timestamp: str, now: float) -> bool:
    plain = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_TIMESTAMP_LENGTH
    return plain and abs(now - int(timestamp)) <= WINDOW_SECONDS
