"""Validation of probe URLs. Pure."""

import ipaddress
import re
from dataclasses import dataclass

from controlplane.core.json_values import parse_web_url

DEFAULT_PORTS = {"tcp": None, "http": 80, "https": 443}
MAX_URL_LENGTH = 500
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True)
class ProbeTarget:
    """A parsed probe URL; `path` includes the query and is empty for tcp."""

    scheme: str
    host: str
    port: int
    path: str = ""


def find_probe_problem(url: str) -> str:
    """Return an error message about a probe URL, empty if the URL is valid."""
    try:
        parse_target(url)
    except ValueError as error:
        return str(error)
    return ""


def parse_target(url: str) -> ProbeTarget:
    """Return the target of a probe URL. Raise ValueError with a message for users."""
    if len(url) > MAX_URL_LENGTH or not url.isascii():
        raise ValueError(
            f"Must be at most {MAX_URL_LENGTH} ASCII characters; write international host names as"
            " xn--…."
        )
    parts = parse_web_url(url, schemes=DEFAULT_PORTS)
    if parts is None or not _is_host(parts.hostname or ""):
        raise ValueError("Must be tcp://host:port, http://… or https://….")
    if parts.username is not None or parts.password is not None:
        message = "Leave out the user and password: everyone who can open this page sees the URL."
        raise ValueError(message)
    if parts.fragment or url.endswith("#"):
        raise ValueError("Leave out the part after #, which is never sent.")
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    if port is None:
        raise ValueError("Add the port: tcp://redis:6379.")
    if parts.scheme == "tcp":
        if parts.path not in {"", "/"} or parts.query:
            raise ValueError("Must be tcp://host:port, without a path.")
        return ProbeTarget("tcp", parts.hostname or "", port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return ProbeTarget(parts.scheme, parts.hostname or "", port, path)


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _NAME.fullmatch(host) is not None
    return True
