"""Lookup of a message in a channel's history, before it is sent again."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.identity import stable_id

from . import subjects
from .calls import SlackCalls, SlackRefusal
from .codes import THREAD_IS_GONE

CLOCKS_DIFFER_BY = timedelta(minutes=2)
A_PAGE = 100
MAX_PAGES = 20

_CHANNEL = re.compile(r"[CDG][A-Z0-9]{5,}")
_PERSON = re.compile(r"[UW][A-Z0-9]{5,}")


def find_message(message: OutboxMessage, since: datetime, calls: SlackCalls) -> bool | None:
    """Return True if the message is in its channel or thread, False if not, None if unreadable.

    `since` is the time of the first attempt. If the message is found as the first of a thread, that
    thread is saved. Raises :class:`TransientFailure` if Slack is unavailable.
    """
    oldest = {"oldest": f"{(since - CLOCKS_DIFFER_BY).timestamp():.6f}"}
    thread = subjects.thread_of(message)
    try:
        if thread is not None and _is_in_thread(message, thread, oldest, calls):
            return True
        channel = _channel_to_read(message.destination, calls)
        if not channel:
            return None
        where = {"channel": channel, **oldest}
        found = _find(message, _read_pages("conversations.history", where, calls))
    except (PermanentFailure, _TooLong):
        return None
    if found is None:
        return False
    is_reply = str(found.get("thread_ts") or found["ts"]) != str(found["ts"])
    is_later = thread is None or float(found["ts"]) > float(thread.ts)
    if message.subject and not is_reply and is_later:
        subjects.save_thread(message, channel, str(found["ts"]))
    return True


def _is_in_thread(
    message: OutboxMessage, thread: Thread, oldest: Mapping[str, str], calls: SlackCalls
) -> bool:
    where = {"channel": thread.channel, "ts": thread.ts, **oldest}
    try:
        return _find(message, _read_pages("conversations.replies", where, calls)) is not None
    except SlackRefusal as refused:
        if refused.code != THREAD_IS_GONE:
            raise
        return False


class _TooLong(Exception):
    """Raised if a history is longer than `MAX_PAGES` pages."""


def _channel_to_read(destination: str, calls: SlackCalls) -> str:
    """Return the id of a destination's channel or direct messages; its name if no id is known."""
    address = subjects.channel_of(destination)
    if _PERSON.fullmatch(address):
        opened = calls.read("conversations.open", {"users": address}).get("channel", {})
        return str(opened.get("id", ""))
    if _CHANNEL.fullmatch(address):
        return address
    # Slack reads by id only; the id is known from the threads started in the channel.
    latest = Thread.objects.filter(destination=destination).order_by("-id").first()
    return latest.channel if latest and latest.channel else address


def _read_pages(
    method: str, form: Mapping[str, str], calls: SlackCalls
) -> Iterator[list[Mapping[str, Any]]]:
    more = {"limit": str(A_PAGE), "include_all_metadata": "true"}
    for _ in range(MAX_PAGES):
        page = calls.read(method, {**form, **more})
        yield page.get("messages", [])
        cursor = (page.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            return
        more["cursor"] = cursor
    raise _TooLong


def _find(
    message: OutboxMessage, pages: Iterator[list[Mapping[str, Any]]]
) -> Mapping[str, Any] | None:
    ours = stable_id(message)
    for post in chain.from_iterable(pages):
        if (post.get("metadata") or {}).get("event_payload", {}).get("id") == ours:
            return post
    return None
