"""Port to the accounts app: current permissions of people and tokens.

`controlplane.accounts` registers itself at startup; without it, every write is refused.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from controlplane.core.actors import Actor


class Authority(Protocol):
    def require_still(self, actors: Iterable[Actor]) -> None: ...

    def holders_of(self, power: str) -> list[str]: ...

    def able(self, refused: Mapping[str, Any]) -> list[str]: ...


_registered: list[Authority] = []


def register(authority: Authority) -> None:
    _registered[:] = [authority]


def require_still(actors: Iterable[Actor]) -> None:
    """Raise :class:`Forbidden` unless each actor still has the permissions they authenticated with.

    Call it while holding the lock of the audit chain: taking a role, account, session or token away
    writes an audit row too, so it commits either before this check or after the whole transaction.
    """
    _authority().require_still(actors)


def holders_of(power: str) -> list[str]:
    """Return the user names of active people with the power, a handful at most."""
    return _authority().holders_of(power)


def able(refused: Mapping[str, Any]) -> list[str]:
    """Return the names of those who have the missing `power` or `scope` of a refusal."""
    return _authority().able(refused)


def _authority() -> Authority:
    if not _registered:
        raise ImproperlyConfigured("No accounts are registered; install controlplane.accounts.")
    return _registered[0]
