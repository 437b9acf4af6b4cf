"""An ASGI request sent step by step, whose messages tests read as they are sent."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from controlplane.dataplane.serving.call import ASGIApplication


class Exchange:
    """A request in progress; as a context manager it disconnects at the end.

    `slow`: it does not read before `reads` is set. `half`: the rest of its body never comes.
    """

    def __init__(
        self,
        application: ASGIApplication,
        path: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        slow: bool = False,
        half: bool = False,
        body: bytes = b"",
    ) -> None:
        path, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
        self._application = application
        self._arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._arriving.put_nowait({"type": "http.request", "body": body, "more_body": half})
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self.reads = asyncio.Event()
        if not slow:
            self.reads.set()
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> "Exchange":
        work = self._application(self._scope, self._arriving.get, self._send)
        self.task = asyncio.ensure_future(work)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hang_up()
        self.reads.set()
        try:
            await asyncio.wait_for(self.task, 5)
        except TimeoutError:
            if error is None:
                raise

    def hang_up(self) -> None:
        self._arriving.put_nowait({"type": "http.disconnect"})

    async def receive_status(self, within: float = 5) -> int:
        """Return the status once the answer begins."""
        message = await asyncio.wait_for(self._sent.get(), within)
        assert message["type"] == "http.response.start"
        self.status = message["status"]
        self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        return self.status

    async def part(self, within: float = 5) -> bytes:
        """Return the next chunk of the body; raise TimeoutError if none comes."""
        message = await asyncio.wait_for(self._sent.get(), within)
        body: bytes = message["body"]
        return body

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        self._sent.put_nowait(message)
