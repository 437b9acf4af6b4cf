"""Look up a message in a channel's history by its metadata, before it is sent again."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.identity import stable_id

from . import subjects
from .calls import Calls, Refused
from .codes import THREAD_IS_GONE

CLOCKS_DIFFER_BY = timedelta(minutes=2)
A_PAGE = 100
MAX_PAGES = 20

_CHANNEL = re.compile(r"[CDG][A-Z0-9]{5,}")
_PERSON = re.compile(r"[UW][A-Z0-9]{5,}")


def arrived(message: OutboxMessage, since: datetime, calls: Calls) -> bool | None:
    """Return whether the message is in its channel or thread; None if that can't be read.

    `since` is the time of the first attempt. If the message is the head of a thread, it is stored
    as such. Raises :class:`TransientFailure` if Slack is unavailable.
    """
    oldest = {"oldest": f"{(since - CLOCKS_DIFFER_BY).timestamp():.6f}"}
    thread = subjects.thread_of(message)
    try:
        if thread is not None and _in_thread(message, thread, oldest, calls):
            return True
        channel = _readable(message.destination, calls)
        if not channel:
            return None
        where = {"channel": channel, **oldest}
        found = _find(message, _pages("conversations.history", where, calls))
    except (PermanentFailure, _TooLong):
        return None
    if found is None:
        return False
    if message.subject and not _is_reply(found) and _is_later(found, thread):
        subjects.remember(message, channel, str(found["ts"]))
    return True


def _in_thread(
    message: OutboxMessage, thread: Thread, oldest: Mapping[str, str], calls: Calls
) -> bool:
    where = {"channel": thread.channel, "ts": thread.ts, **oldest}
    try:
        return _find(message, _pages("conversations.replies", where, calls)) is not None
    except Refused as refused:
        if refused.code != THREAD_IS_GONE:
            raise
        return False


class _TooLong(Exception):
    """The history is longer than the pages that are read."""


def _readable(destination: str, calls: Calls) -> str:
    """Return the id of the channel to read, or its name if the id is unknown.

    For a person, Slack is asked for the id of the direct messages.
    """
    address = subjects.address(destination)
    if _PERSON.fullmatch(address):
        opened = calls.read("conversations.open", {"users": address}).get("channel", {})
        return str(opened.get("id", ""))
    if _CHANNEL.fullmatch(address):
        return address
    # Slack reads by id only; the id is known from the threads started in the channel.
    return subjects.last_channel(destination) or address


def _pages(method: str, form: Mapping[str, str], calls: Calls) -> Iterator[list[Mapping[str, Any]]]:
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
    for page in pages:
        for said in page:
            metadata = said.get("metadata") or {}
            if metadata.get("event_payload", {}).get("id") == ours:
                return said
    return None


def _is_later(said: Mapping[str, Any], thread: Thread | None) -> bool:
    return thread is None or float(said["ts"]) > float(thread.ts)


def _is_reply(said: Mapping[str, Any]) -> bool:
    return str(said.get("thread_ts") or said["ts"]) != str(said["ts"])
