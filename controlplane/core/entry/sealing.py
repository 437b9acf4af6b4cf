"""Secrets of second factors, sealed with keys derived from `SECRET_KEY` before they are stored.

A key that was replaced still opens what it sealed while it stands in `SECRET_KEY_FALLBACKS`.
"""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac

SALT = "controlplane.core.entry.sealing"

__all__ = ["InvalidToken", "opened", "sealed"]


def sealed(text: str) -> str:
    return _keys().encrypt(text.encode()).decode()


def opened(text: str) -> str:
    """What was sealed; raises `InvalidToken` if another key sealed it."""
    return _keys().decrypt(text.encode()).decode()


def _keys() -> MultiFernet:
    return MultiFernet(
        [_key(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    )


def _key(secret: str | bytes) -> Fernet:
    derived = salted_hmac(SALT, "second factors", secret=secret, algorithm=hashlib.sha256().name)
    return Fernet(base64.urlsafe_b64encode(derived.digest()))
