"""Whether whoever acts may still do so: what they may do was read when they came in, and the locks
that a write waits for can take long enough for somebody to be shown the door meanwhile."""

from collections.abc import Iterable

from django.db.models import Exists

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.people.models import BrowserSession, User
from controlplane.core.roles import POWERS_OF, SCOPES_OF, Role
from controlplane.core.tokens.models import Token


def require_still(actors: Iterable[Actor]) -> None:
    """Raise :class:`Forbidden` unless each of these may do at this moment all that they might when
    they came in.

    An actor without a role did not come in: it is the house itself, or a name in a record. Asked
    behind the lock of the audit chain, this can't be overtaken: who takes somebody's role, account
    session or token writes a row, too, either before this look or after the whole transaction.
    """
    for actor in set(actors):
        if actor.role is None or actor.user_id is None:
            continue
        role = _present_role(actor)
        if (
            role is None
            or not actor.scopes <= SCOPES_OF[role]
            or not POWERS_OF[actor.role] <= POWERS_OF[role]
        ):
            raise Forbidden(
                "Your account, session or token was changed just now: it may not do this any more. "
                "Nothing was done."
            )


def _present_role(actor: Actor) -> Role | None:
    """That of an active person whose session is there, or of the active owner of a token that was
    not revoked; else none."""
    if actor.type == "token":
        tokens = Token.objects.filter(
            pk=actor.token_id or 0, revoked_at=None, owner__is_active=True
        )
        found = tokens.values_list("owner__role", flat=True).first()
    else:
        people = User.objects.filter(pk=actor.user_id or 0, is_active=True)
        if actor.session:
            people = people.filter(Exists(BrowserSession.objects.filter(pk=actor.session)))
        found = people.values_list("role", flat=True).first()
    return Role(found) if found is not None else None
