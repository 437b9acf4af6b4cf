"""Validation of a socket handshake's `Host` header, by Django's `ALLOWED_HOSTS`."""

from collections.abc import Mapping

import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from controlplane.core.errors import DomainError

log = structlog.get_logger(__name__)


def require_allowed_host(headers: Mapping[bytes, bytes]) -> None:
    """Raise :class:`DomainError` (400) unless the `Host` header is allowed or missing."""
    host = headers.get(b"host")
    if host is None:
        return
    domain, _ = split_domain_port(host.decode("latin-1"))
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        # Logged, because a service that uses a wrong name receives no kills.
        log.warning("host.refused", host=host[:200].decode("latin-1"))
        raise DomainError(
            "The name in the Host header is not in ALLOWED_HOSTS. Use an allowed name, or add this"
            " one."
        )
