"""The people who may sign weekly reports."""

from datetime import datetime

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.outbox import router
from controlplane.core.roles import Power, Role

MAX_NAMED = 5


def require_signer(actor: Actor, team: str, now: datetime) -> None:
    """Raise :class:`Forbidden`, which names who may, unless the actor may sign the report."""
    if not team:
        actor.require_power(Power.APPROVE)
    elif not may_sign(actor, team, now):
        raise Forbidden(
            "Only the person on call for the team, or a lead or approver of it or of a team above,"
            " can sign this report.",
            resource=f"team:{team}",
            who_may=list_signers(team, now),
        )


def may_sign(actor: Actor, team: str, now: datetime) -> bool:
    """Return True if the actor may sign the report of a team, or that about everything ("").

    The report of a team is signed by the person on call for it, by a lead or approver of it or of a
    team above, or by anyone who may approve changes of the team.
    """
    if not actor.is_person:
        return False
    if not team:
        return actor.has(Power.APPROVE)
    if authority.read_teams().role_in(actor, team) in (Role.APPROVER, Role.ADMIN):
        return True
    if authority.decide(actor, Action.APPROVE, f"team:{team}").is_allowed:
        return True
    on_call = router.find_on_call(team, now)
    return on_call is not None and on_call.user_id == actor.user_id


def list_signers(team: str, now: datetime) -> list[str]:
    """Return the names of a few people who may sign a report, the person on call first."""
    if not team:
        return authority.holders_of(Power.APPROVE)
    on_call = router.find_on_call(team, now)
    names = [on_call.username or on_call.name] if on_call else []
    names += authority.read_teams().approvers_of(team)
    names += authority.who_may(Action.APPROVE, f"team:{team}")
    return list(dict.fromkeys(names))[:MAX_NAMED]
