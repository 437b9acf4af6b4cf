"""Identification of the caller of a request, from memory: by credential, else by address.

A credential is a token in memory, a session that Django validated recently, or Slack's signature.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from controlplane.core.errors import DomainError
from controlplane.core.http.requests import session_digest
from controlplane.dataplane.state import State

from .bulkhead import RequestCaller
from .dataplane.memory.credentials import Headers, identify, read_token
from .dataplane.serving.call import Scope, client_network
from .notify.interactions import signatures

MAX_SESSIONS = 10_000
SESSION_SECONDS = 12 * 3600.0
SLACK = "/slack/"


class Callers:
    """Identifies the callers of requests; caches the sessions that Django validated recently."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._people: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._cookie = re.compile(
            rb"(?:^|;)\s*" + re.escape(settings.SESSION_COOKIE_NAME.encode()) + rb"=([a-z0-9]{32})"
        )

    def caller_of(self, scope: Scope, headers: Headers, body: bytes) -> RequestCaller:
        """Return the caller whose limits apply to a request."""
        if read_token(headers) is not None:
            try:
                token = identify(self._state.tokens, headers, clock=self._state.unix)
            except DomainError:
                return self._unknown_caller(scope, "token")
            return RequestCaller(("token", token.token_id), known=True)
        if scope["path"].startswith(SLACK) and _is_slack(headers, body):
            return RequestCaller("slack", known=True)
        cookie = self._cookie.search(headers.get(b"cookie", b""))
        if cookie is None:
            return self._unknown_caller(scope, "")
        user, until = self._people.get(session_digest(cookie[1].decode()), ("", 0.0))
        if time.monotonic() >= until:
            return self._unknown_caller(scope, "cookie")
        return RequestCaller(("user", user), known=True)

    def note(self, signed_in: Mapping[str, Any]) -> None:
        """Cache who is signed in, as Django found: user ids by session key, None for ended ones."""
        for key, user in signed_in.items():
            name = session_digest(key)
            if user is None:
                self._people.pop(name, None)
                continue
            self._people[name] = str(user), time.monotonic() + SESSION_SECONDS
            self._people.move_to_end(name)
            if len(self._people) > MAX_SESSIONS:
                self._people.popitem(last=False)

    def _unknown_caller(self, scope: Scope, kind: str) -> RequestCaller:
        """Return a caller known only by address, and by the `kind` of its unverified credential."""
        network = client_network(scope, settings.TRUSTED_PROXIES)
        return RequestCaller((network, kind), known=False)


def _is_slack(headers: Headers, body: bytes) -> bool:
    timestamp = headers.get(b"x-slack-request-timestamp", b"").decode("latin-1")
    signature = headers.get(b"x-slack-signature", b"").decode("latin-1")
    secret = settings.SLACK.signing_secret
    return signatures.is_genuine(secret, timestamp, signature, body, time.time())
