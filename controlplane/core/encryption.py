"""Encryption of secrets in the database, by keys from `SECRET_KEY` and its fallbacks."""

import base64
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.utils.crypto import salted_hmac

# Keys are derived from these texts: changing one makes every sealed secret unreadable.
SALT = "controlplane.core.entry.sealing"
SECOND_FACTORS = "second factors"
WEBHOOKS = "webhooks"
WEBHOOK_URLS = "webhooks' URLs"
TRANSPORT_SETTINGS = "transports' settings"
SEALED_PREFIX = "gAAAAA"
"""Prefix of all encrypted texts: Fernet's version and a timestamp before the year 4000."""


def encrypt(text: str, purpose: str) -> str:
    return _load_keys(purpose).encrypt(text.encode()).decode()


def decrypt(text: str, purpose: str) -> str:
    """Decrypt a text encrypted for `purpose`; raise `InvalidToken` if no known key fits."""
    return _load_keys(purpose).decrypt(text.encode()).decode()


class UnreadableSecret(str):
    """An empty string for a secret that can't be decrypted; saving it keeps the encrypted text."""

    stored: str


class SealedField(models.CharField):  # type: ignore[type-arg]
    """A text that is encrypted in the database and plain in Python; queries can't filter for it.

    Values from before the encryption are read unchanged. Migrations see a `CharField`.
    """

    def __init__(self, *args: Any, purpose: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._purpose = purpose

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def clone(self) -> "SealedField":
        _, _, args, kwargs = self.deconstruct()
        return type(self)(*args, purpose=self._purpose, **kwargs)

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        if not value or not value.startswith(SEALED_PREFIX):
            return value
        try:
            return decrypt(value, self._purpose)
        except InvalidToken:
            secret = UnreadableSecret()
            secret.stored = value
            return secret

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        if isinstance(value, UnreadableSecret):
            value = value.stored
        elif isinstance(value, str) and value:
            value = encrypt(value, self._purpose)
        return super().get_db_prep_save(value, connection)


def _load_keys(purpose: str) -> MultiFernet:
    return _derive_keys(purpose, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=16)
def _derive_keys(purpose: str, secrets: tuple[str | bytes, ...]) -> MultiFernet:
    derived = [salted_hmac(SALT, purpose, secret=it, algorithm="sha256") for it in secrets]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key.digest())) for key in derived])
