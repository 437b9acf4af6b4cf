"""Threads: one message per subject and channel, updated in place, with replies in its thread."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from controlplane.core.message_templates import events_where
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.transports.identity import stable_id

from . import blocks
from .calls import Calls, Refused
from .codes import ROOT_IS_LOST

EVENT_TYPE = "switchgear_message"


def say(message: OutboxMessage, calls: Calls) -> None:
    """Post a message: on its own, as the head of a thread, or as an update of the head and a reply.

    If a sender dies between update and reply, the update is repeated, which changes nothing.
    """
    thread = thread_of(message)
    if thread is None:
        _post_head(message, calls)
        return
    at = {"channel": thread.channel, "ts": thread.ts}
    answer = {"channel": thread.channel, "thread_ts": thread.ts}
    try:
        calls.write_again("chat.update", {**at, **_head(message)})
        calls.write("chat.postMessage", _said(message, {**answer, **blocks.reply(message)}))
    except Refused as refused:
        if refused.code not in ROOT_IS_LOST:
            raise
        _post_head(message, calls)


def thread_of(message: OutboxMessage) -> Thread | None:
    """Return the thread of a message's subject, None if there is none yet."""
    if not message.subject:
        return None
    return Thread.objects.filter(destination=message.destination, subject=message.subject).first()


def last_channel(destination: str) -> str:
    """Return the channel id of the latest thread at a destination; empty without one."""
    latest = Thread.objects.filter(destination=destination).order_by("-id").first()
    return latest.channel if latest else ""


def remember(message: OutboxMessage, channel: str, ts: str) -> None:
    """Store a message as the head of its subject's thread."""
    Thread.objects.update_or_create(
        destination=message.destination,
        subject=message.subject,
        defaults={"channel": channel, "ts": ts},
        create_defaults={"channel": channel, "ts": ts, "created_at": message.created_at},
    )


def address(destination: str) -> str:
    """Return the channel or member id that a destination names, or the configured channel."""
    channel: str = destination.partition(":")[2] or settings.SLACK.channel
    return channel


def mark(message: OutboxMessage) -> dict[str, Any]:
    """Return the metadata that identifies a message in the channel's history."""
    payload = {"message": message.pk, "key": message.event_key, "id": stable_id(message)}
    return {"event_type": EVENT_TYPE, "event_payload": payload}


def _post_head(message: OutboxMessage, calls: Calls) -> None:
    to = {"channel": address(message.destination)}
    shown = _head(message) if message.subject else blocks.render(message)
    answered = calls.write("chat.postMessage", _said(message, {**to, **shown}))
    channel, ts = answered.get("channel"), answered.get("ts")
    if message.subject and isinstance(channel, str) and isinstance(ts, str):
        remember(message, channel, ts)


def _said(message: OutboxMessage, what: Mapping[str, Any]) -> dict[str, Any]:
    return {**what, "metadata": mark(message), "unfurl_links": False}


def _head(message: OutboxMessage) -> dict[str, Any]:
    """Return the head of a thread: the newest state among this message and those sent before."""
    told = OutboxMessage.objects.filter(
        destination=message.destination, subject=message.subject, state=OutboxMessage.State.SENT
    )
    latest = told.filter(id__gt=message.pk).order_by("-id").first() or message
    stateless = events_where(lambda template: not template.changes_state)
    if latest.event not in stateless:
        return blocks.head(latest, latest)
    states = [message, *told.exclude(event__in=stateless).order_by("-id")[:1]]
    states = [one for one in states if one.event not in stateless]
    return blocks.head(max(states, key=lambda one: one.pk, default=latest), latest)
