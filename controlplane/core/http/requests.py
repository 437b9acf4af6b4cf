"""What the house asks of a request: its id, where it comes from, whether it is the API's."""

import uuid

from django.http import HttpRequest

from controlplane.core.wire import REQUEST_ID

API_ROOT = "/api/"


def begin(request: HttpRequest) -> str:
    """Give the request its id: the caller's `X-Request-ID` if that is sane, else a new one."""
    given = request.headers.get("X-Request-ID", "")
    request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    setattr(request, "request_id", request_id)  # noqa: B010 - Django's class does not declare it
    return request_id


def request_id_of(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


def client_ip(request: HttpRequest) -> str:
    """The address of the connection itself. What a header claims is anybody's to write."""
    return str(request.META.get("REMOTE_ADDR") or "")


def is_api(request: HttpRequest) -> bool:
    """Whether errors are answered as problem+json rather than as a page."""
    return request.path.startswith(API_ROOT)
