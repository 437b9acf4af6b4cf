"""Degradation levels and the causes that determine them; runs without Django."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

NAMES = ("normal", "degraded", "critical", "emergency")
NORMAL, DEGRADED, CRITICAL, EMERGENCY = range(4)


@dataclass(frozen=True)
class Cause:
    """A cause of degradation: a failing component, and the functions that fail or still work.

    `what` identifies it (`postgresql`, `core->oracle`), and `since` is in RFC 3339, or "".
    """

    level: int
    what: str
    text: str
    since: str = ""
    fails: tuple[str, ...] = ()
    works: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Cause":
        """Return a cause from its JSON form; see :func:`to_json`."""
        lists = {name: tuple(document.get(name, ())) for name in ("fails", "works")}
        return cls(**{**document, **lists})


POSTGRESQL = Cause(
    EMERGENCY,
    "postgresql",
    "PostgreSQL does not respond: switches stay as published, the console rejects changes.",
    fails=(
        "Engaging and releasing in the console",
        "Every page but this one",
        "Approvals, audit and reports",
    ),
    works=(
        "Engaging with an emergency code, on the page /emergency/",
        "Snapshots, streams and checks from the last copy",
        "Policies and overrides, as last received",
    ),
)
READ_ONLY = Cause(
    EMERGENCY,
    "postgresql",
    "PostgreSQL is read-only, perhaps a standby: switches stay as published, the console rejects"
    " changes.",
    fails=(
        "Engaging and releasing in the console",
        "Expiry, ramps and messages",
        "Reports of services",
    ),
    works=(
        "Engaging with an emergency code, on the page /emergency/",
        "Snapshots, streams and checks",
        "Read-only pages",
    ),
)
CHANGES_LOST = Cause(
    CRITICAL,
    "postgresql",
    "PostgreSQL has lost changes that services have seen, perhaps in a failover: switches stay as"
    " published until a new epoch begins.",
    fails=("Propagation of changes to services",),
    works=(
        "Engaging with an emergency code, on the page /emergency/",
        "Snapshots, streams and checks from the last copy",
    ),
)
READ_ONLY_SQL = "(current_setting('default_transaction_read_only') = 'on' OR pg_is_in_recovery())"
"""SQL condition: the server or the session rejects all changes."""
REDIS = Cause(
    CRITICAL,
    "redis",
    "Redis does not respond: services receive changes by polling, up to a second later.",
    fails=(
        "Live updates",
        "Immediate propagation of changes: services receive them within a second",
    ),
    works=("Engaging and releasing", "Reading over HTTP", "Expiry and messages"),
)


def to_json(causes: Sequence[Cause]) -> list[dict[str, Any]]:
    return [{**asdict(it), "fails": [*it.fails], "works": [*it.works]} for it in causes]


def assess(
    database_reachable: bool, redis_reachable: bool, known: Sequence[Cause] = ()
) -> tuple[int, list[Cause]]:
    """Return the degradation level, 0 to 3, and all causes, worst first.

    `known` are the causes other than an unreachable database or Redis.
    """
    causes = [*known]
    if not database_reachable:
        causes.append(POSTGRESQL)
    if not redis_reachable:
        causes.append(REDIS)
    causes.sort(key=lambda cause: (-cause.level, cause.what))
    return causes[0].level if causes else NORMAL, causes


def build_document(
    database_reachable: bool, redis_reachable: bool, known: Sequence[Cause] = ()
) -> dict[str, Any]:
    """Return the API's document of a degradation: level, name, causes as sentences, details."""
    level, causes = assess(database_reachable, redis_reachable, known)
    return {
        "level": level,
        "name": NAMES[level],
        "causes": [cause.text for cause in causes],
        "effects": [
            {name: value for name, value in cause.items() if name != "text"}
            for cause in to_json(causes)
        ],
    }
