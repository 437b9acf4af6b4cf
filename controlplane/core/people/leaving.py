"""What stops when somebody is deactivated, told before; and who takes over their tokens."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, QuerySet

from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import InvalidInput
from controlplane.core.people import services, sessions
from controlplane.core.people.models import User
from controlplane.core.roles import SCOPES_OF, Role
from controlplane.core.targets import usage
from controlplane.core.targets.models import Target
from controlplane.core.tokens import services as tokens
from controlplane.core.tokens.models import Token

SHOWN = 50


@dataclass(frozen=True)
class Leaving:
    """`duties` are rotations, steps and routes that name the person, in words. `addressed` are
    targets that carry the person's own address without being theirs: those go on being told.
    Lists hold at most :data:`SHOWN`; `token_count` and `session_count` count all."""

    tokens: list[Token]
    token_count: int
    session_count: int
    approvals: list[Approval]
    duties: list[str]
    addressed: list[Target]


def of(user: User, now: datetime) -> Leaving:
    """What would stop or stay without an owner if this person were deactivated at `now`."""
    theirs = Token.objects.usable(now).filter(owner=user)
    named = list(Target.objects.filter(kind=Target.Kind.PERSON, user=user)[:SHOWN])
    leads = usage.used_by(named)
    asked = Approval.objects.filter(requester=user, state=Approval.State.PENDING)
    return Leaving(
        tokens=list(theirs.order_by(F("last_used_at").desc(nulls_last=True), "-id")[:SHOWN]),
        token_count=theirs.count(),
        session_count=user.browser_sessions.open(now).count(),
        approvals=list(asked.order_by("id")[:SHOWN]),
        duties=list(dict.fromkeys(words for target in named for words in leads[target.pk])),
        addressed=list(_addressed(user).order_by("name")[:SHOWN]),
    )


def heirs(user: User) -> list[User]:
    """Who could own this person's tokens: the active people who may do all that those may."""
    scopes = {scope for token in user.tokens.filter(revoked_at=None) for scope in token.scopes}
    roles = [role for role in Role if scopes <= SCOPES_OF[role]]
    others = User.objects.filter(is_active=True, role__in=roles).exclude(pk=user.pk)
    return list(others.order_by("username")[:200])


def _addressed(user: User) -> QuerySet[Target]:
    """Targets that lead to this person's Slack or e-mail by an address of their own."""
    theirs = Q(pk__in=())
    if user.email:
        theirs |= Q(email__iexact=user.email) | Q(address__iexact=f"email:{user.email}")
    if user.slack_user_id:
        theirs |= Q(slack_user_id=user.slack_user_id) | Q(address=f"slack:{user.slack_user_id}")
    # What belongs to the account falls silent with it.
    return Target.objects.filter(theirs).exclude(user=user)


@transaction.atomic
def deactivate(*, user: User, heir: User | None, actor: Actor, now: datetime) -> User:
    """Sign somebody out everywhere and stop their tokens, except what `heir` takes over.

    Raises :class:`InvalidInput` if the heir may not, :class:`Conflict` for the last admin.
    """
    if heir is not None:
        if heir.pk == user.pk:
            raise InvalidInput({"heir": ["Choose somebody else to take over the tokens."]})
        services.locked(user, heir)
        # All rows before the first of the trail: who revokes one of them waits, instead of failing.
        theirs = Token.objects.usable(now).filter(owner=user).order_by("pk")
        held = list(theirs.select_for_update(of=("self",)))
        sessions.lock(user)
        for token in held:
            tokens.hand_over(token=token, owner=heir, actor=actor, now=now)
    return services.change_user(user=user, actor=actor, now=now, is_active=False)
