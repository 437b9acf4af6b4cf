"""Carry out a pressed Slack button once, and queue the reply to the presser."""

from datetime import datetime

import structlog
from django.db import connection, transaction

from controlplane.accounts.authentication import factors
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core import retention
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import DomainError, InvalidInput, Unavailable
from controlplane.core.outbox import services as outbox
from controlplane.notify.transports.slack_reply import transport as slack_reply

from . import actions, time_limited_transaction
from .actions import Press
from .payloads import Pressed
from .retention_rules import ANSWERED_REQUESTS

NOT_CONNECTED = (
    "Your Slack account is not connected to an active account here, so nothing was done. "
    "An admin can connect it: your member ID goes into your user's “Slack user id”."
)
NOT_NOW = (
    "This could not be carried out, or not be confirmed. Look at the console before you press the "
    "button again."
)

log = structlog.get_logger(__name__)


def answer(
    pressed: Pressed, digest: str, *, ends: float, request_id: str = "", ip: str = ""
) -> Actor | None:
    """Run the button's action and queue the reply, in one transaction that ends by `ends`.

    `ends` is on the monotonic clock. Unknown buttons, such as links, and requests answered before
    are ignored; a concurrent duplicate waits for the first. Returns the actor, or None if the
    presser is not a user. Raises :class:`Unavailable` or a database error if time runs out.
    """
    carry_out = actions.find(pressed.name)
    if carry_out is None or not people.SLACK_USER_ID.fullmatch(pressed.slack_user_id):
        return None
    with time_limited_transaction.end_by(ends):
        return _answer(pressed, carry_out, digest, request_id, ip)


@retry_if_ended
@transaction.atomic
def _answer(
    pressed: Pressed, carry_out: Press, digest: str, request_id: str, ip: str
) -> Actor | None:
    now = db_now()
    if not _first_time(digest, now):
        return None
    user = User.objects.filter(slack_user_id=pressed.slack_user_id, is_active=True).first()
    if user is None:
        log.warning("slack.not_connected", slack_user_id=pressed.slack_user_id)
        _reply(pressed, digest, NOT_CONNECTED, now)
        return None
    actor = user.as_actor(kind="slack", request_id=request_id, ip=ip)
    if factors.is_required(user) and not factors.has_factor(user):
        _reply(pressed, digest, factors.SET_UP_FIRST, now)
        return actor
    _reply(pressed, digest, _outcome(carry_out, pressed, actor, now), now)
    return actor


def forget_old(now: datetime) -> int:
    """Delete answered requests that are too old to be replayed; return their number."""
    return retention.purge([ANSWERED_REQUESTS], now)


def _first_time(digest: str, now: datetime) -> bool:
    """Record the request's digest; return False if it was answered before.

    Runs in the transaction of the action, and waits for a concurrent duplicate.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_answeredrequest (digest, at) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [digest, now],
        )
        return bool(cursor.rowcount)


def _outcome(carry_out: Press, pressed: Pressed, actor: Actor, now: datetime) -> str:
    """Run the action and return its result in a sentence; a refused action is rolled back."""
    try:
        with transaction.atomic():
            return carry_out(pressed.value, actor, now)
    except Unavailable:
        raise
    except InvalidInput as error:
        return " ".join(text for texts in error.errors.values() for text in texts)
    except DomainError as error:
        return error.detail


def _reply(pressed: Pressed, digest: str, said: str, now: datetime) -> None:
    """Queue the reply, if Slack gave an address to send it to."""
    if not slack_reply.is_slacks(pressed.response_url):
        log.warning("slack.no_address_to_answer")
        return
    outbox.announce(
        event=slack_reply.EVENT,
        event_key=f"slack:{digest}",
        facts={"said": said, slack_reply.ADDRESS: pressed.response_url, "path": "/"},
        to=[f"{slack_reply.KEY}:{pressed.slack_user_id}"],
        now=now,
    )
