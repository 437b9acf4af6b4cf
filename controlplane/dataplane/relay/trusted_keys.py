"""The public keys with which a relay verifies bundles, on its disk.

A relay trusts the keys of its configuration, or else those of its first upstream, at first. It also
trusts the keys in the last bundle that a trusted key has signed, so it follows rotations.
"""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

from controlplane.core.private_files import InvalidFile, create_file, read_file, sync_folder
from controlplane.core.signatures import InvalidKey, PublicKey

from .upstream import Upstream, UpstreamFailed

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
        self._configured = configured
        self._learned: Keys = {}
        self._path = None if folder is None else folder / NAME

    @property
    def keys(self) -> Keys:
        return {**self._configured, **self._learned}

    def load(self) -> None:
        """Use the keys on disk if they were learned under this configuration. Blocking."""
        if self._path is None:
            return
        try:
            document = orjson.loads(read_file(self._path, MAX_BYTES))
            if document["configured"] == sorted(self._configured):
                self._learned = read_keys(document)
        except FileNotFoundError:
            return
        except (InvalidFile, OSError, KeyError, TypeError, ValueError) as error:
            log.error("relay.keys_refused", file=str(self._path), why=str(error))

    async def pin(self, upstream: Upstream, url: str) -> None:
        """Trust the keys of the upstream at `url`; raise :class:`UpstreamFailed`."""
        try:
            keys = read_keys(await upstream.read_keys(url))
        except (KeyError, TypeError, ValueError) as error:
            raise UpstreamFailed("it has sent no valid public keys") from error
        if not keys:
            raise UpstreamFailed("it has no public keys")
        await self._replace(keys)
        log.warning("relay.keys_pinned", upstream=url, keys=sorted(keys))

    async def learn(self, elements: Iterable[Mapping[str, Any]]) -> None:
        """Trust the keys that a bundle lists, instead of those that the last one listed."""
        keys = parse_keys(elements)
        if not keys or keys == self._learned:
            return
        news = sorted(keys.keys() - self.keys.keys())
        await self._replace(keys)
        if news:
            log.info("relay.keys_learned", keys=news)

    async def _replace(self, keys: Keys) -> None:
        self._learned = keys
        try:
            await asyncio.to_thread(self._store, keys)
        except OSError as error:
            log.error("relay.keys_not_stored", error=str(error))

    def _store(self, keys: Keys) -> None:
        if self._path is None:
            return
        document = {
            "configured": sorted(self._configured),
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
