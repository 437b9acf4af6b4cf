"""Decisions on who may do what, by an implementation that accounts registers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from controlplane.core.actions import Action, Requirement
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.registry import Port

from .roles import Role

MINE, UNOWNED = "mine", "unowned"


@dataclass(frozen=True)
class TeamName:
    slug: str
    name: str


@dataclass(frozen=True)
class AuthorityDecision:
    """The answer to whether an actor may do an action; if not, `detail` says why.

    `owner` is the team that owns the resource, if any. `least_role` is the role that the actor
    lacks, if they lack nothing else. With `can_ask`, the actor may ask the people who may approve
    it for the `action` on the `resource`.
    """

    is_allowed: bool
    owner: TeamName | None = None
    detail: str = ""
    can_ask: bool = False
    least_role: Role | None = None
    action: Action | None = None
    resource: str = ""


@dataclass(frozen=True)
class TeamFilter:
    """A filter of a page by teams; `wanted` is "" for everything, `mine`, `unowned` or a slug.

    `includes` says whether it selects a resource; it always selects the global switch, which stops
    every team. `label` names it, as in `Payments`. `choices` are pairs of a value of `wanted` and a
    label. `unknown` is a wanted value that names no team, or `mine` of someone in none: the filter
    is then that of everything.
    """

    wanted: str
    label: str
    includes: Callable[[str], bool]
    choices: Sequence[tuple[str, str]] = ()
    unknown: str = ""

    @property
    def is_all(self) -> bool:
        return not self.wanted

    @property
    def parameter(self) -> str:
        """The value of the query parameter, which links to the same list repeat."""
        return self.wanted or self.unknown


@dataclass(frozen=True)
class Period:
    """A span of time, without its end."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class PastHolder:
    """Someone who could do an action in these periods; `kind` is `user` or `token`.

    `because` is the reason, such as `operator, lead of Payments`.
    """

    kind: str
    name: str
    because: str
    periods: tuple[Period, ...]


@dataclass(frozen=True)
class PastRule:
    """The owner of a resource and the rule for an action in a period."""

    period: Period
    owner: TeamName | None
    requirement: Requirement


@dataclass(frozen=True)
class AccessHistory:
    """The people and tokens who could do an action on a resource, by the audit trail.

    `begins_at` is the time of the trail's first entry, None for an empty trail: nothing is known of
    earlier times.
    """

    period: Period
    rules: tuple[PastRule, ...]
    holders: tuple[PastHolder, ...]
    begins_at: datetime | None


class Teams(Protocol):
    """The teams, what they own and the rules, as read at one moment."""

    def __bool__(self) -> bool:
        """Return True if there are teams."""
        ...

    def decide(self, actor: Actor, action: Action, resource: str) -> AuthorityDecision: ...

    def find_limit(self, actor: Actor, resource: str) -> str:
        """Return why the limits of a token exclude a resource, "" if they don't."""
        ...

    def owner_of(self, resource: str) -> TeamName | None:
        """Return the team that owns a resource, or None."""
        ...

    def find_foreign_owner(self, actor: Actor, resource: str) -> TeamName | None:
        """Return the owner of a resource, unless it is a team of the actor, or below one."""
        ...

    def chain_of(self, resource: str) -> Sequence[TeamName]:
        """Return the owner of a resource, its parent, and so on to the root; empty if unowned."""
        ...

    def deciders_of(self, action: Action, resource: str) -> Sequence[str]:
        """Return the slugs of the teams whose members may do it, nearest first.

        Empty if it is not up to a team.
        """
        ...

    def teams_of(self, user_id: int | None) -> Collection[str]:
        """Return the slugs of a person's teams and of all teams below them."""
        ...

    def role_in(self, actor: Actor, slug: str) -> Role | None:
        """Return an actor's role as a member of a team or of one above it; None for others.

        A lead who is an operator has the role approver.
        """
        ...

    def approvers_of(self, slug: str) -> list[str]:
        """Return the names of the people who have at least the role approver in a team."""
        ...

    def filter_for(self, user_id: int | None, wanted: str) -> TeamFilter:
        """Return the filter `wanted` of a page, that of everything for an unknown team."""
        ...


class Authority(Protocol):
    def require_still(self, actors: Iterable[Actor]) -> None: ...

    def holders_of(self, power: str) -> list[str]: ...

    def names_with_permission(self, refused: Mapping[str, Any]) -> list[str]: ...

    def read_teams(self) -> Teams: ...

    def lock_teams(self) -> None: ...

    def decide(self, actor: Actor, action: Action, resource: str) -> AuthorityDecision: ...

    def who_may(self, action: Action, resource: str, but: int) -> list[str]: ...

    def find_on_call(self, slug: str) -> str: ...

    def read_history(self, action: Action, resource: str, period: Period) -> AccessHistory: ...


_port = Port[Authority]("No accounts are registered; install controlplane.accounts.")
register = _port.register


def require_still(actors: Iterable[Actor]) -> None:
    """Raise Forbidden if an actor has lost permissions; the caller must hold the audit lock."""
    # Revoking permissions takes that lock, too: it commits before this check or after the caller.
    _port.get().require_still(actors)


def holders_of(power: str) -> list[str]:
    """Return the names of a few active people whose role has this power, such as `approve`."""
    return _port.get().holders_of(power)


def names_with_permission(refused: Mapping[str, Any]) -> list[str]:
    """Return the user names of people who may do what an actor was forbidden to do.

    `refused` is the `extra` of a :class:`Forbidden`, with the missing `power` or `scope`, or with
    the `action` and the `resource`.
    """
    return _port.get().names_with_permission(refused)


def read_teams() -> Teams:
    """Return the present teams, by one query unless they changed; for pages with many decisions."""
    return _port.get().read_teams()


def lock_teams() -> None:
    """Lock the teams against changes until the end of the transaction.

    Call it before locks that engaging needs, too: a decision that waits for a change of teams, such
    as the load of a configuration, must not hold them.
    """
    _port.get().lock_teams()


def decide(actor: Actor, action: Action, resource: str) -> AuthorityDecision:
    """Decide whether the actor may do the action on the resource, such as `segment:finance`.

    In a transaction, changes of teams wait for its end, so that the decision holds until then. A
    permission that the owner granted for an hour counts, too.
    """
    return _port.get().decide(actor, action, resource)


def require(actor: Actor, action: Action, resource: str) -> None:
    """Raise :class:`Forbidden`, which names who may, unless :func:`decide` allows it."""
    _enforce(decide(actor, action, resource), action, resource)


def require_in_limits(actor: Actor, resource: str = "") -> None:
    """Raise :class:`Forbidden` if the limits of a token exclude the resource.

    For changes that are no :class:`Action`. Tokens with limits can't change what is no resource.
    """
    if not actor.is_limited:
        return
    if detail := read_teams().find_limit(actor, resource):
        raise Forbidden(detail, resource=resource)


def require_edit(actor: Actor, resource: str, *, scope: str, called: str) -> None:
    """Raise :class:`Forbidden` unless the actor may edit a resource; a token needs the scope, too.

    `called` names the kind of resources, as in `Only admins can change objectives`. A resource
    without a name, such as `slo:`, stands for any that the actor may create.
    """
    if not actor.is_person:
        actor.require(scope)
    kind, _, name = resource.partition(":")
    if not name and may_create(actor, kind):
        return
    decision = decide(actor, Action.EDIT, resource)
    if decision.least_role == Role.ADMIN:
        detail = f"Only a token owned by an admin can change {called}."
        if actor.is_person:
            detail = f"Only admins can change {called}; your role is {actor.role}."
        decision = replace(decision, detail=detail)
    _enforce(decision, Action.EDIT, resource)


def _enforce(decision: AuthorityDecision, action: Action, resource: str) -> None:
    if not decision.is_allowed:
        raise build_refusal(decision, action, resource)


def build_refusal(decision: AuthorityDecision, action: Action, resource: str) -> Forbidden:
    """Return the error for a decision that refuses an action on a resource."""
    return Forbidden(
        decision.detail,
        action=action.value,
        resource=resource,
        owner=decision.owner.slug if decision.owner else None,
        who_may=who_may(action, resource),
        can_ask=decision.can_ask,
    )


def may_create(actor: Actor, kind: str) -> bool:
    """Return True if the actor may create some resource of a kind, such as `slo`.

    It may be one that nobody owns, or one of a team in which the actor has the role for it.
    """
    decision = decide(actor, Action.EDIT, f"{kind}:")
    is_for_approvers = decision.least_role == Role.APPROVER
    return decision.is_allowed or (is_for_approvers and may_approve_in_a_team(actor))


def may_approve_in_a_team(actor: Actor) -> bool:
    """Return True if the actor has at least the role approver in a team, such as a lead."""
    teams = read_teams()
    roles = (teams.role_in(actor, slug) for slug in teams.teams_of(actor.user_id))
    return any(role in (Role.APPROVER, Role.ADMIN) for role in roles)


def who_may(action: Action, resource: str, *, but: int = 0) -> list[str]:
    """Return the names of a few active people who may do it, without the user with the id `but`."""
    return _port.get().who_may(action, resource, but)


def read_history(action: Action, resource: str, period: Period) -> AccessHistory:
    """Return who could do the action on the resource in a period, from the audit trail alone."""
    return _port.get().read_history(action, resource, period)


def find_on_call(refused: Mapping[str, Any]) -> str:
    """Return the name of the person on call for the owner, or "".

    `refused` is the `extra` of a :class:`Forbidden`.
    """
    slug = refused.get("owner")
    return _port.get().find_on_call(slug) if slug else ""


def describe_refusal(error: Forbidden) -> str:
    """Return the text of a refusal, and who may do it instead, for messages."""
    texts = [error.detail]
    if "owner" in error.extra:
        if names := names_with_permission(error.extra):
            texts.append(f"Who may: {', '.join(names)}.")
        if on_call := find_on_call(error.extra):
            texts.append(f"On call: {on_call}.")
    return " ".join(texts)
