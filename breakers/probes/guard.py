"""Where probes may go: to the public internet, and to the networks that `PROBE_ALLOW` names.

As with webhooks, a name is looked up once, each of its addresses is checked, and the connection
goes to a checked one: a second look-up could be answered differently.
"""

import ipaddress
from collections.abc import Sequence

from django.conf import settings

from breakers.policies import addresses
from breakers.policies.addresses import USUAL_PORTS as SCHEMES
from breakers.policies.addresses import Target
from controlplane.core.outbox.transports import names
from controlplane.core.outbox.transports.guarded import Address, is_public

__all__ = ["SCHEMES", "Refused", "Target", "literal", "looked_up", "parsed"]


class Refused(Exception):
    """This can't be asked; the text says why, for whoever registered it."""


def parsed(url: str) -> Target:
    """`tcp://redis:6379`, `https://api.example.com/health`; raises :class:`Refused`."""
    try:
        return addresses.target(url)
    except ValueError as error:
        raise Refused(str(error)) from error


def literal(target: Target) -> Address | None:
    """The target's address if it names one itself: nobody has to be asked for it. Raises
    :class:`Refused` if it may not be asked."""
    try:
        found = ipaddress.ip_address(target.host)
    except ValueError:
        return None
    return _permitted(target, [found])


def looked_up(
    target: Target, *, seconds: float, resolver: names.Resolve = names.resolve
) -> Address:
    """An address of the target that may be asked. Raises :class:`Refused` if one of them may not,
    and a `TransientFailure` if nobody knows it in time."""
    texts = names.look_up(target.host, target.port, resolver=resolver, seconds=seconds)
    return _permitted(target, [ipaddress.ip_address(text) for text in texts])


def _permitted(target: Target, found: Sequence[Address]) -> Address:
    if not all(_is_ours(one) or is_public(one) for one in found):
        raise Refused(
            f"{target.host} is not on the public internet; PROBE_ALLOW can name your networks."
        )
    return found[0]


def _is_ours(one: Address) -> bool:
    """Whether an operator has allowed it; a mapped IPv4 address counts as what it leads to."""
    mapped = getattr(one, "ipv4_mapped", None) or one
    return any(mapped in ipaddress.ip_network(network) for network in settings.PROBE_ALLOW)
