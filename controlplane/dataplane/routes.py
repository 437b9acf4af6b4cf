"""The routes of the data plane: handler, methods and required scopes of each path."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from controlplane.core.errors import DomainError
from controlplane.dataplane.state import State

from . import handlers
from .serving import answers, connection_watch, ofrep
from .serving.answers import Answer
from .serving.call import Call

Handler = Callable[[State, Call], Awaitable[Answer | None]]
"""Returns the answer, or None if it has already sent everything."""


class Route(NamedTuple):
    """A path of the data plane.

    `scopes`: one of them is required; without any, no token is needed. `for_browsers`: Django
    serves this path too, to people who are signed in. `parameters`: known query parameters; None
    accepts any, on paths that another protocol defines.
    """

    methods: tuple[str, ...]
    handler: Handler
    scopes: tuple[str, ...] = ()
    reads_body: bool = False
    for_browsers: bool = False
    refusal: Callable[[DomainError], Answer] = answers.refusal
    parameters: tuple[str, ...] | None = None


_READING = ("GET", "HEAD")
_SWITCHES = (connection_watch.SCOPE,)
_FLAG = Route(("POST",), handlers.flag, _SWITCHES, reads_body=True, refusal=ofrep.refusal)
ROUTES = {
    "/api/v1/snapshot": Route(
        _READING, handlers.snapshot, _SWITCHES, for_browsers=True, parameters=("wait",)
    ),
    "/api/v1/snapshot/stream": Route(("GET",), handlers.stream, _SWITCHES, parameters=()),
    "/api/v1/check": Route(
        ("POST",), handlers.check, _SWITCHES, reads_body=True, for_browsers=True, parameters=()
    ),
    "/api/v1/report": Route(
        ("POST",), handlers.report, ("report:write",), reads_body=True, parameters=()
    ),
    "/api/v1/config": Route(
        _READING, handlers.config, handlers.CONFIG_SCOPES, parameters=("service", "wait")
    ),
    "/api/v1/degradation": Route(
        _READING,
        handlers.degradation,
        ("switches:read", "breakers:read"),
        for_browsers=True,
        parameters=(),
    ),
    "/ofrep/v1/evaluate/flags": Route(
        ("POST",), handlers.flags, _SWITCHES, reads_body=True, refusal=ofrep.refusal
    ),
    ofrep.EVENTS_PATH: Route(("GET",), handlers.flag_events, _SWITCHES, refusal=ofrep.refusal),
    "/health/live": Route(_READING, handlers.live),
    "/health/ready/data": Route(_READING, handlers.ready),
}

# Standalone only: in the web process these paths are the console's.
ALONE = {"/metrics": Route(_READING, handlers.metrics, ("metrics:read",))}


def route_of(path: str) -> Route | None:
    """Return the route of a path, with or without a trailing slash or a flag's key.

    The non-canonical form is served for POST and redirected for other methods.
    """
    plain = path.removesuffix("/")
    route = ROUTES.get(plain)
    if route is not None:
        is_other_form = plain != path and "POST" not in route.methods
        return Route(route.methods, handlers.moved) if is_other_form else route
    if plain.startswith(handlers.FLAG_PREFIX):
        return _FLAG
    return None
