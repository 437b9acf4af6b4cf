"""Redis subscriber that starts sending as soon as a message is written.

Best effort: without a wake-up, a periodic task sends the message a second later.
"""

import threading
import time

import redis
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from controlplane.core import threads
from controlplane.core.clock import db_now
from controlplane.core.protocol import WAKE_CHANNEL

from . import sender

TOPIC = b"outbox"
TIMEOUT_SECONDS = 2.0
LOOK_EVERY_SECONDS = 5.0
PAUSE_SECONDS = 1.0

log = structlog.get_logger(__name__)


def start_listening() -> None:
    threading.Thread(target=_run, daemon=True, name="outbox-wakeups").start()


def _run() -> None:
    while True:
        try:
            _follow_channel()
        except (redis.RedisError, OperationalError, InterfaceError):
            # A periodic task sends meanwhile, and the readiness check reports the outage.
            threads.close_connection()
        except Exception:
            log.exception("outbox.wakeups_failed")
            threads.close_connection()
        time.sleep(PAUSE_SECONDS)


def _follow_channel() -> None:
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        health_check_interval=int(LOOK_EVERY_SECONDS),
    )
    with client, client.pubsub(ignore_subscribe_messages=True) as channel:  # type: ignore[no-untyped-call]
        channel.subscribe(WAKE_CHANNEL)
        while True:
            topics = set()
            message = channel.get_message(timeout=LOOK_EVERY_SECONDS)
            while message is not None:  # Handle a burst of messages at once.
                topics.add(message["data"])
                message = channel.get_message()
            if TOPIC in topics:
                sender.start_sending(db_now())
