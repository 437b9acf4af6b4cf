"""Gzip of prepared bodies, compressed once for all clients."""

import asyncio

from controlplane.core.content_encoding import MIN_BYTES, accepts_gzip, compress_gzip, gzip_etag

from .credentials import Headers

Header = tuple[bytes, bytes]
Response = tuple[int, list[Header], bytes]

LEVEL = 6
MAX_INLINE_BYTES = 64 * 1024
"""Largest body compressed on the event loop; larger ones are compressed in a thread."""
CONTENT_ENCODING: Header = (b"content-encoding", b"gzip")
VARY: Header = (b"vary", b"Accept-Encoding")


class GzipForm:
    """A body's gzip form, compressed on first use."""

    __slots__ = ("_body", "_compressed", "_compressing")

    def __init__(self, body: bytes) -> None:
        self._body = body
        """The uncompressed body; empty once it is compressed."""
        self._compressed: bytes | None = None
        self._compressing: asyncio.Future[bytes] | None = None

    async def get(self) -> bytes:
        """Return the gzip form; concurrent requests share one compression."""
        if self._compressed is not None:
            return self._compressed
        if len(self._body) <= MAX_INLINE_BYTES:
            return self._store(compress_gzip(self._body, LEVEL))
        loop = asyncio.get_running_loop()
        if self._compressing is None or not self._can_share_compression(loop):
            self._compressing = loop.run_in_executor(None, compress_gzip, self._body, LEVEL)
        # Shielded: a caller that disconnects must not cancel it for the others.
        return self._store(await asyncio.shield(self._compressing))

    def _can_share_compression(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Return True if a compression on `loop` is running or has succeeded, and can be shared."""
        begun = self._compressing
        if begun is None or begun.get_loop() is not loop or begun.cancelled():
            return False
        return not begun.done() or begun.exception() is None

    def _store(self, compressed: bytes) -> bytes:
        self._compressed = compressed
        self._compressing, self._body = None, b""
        return compressed


def wants_gzip(answer: Response, headers: Headers) -> bool:
    """Return True if the client accepts gzip, and the response is 200 and worth compressing."""
    accepted = headers.get(b"accept-encoding")
    if accepted is None or answer[0] != 200 or len(answer[2]) < MIN_BYTES:
        return False
    return accepts_gzip(accepted)


async def encode_gzip(answer: Response, form: GzipForm) -> Response:
    """Return the response with its body in gzip form, and with the ETag of that form."""
    status, described, _ = answer
    compressed = await form.get()
    replaced = {b"content-length": b"%d" % len(compressed)}
    for name, value in described:
        if name == b"etag":
            replaced[name] = gzip_etag(value)
    kept = [(name, replaced.get(name, value)) for name, value in described]
    return status, [*kept, CONTENT_ENCODING], compressed
