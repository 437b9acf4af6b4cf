"""Properties of a request: request id, client address, session digest, API or page."""

import hashlib
import uuid

from django.conf import settings
from django.http import HttpRequest

from controlplane.core.protocol import REQUEST_ID

from .client_address import client_address, is_in_networks

API_ROOT = "/api/"
SIGNED_IN = "switchgear.signed_in"
"""Key in the ASGI scope of a dict from session key to user id, filled by Django."""


def set_request_id(request: HttpRequest) -> str:
    """Set the request's id: the `X-Request-ID` header if it is valid, else a new id.

    If `TRUSTED_PROXIES` is set and the peer is none of them, this also removes the header
    `X-Forwarded-Proto`, because Django would trust it.
    """
    proxies = settings.TRUSTED_PROXIES
    if proxies and not is_in_networks(_get_peer(request), proxies):
        request.META.pop("HTTP_X_FORWARDED_PROTO", None)
    sent_id = request.headers.get("X-Request-ID", "")
    request_id = sent_id if REQUEST_ID.fullmatch(sent_id) else uuid.uuid4().hex
    setattr(request, "request_id", request_id)  # noqa: B010 - Django's class does not declare it
    return request_id


def session_digest(key: str) -> str:
    """Return the SHA-256, in hex, of a session key; only this digest is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def request_id_of(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


def client_ip(request: HttpRequest) -> str:
    """Return the most trustworthy address of the client; see :func:`client_address`."""
    forwarded_for = request.META.get("HTTP_X_FORWARDED_FOR", "")
    return client_address(_get_peer(request), forwarded_for, settings.TRUSTED_PROXIES)


def _get_peer(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def is_api(request: HttpRequest) -> bool:
    """Return True if the request's errors are problem+json rather than pages."""
    return request.path.startswith(API_ROOT)
