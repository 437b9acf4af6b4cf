"""Port to the accounts: what people and tokens may do at this moment.

`controlplane.accounts` registers the answers when it starts; without them, every write is refused.
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
    """Raise :class:`Forbidden` unless each actor may still do what they could when they came in.

    Call it behind the lock of the audit chain: what takes somebody's role, account, session or
    token writes an audit row too, so it comes before this check or after the whole transaction.
    """
    _authority().require_still(actors)


def holders_of(power: str) -> list[str]:
    """Return the user names of active people with the power, a handful at most."""
    return _authority().holders_of(power)


def able(refused: Mapping[str, Any]) -> list[str]:
    """Return who may do what was refused for lack of its `power` or `scope`, if it has one."""
    return _authority().able(refused)


def _authority() -> Authority:
    if not _registered:
        raise ImproperlyConfigured("No accounts are registered; install controlplane.accounts.")
    return _registered[0]
