"""Encrypts secrets stored in the database, with keys derived from `SECRET_KEY`.

Texts sealed with a replaced key stay readable while it is in `SECRET_KEY_FALLBACKS`.
"""

import base64
from functools import lru_cache
from typing import Any, Self

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
"""Prefix of all sealed texts: Fernet's version and a timestamp before the year 4000."""

__all__ = [
    "SEALED_PREFIX",
    "SECOND_FACTORS",
    "TRANSPORT_SETTINGS",
    "WEBHOOKS",
    "WEBHOOK_URLS",
    "InvalidToken",
    "SealedField",
    "opened",
    "sealed",
]


def sealed(text: str, purpose: str) -> str:
    return _keys(purpose).encrypt(text.encode()).decode()


def opened(text: str, purpose: str) -> str:
    """Decrypt a text sealed for `purpose`; raise `InvalidToken` if the key is another one."""
    return _keys(purpose).decrypt(text.encode()).decode()


class Unreadable(str):
    """An empty text in place of one sealed with another key; saving it keeps the stored text."""

    sealed: str

    @classmethod
    def of(cls, text: str) -> Self:
        made = cls()
        made.sealed = text
        return made


class SealedField(models.CharField):  # type: ignore[type-arg]
    """A text that is sealed in the database and plain in Python; an empty one is not sealed.

    Values stored before sealing are read unchanged. Queries can filter only for an empty text.
    Migrations see a `CharField` of sealed texts.
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
            return opened(value, self._purpose)
        except InvalidToken:
            return Unreadable.of(value)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        if isinstance(value, Unreadable):
            value = value.sealed
        elif isinstance(value, str) and value:
            value = sealed(value, self._purpose)
        return super().get_db_prep_save(value, connection)


def _keys(purpose: str) -> MultiFernet:
    return _derived(purpose, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=16)
def _derived(purpose: str, secrets: tuple[str | bytes, ...]) -> MultiFernet:
    return MultiFernet([_key(secret, purpose) for secret in secrets])


def _key(secret: str | bytes, purpose: str) -> Fernet:
    derived = salted_hmac(SALT, purpose, secret=secret, algorithm="sha256")
    return Fernet(base64.urlsafe_b64encode(derived.digest()))
