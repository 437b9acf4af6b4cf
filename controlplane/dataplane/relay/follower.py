"""Background task of a relay that follows an upstream, and installs its bundles.

The relay stays with the upstream that answers, and goes to the next one when it fails. Whatever
arrives is verified first; what is refused changes nothing, and the last good bundle stays.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from controlplane.core.errors import Unavailable
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.state import State

from . import upstream_causes as causes
from .bundle import InvalidBundle
from .bundle_keeper import BundleKeeper
from .confirmations import Confirmation, StreamClock
from .difference import OlderBundle, ReceivedBundle, apply_event
from .event_stream import Event
from .installation import confirm_bundle, install_bundle
from .lost_versions import SignedSnapshot, VersionFate
from .source import ReceivedSource
from .trusted_keys import TrustedKeys
from .upstream import (
    MAX_PAUSE_SECONDS,
    NotSupported,
    Upstream,
    UpstreamFailed,
    connect,
)

MIN_PAUSE_SECONDS = 0.2
LAG_SECONDS = 10.0
"""Time after which a relay leaves an upstream that sends older data than it has."""
SKEW_SECONDS = 2.0
STREAM_SECONDS = 3600.0
"""Longest duration of a stream, so that relays spread over the upstreams that are there."""
LOST = "its database may have lost the version that this relay serves"
LARGE_BYTES = 64 * 1024
"""Bundles of this size are verified in a thread, because that takes milliseconds."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Stream:
    """State of one stream of the upstream.

    `pending` is a bundle that waits for the first confirmation, since its age is unknown before.
    `confirmed_at` is the own monotonic time at which the upstream's data was last confirmed, and
    `lagging_since` the time since when the upstream sends older data than this relay has.
    """

    clock: StreamClock
    pending: ReceivedBundle | None = None
    confirmed_at: float | None = None
    lagging_since: float | None = None


class StreamEnded(UpstreamFailed):
    """The upstream closed a stream, as when it restarts."""


class Follower:
    """Follows one of the upstreams of a relay, and keeps its state up to date.

    `received` is the last bundle, from disk at first. `on_orders` gets the data of events with
    emergency orders.
    """

    def __init__(
        self,
        config: RelayConfig,
        state: State,
        keys: TrustedKeys,
        keeper: BundleKeeper,
        source: ReceivedSource,
    ) -> None:
        self.received: ReceivedBundle | None = None
        self.tried = asyncio.Event()
        """Set once a bundle is installed, or all upstreams have failed."""
        self.on_orders: Callable[[bytes], Awaitable[None]] = _ignore_orders
        self._config = config
        self._state = state
        self._keys = keys
        self._keeper = keeper
        self._source = source
        """Serves what was received to the relays behind this one."""
        self._upstream: Upstream | None = None
        self._index = 0
        self._failures = 0
        """Number of failures in a row since the last confirmation."""
        self._has_ended = False
        """True if a stream has ended since the last confirmation."""
        self._wants_all = False
        """True after a bundle was invalid: the parts of this relay may be the reason."""
        self._reason = ""
        """The last reason of a failure, which is logged once."""
        self._skewed = False

    @property
    def url(self) -> str:
        """The upstream that is followed, or tried next."""
        return self._config.upstreams[self._index]

    def resume_from(self, received: ReceivedBundle | None) -> None:
        """Serve on and follow from a bundle that was restored from disk; None without one."""
        self.received = received
        if received is not None:
            self._source.install(received.signed)

    async def run(self) -> None:
        async with connect(self._config) as upstream:
            self._upstream = upstream
            while True:
                pause = 0.0
                try:
                    await self._follow(upstream)
                except StreamEnded as error:
                    # It is lost only if the next connection fails, too.
                    pause = self._record_failure(error) if self._has_ended else MIN_PAUSE_SECONDS
                    self._has_ended = True
                except Exception as error:
                    pause = self._record_failure(error)
                await asyncio.sleep(random.uniform(0.5, 1.0) * pause)  # noqa: S311

    async def ask_version(self, served: SignedSnapshot) -> VersionFate:
        """Ask the upstream about a version; raise :class:`Unavailable` without an answer."""
        if self._upstream is None:
            raise Unavailable("This relay is starting. Try again in a moment.")
        try:
            return await self._upstream.ask_version(self.url, served)
        except UpstreamFailed as error:
            raise Unavailable(f"This relay could not ask its upstream: {error}.") from error

    async def _follow(self, upstream: Upstream) -> None:
        """Follow the present upstream until the stream is old; raise an error before."""
        if not self._keys.keys:
            await self._keys.pin(upstream, self.url)
        state, began = self._state, self._state.now()
        lifetime = STREAM_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311
        stream = _Stream(StreamClock(began))
        async with contextlib.aclosing(upstream.events(self.url, self._headers())) as events:
            async for event in events:
                await self._handle(stream, event)
                if state.now() - began > lifetime:
                    return
        raise StreamEnded("it closed the connection")

    def _headers(self) -> dict[bytes, bytes]:
        headers = {b"Switchgear-Relay": self._config.plane.encode()}
        if self.received is not None and not self._wants_all:
            parts = self.received.signed.hashes.items()
            known = ", ".join(f"{name}={digest}" for name, digest in parts)
            headers[b"Switchgear-Bundle"] = known.encode()
        return headers

    async def _handle(self, stream: _Stream, event: Event) -> None:
        if event.name == "bundle":
            await self._receive(stream, event.data)
        elif event.name == "confirm":
            await self._confirm(stream, Confirmation.parse(event.data))
        elif event.name == "orders":
            await self.on_orders(event.data)

    async def _receive(self, stream: _Stream, data: bytes) -> None:
        """Verify a bundle, and install it if the stream has told its age."""
        try:
            received = await self._verify(stream, data)
        except OlderBundle as error:
            # The stream goes on, for emergency orders, and because the upstream may catch up.
            self._record_older(stream, str(error))
            return
        self._wants_all = False
        stream.lagging_since = None
        stream.pending = received
        if stream.confirmed_at is not None:
            await self._install(stream, stream.confirmed_at)

    async def _verify(self, stream: _Stream, data: bytes) -> ReceivedBundle:
        before, keys = stream.pending or self.received, self._keys.keys
        if len(data) < LARGE_BYTES:
            received = apply_event(before, data, keys)
        else:
            received = await asyncio.to_thread(apply_event, before, data, keys)
        if received.head.publication.epoch in self._state.left_epochs:
            raise OlderBundle("its epoch was left")
        return received

    async def _install(self, stream: _Stream, confirmed_at: float) -> None:
        received = stream.pending
        if received is None or not await self._may_adopt(received):
            return
        stream.pending = None
        await self._keeper.save_before_serving(received, confirmed_at)
        install_bundle(self._state, received, confirmed_at)
        self.received = received
        self._source.install(received.signed)
        self._state.bundles["applied"] += 1
        await self._keys.learn(received.head.keys)

    async def _may_adopt(self, received: ReceivedBundle) -> bool:
        """Return False while a new epoch may release what the served version engages.

        The database may have lost that version, and the upstream may know nothing of it.
        """
        served = self._state.published
        theirs = received.head.publication
        if served is None or served.publication.epoch == theirs.epoch:
            return True
        fate = await self._ask_about_served()
        if fate is None:
            return False
        return not fate.is_lost and (fate.restored_in or 0) <= theirs.version

    async def _ask_about_served(self) -> VersionFate | None:
        """Return what the database knows of the served version; None without an answer."""
        served = self._state.published
        if served is None or self._upstream is None:
            return None
        content = SignedSnapshot(served.signed_body, served.signature, self._config.plane)
        try:
            return await self._upstream.ask_version(self.url, content)
        except NotSupported as error:
            self._log_once(str(error), "relay.version_not_verified")
            return VersionFate(is_lost=False)
        except UpstreamFailed as error:
            self._log_once(str(error), "relay.version_not_asked")
            return None

    async def _confirm(self, stream: _Stream, confirmation: Confirmation) -> None:
        state = self._state
        at = stream.clock.convert(confirmation.at, state.now())
        if confirmation.time is not None:
            self._set_clock(confirmation.time, at)
        state.redis_reachable = confirmation.redis
        state.database_read_only = confirmation.read_only
        if stream.lagging_since is not None:
            await self._ask_about_served()  # A lost version is reported by that.
            self._leave_lagging(stream.lagging_since)
            return
        if confirmation.age is not None:
            stream.confirmed_at = at - confirmation.age
            await self._install(stream, stream.confirmed_at)
        if stream.pending is not None:
            state.upstream = causes.make_bundle_refused_cause(self.url, LOST)
            return
        if self.received is None or stream.confirmed_at is None:
            return
        if not state.database_reachable and confirmation.database:
            log.info("relay.upstream_found", upstream=self.url)
        state.database_reachable, state.upstream = confirmation.database, None
        self._failures, self._reason, self._has_ended = 0, "", False
        policies_age = confirmation.policies_age
        policies_at = None if policies_age is None else at - policies_age
        confirm_bundle(state, self.received, stream.confirmed_at, policies_at)
        self.tried.set()

    def _set_clock(self, seconds: float, at: float) -> None:
        ahead_seconds = self._state.set_clock(datetime.fromtimestamp(seconds, UTC), at)
        skewed = abs(ahead_seconds) > SKEW_SECONDS
        if skewed and not self._skewed:
            log.warning("dataplane.clock_skewed", ahead_seconds=round(ahead_seconds, 1))
        self._skewed = skewed

    def _record_older(self, stream: _Stream, reason: str) -> None:
        state = self._state
        state.bundles["older"] += 1
        if stream.lagging_since is None:
            stream.lagging_since = state.now()
        state.upstream = causes.make_bundle_refused_cause(self.url, reason)
        state.database_reachable = False
        self.tried.set()
        self._log_once(reason, "relay.older_bundle_ignored")

    def _leave_lagging(self, since: float) -> None:
        """Raise :class:`UpstreamFailed` if another upstream may be less out of date."""
        if len(self._config.upstreams) > 1 and self._state.now() - since > LAG_SECONDS:
            raise UpstreamFailed("it sends older data than this relay has")

    def _record_failure(self, error: Exception) -> float:
        """Go on to the next upstream; return the seconds to wait before."""
        urls = self._config.upstreams
        event, cause = causes.explain_failure(error, urls, self.url)
        if isinstance(error, InvalidBundle):
            self._state.bundles["invalid"] += 1
            self._wants_all = True
        if event is None:
            log.error("relay.failed", upstream=self.url, exc_info=error)
        else:
            self._log_once(str(error), event)
        self._index = (self._index + 1) % len(urls)
        self._failures += 1
        rounds, is_middle = divmod(self._failures, len(urls))
        if self._failures >= len(urls):
            self._state.database_reachable, self._state.upstream = False, cause
            self.tried.set()
        pause = 0.0 if is_middle else MIN_PAUSE_SECONDS * 2 ** min(rounds, 10)
        wanted = error.retry_after if isinstance(error, UpstreamFailed) else 0.0
        return min(max(pause, wanted), MAX_PAUSE_SECONDS)

    def _log_once(self, reason: str, event: str) -> None:
        if (known := f"{event} {self.url} {reason}") != self._reason:
            self._reason = known
            log.warning(event, upstream=self.url, why=reason)


async def _ignore_orders(_data: bytes) -> None:
    pass
