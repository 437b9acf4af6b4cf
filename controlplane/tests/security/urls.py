"""All paths of the installation, with sample arguments.

Read from the resolver, so new paths are included at once; an argument without a sample is an error,
which a test reports.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

from controlplane.core.http import routes
from controlplane.dataplane import handlers
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.routes import build_routes

_ARGUMENT = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")
# By the name of the argument; by route and name where one does not fit everywhere.
SAMPLES = {
    "action": "release",
    "alert_id": "1",
    "approval_id": "1",
    "callee": "oracle",
    "caller": "core",
    "content_type_id": "1",
    "delivery_id": "1",
    "departure_id": "1",
    "drill_id": "1",
    "entry_id": "1700000000000-0",
    "escalation_id": "1",
    "exclusion_id": "1",
    "group_id": "1",
    "job_id": "1",
    "key": "finance",
    "kind": "webhook",
    "message_id": "1",
    "name": "core-availability",
    "object_id": "1",
    "ramp_id": "1",
    "review_id": "1",
    "resource_id": "1",
    "route_id": "1",
    "rule_id": "1",
    "scope": "segment",
    "server": "main",
    "session_id": "1",
    "slug": "postgresql-outage",
    "target_id": "1",
    "team": "payments",
    "token": "no-such-token",
    "token_id": "1",
    "trigger": "slo",
    "trip_id": "1",
    "uid": "MQ",
    "user_id": "1",
    "week": "2026-W47",
}
_STREAM = "letter_stream"
_STREAM_SAMPLE = "orders"


class Place(NamedTuple):
    """`route` is the pattern as it is written, `path` an address that matches it.

    `other_form` marks the second spelling of a path, with or without its slash at the end.
    """

    route: str
    name: str | None
    path: str
    other_form: bool

    @property
    def is_admin(self) -> bool:
        return self.route.startswith("admin/")

    @property
    def is_api(self) -> bool:
        return self.route.startswith(("api/", "ofrep/", "scim/"))

    @property
    def is_page(self) -> bool:
        return not (self.is_admin or self.is_api or self.route.startswith(("health/", "metrics")))


class NoSample(Exception):
    """Raised for a route's argument without a sample in :data:`SAMPLES`."""


@cache
def places() -> tuple[Place, ...]:
    """Return all paths that Django serves. Raises :class:`NoSample`."""
    return tuple(_walk(get_resolver().url_patterns, ""))


def get_place(name: str) -> Place:
    """The place of this name, such as `switchboard`. Raises KeyError."""
    for place in places():
        if place.name == name and not place.is_admin:
            return place
    raise KeyError(name)


def data_plane_paths() -> tuple[str, ...]:
    """Return all paths that the data plane serves, including one flag's."""
    return (*build_routes(Plane()), f"{handlers.FLAG_PREFIX}segment:finance")


def sampled(route: str) -> str:
    """An address that matches `route`. Raises :class:`NoSample`."""

    def sample(found: re.Match[str]) -> str:
        if found["kind"] == _STREAM:
            return _STREAM_SAMPLE
        try:
            return SAMPLES[found["name"]]
        except KeyError:
            raise NoSample(f"{route}: give a sample for {found['name']}.") from None

    return "/" + _ARGUMENT.sub(sample, route)


def _walk(patterns: "list[URLPattern | URLResolver]", before: str) -> Iterator[Place]:
    for pattern in patterns:
        if not isinstance(pattern.pattern, RoutePattern):
            continue  # The administration's "whatever else", which is a 404.
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
            continue
        is_other = pattern.callback.__module__ == routes.__name__
        yield Place(route, pattern.name, sampled(route), is_other)
