"""Rotation of API tokens: a successor with a new text, while the former token ends a little later.

During the overlap both texts are valid, so that programs can change theirs one after another.
"""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.roles import Power

from . import services

MAX_OVERLAP = timedelta(days=30)


@transaction.atomic
def rotate_token(
    *,
    token: Token,
    overlap: timedelta,
    actor: Actor,
    now: datetime,
    lifetime: timedelta | None = None,
) -> tuple[Token, str]:
    """Create a token's successor; return it with its text, which is not stored.

    The successor has the same rights, and the same lifetime unless `lifetime` is given. That of a
    team's token belongs to the person who rotates it: they see its text, and what it requests needs
    somebody else's approval. The former token ends after `overlap`, or earlier if it expires.
    Raises :class:`Conflict` if the token has ended or already has a successor, and
    :class:`InvalidInput` for an invalid overlap, for a longer lifetime unless the actor is an
    admin, or if its owner's role no longer allows a scope.
    """
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InvalidInput({"overlap": [f"At most {MAX_OVERLAP.days} days."]})
    permitted, token = (token.owner_id, token.team_id), services.lock_token(token)
    if permitted != (token.owner_id, token.team_id):
        raise Conflict(f"{token.name} was just transferred. Nothing changed.")
    _require_current(token, now)
    present = _find_lifetime(token)
    if lifetime is None:
        lifetime = present
    elif (
        present is not None
        and lifetime > present
        and not (actor.type == "system" or actor.has(Power.ADMINISTER))
    ):
        raise InvalidInput(
            {
                "expires_in": [
                    f"At most {durations.format_readable(present)}, like the present token."
                ]
            }
        )
    successor = Token(
        name=token.name,
        owner=_find_owner(token, actor),
        team=token.team,
        scopes=token.scopes,
        services=token.services,
        patterns=token.patterns,
        only_owned=token.only_owned,
        replaces=token,
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
    )
    services.validate(successor)
    text = services.save_with_secret(successor)
    before, ends_at = token.expires_at, now + overlap
    token.expires_at = ends_at if before is None else min(before, ends_at)
    token.save(update_fields=["expires_at"])
    created = {**services.describe_token(successor), "replaces": token.prefix}
    services.record_token_change("token.created", successor, actor, now, after=created)
    services.record_token_change(
        "token.rotated",
        token,
        actor,
        now,
        before={"name": token.name, "expires_at": before},
        after={
            "name": token.name,
            "expires_at": token.expires_at,
            "replaced_by": successor.prefix,
        },
    )
    return successor, text


def parse_overlap(text: str) -> timedelta:
    """Return the duration in `text`, such as `24h`; "0" means none. Raise :class:`InvalidInput`."""
    if text.strip() == "0":
        return timedelta(0)
    try:
        return durations.parse(text)
    except ValueError as error:
        raise InvalidInput({"overlap": [str(error)]}) from error


def _require_current(token: Token, now: datetime) -> None:
    if token.has_ended(now):
        raise Conflict(f"{token.name} has ended. Create a new token.")
    if not (token.team_id or token.owner.is_active):
        raise Conflict(f"{token.owner.username} is deactivated. First transfer {token.name}.")
    successor = next((one for one in token.replaced_by.all() if not one.has_ended(now)), None)
    if successor is not None:
        raise Conflict(
            f"{token.name} was already replaced by sg_{successor.prefix}_…. Rotate that token, or"
            " revoke it first."
        )


def _find_lifetime(token: Token) -> timedelta | None:
    """Return a token's lifetime, None if it has no end.

    Rotations have shortened that of a former token, so it is that of its last successor.
    """
    while (successor := token.replaced_by.order_by("-pk").first()) is not None:
        token = successor
    return token.expires_at - token.created_at if token.expires_at else None


def _find_owner(token: Token, actor: Actor) -> User:
    """Return the owner of a token's successor."""
    if token.team_id is None or not actor.is_person:
        return token.owner
    return User.objects.get(pk=actor.user_id or 0)
