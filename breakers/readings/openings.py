"""The threshold metric of open breakers, including those that opened briefly."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from breakers import message_facts, names
from breakers.states import unhealthy
from breakers.states.dependency_status import find_by_names
from controlplane.core.instances.exports import TRIPPED
from controlplane.core.sql import fetch_all
from controlplane.core.threshold_metrics import MetricQuery, MetricReading

from .stopped import read_stopped

MIN_WINDOW = timedelta(minutes=1)
OVERLAP = timedelta(seconds=15)
"""Overlap with the last run, for rows that were written while it ran."""
MAX_WINDOW = timedelta(minutes=5)
"""Openings older than this are ignored."""
TO_DO = "Check whether the callee is up, and what its callers fall back to."

# Forced breakers are excluded.
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


def read_open_breakers(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield, by dependency, how many instances have an open breaker, or had one briefly."""
    readings = {one.subject: one for one in _iterate_readings(query, now)}
    stopped = read_stopped({*query.standing, *readings}, now)
    yield from stopped.values()
    found = [one for name, one in readings.items() if name not in stopped]
    about = {one.name: one for one in find_by_names([one.subject for one in found])}
    for one in found:
        caller, callee = names.split_name(one.subject) or ("", "")
        dependency = about.get(one.subject)
        facts = {"dependency": one.subject}
        if dependency is not None:
            facts = message_facts.dependency_facts(dependency)
        yield replace(
            one,
            path=message_facts.dependency_path(caller, callee),
            service=caller,
            thread=message_facts.build_thread("dependency", one.subject),
            facts={**facts, "to_do": TO_DO},
        )


def _iterate_readings(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    since = now - MIN_WINDOW
    if query.since is not None:
        since = min(query.since - OVERLAP, since)
    earliest = now - MAX_WINDOW
    rows = fetch_all(_OPENED, {"since": max(since, earliest), "recent": earliest})
    tripped = {pk: (name, instances) for pk, name, instances in rows}
    unhealthy_by_id = unhealthy.find_unhealthy(now, also=tripped)
    for pk, (name, instances) in tripped.items():
        one = unhealthy_by_id.get(pk)
        if one is None or not one.open:
            fleet = max(one.fleet if one else 0, instances)
            text = f"opened for a moment, in {instances:,} instance{'' if instances == 1 else 's'}"
            yield _build_reading(query, name, text, instances, fleet, "tripped")
    for one in unhealthy_by_id.values():
        if one.open:
            text = f"is open in {names.format_instances(one.open, one.fleet)}"
            yield _build_reading(query, one.name, text, one.open, one.fleet, "open")
        elif one.is_unheard and one.id not in tripped:
            text = "was open when its instances last reported"
            if one.silent_open < one.silent:
                some = names.format_instances(one.silent_open, one.silent)
                text = f"was open in {some} when they last reported"
            reading = _build_reading(query, one.name, text, one.silent_open, one.silent, "open")
            evidence = {**reading.evidence, "heard": False}
            yield replace(reading, evidence=evidence, is_fresh=False)


def _build_reading(
    query: MetricQuery, name: str, text: str, some: int, instances: int, what: str
) -> MetricReading:
    return MetricReading(
        subject=name,
        value=some,
        beyond=query.beyond(some),
        samples=instances,
        summary=f"The breaker of {names.format_name(name)} {text}",
        path="",
        evidence={what: some, "instances": instances},
    )
