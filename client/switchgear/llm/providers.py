"""The chain of LLM providers that the console configures for a dependency, used as a fallback."""

import functools
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from switchgear.failures.error_labels import error_labels, http_status, is_timeout
from switchgear.journal import record
from switchgear.patterns.caches import Cache
from switchgear.patterns.counters import Counters
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.fallback_plan import is_covered_by_default
from switchgear.patterns.fallback_targets import FallbackTarget

Provider = Callable[..., Any]
"""A function called with the arguments of the call, and with `model` if it has such a parameter."""

Conditions = Mapping[str, Callable[[], bool]]
"""Functions that evaluate an `only_if` of a chain entry, by the text of the `only_if`."""

_IS_SET_CONDITION = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,99}) is set")
REQUEST_FAULTS: frozenset[str | int] = frozenset({400, 413, 422, "content_policy_violation"})
DEVELOPMENT = ("development only", "development")
DEVELOPMENT_NAMES = ("development", "dev", "local")

log = logging.getLogger("switchgear")

_warned: set[tuple[str, str]] = set()
MAX_WARNINGS = 100


class ProviderUnavailable(Exception):
    """Raised if no provider of a chain has answered, for a chain with an entry `error`.

    `code`, the HTTP `status` and `message` come from the console; a service can respond with them.
    `__cause__` is the first provider's error.
    """

    def __init__(self, code: str, status: int = 502, message: str | None = None) -> None:
        super().__init__(code, status, message)
        self.code = code
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return self.message or self.code


def chain(
    document: Mapping[str, Any] | Iterable[Any],
    providers: Mapping[str, Provider],
    *,
    name: str = "llm",
    cache: Cache | None = None,
    conditions: Conditions | None = None,
    environment: Mapping[str, str] = os.environ,
    counters: Counters | None = None,
    **options: Any,
) -> Fallback:
    """Return a fallback for a call of the first provider of a chain, with the others as targets.

    `document` is the `fallback` section of a dependency, or only its `chain`: entries with
    `provider`, `model` and optionally `only_if`, followed by optional entries `cache` and `error`.
    `providers` maps "provider/model" or "provider" to functions. An entry without a matching
    function is left out, and a warning is logged once.

    An entry with `only_if` is used only while the condition holds: "X is set" checks the variable X
    of `environment`, "development only" its variable `ENVIRONMENT`; for any other text, the
    function in `conditions` is called. An entry with an unknown condition is left out, too.

    `options` are those of `Fallback`. Without `on`, a request that the first provider refused as
    invalid is not sent to others: see `is_covered_by_chain`. Each move to another provider is
    recorded in the journal as `llm_call_fallback`. If the last provider fails, the call raises
    :class:`ProviderUnavailable` if the chain has an entry `error`, otherwise its own error.
    """
    about = document if isinstance(document, Mapping) else {}
    entries = about.get("chain") if isinstance(document, Mapping) else document
    known_entries = _known_entries(entries, name)
    provider_entries = [each for each in known_entries if isinstance(each.get("provider"), str)]
    first = provider_entries[0] if provider_entries else {}
    find_condition = functools.partial(
        _find_condition, conditions=conditions or {}, environment=environment
    )
    targets = [
        target
        for each in provider_entries[1:]
        if (target := _make_target(name, each, providers, find_condition, first.get("provider")))
    ]
    wants_cache = any("cache" in each for each in known_entries)
    if wants_cache and cache is None:
        _warn_once(name, "unknown cache")
    return Fallback(
        name,
        *targets,
        cache=cache if wants_cache else None,
        counters=counters,
        on_target=functools.partial(_note_fallback, name, first),
        exhausted=_error_factory(known_entries, about),
        **{"on": is_covered_by_chain, **options},
    )


def _find_condition(
    text: object, conditions: Conditions, environment: Mapping[str, str]
) -> Callable[[], bool] | None:
    """Return a function that evaluates the condition `only_if` of an entry; None if unknown."""
    if not isinstance(text, str):
        return None
    if text in conditions:
        return conditions[text]
    if found := _IS_SET_CONDITION.fullmatch(text.strip()):
        return lambda: bool(environment.get(found[1]))
    if text.strip().lower() in DEVELOPMENT:
        return lambda: environment.get("ENVIRONMENT", "").lower() in DEVELOPMENT_NAMES
    return None


def _known_entries(entries: object, name: str) -> list[Mapping[str, Any]]:
    if entries is None:
        return []
    if not isinstance(entries, Iterable) or isinstance(entries, str | bytes | Mapping):
        _warn_once(name, "not a list")
        return []
    known_entries = []
    for each in entries:
        if isinstance(each, Mapping) and {"provider", "cache", "error"} & each.keys():
            known_entries.append(each)
        else:
            _warn_once(name, f"{each!r:.60} is not supported")
    return known_entries


def _make_target(
    chain_name: str,
    entry: Mapping[str, Any],
    providers: Mapping[str, Provider],
    find_condition: Callable[[object], Callable[[], bool] | None],
    first: object,
) -> FallbackTarget | None:
    provider, model = entry["provider"], entry.get("model")
    model = model if isinstance(model, str) else None
    own = providers.get(f"{provider}/{model}")
    call = own or providers.get(provider)
    if call is None:
        _warn_once(chain_name, f"unknown provider {provider:.60}")
        return None
    only_if = None
    if entry.get("only_if") is not None:
        only_if = find_condition(entry["only_if"])
        if only_if is None:
            _warn_once(chain_name, f"unknown condition only_if {entry['only_if']!r:.60}")
            return None
    name = f"{provider}/{model}" if model else provider
    target = FallbackTarget(name=name, call=call, provider=provider, model=model, only_if=only_if)
    if own is None and provider == first and not target.takes_model:
        # The same call has failed just now: this would be an unwanted retry.
        _warn_once(chain_name, f"{name:.60}: the function for {provider:.60} takes no model")
        return None
    return target


def _note_fallback(
    name: str,
    first: Mapping[str, Any],
    before: FallbackTarget | None,
    after: FallbackTarget,
    error: BaseException,
) -> None:
    """Record the move to another provider in the journal.

    The error's text is left out, since it may quote a prompt.
    """
    record(
        "llm_call_fallback",
        name,
        provider=after.provider,
        from_model=first.get("model") if before is None else before.model,
        to_model=after.model,
        reason=fallback_reason(error),
    )


def is_covered_by_chain(error: BaseException) -> bool:
    """Return True if another provider may succeed where one failed with `error`.

    Return False if the request itself is invalid (except one that is only too long for this model),
    or if the error is a bug in the code.
    """
    if not is_covered_by_default(error):
        return False
    words = error_labels(error)
    return "context_length_exceeded" in words or not words & REQUEST_FAULTS


def fallback_reason(error: BaseException) -> str:
    """Return the reason for a fallback: "timeout", "rate_limit", "HTTP 503" or an error class."""
    status = http_status(error)
    if is_timeout(error):
        return "timeout"
    if status == 429:
        return "rate_limit"
    return type(error).__name__ if status is None else f"HTTP {status}"


def _error_factory(
    known_entries: list[Mapping[str, Any]], about: Mapping[str, Any]
) -> Callable[[BaseException], BaseException] | None:
    for each in known_entries:
        code = each.get("error")
        if isinstance(code, str):
            status = each.get("status", about.get("status"))
            message = each.get("message", about.get("message"))
            return lambda _first: ProviderUnavailable(
                code,
                status if isinstance(status, int) and 400 <= status <= 599 else 502,
                message if isinstance(message, str) else None,
            )
    return None


def _warn_once(name: str, why: str) -> None:
    """Log that a part of a chain is left out, once per process.

    Each change in the console rebuilds the chain, and would repeat the warning.
    """
    if (name, why) not in _warned and len(_warned) < MAX_WARNINGS:
        _warned.add((name, why))
        log.warning("switchgear: skipped part of the fallback chain of %s: %s", name, why)
