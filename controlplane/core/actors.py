"""Actors: the person, token or system that makes a change, as recorded in the audit trail."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from controlplane.core.errors import Forbidden

from .roles import ADMIN_SCOPES, POWERS_OF, Power, Role

ActorType = Literal["user", "token", "system", "slack"]
SHELL = "shell:"
"""Prefix of the names of `system` actors for people at the server's shell."""


def label_of(type: str, name: str) -> str:
    """Return the label of an actor: `user:kim`, `token:ci`, `system:ramps`, `shell:kim`."""
    return name if type == "system" and name.startswith(SHELL) else f"{type}:{name}"


class Person(Protocol):
    """The interface of a console user, implemented by `controlplane.accounts.models.User`."""

    @property
    def pk(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def time_zone(self) -> str: ...
    @property
    def is_authenticated(self) -> bool: ...
    @property
    def is_admin(self) -> bool: ...
    @property
    def may_approve(self) -> bool: ...
    @property
    def may_operate(self) -> bool: ...

    def as_actor(self) -> "Actor": ...


@dataclass(frozen=True)
class Actor:
    """The author of a change: a person, an API token or the system, with permissions and origin.

    `user_id` is the person or the token's owner, None for the system. If `services` isn't empty,
    the token may report for these services only. A token of a team has its slug as `team`;
    `patterns`, if not empty, limit a token to these resources, and `only_owned` to those of its
    teams. `session` is the id of the browser session, "" without one.
    """

    type: ActorType
    name: str
    user_id: int | None = None
    token_id: int | None = None
    role: Role | None = None
    scopes: frozenset[str] = field(default_factory=frozenset)
    services: frozenset[str] = field(default_factory=frozenset)
    team: str = ""
    patterns: frozenset[str] = field(default_factory=frozenset)
    only_owned: bool = False
    session: str = ""
    request_id: str = ""
    ip: str = ""

    @property
    def label(self) -> str:
        return label_of(self.type, self.name)

    @property
    def identity(self) -> str:
        """The unique key of the actor; names of actors are not unique."""
        if self.token_id is not None:
            return f"token:{self.token_id}"
        return f"{self.type}:{self.user_id or self.name}"

    @property
    def is_person(self) -> bool:
        return self.type in {"user", "slack"}

    @property
    def is_limited(self) -> bool:
        """True for a token that may change some resources only."""
        return bool(self.patterns or self.only_owned)

    def may(self, scope: str) -> bool:
        return self.type == "system" or scope in self.scopes

    def has(self, power: Power) -> bool:
        return self.is_person and self.role is not None and power in POWERS_OF[self.role]

    def require(self, scope: str) -> None:
        """Raise :class:`Forbidden` unless the actor has the permission `scope` (`gates:write`)."""
        if self.may(scope):
            return
        detail = f"This requires the scope {scope}."
        if self.is_person:
            needed = Role.ADMIN if scope in ADMIN_SCOPES else Role.OPERATOR
            detail = f"Your role, {self.role}, can't do this; it requires the role {needed}."
        raise Forbidden(detail, scope=scope)

    def require_service(self, service: str, subject: str = "") -> None:
        """Raise Forbidden, naming `subject`, if this token may not report for the service."""
        if self.services and service not in self.services:
            subject, known = subject or service, ", ".join(sorted(self.services))
            raise Forbidden(f"This token can't act for {subject}, only for: {known}.")

    def require_power(self, power: Power) -> None:
        """Raise Forbidden unless this is a person whose role has the power, such as approving."""
        if self.has(power):
            return
        detail = f"This requires a signed-in person who can {power.value}; tokens can't."
        if self.is_person:
            detail = f"This requires someone who can {power.value}; your role, {self.role}, can't."
        raise Forbidden(detail, power=power.value)


def system_actor(name: str) -> Actor:
    """Return an actor of type `system`; `name` is a component (`ramps`) or `shell:<user>`."""
    return Actor(type="system", name=name)
