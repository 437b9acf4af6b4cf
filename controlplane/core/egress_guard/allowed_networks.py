"""Networks that outgoing calls may reach: the public internet and those an operator allows.

Webhooks, probes and Prometheus servers have a variable each (`WEBHOOK_ALLOW`, `PROBE_ALLOW`,
`PROMETHEUS_ALLOW`), so that a network allowed for one isn't open to the others.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# In addition to `is_global`, whose result differs between versions of Python. Source: IANA's
# special-purpose registries (RFC 6890 and its updates).
NOT_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' own
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's metadata, although it looks public
        "169.254.0.0/16",  # link-local, and metadata of other clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",
    )
)
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")  # Leaves out mapped, NAT64, local, multicast.


class UrlRefused(ValueError):
    """The URL's scheme, host or address is not allowed; the message says which and why."""


@dataclass(frozen=True)
class Allowance:
    """Networks (CIDR) that one kind of call may reach besides the public internet.

    `variable` is the name of the setting that lists them, such as `WEBHOOK_ALLOW`. A process
    without Django's settings gives the networks as `own_networks`.
    """

    variable: str
    own_networks: tuple[str, ...] | None = None

    @property
    def networks(self) -> tuple[str, ...]:
        if self.own_networks is not None:
            return self.own_networks
        networks: tuple[str, ...] = getattr(settings, self.variable)
        return networks

    def allows(self, address: Address) -> bool:
        """Return True if an operator allowed the address, or the IPv4 address mapped in it."""
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in ipaddress.ip_network(network) for network in self.networks)

    def check(self, host: str, addresses: Sequence[Address]) -> None:
        """Raise :class:`UrlRefused` if one of `host`'s addresses may not be called."""
        if not all(self.allows(address) or is_public(address) for address in addresses):
            raise UrlRefused(
                f"{host} is not on the public internet; {self.variable} can allow private networks"
            )


WEBHOOKS = Allowance("WEBHOOK_ALLOW")
PROBES = Allowance("PROBE_ALLOW")
PROMETHEUS = Allowance("PROMETHEUS_ALLOW")


def is_public(address: Address) -> bool:
    """Return True for the address of a single host on the public internet.

    False for addresses that embed another one, such as NAT64 and 6to4.
    """
    if isinstance(address, ipaddress.IPv6Address) and address not in GLOBAL_V6:
        return False
    return address.is_global and not any(address in network for network in NOT_PUBLIC)


def parse_ip(host: str) -> Address | None:
    """Return the address if the host is an IP literal, None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
