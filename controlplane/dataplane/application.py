"""The ASGI application of the data plane: routing, authentication and error responses.

No middleware is used, because even a few microseconds are a fifth of a poll's cost. In the web
process, requests for other paths go to Django, and so do those of signed-in browsers, because only
Django can check sessions.
"""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import perf_counter
from urllib.parse import parse_qs

from controlplane import logs
from controlplane.core.environment_variables import WrongVariable
from controlplane.core.errors import (
    DomainError,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
)
from controlplane.core.http.parameters import refuse_unknown
from controlplane.dataplane.config import Config, RelayConfig
from controlplane.dataplane.handlers import metrics
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay.stream import SCOPE as RELAY_SCOPE
from controlplane.dataplane.routes import ALONE, Endpoint, build_routes, find_endpoint

from . import config
from .memory.credentials import authenticate, read_token
from .memory.instance_names import service_of
from .serving import cors, landing_page, responses
from .serving.call import INSTANCE, ASGIApplication, Call, Receive, Scope, Send, drain_body

MAX_PARAMETERS = 50


@lru_cache(maxsize=64)
def check_query(query: bytes, known: tuple[str, ...]) -> None:
    """Raise :class:`InvalidInput` if `query` has a parameter not in `known`.

    Cached for valid queries, for speed.
    """
    text = query.decode("latin-1")
    try:
        parameters = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise DomainError(f"Send at most {MAX_PARAMETERS} query parameters.") from error
    refuse_unknown(parameters, known)


class Application:
    """ASGI application: serves the data plane's paths, and passes others to `behind` (Django)."""

    def __init__(
        self,
        plane: Plane,
        behind: ASGIApplication | None = None,
        read_config: Callable[[], Config | RelayConfig] = config.from_environment,
    ) -> None:
        self._plane = plane
        self._read_config = read_config
        self._state = plane.state
        self._behind = behind
        self._routes = build_routes(plane)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        endpoint = self._routes.get(scope.get("path", ""))
        if endpoint is None or scope["type"] != "http":
            return self._handle_other(scope, receive, send)
        return self._serve(endpoint, Call(scope, receive, send, self._state.time_headers))

    async def _serve(self, endpoint: Endpoint, call: Call) -> None:
        began = perf_counter()
        may_be_signed_in = endpoint.for_browsers and b"cookie" in call.headers
        if may_be_signed_in and self._behind and read_token(call.headers) is None:
            # Only Django can check the session.
            await self._behind(call.scope, call.receive, call.send)
            return
        if endpoint.for_other_origins and self._state.cors_origins:
            origins = self._state.cors_origins
            call.cors_headers = cors.response_headers(origins, call.headers)
            if call.method == "OPTIONS":
                preflight = cors.answer_preflight(origins, call.headers, endpoint.methods)
                if preflight is not None:
                    await call.respond(preflight)
                    return
        is_admitted = False
        try:
            self._check(endpoint, call)
            is_admitted = True
            if endpoint.reads_body:
                await call.read_body()
                began = perf_counter()  # Excludes the time the caller took to send the body.
            answer = await endpoint.handler(self._state, call)
            if answer is not None:
                await call.respond(answer)
        except DomainError as error:
            if endpoint.reads_body and not is_admitted:
                await drain_body(call.receive)
            await call.respond(endpoint.refusal(error))
        except Exception:
            if not call.status:
                message = "The request failed on our side and was logged; try again."
                await call.respond(endpoint.refusal(InternalError(message)))
            call.status = 500  # Also if the answer broke off after it began.
            raise
        finally:
            if endpoint.scopes and endpoint.handler is not metrics:
                self._state.answered[call.status] += 1
                if not call.held:
                    seconds = perf_counter() - began
                    self._state.answer_seconds[endpoint.handler.__name__].observe(seconds)

    def _check(self, endpoint: Endpoint, call: Call) -> None:
        if call.method not in endpoint.methods:
            message = f"{call.method} is not allowed here; use {', '.join(endpoint.methods)}."
            raise MethodNotAllowed(message, allowed=endpoint.methods)
        if endpoint.scopes:
            state = self._state
            credential = authenticate(
                state.tokens, call.headers, *endpoint.scopes, clock=state.unix
            )
            state.used_tokens.add(credential.token_id)
            call.credential = credential
            name = call.headers.get(INSTANCE)
            if credential.services:
                if endpoint.scopes == (RELAY_SCOPE,):
                    raise Forbidden("The token of a relay can't be limited to services.")
                if name and (service := service_of(name.decode("utf-8", "replace"))) is not None:
                    credential.require_service(service)
            # Reads are answered for any token, so that no service fails when a team takes it over;
            # but an instance of a service that another team owns is not recorded.
            callers = state.callers
            if (
                name
                and (credential.token_id, name) not in callers.accepted
                and callers.find_owner_of_instance(credential, name)
            ):
                call.forget_instance()
        if endpoint.parameters is not None and (query := call.scope["query_string"]):
            check_query(query, endpoint.parameters)

    async def _handle_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle lifespan events, WebSockets and paths that are not an exact key of the routes."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        endpoint = None
        if scope["type"] == "http":
            endpoint = find_endpoint(self._routes, scope["path"])
        if not self._behind and scope["type"] == "http":
            endpoint = endpoint or ALONE.get(scope["path"])
        if endpoint is not None:
            await self._serve(endpoint, Call(scope, receive, send, self._state.time_headers))
        elif self._behind:
            await self._behind(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        elif scope["path"] == "/":
            await Call(scope, receive, send).respond(landing_page.render_page(self._state))
        else:
            error = NotFound(
                "The data plane serves only " + ", ".join((*self._routes, *ALONE)) + "."
            )
            await Call(scope, receive, send).respond(responses.answer_error(error))

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
                await self._plane.start(self._read_config())
            except WrongVariable as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
