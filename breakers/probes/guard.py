"""Where probes may go: to the public internet, and to the networks that `PROBE_ALLOW` names.

As with webhooks, a name is looked up once, each of its addresses is checked, and the connection
goes to a checked one: a second look-up could be answered differently.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from controlplane.core.outbox.transports import names
from controlplane.core.outbox.transports.guarded import Address, is_public

SCHEMES = {"tcp": None, "http": 80, "https": 443}
"""With their usual ports."""
LONGEST = 500


class Refused(Exception):
    """This can't be asked; the text says why, for whoever registered it."""


@dataclass(frozen=True)
class Target:
    """What to ask: `path` has the query, and is empty for tcp."""

    scheme: str
    host: str
    port: int
    path: str = ""


def parsed(url: str) -> Target:
    """`tcp://redis:6379`, `https://api.example.com/health`; raises :class:`Refused`."""
    if len(url) > LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise Refused(f"A probe's URL has up to {LONGEST} plain characters.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused("That is not a valid URL.") from error
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise Refused("A probe's URL begins with tcp://, http:// or https:// and names a host.")
    if parts.username or parts.password:
        raise Refused("A probe's URL must not hold a user or a password.")
    port = port or SCHEMES[parts.scheme]
    if not port:
        raise Refused("Say which port: tcp://redis:6379.")
    if parts.scheme == "tcp":
        if parts.path not in {"", "/"} or parts.query:
            raise Refused("A tcp probe has no path.")
        return Target("tcp", parts.hostname, port)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port, path)


def address(target: Target, *, seconds: float, resolver: names.Resolve = names.resolve) -> Address:
    """An address of the target that may be asked. Raises :class:`Refused` if one of them may not,
    and a `TransientFailure` if nobody knows it in time."""
    try:
        found = [ipaddress.ip_address(target.host)]
    except ValueError:
        texts = names.look_up(target.host, target.port, resolver=resolver, seconds=seconds)
        found = [ipaddress.ip_address(text) for text in texts]
    if not all(_is_ours(one) or is_public(one) for one in found):
        raise Refused(
            f"{target.host} is not on the public internet; PROBE_ALLOW can name your networks."
        )
    return found[0]


def _is_ours(one: Address) -> bool:
    """Whether an operator has allowed it; a mapped IPv4 address counts as what it leads to."""
    mapped = getattr(one, "ipv4_mapped", None) or one
    return any(mapped in ipaddress.ip_network(network) for network in settings.PROBE_ALLOW)
