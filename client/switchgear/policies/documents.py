"""What the console says of dependencies, read into parameters. Pure, and tolerant: a section that
can't be understood is left as it was before, and the rest counts."""

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
MAX_WORDS = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Override:
    """What an operator forces, until `ends_at` in UNIX seconds by the console's clock. `version`
    tells one from the next."""

    mode: str
    ends_at: float
    version: int
    reason: str = ""


@dataclass(frozen=True)
class Said:
    """What the console says of one dependency. None: nothing, so the code decides.

    `routes` are patterns of paths, each with its seconds; the first that fits counts.
    """

    timeout_seconds: float | None = None
    routes: tuple[tuple[str, float], ...] = ()
    breaker: BreakerParameters | None = None
    retry: RetryParameters | None = None
    bulkhead: BulkheadParameters | None = None
    fallback: Mapping[str, Any] | None = None
    budget: SpendParameters | None = None
    override: Override | None = None

    def route_timeout(self, path: str) -> float | None:
        """Seconds for this path, by the routes alone."""
        for pattern, seconds in self.routes:
            if matcher(pattern).fullmatch(path):
                return seconds
        return None


NOTHING = Said()


@dataclass(frozen=True)
class Document:
    """`complaints` say which sections were left as they were, and why; `service` is whose calls
    these are, as far as it says so."""

    version: int
    dependencies: Mapping[str, Said]
    complaints: tuple[str, ...] = field(default=(), compare=False)
    service: str | None = None


def ended_overrides(before: Mapping[str, Said], after: Mapping[str, Said], now: float) -> list[str]:
    """Return the dependencies that are forced at `now` by `before` and no longer by `after`."""
    return [
        name
        for name, said in before.items()
        if _is_forced(said, now) and not _is_forced(after.get(name, NOTHING), now)
    ]


def _is_forced(said: Said, now: float) -> bool:
    override = said.override
    return override is not None and override.mode != RESET and override.ends_at > now


class Unreadable(ValueError):
    """This is no such document; the message says why, and quotes nothing of it."""


def read(body: bytes, before: Mapping[str, Said]) -> Document:
    """The document that this is; `before` is what was in force. Raises :class:`Unreadable`."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable("it is no JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("dependencies"), dict):
        raise Unreadable("it has no dependencies")
    version = found.get("version")
    if type(version) is not int or not 0 <= version < 2**63:
        raise Unreadable("it has no version")
    complaints: list[str] = []
    dependencies = {
        name: _said(name, one, before.get(name, NOTHING), complaints)
        for name, one in found["dependencies"].items()
    }
    service = found.get("service")
    known = service if isinstance(service, str) else None
    return Document(version, dependencies, tuple(complaints), known)


@functools.lru_cache(maxsize=1000)
def matcher(pattern: str) -> re.Pattern[str]:
    """`*` is any part of a path between slashes, `**` any rest; `/a/**` is `/a` as well."""
    head, rest = (pattern[:-3], "(?:/.*)?") if pattern.endswith("/**") else (pattern, "")
    first, *others = re.split(r"\*\*+", head)
    found = _piece(first, is_last=not others)
    for place, piece in enumerate(others, 1):
        # Where a piece is found first, it ends first, too: that place is as good as any, so none
        # is tried again. Only the last piece has to end where the path does.
        is_last = place == len(others)
        found += f".*{_piece(piece, is_last=True)}" if is_last else f"(?>.*?{_piece(piece)})"
    return re.compile(found + rest, re.DOTALL)


def _piece(piece: str, *, is_last: bool = False) -> str:
    """What has no `**` in it. Here as well, the first place of what follows an asterisk will do."""
    found, *literals = map(re.escape, piece.split("*"))
    for place, literal in enumerate(literals, 1):
        ends = is_last and place == len(literals)
        found += f"[^/]*{literal}" if ends else f"(?>[^/]*?{literal})"
    return found


def _said(name: str, given: Any, before: Said, complaints: list[str]) -> Said:
    if not isinstance(given, dict):
        complaints.append(f"{name}: it is no object")
        return before

    def section(key: str, build: Callable[[Any], T], was: T) -> T:
        try:
            return build(given.get(key))
        except (ValueError, TypeError, AttributeError, OverflowError, re.error) as error:
            complaints.append(f"{name}: {key}: {error!s:.200}")
            return was

    return Said(
        timeout_seconds=section("timeout_ms", _timeout, before.timeout_seconds),
        routes=section("routes", _routes, before.routes),
        breaker=section("breaker", _breaker, before.breaker),
        retry=section("retry", _retry, before.retry),
        bulkhead=section("bulkhead", _bulkhead, before.bulkhead),
        fallback=section("fallback", _fallback, before.fallback),
        budget=section("budget", _budget, before.budget),
        override=section("override", _override, before.override),
    )


def _timeout(given: Any) -> float | None:
    return None if given is None else _seconds(given)


def _seconds(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        raise ValueError("it is no number of milliseconds")
    seconds = milliseconds / 1000
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise ValueError(f"it must be above 0 and at most {MAX_TIMEOUT_SECONDS:g} s")
    return seconds


def _routes(given: Any) -> tuple[tuple[str, float], ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MAX_ROUTES:
        raise ValueError(f"it is no list of at most {MAX_ROUTES}")
    found = []
    for one in given:
        pattern = one.get("pattern")
        if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN_LENGTH:
            raise ValueError("a route has no pattern")
        found.append((pattern, _seconds(one.get("timeout_ms"))))
    return tuple(found)


def _breaker(given: Any) -> BreakerParameters | None:
    """`failure_threshold` and `window_seconds` are other words for `failure_count` and the size of
    a time window."""
    if given is None:
        return None
    said = _known(BreakerParameters, given)
    if (count := given.get("failure_threshold")) is not None:
        said.setdefault("failure_count", count)
    if (seconds := given.get("window_seconds")) is not None:
        said["window_type"] = "time"
        said.setdefault("window_size", seconds)
    for name in ("window_size", "failure_count"):
        if isinstance(said.get(name), float) and said[name] == int(said[name]):
            said[name] = int(said[name])
    return BreakerParameters(**said)


def _retry(given: Any) -> RetryParameters | None:
    if given is None:
        return None
    said = _known(RetryParameters, given)
    for name in ("retry_on", "never"):
        if name in said:
            said[name] = _words(said[name])
    return RetryParameters(**said)


def _words(given: Any) -> tuple[str | int, ...]:
    if not isinstance(given, list) or len(given) > MAX_WORDS:
        raise ValueError("it is no list of words")
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in given):
        raise ValueError("its words are statuses and names")
    return tuple(int(one) if isinstance(one, str) and one.isdecimal() else one for one in given)


def _bulkhead(given: Any) -> BulkheadParameters | None:
    """A tier stands for what is not given."""
    if given is None:
        return None
    tier = given.get("tier")
    said = _known(BulkheadParameters, given)
    if tier is not None:
        if tier not in TIERS:
            raise ValueError("it names a tier that nobody knows")
        of_tier = TIERS[tier]
        said = {**{one.name: getattr(of_tier, one.name) for one in fields(of_tier)}, **said}
    return BulkheadParameters(**said)


def _fallback(given: Any) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("chain") or [], list):
        raise ValueError("it is no object with a list of targets")
    return cast(Mapping[str, Any], given)


def _budget(given: Any) -> SpendParameters | None:
    return None if given is None else SpendParameters(**_known(SpendParameters, given))


def _override(given: Any) -> Override | None:
    if given is None:
        return None
    mode, version = given.get("mode"), given.get("version")
    if mode not in (*MODES, RESET):
        raise ValueError("nobody knows its mode")
    if type(version) is not int:
        raise ValueError("it has no version")
    moment = datetime.fromisoformat(given.get("expires_at"))
    ends_at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return Override(mode, ends_at, version, str(given.get("reason") or "")[:300])


def _known(kind: type, given: Any) -> dict[str, Any]:
    """The parameters that `kind` has, as far as something is said of them."""
    if not isinstance(given, dict):
        raise ValueError("it is no object")
    names = {one.name for one in fields(kind)}
    return {name: one for name, one in given.items() if name in names and one is not None}
