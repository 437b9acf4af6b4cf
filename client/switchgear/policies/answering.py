"""Which fallback answers for a policy now: the console's chain of providers, and that of the
code."""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.patterns.caches import Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback import Fallback

NONE = "none"
"""The console's word for: nothing is given instead."""


class Answering:
    """The console's `fallback.chain` counts where the code has `providers` for it, and is followed
    by the fallback of the code, whose cache is that of the chain; its mode `none` switches every
    fallback off. All else that it says of fallbacks is for people."""

    def __init__(
        self,
        name: str,
        counters: Counters,
        given: Fallback | Callable[..., Any] | None,
        providers: Mapping[str, Callable[..., Any]] | None,
        on_switch: bool,
        cache: Cache | None = None,
    ) -> None:
        self._name, self._counters = name, counters
        self._providers, self._on_switch = providers, on_switch
        self._of_code = self._made(given, cache)
        self._document: Mapping[str, Any] | None = None
        self._chain: Fallback | None = None

    def now(self, document: Mapping[str, Any] | None) -> Fallback | None:
        """By what the console says of fallbacks."""
        if document is None:
            return self._of_code
        if document.get("mode") == NONE:
            return None
        if not self._providers or not document.get("chain"):
            return self._of_code
        if document != self._document:
            self._document, self._chain = document, self._chained(document, self._providers)
        return self._chain

    def _chained(
        self, document: Mapping[str, Any], providers: Mapping[str, Callable[..., Any]]
    ) -> Fallback | None:
        from switchgear.llm.providers import chain  # Only who has providers needs it.

        of_code = self._of_code
        found = chain(
            document,
            providers,
            name=self._name,
            cache=None if of_code is None else of_code.cache,
            on_switch=self._on_switch,
            counters=self._counters,
        )
        if not found.has_any:
            return of_code
        return found if of_code is None else found.followed_by(of_code)

    def _made(
        self, given: Fallback | Callable[..., Any] | None, cache: Cache | None
    ) -> Fallback | None:
        if isinstance(given, Fallback):
            return given.counted_as(self._name, self._counters)
        if given is None and cache is None:
            return None
        return Fallback(
            self._name,
            *(() if given is None else (given,)),
            cache=cache,
            on_switch=self._on_switch,
            counters=self._counters,
        )
