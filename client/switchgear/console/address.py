"""The network address of the console, parsed from its URL."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Address:
    """The console's address; `base` is the path prefix without a trailing slash."""

    scheme: str
    host: str
    port: int
    base: str = ""

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL such as `https://switchgear.example/base`. Raise :class:`ValueError`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("The console's address must begin with http:// or https://.")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The value of the `Host` header: the port is left out if it is the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return host if usual else f"{host}:{self.port}"


def parse_file_url(url: str) -> tuple[Address, str]:
    """Return the server's address and the path, with the query, of a file at an http(s) URL.

    Raise :class:`ValueError` for any other URL.
    """
    parts, whole = urlsplit(url), Address.parse(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(whole.scheme, whole.host, whole.port), path


def redact_url(url: str) -> str:
    """Return a URL without parts that may be secret: credentials and the query."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
