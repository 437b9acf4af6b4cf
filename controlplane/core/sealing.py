"""Secrets that have to be read again, sealed with keys derived from `SECRET_KEY` for the database.

A key that was replaced still opens what it sealed while it stands in `SECRET_KEY_FALLBACKS`.
"""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac

# What keys are derived with: another salt, or other words for a purpose, would open nothing.
SALT = "controlplane.core.entry.sealing"
SECOND_FACTORS = "second factors"
WEBHOOKS = "webhooks"

__all__ = ["SECOND_FACTORS", "WEBHOOKS", "InvalidToken", "opened", "sealed"]


def sealed(text: str, purpose: str) -> str:
    return _keys(purpose).encrypt(text.encode()).decode()


def opened(text: str, purpose: str) -> str:
    """What was sealed for that purpose; raises `InvalidToken` if another key sealed it."""
    return _keys(purpose).decrypt(text.encode()).decode()


def _keys(purpose: str) -> MultiFernet:
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return MultiFernet([_key(secret, purpose) for secret in secrets])


def _key(secret: str | bytes, purpose: str) -> Fernet:
    derived = salted_hmac(SALT, purpose, secret=secret, algorithm="sha256")
    return Fernet(base64.urlsafe_b64encode(derived.digest()))
