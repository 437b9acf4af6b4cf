"""The journal of emergency orders on disk: one signed file per order. Blocking: use a thread.

Files are only added, so the processes of a host share a folder without a lock. A signature can't
prove age: see :mod:`.snapshot_file`.
"""

import hmac
import os
import threading
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import structlog

from controlplane.core.private_files import InvalidFile, create_file, read_file, sync_folder
from switches.emergency.orders import Order, parse_order

from .signed_file import SignedDocument

FOLDER = "emergency"
MAX_BYTES = 64 * 1024
UUID_LENGTH = 36
_SUFFIX = ".order"

log = structlog.get_logger(__name__)

SIGNED_ORDER = SignedDocument(b"switchgear-order", parse_order, lambda order: order.serialized)


def order_key(secret_key: str) -> bytes:
    """Return the key that signs orders, derived from the installation's secret."""
    return hmac.digest(secret_key.encode(), b"switchgear/emergency/1", "sha256")


def verify_order(signed: bytes, keys: Sequence[bytes]) -> Order:
    """Return the order in a signed document; raise :class:`InvalidFile` if no key fits."""
    for key in keys[:-1]:
        try:
            return SIGNED_ORDER.verify(signed, key)
        except InvalidFile:
            continue
    return SIGNED_ORDER.verify(signed, keys[-1])


class OrderJournal:
    """Orders in the subfolder `emergency` of the snapshot's folder; `keys[0]` signs new ones."""

    def __init__(self, folder: Path, keys: Sequence[bytes]) -> None:
        self._folder = folder / FOLDER
        self._keys = keys
        self._refused: set[str] = set()
        """Names of unusable files that were logged."""

    def write(self, *orders: Order) -> None:
        """Store orders durably.

        Raise OSError if that fails; then a single order leaves no file.
        """
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self._folder.parent)
        added = []
        for order in orders:
            name = _file_name(order)
            # Several threads may store the same order.
            draft = self._folder / f"{name}.{os.getpid()}-{threading.get_ident()}.draft"
            create_file(draft, SIGNED_ORDER.sign(order, self._keys[0]), sync=True)
            path = self._folder / name
            if not path.exists():
                added.append(path)
            draft.replace(path)
        try:
            sync_folder(self._folder)
        except OSError:
            for path in added:
                path.unlink(missing_ok=True)
            raise

    def load(self, known: Iterable[Order] = ()) -> list[Order]:
        """Return the orders on disk, except those in `known`; log unusable files once.

        Raise OSError if the folder can't be read; a missing one is empty.
        """
        skipped = set(map(_file_name, known))
        found = []
        for name in self._names():
            if name in skipped:
                continue
            try:
                found.append(verify_order(read_file(self._folder / name, MAX_BYTES), self._keys))
            except FileNotFoundError:
                continue  # Another process has just removed it.
            except (InvalidFile, OSError) as error:
                if name not in self._refused:
                    file = str(self._folder / name)
                    log.error("emergency_order.file_refused", file=file, why=str(error))
                self._refused.add(name)  # Tried again: the error may be a passing one.
        return found

    def find_missing(self, stored: Iterable[Order]) -> list[Order]:
        """Return the orders in `stored` that have no file any more; raise OSError as `load`."""
        names = set(self._names())
        return [order for order in stored if _file_name(order) not in names]

    def remove(self, order_ids: Iterable[UUID]) -> None:
        """Remove orders; raise OSError if that fails."""
        gone = set(map(str, order_ids))
        for name in self._names():
            if name[:UUID_LENGTH] in gone:
                (self._folder / name).unlink(missing_ok=True)

    def changed_at(self) -> int:
        """Return a number that changes when an order is added; 0 without a folder."""
        try:
            return self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name.endswith(_SUFFIX))


def _file_name(order: Order) -> str:
    """Return the name of an order's file.

    An id may have been given to two orders, of which neither must replace the other.
    """
    return f"{order.id}-{sha256(order.serialized).hexdigest()[:16]}{_SUFFIX}"
