"""Slack threads: the first message shows the subject's state; later messages are replies."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from controlplane.core.message_templates import events_where
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.transports.identity import stable_id

from . import blocks
from .calls import SlackCalls, SlackRefusal
from .codes import ROOT_IS_LOST

EVENT_TYPE = "switchgear_message"


def post_message(message: OutboxMessage, calls: SlackCalls) -> None:
    """Post a message; if its subject has a thread, update the first message and post a reply."""
    thread = thread_of(message)
    if thread is None:
        _post_head(message, calls)
        return
    at = {"channel": thread.channel, "ts": thread.ts}
    reply = {"channel": thread.channel, "thread_ts": thread.ts, **blocks.render_reply(message)}
    try:
        calls.write_again("chat.update", {**at, **_render_head(message)})
        calls.write("chat.postMessage", _add_metadata(message, reply))
    except SlackRefusal as refused:
        if refused.code not in ROOT_IS_LOST:
            raise
        _post_head(message, calls)


def thread_of(message: OutboxMessage) -> Thread | None:
    """Return the Slack thread about what a message concerns, such as a ramp; None if none yet."""
    if not message.subject:
        return None
    return Thread.objects.filter(destination=message.destination, subject=message.subject).first()


def save_thread(message: OutboxMessage, channel: str, ts: str) -> None:
    Thread.objects.update_or_create(
        destination=message.destination,
        subject=message.subject,
        defaults={"channel": channel, "ts": ts},
        create_defaults={"channel": channel, "ts": ts, "created_at": message.created_at},
    )


def channel_of(destination: str) -> str:
    return destination.partition(":")[2] or str(settings.SLACK.channel)


def _post_head(message: OutboxMessage, calls: SlackCalls) -> None:
    to = {"channel": channel_of(message.destination)}
    shown = _render_head(message) if message.subject else blocks.render_message(message)
    answered = calls.write("chat.postMessage", _add_metadata(message, {**to, **shown}))
    channel, ts = answered.get("channel"), answered.get("ts")
    if message.subject and isinstance(channel, str) and isinstance(ts, str):
        save_thread(message, channel, ts)


def _add_metadata(message: OutboxMessage, post: Mapping[str, Any]) -> dict[str, Any]:
    """Return a post with the metadata by which it is found in the channel's history."""
    payload = {"message": message.pk, "key": message.event_key, "id": stable_id(message)}
    metadata = {"event_type": EVENT_TYPE, "event_payload": payload}
    return {**post, "metadata": metadata, "unfurl_links": False}


def _render_head(message: OutboxMessage) -> dict[str, Any]:
    """Return a thread's first message: the subject's newest state, title of the latest message."""
    sent = OutboxMessage.objects.filter(
        destination=message.destination, subject=message.subject, state=OutboxMessage.State.SENT
    )
    latest = sent.filter(id__gt=message.pk).order_by("-id").first() or message
    stateless = events_where(lambda template: not template.changes_state)
    if latest.event not in stateless:
        return blocks.render_head(latest, latest)
    states = [message, *sent.exclude(event__in=stateless).order_by("-id")[:1]]
    states = [one for one in states if one.event not in stateless]
    return blocks.render_head(max(states, key=lambda one: one.pk, default=latest), latest)
