"""Verification of Slack's request signatures, version `v0`. Pure.

Source: Slack, "Verifying requests from Slack": HMAC-SHA256 of `v0:timestamp:body`.
"""

import hashlib
import hmac

VERSION = "v0"
WINDOW_SECONDS = 300
"""Largest difference between the request's time and ours; older requests may be replays."""
MAX_TIMESTAMP_LENGTH = 15


def is_genuine(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> bool:
    """Return True if the body was signed with `secret` within five minutes of `now` (Unix seconds).

    Return False for an empty `secret`.
    """
    plain = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_TIMESTAMP_LENGTH
    if not secret or not plain or abs(now - int(timestamp)) > WINDOW_SECONDS:
        return False
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), signature.encode())


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a body: `v0=` and 64 hexadecimal digits."""
    signed = b":".join((VERSION.encode(), timestamp.encode(), body))
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def request_digest(timestamp: str, body: bytes) -> str:
    return hashlib.sha256(b":".join((timestamp.encode(), body))).hexdigest()
