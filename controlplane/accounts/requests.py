"""Requests of signed-in users."""

from datetime import datetime

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest
from controlplane.core.roles import Power

from .models.people import User


class UserRequest(PersonRequest):
    user: User


def require_admin(request: UserRequest, *, next_url: str = "") -> tuple[Actor, datetime]:
    """Return actor and time; require an admin who recently confirmed their identity.

    Otherwise a confirmation is asked for, which leads to `next_url`, by default this page.
    """
    actor, now = actor_of(request), db_now()
    actor.require_power(Power.ADMINISTER)
    require_fresh(request, now, next_url=next_url)
    return actor, now
