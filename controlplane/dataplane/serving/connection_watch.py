"""The caller of a held request: its credential over time, and its presence."""

from controlplane.dataplane.memory.credentials import authenticate
from controlplane.dataplane.state import State

from .call import Call

SCOPE = "switches:read"
"""Default scope for paths that hold requests."""


class HeldCaller:
    """The caller of a request that may take long; any of `scopes` suffices."""

    __slots__ = ("_call", "_ends_at", "_name", "_scopes", "_state", "_table")

    def __init__(self, state: State, call: Call, *scopes: str) -> None:
        self._state = state
        self._call = call
        self._scopes = scopes or (SCOPE,)
        self._name = call.headers.get(b"switchgear-instance")
        self._table = state.tokens
        self._ends_at = None if call.credential is None else call.credential.expires_at

    def check(self) -> None:
        """Raise the credential's error if it has expired, been revoked or lost its scope."""
        state, expired = self._state, self._ends_at is not None
        if expired or state.tokens is not self._table:
            authenticate(state.tokens, self._call.headers, *self._scopes, clock=state.unix)
            self._table = state.tokens

    def limit_wait(self, longest: float) -> float:
        """Return the seconds to wait before the next credential check, at most `longest`."""
        if self._ends_at is None:
            return longest
        return max(0.0, min(longest, self._ends_at - self._state.unix()))

    def record_presence(self) -> None:
        """Record the caller's presence and the version it applies, before it is sent a new one.

        A caller that sends no version at all starts anew, as after a restart.
        """
        if self._name is not None:
            headers = self._call.headers
            applied = headers.get(b"switchgear-applied")
            has_some = b"if-none-match" in headers or b"last-event-id" in headers
            forgets = applied is None and not has_some
            self._state.ledger.record_presence(
                self._name, applied, self._state.copy, forgets=forgets
            )

    def record_connected(self) -> None:
        """Record that the caller is still connected, without new information."""
        if self._name is not None:
            self._state.ledger.record_presence(self._name, None, self._state.copy)
