"""Subscribes to wake-ups on Redis. They save up to a second; without Redis polling continues."""

from collections.abc import Callable

from controlplane.core.protocol import WAKE_CHANNEL
from controlplane.core.redis_subscriber import RedisSubscriber, SubscriberTiming

PACE = SubscriberTiming(connect_seconds=2.0, silence_seconds=5.0, longest_pause_seconds=5.0)


def listener(
    redis_url: str,
    on_wake: Callable[[], None],
    on_state: Callable[[bool], None] = lambda _reachable: None,
    pace: SubscriberTiming = PACE,
) -> RedisSubscriber:
    """Return a subscriber that calls `on_wake` per message, and once per connection.

    The call per connection covers messages missed before it. `on_state` gets True or False whenever
    Redis may have become reachable or unreachable.
    """

    def begin() -> None:
        on_state(True)
        on_wake()

    return RedisSubscriber(
        redis_url,
        WAKE_CHANNEL,
        pace,
        on_message=lambda _message: on_wake(),
        on_begin=begin,
        on_lost=lambda: on_state(False),
    )
