"""Listens for wake-ups on Redis. They save up to a second; without Redis nothing else changes."""

from collections.abc import Callable

from controlplane.core.protocol import WAKE_CHANNEL
from controlplane.core.redis_subscriber import Ear, Pace

PACE = Pace(connect_seconds=2.0, silence_seconds=5.0, longest_pause_seconds=5.0)


def listener(
    redis_url: str,
    on_wake: Callable[[], None],
    on_state: Callable[[bool], None] = lambda _reachable: None,
    pace: Pace = PACE,
) -> Ear:
    """Calls `on_wake` for each message, and once per connection for those missed before it.

    `on_state` is told whether the server answers, as often as that may have changed.
    """

    def begin() -> None:
        on_state(True)
        on_wake()

    return Ear(
        redis_url,
        WAKE_CHANNEL,
        pace,
        on_message=lambda _message: on_wake(),
        on_begin=begin,
        on_lost=lambda: on_state(False),
    )
