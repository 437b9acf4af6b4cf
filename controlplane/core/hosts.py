"""Validation of the `Host` header, by the rules of Django's `ALLOWED_HOSTS`."""

import re
import time
from collections.abc import Collection, Mapping

import structlog

from controlplane.core.errors import DomainError

MAX_CACHED = 1000
LOG_INTERVAL_SECONDS = 60.0
_HOST = re.compile(r"([a-z0-9._-]+|\[[a-f0-9:.]+\])(?::[0-9]{0,5})?", re.ASCII)

log = structlog.get_logger(__name__)


class AllowedHosts:
    """Allowed hosts: `example.org`, `.example.org` with its subdomains, or `*` for any."""

    def __init__(self, patterns: Collection[str]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)
        self._accepted: set[bytes] = set()
        self._logged_at = float("-inf")

    def require(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise :class:`DomainError` (400) unless the `Host` header is allowed or missing."""
        host = headers.get(b"host")
        if host is None or host in self._accepted:
            return
        if not self._allows(host.decode("latin-1").lower()):
            self._log(host)
            raise DomainError(
                "This installation is not known by the name in Host. Ask by a name that is in"
                " ALLOWED_HOSTS, or add this one there."
            )
        if len(self._accepted) < MAX_CACHED:
            self._accepted.add(host)

    def _allows(self, host: str) -> bool:
        if "*" in self._patterns:
            return True
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].removesuffix(".")
        return any(
            name == pattern
            or (pattern[:1] == "." and (name.endswith(pattern) or name == pattern[1:]))
            for pattern in self._patterns
        )

    def _log(self, host: bytes) -> None:
        # Log refusals because a service that uses a wrong name receives no kills.
        now = time.monotonic()
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.warning("host.refused", host=host[:200].decode("latin-1"))
