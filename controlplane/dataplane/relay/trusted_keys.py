"""The public keys with which a relay verifies bundles, on its disk. Blocking: use a thread.

A relay begins with the keys of its configuration, or else with those of its first upstream. From
then on it trusts the keys in the last bundle that a trusted key has signed, so it follows
rotations.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

from controlplane.core.private_files import InvalidFile, create_file, read_file, sync_folder
from controlplane.core.signatures import InvalidKey, PublicKey

NAME = "upstream_keys.json"
MAX_BYTES = 64 * 1024
MAX_KEYS = 16

Keys = Mapping[str, PublicKey]

log = structlog.get_logger(__name__)


class TrustedKeys:
    """The trusted keys by id, and their file in `folder`; None keeps them in memory only.

    Keys that were learned under another configuration are not used.
    """

    def __init__(self, folder: Path | None, configured: Keys) -> None:
        self.keys = configured
        self._configured = sorted(configured)
        self._path = None if folder is None else folder / NAME

    def load(self) -> None:
        """Use the keys on disk if they were learned under this configuration."""
        if self._path is None:
            return
        try:
            document = orjson.loads(read_file(self._path, MAX_BYTES))
            if document["configured"] == self._configured:
                self.keys = read_keys(document) or self.keys
        except FileNotFoundError:
            return
        except (InvalidFile, OSError, KeyError, TypeError, ValueError) as error:
            log.error("relay.keys_refused", file=str(self._path), why=str(error))

    def replace(self, keys: Keys) -> None:
        """Trust `keys` from now on; raise OSError if they can't be stored."""
        self.keys = keys
        if self._path is None:
            return
        document = {
            "configured": self._configured,
            "keys": [{"public_key": str(keys[key_id])} for key_id in sorted(keys)],
        }
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._path.with_suffix(f".{os.getpid()}.draft")  # Several processes may store.
        create_file(draft, orjson.dumps(document), sync=True)
        draft.replace(self._path)
        sync_folder(self._path.parent)


def read_keys(document: Any) -> Keys:
    """Return the keys in a document as of `GET /api/v1/keys`, by id.

    Raise KeyError, TypeError or ValueError if one is invalid.
    """
    return parse_keys(document["keys"])


def parse_keys(elements: Iterable[Mapping[str, Any]]) -> Keys:
    texts = [element["public_key"] for element in elements]
    if len(texts) > MAX_KEYS or not all(isinstance(text, str) for text in texts):
        raise InvalidKey(f"must be at most {MAX_KEYS} texts")
    return {key.id: key for key in map(PublicKey.parse, texts)}
