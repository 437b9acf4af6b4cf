"""A service on FastAPI whose chat and stories can be stopped.

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
    async with gear:  # Its last report is sent when the service stops.
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(SwitchEngaged)
async def stopped(_request: Request, error: SwitchEngaged) -> JSONResponse:
    """Tell users that it is on purpose, but not why."""
    return JSONResponse({"detail": "temporarily disabled", "switch": error.switch}, 503)


@app.get("/chat")
@gear.guard(feature="chat", segment=lambda department: department)
async def chat(user: str, department: str) -> dict[str, str]:
    return {"answer": f"Hello, {user}."}


@app.get("/story")
async def story(user: str) -> StreamingResponse:
    # Here, and not around `told`: that begins only when the status has been sent.
    with gear.guard(feature="story", targeting_key=user):
        return StreamingResponse(told(user))


async def told(user: str) -> AsyncIterator[str]:
    for word in ("Once", "there", "was", user):
        yield f"{word} "


@app.get("/health")
async def health() -> dict[str, object]:
    status = gear.status()
    return {"source": status.source, "version": status.version, "stopped": status.stopped}
