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
