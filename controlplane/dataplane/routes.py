"""The paths of the data plane, with their handlers, methods and scopes."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from controlplane.core.errors import DomainError
from controlplane.core.protocol import (
    EMERGENCY_PAGE,
    EXCHANGE,
    RELAY_BATCH,
    RELAY_LOST_VERSION,
    RELAY_ORDERS,
    RELAY_STREAM,
)
from controlplane.dataplane.state import State

from . import handlers
from .emergency import order_list
from .plane import Plane
from .relay import stream
from .serving import held_requests, ofrep, responses
from .serving.call import Call
from .serving.responses import Response

Handler = Callable[[State, Call], Awaitable[Response | None]]
"""Returns the response, or None if the handler has already sent it."""


class Endpoint(NamedTuple):
    """A path of the data plane.

    A token needs one of `scopes`; without scopes, no token is required. `for_browsers` means that
    Django serves the path to people who are signed in; `for_other_origins`, that pages of
    `CORS_ORIGINS` may send requests to it. `parameters` are the known query parameters; None
    accepts any, for paths that another protocol defines.
    """

    methods: tuple[str, ...]
    handler: Handler
    scopes: tuple[str, ...] = ()
    reads_body: bool = False
    for_browsers: bool = False
    for_other_origins: bool = False
    refusal: Callable[[DomainError], Response] = responses.answer_error
    parameters: tuple[str, ...] | None = None


_READING = ("GET", "HEAD")
_SWITCHES = (held_requests.SCOPE,)
_FLAG = Endpoint(
    ("POST",),
    handlers.flag,
    _SWITCHES,
    reads_body=True,
    for_other_origins=True,
    refusal=ofrep.answer_error,
)
ROUTES = {
    "/api/v1/snapshot": Endpoint(
        _READING,
        handlers.snapshot,
        _SWITCHES,
        for_browsers=True,
        for_other_origins=True,
        parameters=("wait",),
    ),
    "/api/v1/snapshot/stream": Endpoint(
        ("GET",), handlers.stream, _SWITCHES, for_other_origins=True, parameters=()
    ),
    "/api/v1/check": Endpoint(
        ("POST",), handlers.check, _SWITCHES, reads_body=True, for_browsers=True, parameters=()
    ),
    "/api/v1/report": Endpoint(
        ("POST",), handlers.report, ("report:write",), reads_body=True, parameters=()
    ),
    "/api/v1/config": Endpoint(
        _READING, handlers.config, handlers.CONFIG_SCOPES, parameters=("service", "wait")
    ),
    "/api/v1/degradation": Endpoint(
        _READING,
        handlers.degradation,
        ("switches:read", "breakers:read"),
        for_browsers=True,
        parameters=(),
    ),
    "/api/v1/keys": Endpoint(_READING, handlers.keys, parameters=()),
    "/ofrep/v1/evaluate/flags": Endpoint(
        ("POST",),
        handlers.flags,
        _SWITCHES,
        reads_body=True,
        for_other_origins=True,
        refusal=ofrep.answer_error,
    ),
    ofrep.EVENTS_PATH: Endpoint(
        ("GET",),
        handlers.flag_events,
        _SWITCHES,
        for_other_origins=True,
        refusal=ofrep.answer_error,
    ),
    "/health/live": Endpoint(_READING, handlers.live),
    "/health/ready/data": Endpoint(_READING, handlers.ready),
}

# Standalone only: in the web process these paths are the console's.
ALONE = {"/metrics": Endpoint(_READING, handlers.metrics, ("metrics:read",))}


Routes = dict[str, Endpoint]


def build_routes(plane: Plane) -> Routes:
    """Return all paths of the data plane `plane` with their endpoints."""
    emergency, page = plane.emergency_endpoints, plane.emergency_page
    return {
        **ROUTES,
        "/api/v1/emergency/orders": Endpoint(
            (*_READING, "POST"), emergency.emergency_orders, parameters=order_list.PARAMETERS
        ),
        RELAY_BATCH: Endpoint(
            ("POST",), plane.batch_receiver.relay_batch, ("relay",), reads_body=True, parameters=()
        ),
        RELAY_LOST_VERSION: Endpoint(
            ("POST",),
            plane.lost_versions.relay_lost_version,
            ("relay",),
            reads_body=True,
            parameters=(),
        ),
        RELAY_ORDERS: Endpoint(
            ("POST",), plane.relay_orders.relay_orders, ("relay",), reads_body=True, parameters=()
        ),
        RELAY_STREAM: Endpoint(
            ("GET",), plane.relay_streams.relay_stream, (stream.SCOPE,), parameters=()
        ),
        EXCHANGE: Endpoint(("POST",), plane.peers.emergency_exchange, parameters=()),
        EMERGENCY_PAGE: Endpoint(
            (*_READING, "POST"), page.emergency_page, reads_body=True, refusal=page.refuse
        ),
        EMERGENCY_PAGE.removesuffix("/"): Endpoint(
            (*_READING, "POST"), page.redirect, refusal=page.refuse
        ),
    }


def find_endpoint(routes: Routes, path: str) -> Endpoint | None:
    """Return the endpoint of a path that is not an exact key of `routes`; None if unknown.

    The path may have a trailing slash or a flag's key. With a trailing slash it is served for POST,
    and redirected for other methods.
    """
    plain = path.removesuffix("/")
    route = routes.get(plain)
    if route is not None:
        is_other_form = plain != path and "POST" not in route.methods
        return Endpoint(route.methods, handlers.redirect) if is_other_form else route
    if plain.startswith(handlers.FLAG_PREFIX):
        return _FLAG
    return None
