"""ASGI middleware that serves the built site under `/docs/`, without database or sign-in.

Only files of the build's manifest are served, so no path leads elsewhere. A file is sent with the
headers of its own build, even while another one replaces the site.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controlplane.core.console_urls import DOCUMENTATION_PATH
from controlplane.core.content_encoding import accepts_gzip
from controlplane.core.errors import MethodNotAllowed
from controlplane.core.protocol import matches_etag
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import (
    BROWSER_HEADERS,
    ASGIApplication,
    Call,
    Receive,
    Scope,
    Send,
)
from controlplane.documentation import build_lock
from controlplane.documentation.manifest import NAME, SiteFile, SiteManifest, read_manifest

PREFIX = DOCUMENTATION_PATH
POLICY_HEADER = b"content-security-policy"
HASHED = "assets/"
"""Folder of files whose names contain a hash of their content."""
RETRY_AFTER_SECONDS = 5
REPLACING_SECONDS = 0.05
"""Time to wait for a site that is missing while a build replaces it."""
MAX_ATTEMPTS = 3
"""Attempts to send a file of a site that builds keep replacing."""
_COMMON = [header for header in BROWSER_HEADERS if header[0] != POLICY_HEADER]


@dataclass(frozen=True)
class _Site:
    """A build's manifest, and the modification time and inode of its file."""

    stamp: tuple[int, int]
    manifest: SiteManifest


class _SiteReplaced(Exception):
    """Raised if another build has replaced the site since its manifest was read."""


class DocumentationSite:
    """Serves the site in `folder`, and passes requests for other paths to `behind`.

    `missing_page` returns the page for a site that was not built; its argument is true while a
    build is running. A site that is built later is noticed by its manifest.
    """

    def __init__(
        self, behind: ASGIApplication, folder: Path, missing_page: Callable[[bool], str]
    ) -> None:
        self._behind = behind
        self._folder = folder
        self._missing_page = missing_page
        self._site: _Site | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path.startswith(PREFIX) or path == PREFIX[:-1]):
            await self._behind(scope, receive, send)
            return
        call = Call(scope, receive, send)
        if call.method not in {"GET", "HEAD"}:
            error = MethodNotAllowed("Pages can only be read.", allowed=("GET", "HEAD"))
            await call.respond(responses.answer_error(error))
            return
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._serve(call, path.removeprefix(PREFIX))
                return
            except _SiteReplaced:
                continue
        await self._send_missing(call, True)

    async def _serve(self, call: Call, name: str) -> None:
        site = await self._load_site()
        if site is None:
            await self._send_missing(call, build_lock.is_held(self._folder))
            return
        manifest = site.manifest
        if call.scope["path"] == PREFIX[:-1] or f"{name}/index.html" in manifest.files:
            location = f"{call.scope['path']}/".encode("ascii", "ignore")
            await self._send(call, 308, [(b"location", location)], b"")
            return
        if not name or name.endswith("/"):
            name += "index.html"
        found = manifest.files.get(name)
        status = 200 if found else 404
        if found is None:
            name = "404.html"
            found = manifest.files.get(name)
        if found is None:
            await self._send_missing(call, build_lock.is_held(self._folder))
            return
        await self._send_file(call, site, name, found, status)

    async def _send_missing(self, call: Call, is_building: bool) -> None:
        page = self._missing_page(is_building)
        status, retry_after = (503, RETRY_AFTER_SECONDS) if is_building else (404, None)
        await call.respond(responses.answer_page(status, page, retry_after=retry_after))

    async def _send_file(
        self, call: Call, site: _Site, name: str, found: SiteFile, status: int
    ) -> None:
        accepted = call.headers.get(b"accept-encoding", b"")
        is_compressed = bool(found.gzip_etag) and accepts_gzip(accepted)
        etag = found.gzip_etag if is_compressed else found.etag
        is_hashed = name.startswith(HASHED)
        cached = b"public, max-age=31536000, immutable" if is_hashed else b"no-cache"
        headers = [
            (b"etag", etag.encode()),
            (b"cache-control", cached if status == 200 else b"no-store"),
            (b"vary", b"accept-encoding"),
        ]
        known = call.headers.get(b"if-none-match", b"").decode("latin-1")
        if status == 200 and known and matches_etag(known, etag):
            await self._send(call, 304, headers, b"")
            return
        file = self._folder / (f"{name}.gz" if is_compressed else name)
        try:
            content = await asyncio.to_thread(file.read_bytes)
        except OSError:
            content = None
        if self._read_stamp() != site.stamp:
            raise _SiteReplaced
        if content is None:
            await self._send_missing(call, build_lock.is_held(self._folder))
            return
        headers += [
            (b"content-type", found.media_type.encode()),
            (POLICY_HEADER, site.manifest.policy.encode()),
        ]
        if is_compressed:
            headers.append((b"content-encoding", b"gzip"))
        await self._send(call, status, headers, content)

    async def _send(
        self, call: Call, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        call.status = status
        length = [] if status == 304 else [(b"content-length", str(len(body)).encode())]
        start = [*headers, *length, *_COMMON]
        await call.send({"type": "http.response.start", "status": status, "headers": start})
        content = b"" if call.method == "HEAD" else body
        await call.send({"type": "http.response.body", "body": content})

    async def _load_site(self) -> _Site | None:
        """Return the site; its manifest is read again if another build has written it."""
        stamp = self._read_stamp()
        if stamp is None and self._site is not None:
            await asyncio.sleep(REPLACING_SECONDS)
            stamp = self._read_stamp()
        if stamp is None:
            self._site = None
        elif self._site is None or stamp != self._site.stamp:
            manifest = read_manifest(self._folder)
            self._site = _Site(stamp, manifest) if manifest is not None else None
        return self._site

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            found = (self._folder / NAME).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino
