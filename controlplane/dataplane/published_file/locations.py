"""Places for the published file: a directory, or a URL that takes PUT."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit

from controlplane.core.egress_guard.allowed_networks import Allowance, UrlRefused
from controlplane.core.egress_guard.name_resolution import Unresolved
from controlplane.core.private_files import create_file, hold_lock, sync_folder
from controlplane.environment.published_file import ALLOW, PublishedFileSettings

from .content import MAX_BYTES, NAME, FileHead, InvalidPublishedFile, parse_head

if TYPE_CHECKING:
    import httpx

REQUEST_SECONDS, UPDATE_SECONDS = 10.0, 30.0
"""Longest silence of a server, and longest time to read and to write the file."""
READABLE_MODE = 0o644
"""A web server of another user may serve the file."""
CACHE_CONTROL = "public, max-age=5"

Render = Callable[[FileHead | None], bytes | None]
"""A function that returns the new content, given the present file; None to leave that as it is."""


class PublishFailed(Exception):
    """The file can't be read or written now; the message is the reason, without secrets."""


class FileLocation(Protocol):
    """A place for the published file, which several processes may write."""

    name: str
    """The place in texts for people, without secrets."""

    async def update(self, render: Render) -> None:
        """Read the file, and replace it by what `render` returns; raise :class:`PublishFailed`.

        A present file that is damaged counts as missing.
        """

    async def close(self) -> None: ...


class FolderLocation:
    """The file `snapshot.json` in a directory, which must exist. Processes take turns by a lock."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._path = folder / NAME

    async def update(self, render: Render) -> None:
        await asyncio.to_thread(self._update, render)

    async def close(self) -> None:
        """Do nothing."""

    def _update(self, render: Render) -> None:
        draft = self._path.with_name(f".{NAME}.new")
        try:
            with hold_lock(self._path.with_name(f".{NAME}.lock")):
                content = render(self._read())
                if content is None:
                    return
                create_file(draft, content, sync=True)
                draft.chmod(READABLE_MODE)
                os.replace(draft, self._path)
                sync_folder(self._path.parent)
        except OSError as error:
            raise PublishFailed(error.strerror or type(error).__name__) from error

    def _read(self) -> FileHead | None:
        try:
            with open(self._path, "rb") as file:
                return parse_head(file.read(MAX_BYTES + 1))
        except (FileNotFoundError, InvalidPublishedFile):
            return None


class UrlLocation:
    """A file at a URL, which answers GET and PUT; redirects and proxies are not followed.

    Between GET and PUT another process may write. If it wrote a newer version, that is in the file
    again within 30 seconds, and clients never go back to an older one.
    """

    def __init__(self, settings: PublishedFileSettings) -> None:
        self.name = _redact(settings.url)
        self._settings = settings
        self._client: httpx.AsyncClient | None = None
        self._known: tuple[str, FileHead | None] = "", None
        """The ETag of the file, and what it said."""

    async def update(self, render: Render) -> None:
        import httpx  # Slow to import, and not needed without a URL.

        try:
            async with asyncio.timeout(UPDATE_SECONDS):
                client = self._client = self._client or self._make_client()
                present = await self._read(client)
                content = await asyncio.to_thread(render, present)
                if content is not None:
                    await self._write(client, content)
        except TimeoutError as error:
            raise PublishFailed("no response in time") from error
        except (UrlRefused, Unresolved) as error:
            raise PublishFailed(str(error)) from error
        except (httpx.HTTPError, OSError) as error:
            # The text of such an error may contain the URL's query.
            raise PublishFailed(f"the connection failed ({type(error).__name__})") from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _make_client(self) -> "httpx.AsyncClient":
        import httpx

        from controlplane.core.egress_guard.guard import GuardedTransport

        token = self._settings.token
        return httpx.AsyncClient(
            transport=GuardedTransport(Allowance(ALLOW, self._settings.networks)),
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=REQUEST_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )

    async def _read(self, client: "httpx.AsyncClient") -> FileHead | None:
        """Return what the present file says; None if there is none, or it may not be read."""
        etag, known = self._known
        headers = {"Accept-Encoding": "identity", **({"If-None-Match": etag} if etag else {})}
        async with client.stream("GET", self._settings.url, headers=headers) as response:
            if response.status_code == 304 and etag:
                return known
            self._known = "", None
            if response.status_code != 200:
                return None
            content = bytearray()
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > MAX_BYTES:
                    return None
        try:
            head = await asyncio.to_thread(parse_head, bytes(content))
        except InvalidPublishedFile:
            return None
        self._known = response.headers.get("etag", ""), head
        return head

    async def _write(self, client: "httpx.AsyncClient", content: bytes) -> None:
        self._known = "", None
        headers = {"Content-Type": "application/json", "Cache-Control": CACHE_CONTROL}
        response = await client.put(self._settings.url, content=content, headers=headers)
        if response.status_code not in (200, 201, 204):
            raise PublishFailed(f"PUT was answered with status {response.status_code}")


def make_location(settings: PublishedFileSettings) -> FileLocation:
    """Return the place of these settings, which must be set."""
    return UrlLocation(settings) if settings.folder is None else FolderLocation(settings.folder)


def _redact(url: str) -> str:
    """Return the URL without its query, which may hold a signature."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
