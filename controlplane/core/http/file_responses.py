"""Files that are sent while they are made: however long they are, little of them is in memory."""

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
    """Return the chunks as a file of this name.

    The transfer is cut off if the requester loses permission.
    """
    chunks = _while_allowed(chunks, actor_of(request))
    # Django would gather a plain iterator in memory before it sends it over ASGI.
    over_asgi = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _step_by_step(chunks) if over_asgi else chunks, content_type=content_type
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _while_allowed(chunks: Iterator[bytes], actor: Actor) -> Iterator[bytes]:
    """Yield the chunks; raise :class:`Forbidden` once the actor has lost their permissions.

    The error cuts the connection: a file that ended properly would look complete.
    """
    for chunk in chunks:
        authority.require_still([actor])
        yield chunk


async def _step_by_step(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Between two chunks nothing of the database is held: readers may be slow, and many."""

    def following() -> bytes | None:
        try:
            return next(chunks, None)
        finally:
            connection.close()  # Back to the pool.

    while (chunk := await sync_to_async(following)()) is not None:
        yield chunk
