"""A parser of the document with the console's configuration of dependencies. Pure.

An invalid section of a dependency keeps its previous value; valid sections apply.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from switchgear.patterns.parameters import (
    TIERS,
    BreakerParameters,
    BulkheadParameters,
    RetryParameters,
    SpendParameters,
)

Mode = Literal["forced_open", "forced_closed", "disabled", "metrics_only"]
MODES: tuple[Mode, ...] = get_args(Mode)
RESET = "reset"
MAX_ROUTES = 200
MAX_PATTERN_LENGTH = 200
MAX_TIMEOUT_SECONDS = 86_400.0
MAX_ERROR_LABELS = 100


@dataclass(frozen=True)
class ForcedMode:
    """An operator's override of a breaker: a mode that is forced until `ends_at`.

    `ends_at` is UNIX seconds by the console's clock. `version` distinguishes successive overrides.
    """

    mode: str
    ends_at: float
    version: int
    reason: str = ""


@dataclass(frozen=True)
class DependencyConfig:
    """The console's configuration of one dependency. A setting of None is left to the code.

    `routes` are path patterns with the timeout of one attempt in seconds; the first match applies.
    """

    timeout_seconds: float | None = None
    routes: tuple[tuple[str, float], ...] = ()
    breaker: BreakerParameters | None = None
    retry: RetryParameters | None = None
    bulkhead: BulkheadParameters | None = None
    fallback: Mapping[str, Any] | None = None
    budget: SpendParameters | None = None
    override: ForcedMode | None = None

    def route_timeout(self, path: str) -> float | None:
        """Return the timeout, in seconds, of the first route that matches `path`, or None."""
        for pattern, seconds in self.routes:
            if path_pattern(pattern).fullmatch(path):
                return seconds
        return None

    def is_forced(self, now: float) -> bool:
        """Return True if the override forces a mode at `now`, in UNIX seconds."""
        override = self.override
        return override is not None and override.mode != RESET and override.ends_at > now


EMPTY_CONFIG = DependencyConfig()


@dataclass(frozen=True)
class ConfigDocument:
    """The console's configuration of all dependencies of a service, parsed from its document.

    `problems` name the sections that kept their previous value, and the reasons. `service` is the
    calling service, if the document names it.
    """

    version: int
    dependencies: Mapping[str, DependencyConfig]
    problems: tuple[str, ...] = field(default=(), compare=False)
    service: str | None = None


class InvalidDocument(ValueError):
    """Raised for an invalid document; the message gives the reason without quoting the document."""


def parse_document(body: bytes, before: Mapping[str, DependencyConfig]) -> ConfigDocument:
    """Parse a configuration document.

    An invalid section keeps its value in `before`, the configuration by dependency. Raise
    :class:`InvalidDocument` if the document itself is invalid.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidDocument("not valid JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("dependencies"), dict):
        raise InvalidDocument("no dependencies")
    version = found.get("version")
    if type(version) is not int or not 0 <= version < 2**63:
        raise InvalidDocument("no version")
    problems: list[str] = []
    dependencies = {
        name: _read_dependency(name, section, before.get(name, EMPTY_CONFIG), problems)
        for name, section in found["dependencies"].items()
    }
    service = found.get("service")
    known = service if isinstance(service, str) else None
    return ConfigDocument(version, dependencies, tuple(problems), known)


@functools.lru_cache(maxsize=1000)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled regular expression of a path pattern, which matches in linear time.

    `*` matches any part between slashes, `**` the rest of a path; `/a/**` also matches `/a`.
    """
    head, rest = (pattern[:-3], "(?:/.*)?") if pattern.endswith("/**") else (pattern, "")
    first, *others = re.split(r"\*\*+", head)
    found = _segment_pattern(first, is_last=not others)
    for place, piece in enumerate(others, 1):
        # The first match of a piece also ends first, so it never needs to be tried again. Only
        # the last piece has to end where the path does.
        is_last = place == len(others)
        found += (
            f".*{_segment_pattern(piece, is_last=True)}"
            if is_last
            else f"(?>.*?{_segment_pattern(piece)})"
        )
    return re.compile(found + rest, re.DOTALL)


def _segment_pattern(piece: str, *, is_last: bool = False) -> str:
    found, *literals = map(re.escape, piece.split("*"))
    for place, literal in enumerate(literals, 1):
        ends = is_last and place == len(literals)
        found += f"[^/]*{literal}" if ends else f"(?>[^/]*?{literal})"
    return found


def _read_dependency(
    dependency: str, given: Any, before: DependencyConfig, problems: list[str]
) -> DependencyConfig:
    if not isinstance(given, dict):
        problems.append(f"{dependency}: not an object")
        return before

    values: dict[str, Any] = {}
    for name, (key, read) in _SECTIONS.items():
        try:
            if (section := given.get(key)) is not None:
                values[name] = read(section)
        except (ValueError, TypeError, AttributeError, OverflowError, re.error) as error:
            problems.append(f"{dependency}: {key}: {error!s:.200}")
            values[name] = getattr(before, name)
    return DependencyConfig(**values)


def _read_milliseconds(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        raise ValueError("not a number of milliseconds")
    seconds = milliseconds / 1000
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise ValueError(f"must be above 0 and at most {MAX_TIMEOUT_SECONDS:g} s")
    return seconds


def _read_routes(given: Any) -> tuple[tuple[str, float], ...]:
    if not isinstance(given, list) or len(given) > MAX_ROUTES:
        raise ValueError(f"not a list of at most {MAX_ROUTES}")
    found = []
    for route in given:
        pattern = route.get("pattern")
        if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN_LENGTH:
            raise ValueError("a route has no pattern")
        found.append((pattern, _read_milliseconds(route.get("timeout_ms"))))
    return tuple(found)


def _read_breaker(given: Any) -> BreakerParameters:
    """Return the breaker parameters in a section of the document.

    `failure_threshold` is an alias of `failure_count`, and `window_seconds` of the size of a
    time-based window.
    """
    values = _known_fields(BreakerParameters, given)
    if (count := given.get("failure_threshold")) is not None:
        values.setdefault("failure_count", count)
    if (seconds := given.get("window_seconds")) is not None:
        values["window_type"] = "time"
        values.setdefault("window_size", seconds)
    for name in ("window_size", "failure_count"):
        if isinstance(values.get(name), float) and values[name] == int(values[name]):
            values[name] = int(values[name])
    return BreakerParameters(**values)


def _read_retry(given: Any) -> RetryParameters:
    values = _known_fields(RetryParameters, given)
    for name in ("retry_on", "never"):
        if name in values:
            values[name] = _read_error_labels(values[name])
    return RetryParameters(**values)


def _read_error_labels(given: Any) -> tuple[str | int, ...]:
    if not isinstance(given, list) or len(given) > MAX_ERROR_LABELS:
        raise ValueError("not a list of strings")
    if not all(isinstance(label, str | int) and not isinstance(label, bool) for label in given):
        raise ValueError("entries must be statuses and names")
    return tuple(
        int(label) if isinstance(label, str) and label.isdecimal() else label for label in given
    )


def _read_bulkhead(given: Any) -> BulkheadParameters:
    """Return the bulkhead parameters in a section of the document.

    Missing fields come from the tier that the section names.
    """
    values = _known_fields(BulkheadParameters, given)
    tier = given.get("tier")
    if tier is None:
        return BulkheadParameters(**values)
    if tier not in TIERS:
        raise ValueError("unknown tier")
    return replace(TIERS[tier], **values)


def _read_fallback(given: Any) -> Mapping[str, Any]:
    if not isinstance(given, dict) or not isinstance(given.get("chain") or [], list):
        raise ValueError("not an object with a list of targets")
    return cast(Mapping[str, Any], given)


def _read_override(given: Any) -> ForcedMode:
    mode, version = given.get("mode"), given.get("version")
    if mode not in (*MODES, RESET):
        raise ValueError("unknown mode")
    if type(version) is not int:
        raise ValueError("no version")
    moment = datetime.fromisoformat(given.get("expires_at"))
    ends_at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return ForcedMode(mode, ends_at, version, str(given.get("reason") or "")[:300])


def _known_fields(kind: type, given: Any) -> dict[str, Any]:
    """Return the values in `given`, other than None, for fields of the dataclass `kind`."""
    if not isinstance(given, dict):
        raise ValueError("not an object")
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in given.items() if name in names and value is not None}


_SECTIONS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "timeout_seconds": ("timeout_ms", _read_milliseconds),
    "routes": ("routes", _read_routes),
    "breaker": ("breaker", _read_breaker),
    "retry": ("retry", _read_retry),
    "bulkhead": ("bulkhead", _read_bulkhead),
    "fallback": ("fallback", _read_fallback),
    "budget": ("budget", lambda given: SpendParameters(**_known_fields(SpendParameters, given))),
    "override": ("override", _read_override),
}
"""For each field of a :class:`DependencyConfig`: its key in the document, and its parser."""
