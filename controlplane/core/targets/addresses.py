"""How an address has to be spelled before anything is sent to it. Pure."""

import re

MAX_HOST_LENGTH = 253

SLACK_USER = re.compile(r"[UW][A-Z0-9]{2,38}")
# A channel's name is in any script; of ASCII's signs it has only these three.
_SLACK_NAME = r"#[^\x00-,/:-@\[-^`{-\x7f\s]{1,80}"
SLACK_PLACE = re.compile(rf"slack:(?:{_SLACK_NAME}|[CGDUW][A-Z0-9]{{2,38}})")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def is_host(host: str) -> bool:
    """Whether it is an IPv6 address, or a name (or IPv4 address) that DNS could know, in ASCII."""
    if ":" in host:
        return True
    name = host.removesuffix(".").lower()
    return len(name) <= MAX_HOST_LENGTH and all(map(_LABEL.fullmatch, name.split(".")))
