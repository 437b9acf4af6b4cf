"""Streamed file downloads with constant memory use."""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse

from controlplane.core import authority
from controlplane.core.actors import Actor

from .permissions import actor_of


def stream_file(
    request: HttpRequest, chunks: Iterator[bytes], *, content_type: str, name: str
) -> StreamingHttpResponse:
    """Return a download of `chunks` under the file name `name`.

    The transfer is aborted if the requester loses their permissions.
    """
    chunks = _check_permissions(chunks, actor_of(request))
    # Over ASGI, Django would collect a synchronous iterator in memory first.
    over_asgi = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _iterate_async(chunks) if over_asgi else chunks, content_type=content_type
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _check_permissions(chunks: Iterator[bytes], actor: Actor) -> Iterator[bytes]:
    """Yield the chunks of a download, until the actor loses their permissions.

    Then :class:`Forbidden` aborts the connection, because a properly ended file would look
    complete.
    """
    for chunk in chunks:
        authority.require_still([actor])
        yield chunk


async def _iterate_async(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks without holding a database connection between them."""

    def fetch_next() -> bytes | None:
        try:
            return next(chunks, None)
        finally:
            connection.close()  # Back to the pool.

    while (chunk := await sync_to_async(fetch_next)()) is not None:
        yield chunk
