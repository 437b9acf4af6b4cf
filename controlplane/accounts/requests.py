"""The type of signed-in users' HTTP requests, and a check that the user is an admin."""

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
    """Check that the user is an admin who recently confirmed their identity; return actor and time.

    If the confirmation is missing, the admin is asked for it, and then sent to `next_url`, by
    default this page.
    """
    actor, now = actor_of(request), db_now()
    actor.require_power(Power.ADMINISTER)
    require_fresh(request, now, next_url=next_url)
    return actor, now
