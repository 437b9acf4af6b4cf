"""Grants: signed values that stand for an emergency code checked a few minutes ago. Pure.

The emergency page puts a grant into its forms, so that a person types the long code once. There is
no cookie: a grant is nowhere but in the page that is open. It allows what the code allowed, for the
same person, and ends when the code is replaced or revoked.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from controlplane.dataplane.memory.credentials import CodeTable
from switches.emergency.orders import Orderer

VALID = timedelta(minutes=10)
_LABEL = b"switchgear-emergency-grant"


@dataclass(frozen=True)
class Grant:
    """A grant of the person `by`, valid until `ends`; `text` is its signed form."""

    by: Orderer
    ends: datetime
    text: str


def make_grant(key: bytes, codes: CodeTable, by: Orderer, now: datetime) -> Grant | None:
    """Return a new grant of a person whose code was just checked; None if it has been revoked."""
    code = codes.get(by.name)
    if code is None or code.user_id != by.id:
        return None
    ends = int((now + VALID).timestamp())
    name = urlsafe_b64encode(by.name.encode()).decode()
    signature = _sign(key, by.name, ends, code.digest)
    return Grant(by, datetime.fromtimestamp(ends, UTC), f"{ends}.{name}.{signature}")


def read_grant(keys: Sequence[bytes], codes: CodeTable, text: str, now: datetime) -> Grant | None:
    """Return the grant in `text`; None if it has ended, or was not made by :func:`make_grant`.

    The keys are those of all data planes: the present one, and those that it replaced.
    """
    ends_text, _, rest = text.partition(".")
    encoded, _, signature = rest.partition(".")
    try:
        ends, name = int(ends_text), urlsafe_b64decode(encoded).decode()
    except (ValueError, Error):
        return None
    code = codes.get(name)
    if code is None or not now.timestamp() < ends <= (now + VALID).timestamp() + 1:
        return None
    expected = (_sign(key, name, ends, code.digest) for key in keys)
    if not any(hmac.compare_digest(each.encode(), signature.encode()) for each in expected):
        return None
    by = Orderer("user", name, code.user_id)
    return Grant(by, datetime.fromtimestamp(ends, UTC), text)


def _sign(key: bytes, name: str, ends: int, digest: bytes) -> str:
    own_key = hmac.digest(key, _LABEL, sha256)
    return hmac.digest(own_key, b"%d.%b.%b" % (ends, digest, name.encode()), sha256).hex()
