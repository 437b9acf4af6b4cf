"""`GET /api/v1/relay/stream`: bundles, emergency orders and confirmations for relays."""

import asyncio
import re
from collections.abc import Mapping

import orjson

from controlplane.dataplane.memory.credentials import not_loaded
from controlplane.dataplane.memory.listeners import RELAY
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.memory.served_copy import split_event
from controlplane.dataplane.serving import held_requests
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.serving.held_requests import HeldCaller
from controlplane.dataplane.state import State

from .bundle import SignedBundle
from .source import BundleHistory, BundleSource

SCOPE = "relay"
CONFIRM_SECONDS = 2.0
_HASHES = re.compile(rb"([a-z_]{1,40})=([0-9a-f]{64})")

Event = tuple[bytes, ...]


class RelayStreams:
    """Streams of all relays that follow this process; each event is rendered once for all."""

    def __init__(self, state: State, source: BundleSource) -> None:
        self.source = source
        self._state = state
        self._history = BundleHistory()
        self._orders: tuple[OrderSet, Event] | None = None
        self.confirmation: Event = ()
        """The latest confirmation, sent on all streams."""
        self._is_confirming = False

    async def relay_stream(self, state: State, call: Call) -> None:
        """Stream the current bundle, and then each change, to a relay."""
        if self.source.current() is None:
            raise not_loaded("There is no bundle yet")
        caller = HeldCaller(state, call, SCOPE)
        hashes = read_hashes(call.headers.get(b"switchgear-bundle", b""))
        stream = RelayStream(self, hashes)
        state.relay_streams += 1
        try:
            self._confirm_regularly()
            await held_requests.stream_events(state, call, caller, stream.next_event, RELAY)
        finally:
            state.relay_streams -= 1

    def render_bundle(self, signed: SignedBundle, hashes: Mapping[str, str]) -> Event:
        return self._history.render_event(signed, hashes)

    def render_orders(self) -> Event:
        """Return the event with all emergency orders that are not closed, cached until a change."""
        orders = self._state.orders
        if self._orders is None or self._orders[0].digest != orders.digest:
            documents = [orjson.Fragment(each.serialized) for each in orders.unclosed.values()]
            data = orjson.dumps({"orders": documents})
            event = split_event(b"event: orders\ndata: %b\n\n" % data)
            self._orders = orders, event
        return self._orders[1]

    def render_confirmation(self) -> Event:
        """Return a confirmation at this moment: ages in seconds, and what can be reached.

        `at` are monotonic seconds of this process. A relay counts ages from the time when it sent
        the request for the stream, and from the differences of `at` since the first confirmation.
        """
        state = self._state
        content = {
            "at": state.now(),
            "age": state.age_seconds(),
            "policies_age": state.policies_age_seconds(),
            "time": state.clock_seconds(),
            "database": state.database_reachable,
            "read_only": state.database_read_only,
            "redis": state.redis_reachable,
        }
        return (b"event: confirm\ndata: %b\n\n" % orjson.dumps(content),)

    def _confirm_regularly(self) -> None:
        if not self._is_confirming:
            self._is_confirming = True
            asyncio.get_running_loop().call_later(CONFIRM_SECONDS, self._confirm)

    def _confirm(self) -> None:
        self._is_confirming = False
        if not self._state.relay_streams:
            return
        self.confirmation = self.render_confirmation()
        self._state.listeners.notify(topic=RELAY)
        self._confirm_regularly()


class RelayStream:
    """One relay's stream: what it has been sent."""

    def __init__(self, streams: RelayStreams, hashes: Mapping[str, str]) -> None:
        self._streams = streams
        self._hashes = hashes
        """SHA-256 of the parts that the relay has, by name."""
        self._bundle: SignedBundle | None = None
        self._orders: Event = ()
        self._confirmation: Event | None = None

    def next_event(self) -> Event:
        """Return the events that the relay lacks: the bundle first, so that all others fit it."""
        streams = self._streams
        events: list[bytes] = []
        signed = streams.source.current()
        if signed is not None and signed is not self._bundle:
            events += streams.render_bundle(signed, self._hashes)
            self._bundle, self._hashes = signed, signed.hashes
        orders = streams.render_orders()
        if orders is not self._orders:
            events += orders
            self._orders = orders
        if self._confirmation is not streams.confirmation:
            # The first one must be younger than the request.
            is_first = self._confirmation is None
            events += streams.render_confirmation() if is_first else streams.confirmation
            self._confirmation = streams.confirmation
        return tuple(events)


def read_hashes(header: bytes) -> dict[str, str]:
    """Return the SHA-256 of each part, by name, in a header `Switchgear-Bundle`."""
    return {name.decode(): found.decode() for name, found in _HASHES.findall(header)}
