"""The fallback of a policy: the console's chain of providers, or the code's fallback."""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.patterns.caches import Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback import Fallback

MODE_NONE = "none"
"""The console's mode that switches fallbacks off."""


class FallbackSelector:
    """A selector of a policy's fallback by the console's configuration.

    The console's `fallback.chain` applies if the code has `providers` for it; the code's fallback
    follows it and shares its cache. The console's mode `none` switches every fallback off. All
    other fields of the console's `fallback` are for display.
    """

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
        self._code_fallback: Fallback | None = None
        if isinstance(given, Fallback):
            self._code_fallback = given.counted_as(name, counters)
        elif given is not None or cache is not None:
            targets = () if given is None else (given,)
            self._code_fallback = Fallback(
                name, *targets, cache=cache, on_switch=on_switch, counters=counters
            )
        self._document: Mapping[str, Any] | None = None
        self._chain: Fallback | None = None

    def select(self, document: Mapping[str, Any] | None) -> Fallback | None:
        """Return the fallback for the console's `fallback` section; None if there is none."""
        if document is None:
            return self._code_fallback
        if document.get("mode") == MODE_NONE:
            return None
        if not self._providers or not document.get("chain"):
            return self._code_fallback
        if document != self._document:
            self._document, self._chain = document, self._make_chain(document, self._providers)
        return self._chain

    def _make_chain(
        self, document: Mapping[str, Any], providers: Mapping[str, Callable[..., Any]]
    ) -> Fallback | None:
        from switchgear.llm.providers import chain  # Needed only with providers.

        of_code = self._code_fallback
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
