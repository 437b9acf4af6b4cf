"""A FastAPI service, with chat and stories that kill switches can stop.

SWITCHGEAR_URL=… SWITCHGEAR_TOKEN=… granian --interface asgi fastapi_app:app
"""

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse

from switchgear import SwitchEngaged, Switchgear

gear = Switchgear.from_env(service="chat-api")


@contextlib.asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with gear:  # On exit, the last report is sent.
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(SwitchEngaged)
async def report_stopped(_request: Request, error: SwitchEngaged) -> JSONResponse:
    """Return the response to a stopped call: status 503 with the switch, but not its reason."""
    return JSONResponse({"detail": "temporarily disabled", "switch": error.switch}, 503)


@app.get("/chat")
@gear.guard(feature="chat", segment=lambda department: department)
async def chat(user: str, department: str) -> dict[str, str]:
    return {"answer": f"Hello, {user}."}


@app.get("/story")
async def story(user: str) -> StreamingResponse:
    # Not around `stream_words`, which starts only after the status was sent.
    with gear.guard(feature="story", targeting_key=user):
        return StreamingResponse(stream_words(user))


async def stream_words(user: str) -> AsyncIterator[str]:
    for word in ("Once", "there", "was", user):
        yield f"{word} "


@app.get("/health")
async def health() -> dict[str, object]:
    status = gear.status()
    return {"source": status.source, "version": status.version, "stopped": status.stopped}
