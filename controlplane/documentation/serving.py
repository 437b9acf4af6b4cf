"""ASGI middleware that serves the built site under `/docs/`, without database or sign-in.

Only files of the build's manifest are served, so no path leads elsewhere.
"""

import asyncio
from collections.abc import Callable
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
from controlplane.documentation.manifest import NAME, SiteFile, SiteManifest, read_manifest

PREFIX = DOCUMENTATION_PATH
POLICY_HEADER = b"content-security-policy"
HASHED = "assets/"
"""Folder of files whose names contain a hash of their content."""
_COMMON = [header for header in BROWSER_HEADERS if header[0] != POLICY_HEADER]


class DocumentationSite:
    """Serves the site in `folder`, and passes requests for other paths to `behind`.

    `missing_page` returns the page for a site that was not built. A site that is built later is
    noticed by its manifest.
    """

    def __init__(
        self, behind: ASGIApplication, folder: Path, missing_page: Callable[[], str]
    ) -> None:
        self._behind = behind
        self._folder = folder
        self._missing_page = missing_page
        self._seen: tuple[int, int] | None = None
        self._manifest: SiteManifest | None = None

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
        manifest = self._read_manifest()
        if manifest is None:
            await call.respond(responses.answer_page(404, self._missing_page()))
            return
        await self._serve(call, manifest, path.removeprefix(PREFIX))

    async def _serve(self, call: Call, manifest: SiteManifest, name: str) -> None:
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
            await call.respond(responses.answer_page(404, self._missing_page()))
            return
        await self._send_file(call, manifest, name, found, status)

    async def _send_file(
        self, call: Call, manifest: SiteManifest, name: str, found: SiteFile, status: int
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
        except OSError:  # Another build has just replaced it.
            await call.respond(responses.answer_page(404, self._missing_page()))
            return
        headers += [
            (b"content-type", found.media_type.encode()),
            (POLICY_HEADER, manifest.policy.encode()),
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

    def _read_manifest(self) -> SiteManifest | None:
        """Return the manifest; it is read again if another build has written it."""
        try:
            found = (self._folder / NAME).stat()
        except OSError:
            self._seen = self._manifest = None
            return None
        seen = found.st_mtime_ns, found.st_ino
        if seen != self._seen:
            self._manifest = read_manifest(self._folder)
            self._seen = seen
        return self._manifest
