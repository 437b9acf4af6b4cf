"""Sources of the bundle that relays get, and the events that lead relays from one to the next."""

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from controlplane.core.errors import Unavailable
from controlplane.dataplane.memory.listeners import RELAY
from controlplane.dataplane.memory.served_copy import split_event
from controlplane.dataplane.state import State

from .bundle import Part, SignedBundle, sign_bundle
from .collection import collect
from .difference import serialize_difference

MAX_HISTORY = 16
MAX_EVENTS = 64
"""Most events cached for one bundle: one for each set of parts that relays had before it."""


class BundleSource(Protocol):
    """The source of the current bundle. Wakes listeners of the topic `RELAY` when it changes."""

    def current(self) -> SignedBundle | None:
        """Return the current bundle; None until there is one. May raise :class:`Unavailable`."""


class StateSource:
    """The bundle of a data plane's own state, collected and signed once for each change."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._signed: SignedBundle | None = None
        self._changes = -1

    def current(self) -> SignedBundle | None:
        state = self._state
        if self._changes == state.bundle_changes:
            return self._signed
        if not state.signing_keys:
            raise Unavailable(
                "This data plane has no signing key, so it can't serve relays. Check its log, and"
                " that it can write to its data directory.",
                retry_after=5,
            )
        before = None if self._signed is None else self._signed.bundle
        bundle = collect(state, before)
        if bundle is None:
            self._signed = None
        elif before is None or bundle.manifest != before.manifest:
            self._signed = sign_bundle(bundle, state.signing_keys)
        self._changes = state.bundle_changes
        return self._signed


class ReceivedSource:
    """The bundle that a relay has received from its upstream, served on as it came."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._signed: SignedBundle | None = None

    def current(self) -> SignedBundle | None:
        return self._signed

    def install(self, signed: SignedBundle) -> None:
        """Serve `signed` to relays from now on."""
        self._signed = signed
        self._state.listeners.notify(topic=RELAY)


class BundleHistory:
    """The parts of the latest bundles, and events to the current one, rendered once for all."""

    def __init__(self) -> None:
        self._current: SignedBundle | None = None
        self._parts = deque[Mapping[str, Part]](maxlen=MAX_HISTORY)
        self._by_hash: dict[tuple[str, str], Part] = {}
        self._events: dict[tuple[str, ...], tuple[bytes, ...]] = {}

    def render_event(self, signed: SignedBundle, hashes: Mapping[str, str]) -> tuple[bytes, ...]:
        """Return the event, in chunks, that leads a relay with parts of these `hashes` to `signed`.

        Parts that are not among those of the latest bundles are sent as a whole.
        """
        if signed is not self._current:
            self._current = signed
            self._parts.append(signed.parts)
            self._by_hash = {
                (name, part.sha256): part for parts in self._parts for name, part in parts.items()
            }
            self._events = {}
        found = (self._by_hash.get((name, hashes.get(name, ""))) for name in signed.parts)
        bases = {name: part for name, part in zip(signed.parts, found, strict=True) if part}
        key = tuple(
            "" if (part := bases.get(name)) is None else part.sha256 for name in signed.parts
        )
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= MAX_EVENTS:
                self._events.clear()
            data = serialize_difference(bases, signed)
            event = self._events[key] = split_event(b"event: bundle\ndata: %b\n\n" % data)
        return event
