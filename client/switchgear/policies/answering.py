"""Which fallback answers for a policy now: the console's chain of providers, or that of the
code."""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback import Fallback

NONE = "none"
"""The console's word for: nothing is given instead."""


class Answering:
    """The console's `fallback.chain` counts where the code has `providers` for it; its mode `none`
    switches every fallback off. All else that it says of fallbacks is for people."""

    def __init__(
        self,
        name: str,
        counters: Counters,
        given: Fallback | Callable[..., Any] | None,
        providers: Mapping[str, Callable[..., Any]] | None,
        on_switch: bool,
    ) -> None:
        self._name, self._counters = name, counters
        self._providers, self._on_switch = providers, on_switch
        self._of_code = self._made(given)
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
        if self._chain is None or document != self._document:
            from switchgear.llm.providers import chain  # Only who has providers needs it.

            self._document = document
            self._chain = chain(
                document,
                self._providers,
                name=self._name,
                on_switch=self._on_switch,
                counters=self._counters,
            )
        return self._chain

    def _made(self, given: Fallback | Callable[..., Any] | None) -> Fallback | None:
        if given is None:
            return None
        if not isinstance(given, Fallback):
            return Fallback(self._name, given, on_switch=self._on_switch, counters=self._counters)
        if self._on_switch:
            raise ValueError("say on_switch to the Fallback that is given")
        return given.counted_as(self._name, self._counters)
