"""Code shared by the ASGI and the WSGI middleware: the 504 response and trusted peers."""

import ipaddress
import json
from collections.abc import Iterable
from http import HTTPStatus

STATUS = HTTPStatus.GATEWAY_TIMEOUT.value
LINE = f"{STATUS} {HTTPStatus.GATEWAY_TIMEOUT.phrase}"
CONTENT_TYPE = "application/problem+json"
BODY = json.dumps(
    {
        "type": "about:blank",
        "title": HTTPStatus.GATEWAY_TIMEOUT.phrase,
        "status": STATUS,
        "detail": "The caller's deadline passed before the work started.",
    }
).encode()

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedPeers:
    """A set of addresses and networks, such as "10.0.0.0/8" or "::1".

    Raise :class:`TypeError` for anything but a collection of strings, :class:`ValueError` for an
    invalid address or network.
    """

    def __init__(self, peers: Iterable[str]) -> None:
        if isinstance(peers, str) or not isinstance(peers, Iterable):
            raise TypeError(f"trusted_peers must be a tuple of networks, not {peers!r:.50}")
        self._networks = tuple(map(_parse_network, peers))

    def has(self, address: object) -> bool:
        """Return True if `address` is trusted. A peer without an IP address is never trusted."""
        if not self._networks or not isinstance(address, str):
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped  # An IPv4 peer on a dual-stack socket.
        return any(found in network for network in self._networks)


def _parse_network(text: object) -> Network:
    if not isinstance(text, str):  # An int or bytes would be an address, too.
        raise TypeError(f"trusted_peers must be strings, not {text!r:.50}")
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        message = f"trusted_peers: {text!r:.50} is neither an address nor a network"
        raise ValueError(message) from None
