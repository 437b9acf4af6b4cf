"""Open breakers, and breakers that opened briefly since the last evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from breakers import message_facts, names
from breakers.models import Dependency
from breakers.sql import fetch_all
from breakers.states import unhealthy
from breakers.states.dependency_status import find_by_names
from breakers.states.unhealthy import UnhealthyDependency
from controlplane.core.instances.openings import TRIPPED
from controlplane.core.threshold_metrics import MetricQuery, MetricReading, count

MIN_WINDOW = timedelta(minutes=1)
OVERLAP = timedelta(seconds=15)
"""Overlap with the last run, which is noted at its end: rows that came while it ran are read again.
"""
MAX_WINDOW = timedelta(minutes=5)
"""Openings older than this are ignored."""
TO_DO = "See whether its callee is there, and what its callers fall back on."

# A breaker upon which a mode is forced has not tripped.
_OPENED = f"""
    SELECT t.dependency_id, d.caller || '->' || d.callee, count(DISTINCT t.instance)
    FROM breakers_transition t
    JOIN breakers_dependency d ON d.id = t.dependency_id
    LEFT JOIN breakers_breakerstate s ON s.dependency_id = t.dependency_id
        AND s.instance = t.instance AND s.boot = t.boot
    WHERE t.received_at > %(since)s AND t.at > %(recent)s AND {TRIPPED}
      AND d.removed_at IS NULL AND coalesce(s.mode, 'normal') = 'normal'
    GROUP BY t.dependency_id, d.id
"""  # noqa: S608


def read_open_breakers(asked: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield, by dependency, the number of instances in which the breaker is open."""
    found = list(_iterate_readings(asked, now))
    about = _load_dependencies([one.subject for one in found])
    for one in found:
        yield _add_facts(one, about.get(one.subject))


def _iterate_readings(asked: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    said = fetch_all(_OPENED, {"since": _window_start(asked, now), "recent": now - MAX_WINDOW})
    tripped = {pk: (name, instances) for pk, name, instances in said}
    stand = unhealthy.find_unhealthy(now, also=tripped)
    for pk, (name, instances) in tripped.items():
        one = stand.get(pk)
        if one is None or not one.open:
            fleet = max(one.instances if one else 0, instances)
            text = f"The breaker of {name} opened for a moment, in "
            yield _reading(asked, name, text, instances, fleet, "tripped")
    for one in stand.values():
        text = f"The breaker of {one.name} is open in "
        if one.open:
            yield _reading(asked, one.name, text, one.open, one.instances, "open")
        elif one.is_unheard and one.id not in tripped:
            yield _unheard_reading(asked, one, text)


def _window_start(asked: MetricQuery, now: datetime) -> datetime:
    """Return the start of the window: before the last run, so that no opening is missed."""
    wanted = now - MIN_WINDOW
    if asked.since is not None:
        wanted = min(asked.since - OVERLAP, wanted)
    return max(wanted, now - MAX_WINDOW)


def _reading(
    asked: MetricQuery, name: str, text: str, some: int, instances: int, what: str
) -> MetricReading:
    return MetricReading(
        subject=name,
        value=some,
        beyond=asked.beyond(some),
        samples=instances,
        said=f"{text}{count(some)} of {count(instances)} instances",
        path="",
        evidence={what: some, "instances": instances},
    )


def _unheard_reading(asked: MetricQuery, one: UnhealthyDependency, text: str) -> MetricReading:
    """Return a reading of a breaker that was open when its instances last reported."""
    heard = _reading(asked, one.name, text, one.silent_open, one.silent, "open")
    return replace(heard, evidence={**heard.evidence, "heard": False}, is_fresh=False)


def _load_dependencies(wanted: Sequence[str]) -> Mapping[str, Dependency]:
    return {one.name: one for one in find_by_names(wanted)} if wanted else {}


def _add_facts(one: MetricReading, about: Dependency | None) -> MetricReading:
    caller, callee = names.split_name(one.subject) or ("", "")
    known = message_facts.dependency_facts(about) if about else {"dependency": one.subject}
    return replace(
        one,
        path=message_facts.dependency_path(caller, callee),
        service=caller,
        thread=message_facts.build_thread("dependency", one.subject),
        facts={**known, "to_do": TO_DO},
    )
