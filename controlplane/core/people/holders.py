"""Who holds a role now, by name: whom to ask who may what oneself may not."""

from collections.abc import Iterable, Mapping
from typing import Any

from controlplane.core.people.models import User
from controlplane.core.roles import POWERS_OF, SCOPES_OF, Role

MAX_HOLDERS = 5


def of(power: str, *, but: int = 0, most: int = MAX_HOLDERS) -> list[str]:
    """User names of active people who have the power, except user `but`, at most `most`."""
    roles = (role for role, powers in POWERS_OF.items() if power in powers)
    return _names(roles, but, most)


def able(refused: Mapping[str, Any]) -> list[str]:
    """Who may what was refused for want of its `power` or `scope`; empty if it names neither."""
    if "power" in refused:
        return of(refused["power"])
    if "scope" in refused:
        return _names(role for role, scopes in SCOPES_OF.items() if refused["scope"] in scopes)
    return []


def _names(roles: Iterable[Role], but: int = 0, most: int = MAX_HOLDERS) -> list[str]:
    people = User.objects.filter(role__in=list(roles), is_active=True).exclude(pk=but)
    return list(people.order_by("username").values_list("username", flat=True)[:most])
