"""A parser of the console's configuration of dependencies. Pure.

An invalid section keeps its previous value; valid sections apply.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, cast

from switchgear.patterns.parameters import (
    TIERS,
    BreakerParameters,
    BulkheadParameters,
    RetryParameters,
    SpendParameters,
)

Mode = Literal["forced_open", "forced_closed", "disabled", "metrics_only"]
MODES = ("forced_open", "forced_closed", "disabled", "metrics_only")
RESET = "reset"
MAX_ROUTES = 200
MAX_PATTERN_LENGTH = 200
MAX_TIMEOUT_SECONDS = 86_400.0
MAX_ERROR_LABELS = 100

T = TypeVar("T")


@dataclass(frozen=True)
class ForcedMode:
    """A mode that an operator forces on a breaker until `ends_at`.

    `ends_at` is UNIX seconds by the console's clock. `version` distinguishes successive overrides.
    """

    mode: str
    ends_at: float
    version: int
    reason: str = ""


@dataclass(frozen=True)
class DependencyConfig:
    """The console's configuration of one dependency. None leaves a setting to the code.

    `routes` are path patterns with the seconds of one attempt; the first match applies.
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
        """Return the seconds of the first route that matches `path`, or None."""
        for pattern, seconds in self.routes:
            if path_pattern(pattern).fullmatch(path):
                return seconds
        return None


EMPTY_CONFIG = DependencyConfig()


@dataclass(frozen=True)
class ConfigDocument:
    """A parsed document.

    `problems` name the sections that kept their previous value, and the reasons. `service` is the
    calling service, if the document names it.
    """

    version: int
    dependencies: Mapping[str, DependencyConfig]
    problems: tuple[str, ...] = field(default=(), compare=False)
    service: str | None = None


def ended_overrides(
    before: Mapping[str, DependencyConfig], after: Mapping[str, DependencyConfig], now: float
) -> list[str]:
    """Return the dependencies that are forced at `now` by `before` and no longer by `after`."""
    return [
        name
        for name, said in before.items()
        if _is_forced(said, now) and not _is_forced(after.get(name, EMPTY_CONFIG), now)
    ]


def _is_forced(said: DependencyConfig, now: float) -> bool:
    override = said.override
    return override is not None and override.mode != RESET and override.ends_at > now


class InvalidDocument(ValueError):
    """Raised for an invalid document; the message gives the reason without quoting the document."""


def parse_document(body: bytes, before: Mapping[str, DependencyConfig]) -> ConfigDocument:
    """Parse a document; an invalid section keeps its value in `before`.

    Raise :class:`InvalidDocument` if the document itself is invalid.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidDocument("it is no JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("dependencies"), dict):
        raise InvalidDocument("it has no dependencies")
    version = found.get("version")
    if type(version) is not int or not 0 <= version < 2**63:
        raise InvalidDocument("it has no version")
    problems: list[str] = []
    dependencies = {
        name: _read_dependency(name, one, before.get(name, EMPTY_CONFIG), problems)
        for name, one in found["dependencies"].items()
    }
    service = found.get("service")
    known = service if isinstance(service, str) else None
    return ConfigDocument(version, dependencies, tuple(problems), known)


@functools.lru_cache(maxsize=1000)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled path pattern, which matches in linear time.

    `*` matches any part between slashes, `**` the rest of a path; `/a/**` also matches `/a`.
    """
    head, rest = (pattern[:-3], "(?:/.*)?") if pattern.endswith("/**") else (pattern, "")
    first, *others = re.split(r"\*\*+", head)
    found = _segment_pattern(first, is_last=not others)
    for place, piece in enumerate(others, 1):
        # Where a piece is found first, it ends first, too: that place is as good as any, so none
        # is tried again. Only the last piece has to end where the path does.
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
    name: str, given: Any, before: DependencyConfig, problems: list[str]
) -> DependencyConfig:
    if not isinstance(given, dict):
        problems.append(f"{name}: it is no object")
        return before

    def section(key: str, build: Callable[[Any], T], was: T) -> T:
        try:
            return build(given.get(key))
        except (ValueError, TypeError, AttributeError, OverflowError, re.error) as error:
            problems.append(f"{name}: {key}: {error!s:.200}")
            return was

    return DependencyConfig(
        timeout_seconds=section("timeout_ms", _read_timeout, before.timeout_seconds),
        routes=section("routes", _read_routes, before.routes),
        breaker=section("breaker", _read_breaker, before.breaker),
        retry=section("retry", _read_retry, before.retry),
        bulkhead=section("bulkhead", _read_bulkhead, before.bulkhead),
        fallback=section("fallback", _read_fallback, before.fallback),
        budget=section("budget", _read_budget, before.budget),
        override=section("override", _read_override, before.override),
    )


def _read_timeout(given: Any) -> float | None:
    return None if given is None else _read_milliseconds(given)


def _read_milliseconds(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        raise ValueError("it is no number of milliseconds")
    seconds = milliseconds / 1000
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise ValueError(f"it must be above 0 and at most {MAX_TIMEOUT_SECONDS:g} s")
    return seconds


def _read_routes(given: Any) -> tuple[tuple[str, float], ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MAX_ROUTES:
        raise ValueError(f"it is no list of at most {MAX_ROUTES}")
    found = []
    for one in given:
        pattern = one.get("pattern")
        if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN_LENGTH:
            raise ValueError("a route has no pattern")
        found.append((pattern, _read_milliseconds(one.get("timeout_ms"))))
    return tuple(found)


def _read_breaker(given: Any) -> BreakerParameters | None:
    """Read breaker parameters, including the aliases `failure_threshold` and `window_seconds`."""
    if given is None:
        return None
    said = _known_fields(BreakerParameters, given)
    if (count := given.get("failure_threshold")) is not None:
        said.setdefault("failure_count", count)
    if (seconds := given.get("window_seconds")) is not None:
        said["window_type"] = "time"
        said.setdefault("window_size", seconds)
    for name in ("window_size", "failure_count"):
        if isinstance(said.get(name), float) and said[name] == int(said[name]):
            said[name] = int(said[name])
    return BreakerParameters(**said)


def _read_retry(given: Any) -> RetryParameters | None:
    if given is None:
        return None
    said = _known_fields(RetryParameters, given)
    for name in ("retry_on", "never"):
        if name in said:
            said[name] = _read_error_labels(said[name])
    return RetryParameters(**said)


def _read_error_labels(given: Any) -> tuple[str | int, ...]:
    if not isinstance(given, list) or len(given) > MAX_ERROR_LABELS:
        raise ValueError("it is no list of words")
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in given):
        raise ValueError("its words are statuses and names")
    return tuple(int(one) if isinstance(one, str) and one.isdecimal() else one for one in given)


def _read_bulkhead(given: Any) -> BulkheadParameters | None:
    """Read a bulkhead; missing fields come from its tier."""
    if given is None:
        return None
    tier = given.get("tier")
    said = _known_fields(BulkheadParameters, given)
    if tier is not None:
        if tier not in TIERS:
            raise ValueError("it names a tier that nobody knows")
        of_tier = TIERS[tier]
        said = {**{one.name: getattr(of_tier, one.name) for one in fields(of_tier)}, **said}
    return BulkheadParameters(**said)


def _read_fallback(given: Any) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("chain") or [], list):
        raise ValueError("it is no object with a list of targets")
    return cast(Mapping[str, Any], given)


def _read_budget(given: Any) -> SpendParameters | None:
    return None if given is None else SpendParameters(**_known_fields(SpendParameters, given))


def _read_override(given: Any) -> ForcedMode | None:
    if given is None:
        return None
    mode, version = given.get("mode"), given.get("version")
    if mode not in (*MODES, RESET):
        raise ValueError("nobody knows its mode")
    if type(version) is not int:
        raise ValueError("it has no version")
    moment = datetime.fromisoformat(given.get("expires_at"))
    ends_at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return ForcedMode(mode, ends_at, version, str(given.get("reason") or "")[:300])


def _known_fields(kind: type, given: Any) -> dict[str, Any]:
    """Return the fields of `given` that the dataclass `kind` has and that are not None."""
    if not isinstance(given, dict):
        raise ValueError("it is no object")
    names = {one.name for one in fields(kind)}
    return {name: one for name, one in given.items() if name in names and one is not None}
