"""The environment variable of the e-mail transport."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from controlplane.core.environment_variables import WrongVariable, check_url

VARIABLES = ("EMAIL_URL",)


@dataclass(frozen=True)
class EmailSettings:
    """The mail server; `host` is empty if there is none, and `sender` is the From address."""

    host: str
    port: int
    user: str
    password: str
    security: str  # "", "starttls" or "tls"
    sender: str


def read(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the Django setting `EMAIL`, parsed from the variable EMAIL_URL.

    The URL is `smtp://user:password@host:587?from=switchgear@example.org`. `smtps://` uses TLS from
    the start. `smtp://` requires STARTTLS, unless the host is this machine or `?tls=off` is given.
    Raises :class:`WrongVariable`.
    """
    given = variables.get("EMAIL_URL", "")
    if not given:
        return {"EMAIL": EmailSettings("", 0, "", "", "", "")}
    parts = urlsplit(check_url(given, "EMAIL_URL", {"smtp", "smtps"}))
    host, options = parts.hostname or "", dict(parse_qsl(parts.query))
    if not host:
        raise WrongVariable("EMAIL_URL", "has no host")
    sender = options.get("from", f"switchgear@{host}")
    if not (sender.isprintable() and "@" in sender):
        raise WrongVariable("EMAIL_URL", "from= is not an e-mail address")
    plain = host in {"localhost", "127.0.0.1", "::1"} or options.get("tls") == "off"
    security = "tls" if parts.scheme == "smtps" else "" if plain else "starttls"
    default_port = {"tls": 465, "starttls": 587, "": 25}[security]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    port = parts.port or default_port
    return {"EMAIL": EmailSettings(host, port, user, password, security, sender)}
