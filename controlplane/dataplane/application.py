"""The ASGI callable of the data plane: credentials, and one answer per request.

No middleware and no I/O stand between a request and its answer, and the way through is short on
purpose: a few microseconds more here are a fifth of the whole request. Embedded, everything else
goes to the application behind; so do some of the data plane's own paths when a signed-in browser
asks, because only Django knows sessions.
"""

from collections.abc import Awaitable
from functools import lru_cache
from time import perf_counter
from urllib.parse import parse_qs

from controlplane import logs
from controlplane.core.errors import DomainError, InternalError, MethodNotAllowed, NotFound
from controlplane.core.http.parameters import refuse_unknown
from controlplane.dataplane.handlers import metrics
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.routes import ALONE, ROUTES, Route, route_of
from controlplane.environment import WrongVariable

from . import config
from .memory.credentials import Credential, authenticate, read_token
from .memory.instance_names import service_of
from .serving import answers, landing_page
from .serving.call import ASGIApplication, Call, Receive, Scope, Send, drain

MAX_PARAMETERS = 50


@lru_cache(maxsize=64)
def check_query(query: bytes, known: tuple[str, ...]) -> None:
    """Raise :class:`InvalidInput` if the query has an unknown name.

    Pollers repeat the same query, so valid ones are cached.
    """
    text = query.decode("latin-1")
    try:
        given = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise DomainError(f"Send at most {MAX_PARAMETERS} query parameters.") from error
    refuse_unknown(given, known)


class Application:
    """ASGI application that serves a plane and passes everything else to `behind`, if given."""

    def __init__(self, plane: Plane, behind: ASGIApplication | None = None) -> None:
        self._plane = plane
        self._state = plane.state
        self._behind = behind

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        route = ROUTES.get(scope.get("path", ""))
        if route is None or scope["type"] != "http":
            return self._handle_other(scope, receive, send)
        return self._serve(route, Call(scope, receive, send, self._state.time_headers))

    async def _serve(self, route: Route, call: Call) -> None:
        began = perf_counter()
        may_be_signed_in = route.for_browsers and b"cookie" in call.headers
        if may_be_signed_in and self._behind and read_token(call.headers) is None:
            # Only Django can check the session.
            await self._behind(call.scope, call.receive, call.send)
            return
        is_admitted = False
        try:
            self._check(route, call)
            is_admitted = True
            if route.reads_body:
                await call.read()
                began = perf_counter()  # Excludes the time the caller took to send the body.
            answer = await route.handler(self._state, call)
            if answer is not None:
                await call.answer(answer)
        except DomainError as error:
            if route.reads_body and not is_admitted:
                await drain(call.receive)
            await call.answer(route.refusal(error))
        except Exception:
            if not call.status:
                said = "The request failed on our side and was logged; try again."
                await call.answer(route.refusal(InternalError(said)))
            call.status = 500  # Also if the answer broke off after it began.
            raise
        finally:
            if route.scopes and route.handler is not metrics:
                self._state.answered[call.status] += 1
                if not call.held:
                    seconds = perf_counter() - began
                    self._state.answer_seconds[route.handler.__name__].observe(seconds)

    def _check(self, route: Route, call: Call) -> None:
        if call.method not in route.methods:
            said = f"{call.method} is not possible here; use {', '.join(route.methods)}."
            raise MethodNotAllowed(said, allowed=route.methods)
        if route.scopes:
            state = self._state
            used = authenticate(state.tokens, call.headers, *route.scopes, clock=state.unix)
            state.used_tokens.add(used.token_id)
            call.credential = used
            if used.services:
                self._check_name(used, call)
        if route.parameters is not None and (query := call.scope["query_string"]):
            check_query(query, route.parameters)

    def _check_name(self, used: Credential, call: Call) -> None:
        """Raise :class:`Forbidden` for an instance of a service that is not the token's."""
        name = call.headers.get(b"switchgear-instance", b"").decode("utf-8", "replace")
        service = service_of(name)
        if service is not None:
            used.require_service(service)

    async def _handle_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle lifespan events, WebSockets and paths that are not an exact key of `ROUTES`."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        found = route_of(scope["path"]) if scope["type"] == "http" else None
        if not self._behind and scope["type"] == "http":
            found = found or ALONE.get(scope["path"])
        if found is not None:
            await self._serve(found, Call(scope, receive, send, self._state.time_headers))
        elif self._behind:
            await self._behind(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        elif scope["path"] == "/":
            await Call(scope, receive, send).answer(landing_page.page(self._state))
        else:
            error = NotFound("The data plane alone serves " + ", ".join((*ROUTES, *ALONE)) + ".")
            await Call(scope, receive, send).answer(answers.refusal(error))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._plane.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
            if self._behind is None:
                logs.configure_logging()  # Django does this otherwise.
            try:
                await self._plane.start(config.from_environment())
            except WrongVariable as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
