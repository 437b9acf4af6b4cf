"""Who could be the second person."""

from controlplane.core.people import holders
from controlplane.core.roles import Power

MAX_APPROVERS = 10


def names(*, but: int) -> list[str]:
    """User names of the active people who could approve what user `but` asks for; at most ten."""
    return holders.of(Power.APPROVE, but=but, most=MAX_APPROVERS)
