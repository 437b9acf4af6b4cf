"""Authorization of emergency orders: an API token, or a person's name and emergency code."""

import asyncio
import base64
import binascii
import math
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable

from controlplane.accounts.emergency_codes import codes
from controlplane.core.errors import Busy, Forbidden, TooManyRequests, Unauthenticated
from controlplane.dataplane.memory.credentials import CodeHash, authenticate, not_loaded
from controlplane.dataplane.serving.call import Call, client_network
from controlplane.dataplane.state import State
from switches.emergency.orders import MAX_NAME_LENGTH, Orderer

SCOPE = "switches:emergency"
MAX_FAILURES = 5
FAILURES_WITHIN_SECONDS = 60.0
MAX_KEYS = 20_000
HASHED_AT_ONCE = 2
MAX_WAITING = 20
"""Maximum number of requests that wait for the hash of their code, about 50 ms of CPU each."""

_UNKNOWN = CodeHash(0, codes.DUMMY_SALT, codes.DUMMY_DIGEST)


class FailureLimiter:
    """Limits failed tries per key; a try counts as failed until :meth:`forgive` is called.

    `clock` returns monotonic seconds. Above `MAX_KEYS`, the key that was tried least recently is
    forgotten.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tries: OrderedDict[Hashable, list[float]] = OrderedDict()

    def count_try(self, *keys: Hashable) -> float:
        """Count a try of all `keys`; return its time, for :meth:`forgive`.

        Raise :class:`TooManyRequests`, and count nothing, if one of them has failed too often.
        """
        now = self._clock()
        recent = [self._recent(key, now) for key in keys]
        waits = [
            times[0] + FAILURES_WITHIN_SECONDS - now
            for times in recent
            if len(times) >= MAX_FAILURES
        ]
        if waits:
            raise TooManyRequests(
                f"Too many failed tries of this name or from your address; {MAX_FAILURES} are"
                " allowed in a minute. Another data plane or an API token may still work.",
                retry_after=max(1, math.ceil(max(waits))),
            )
        for key, times in zip(keys, recent, strict=True):
            self._tries[key] = [*times, now]
            self._tries.move_to_end(key)
        while len(self._tries) > MAX_KEYS:
            self._tries.popitem(last=False)
        return now

    def forgive(self, tried_at: float, *keys: Hashable) -> None:
        """Don't count a try that began at `tried_at`: it succeeded, or could not be checked."""
        for key in keys:
            if (times := self._tries.get(key)) and tried_at in times:
                times.remove(tried_at)

    def _recent(self, key: Hashable, now: float) -> list[float]:
        times = self._tries.get(key, ())
        return [at for at in times if now - at < FAILURES_WITHIN_SECONDS]


class Authorizer:
    """Finds out who gives an emergency order, by the tokens and codes in memory."""

    def __init__(self, state: State) -> None:
        self.trusted_proxies: tuple[str, ...] = ()
        self._state = state
        self._limiter = FailureLimiter(state.now)
        self._hashing = asyncio.Semaphore(HASHED_AT_ONCE)
        self._waiting = 0

    async def identify(self, call: Call, *scopes: str) -> Orderer:
        """Return the owner of the request's credential, an API token or HTTP Basic (RFC 7617).

        A token needs one of `scopes`. Raise :class:`Unauthenticated`, :class:`Forbidden`,
        :class:`TooManyRequests`, or :class:`Unavailable` before tokens are loaded.
        """
        kind, _, value = call.headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"basic":
            state = self._state
            token = authenticate(state.tokens, call.headers, *scopes, clock=state.unix)
            state.used_tokens.add(token.token_id)
            return Orderer("token", token.name, token.token_id)
        _refuse_other_origin(call)
        name, code = _parse_basic(value)
        return await self.check_code(name, code, client_network(call.scope, self.trusted_proxies))

    async def check_code(self, name: str, code: str, network: str) -> Orderer:
        """Return the person with this user name and emergency code; `network` is the client's.

        Takes as long for unknown names, and for people without a code, as for a wrong code. Raise
        :class:`Unauthenticated`, :class:`TooManyRequests` after too many failures, and
        :class:`Unavailable` before codes are loaded or if too many requests wait.
        """
        if self._state.tokens is None:  # Loaded together with the codes.
            raise not_loaded("Emergency codes can't be checked yet")
        name = unicodedata.normalize("NFKC", name[: MAX_NAME_LENGTH + 1])
        keys = ("name", name.casefold()), ("network", network)
        checks = self._state.code_checks
        try:
            tried_at = self._limiter.count_try(*keys)
        except TooManyRequests:
            checks["limited"] += 1
            raise
        known = self._state.codes.get(name)
        try:
            is_correct = await self._compare(code, known or _UNKNOWN)
        except BaseException:
            self._limiter.forgive(tried_at, *keys)
            raise
        if known is None or not is_correct:
            checks["wrong"] += 1
            raise Unauthenticated("The user name or the emergency code is wrong.")
        self._limiter.forgive(tried_at, *keys)
        checks["correct"] += 1
        return Orderer("user", name, known.user_id)

    async def _compare(self, code: str, known: CodeHash) -> bool:
        if self._waiting >= MAX_WAITING:
            raise Busy("Too many emergency codes are being checked. Try again.", retry_after=1)
        self._waiting += 1
        try:
            async with self._hashing:
                return await asyncio.to_thread(codes.is_correct, code, known.salt, known.digest)
        finally:
            self._waiting -= 1


def _parse_basic(value: bytes) -> tuple[str, str]:
    try:
        name, has_colon, code = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        has_colon = ""
    if not has_colon:
        raise Unauthenticated("Send Authorization: Basic with base64 of name:code in UTF-8.")
    return name, code


def _refuse_other_origin(call: Call) -> None:
    """Raise :class:`Forbidden` for a page of another site, to which a browser adds the code."""
    origin = call.headers.get(b"origin")
    if origin is None:
        return
    host = call.headers.get(b"host", b"").decode("latin-1").lower()
    if origin.decode("latin-1").lower().partition("://")[2] != host:
        raise Forbidden("Pages of other origins can't use an emergency code here.")
