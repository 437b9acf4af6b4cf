"""The keys that sign snapshots: one current key, and older ones that still sign for a while.

Clients get public keys by hand, so a replaced key signs on until they have had time to get the new
one. The keys are in a private file, which all processes of a machine share. Blocking: use a thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.private_files import (
    InvalidFile,
    create_file,
    create_once,
    file_identity,
    hold_lock,
    read_file,
    sync_folder,
)
from controlplane.core.signatures import MAX_SIGNATURES, InvalidKey, SigningKey

NAME = "snapshot_signing_keys.json"
OVERLAP = timedelta(hours=24)
"""Time for which a replaced key still signs."""
MAX_BYTES = 64 * 1024


class TooManyKeys(Exception):
    """Raised if as many keys sign as clients verify at most."""


@dataclass(frozen=True)
class StoredKey:
    """A key; `retired_at` is the time at which it was replaced, None if it was not."""

    key: SigningKey
    retired_at: datetime | None = None

    @property
    def valid_until(self) -> datetime | None:
        return None if self.retired_at is None else self.retired_at + OVERLAP

    def is_valid(self, now: datetime) -> bool:
        return self.valid_until is None or now < self.valid_until


@dataclass(frozen=True)
class KeyRing:
    """All keys that sign, the current one first."""

    keys: tuple[StoredKey, ...]

    @property
    def current(self) -> SigningKey:
        return self.keys[0].key

    @property
    def signing_keys(self) -> tuple[SigningKey, ...]:
        return tuple(stored.key for stored in self.keys)

    def valid_at(self, now: datetime) -> "KeyRing":
        """Return the keys that sign at `now`; the same object if these are all."""
        valid = tuple(stored for stored in self.keys if stored.is_valid(now))
        return self if len(valid) == len(self.keys) else KeyRing(valid)

    def rotate(self, new: SigningKey, now: datetime, *, drop_old: bool = False) -> "KeyRing":
        """Return the ring with `new` as the current key; with `drop_old`, the only one.

        Raises :class:`TooManyKeys`.
        """
        if drop_old:
            return KeyRing((StoredKey(new),))
        replaced = replace(self.keys[0], retired_at=now)
        older = KeyRing((replaced, *self.keys[1:])).valid_at(now).keys
        if len(older) >= MAX_SIGNATURES:
            raise TooManyKeys(f"{len(older)} keys sign already")
        return KeyRing((StoredKey(new), *older))

    def public_documents(self) -> tuple[Mapping[str, Any], ...]:
        """Return the public keys as `GET /api/v1/keys` lists them."""
        return tuple(
            {
                "id": stored.key.public.id,
                "algorithm": "Ed25519",
                "public_key": str(stored.key.public),
                "current": stored is self.keys[0],
                "valid_until": timestamp_or_none(stored.valid_until),
            }
            for stored in self.keys
        )


def serialize(ring: KeyRing) -> bytes:
    keys = [
        {
            "private_key": stored.key.secret_text,
            "retired_at": timestamp_or_none(stored.retired_at),
        }
        for stored in ring.keys
    ]
    return orjson.dumps({"keys": keys}, option=orjson.OPT_INDENT_2)


def parse(content: bytes) -> KeyRing:
    """Return the keys in a file; raise :class:`InvalidFile` without any part of it in the text."""
    try:
        keys = tuple(_parse_key(each) for each in orjson.loads(content)["keys"])
    except (InvalidKey, KeyError, TypeError, ValueError) as error:
        raise InvalidFile("it does not contain signing keys") from error
    if not keys or keys[0].retired_at is not None:
        raise InvalidFile("it has no current key")
    return KeyRing(keys)


def _parse_key(element: Any) -> StoredKey:
    retired_at = element["retired_at"]
    return StoredKey(
        SigningKey.parse(str(element["private_key"])),
        None if retired_at is None else datetime.fromisoformat(retired_at).astimezone(UTC),
    )


class SigningKeyFile:
    """The file with the keys, in `folder`.

    All methods raise OSError and :class:`InvalidFile`.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def read(self) -> KeyRing:
        return parse(read_file(self.path, MAX_BYTES))

    def read_or_create(self, generate: Callable[[], SigningKey] = SigningKey.generate) -> KeyRing:
        """Return the keys; generate the first one if there is no file."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_once(self.path, serialize(KeyRing((StoredKey(generate()),))))
        return self.read()

    def rotate(self, new: SigningKey, now: datetime, *, drop_old: bool = False) -> KeyRing:
        """Make `new` the current key; raise :class:`TooManyKeys`."""
        self.read_or_create()
        with hold_lock(self.path.with_suffix(".lock")):
            ring = self.read().rotate(new, now, drop_old=drop_old)
            draft = self.path.with_suffix(".draft")
            create_file(draft, serialize(ring), sync=True)
            draft.replace(self.path)
            sync_folder(self.path.parent)
        return ring

    def identity(self) -> tuple[int, ...]:
        """Return a value that changes whenever the file changes."""
        return file_identity(self.path)
