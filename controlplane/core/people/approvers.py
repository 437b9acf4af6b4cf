"""Who could be the second person."""

from controlplane.core.people.models import User
from controlplane.core.people.roles import POWERS_OF, Power

MAY_APPROVE = [role for role, powers in POWERS_OF.items() if Power.APPROVE in powers]


def names(*, but: int) -> list[str]:
    """User names of the active people who could approve what user `but` asks for; at most ten."""
    people = User.objects.filter(role__in=MAY_APPROVE, is_active=True).exclude(pk=but)
    return list(people.order_by("username").values_list("username", flat=True)[:10])
