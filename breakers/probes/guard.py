"""The egress guard of probes: the public internet and the networks in `PROBE_ALLOW` are allowed.

A name is resolved once, all of its addresses are checked, and the connection goes to a checked one,
since a second look-up could differ.
"""

import ipaddress

from breakers.policies import addresses
from breakers.policies.addresses import DEFAULT_PORTS as SCHEMES
from breakers.policies.addresses import ProbeTarget
from controlplane.core.egress_guard import allowed_networks, name_resolution
from controlplane.core.egress_guard.allowed_networks import PROBES, Address
from controlplane.core.egress_guard.failures import Refused

__all__ = [
    "SCHEMES",
    "ProbeTarget",
    "Refused",
    "literal_address",
    "parse_target",
    "resolve_address",
]


def parse_target(url: str) -> ProbeTarget:
    """`tcp://redis:6379`, `https://api.example.com/health`; raises :class:`Refused`."""
    try:
        return addresses.parse_target(url)
    except ValueError as error:
        raise Refused(str(error)) from error


def literal_address(target: ProbeTarget) -> Address | None:
    """Return the target's address if its host is one.

    Raises :class:`Refused` if it may not be probed.
    """
    found = allowed_networks.literal(target.host)
    if found is not None:
        PROBES.check(target.host, [found])
    return found


def resolve_address(
    target: ProbeTarget,
    *,
    seconds: float,
    resolver: name_resolution.Resolve = name_resolution.resolve,
) -> Address:
    """Return an allowed address of the target.

    Raises :class:`Refused` if one of its addresses is not allowed, and `Unresolved` if the name
    can't be resolved in time.
    """
    texts = name_resolution.look_up(target.host, target.port, resolver=resolver, seconds=seconds)
    found = [ipaddress.ip_address(text) for text in texts]
    PROBES.check(target.host, found)
    return found[0]
