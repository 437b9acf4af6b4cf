"""Reasons an outgoing call isn't made, as texts for people."""


class Refused(ValueError):
    """The address is not allowed: the address or the allowed networks must change."""


class Unresolved(Exception):
    """The host's name can't be resolved at the moment."""
