"""Why a call to somebody else's server is not made. Reasons are for people."""


class Refused(ValueError):
    """Nobody may call there: somebody has to change the address, or what is allowed."""


class Unresolved(Exception):
    """Nobody knows, for now, at which address the host is."""
