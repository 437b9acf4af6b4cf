"""Handling of a pressed Slack button: run its action once, and queue the reply."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog
from django.db import connection, transaction
from psycopg.pq import TransactionStatus

from controlplane.accounts.authentication import factors
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core import authority, deadline
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import DomainError, Forbidden, InvalidInput, Unavailable
from controlplane.core.outbox import services as outbox
from controlplane.notify.transports.slack_reply import transport as slack_reply

from . import actions
from .actions import ButtonAction
from .payloads import ButtonPress

NOT_CONNECTED = (
    "Your Slack account is not connected to an active account here, so nothing changed. An admin"
    " can connect it by entering your member ID as your user's “Slack user id”."
)
NOT_NOW = (
    "This failed or could not be confirmed. Check in the console before you press the button again."
)

log = structlog.get_logger(__name__)


def handle_press(
    pressed: ButtonPress, digest: str, *, ends: float, request_id: str = "", ip: str = ""
) -> Actor | None:
    """Run the button's action and queue the reply, in one transaction that ends by `ends`.

    Return the actor, or None if the Slack user has no account. Unknown buttons, such as links, and
    repeated requests (by `digest`) are ignored; a concurrent duplicate waits for the first. Raises
    :class:`Unavailable` or a database error after `ends`, in monotonic seconds.
    """
    carry_out = actions.find_action(pressed.name)
    if carry_out is None or not people.SLACK_USER_ID.fullmatch(pressed.slack_user_id):
        return None
    with limit_statements(ends):
        return _handle_press(pressed, carry_out, digest, request_id, ip)


@retry_if_ended
@transaction.atomic
def _handle_press(
    pressed: ButtonPress, carry_out: ButtonAction, digest: str, request_id: str, ip: str
) -> Actor | None:
    now = db_now()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_answeredrequest (digest, at) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [digest, now],
        )
        if not cursor.rowcount:  # A repeated request.
            return None
    user = User.objects.filter(slack_user_id=pressed.slack_user_id, is_active=True).first()
    if user is None:
        log.warning("slack.user_not_linked", slack_user_id=pressed.slack_user_id)
        _queue_reply(pressed, digest, NOT_CONNECTED, now)
        return None
    actor = user.as_actor(kind="slack", request_id=request_id, ip=ip)
    if factors.is_required(user) and not factors.has_factor(user):
        _queue_reply(pressed, digest, factors.SET_UP_FIRST, now)
        return actor
    _queue_reply(pressed, digest, _run_action(carry_out, pressed, actor, now), now)
    return actor


def _run_action(carry_out: ButtonAction, pressed: ButtonPress, actor: Actor, now: datetime) -> str:
    """Run the action; return its result, or the reason for its refusal, as a sentence."""
    try:
        with transaction.atomic():
            return carry_out(pressed.value, actor, now)
    except Unavailable:
        raise
    except InvalidInput as error:
        return " ".join(text for texts in error.errors.values() for text in texts)
    except Forbidden as error:
        return authority.describe_refusal(error)
    except DomainError as error:
        return error.detail


def _queue_reply(pressed: ButtonPress, digest: str, text: str, now: datetime) -> None:
    if not slack_reply.is_slack_url(pressed.response_url):
        log.warning("slack.reply_url_missing")
        return
    outbox.announce(
        event=slack_reply.EVENT,
        event_key=f"slack:{digest}",
        facts={"said": text, slack_reply.ADDRESS: pressed.response_url, "path": "/"},
        to=[f"{slack_reply.KEY}:{pressed.slack_user_id}"],
        now=now,
    )


@contextmanager
def limit_statements(ends: float) -> Iterator[None]:
    """Context manager: SQL statements in the block must end by `ends`, in monotonic seconds.

    Raises :class:`Unavailable` before a later statement, and the database error of a canceled one.
    """

    def execute_in_time(
        execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        raw = context["connection"].connection
        if raw is not None and raw.info.transaction_status == TransactionStatus.INTRANS:
            left = ends - time.monotonic()
            if left <= 0:
                raise Unavailable("This took too long. Nothing changed.")
            with context["connection"].wrap_database_errors:
                raw.execute(f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")
        return execute(sql, params, many, context)

    with deadline.limit_writes(ends), connection.execute_wrapper(execute_in_time):
        yield
