"""Texts on the state of a data plane or relay: the fact, its consequence, and what to do. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.durations import format_readable
from controlplane.core.fleet.statuses import (
    EMPTY,
    LAGGING,
    LATE,
    SILENT,
    STARTING,
    FleetMember,
    PublishedHead,
)


@dataclass(frozen=True)
class Explanation:
    """The fact ("is silent"), and sentences that say what it means and what to do; may be empty."""

    fact: str
    meaning: str = ""
    to_do: str = ""


def explain(member: FleetMember, head: PublishedHead, now: datetime) -> Explanation:
    source = " or ".join(member.upstreams) or ("its upstream" if member.is_relay else "PostgreSQL")
    if member.state == SILENT:
        return _explain_silence(member, source, now)
    if member.state == EMPTY:
        needs = " its token, its public key and" if member.is_relay else ""
        return Explanation(
            "has no snapshot",
            "It answers services with an error; they keep the snapshot that they have.",
            f"Check{needs} its connection to {source}; its log has the cause.",
        )
    if member.state == LAGGING:
        return Explanation(
            "lags",
            f"{_describe_lag(member, head)} Changes, kills too, reach its services late.",
            f"Check its connection to {source}; its log has the cause.",
        )
    if member.state == STARTING:
        return Explanation("is starting", "It started less than 30 s ago.")
    return Explanation("is up to date")


def _explain_silence(member: FleetMember, source: str, now: datetime) -> Explanation:
    if member.follows_silent:
        to_do = f"It reports through {member.follows_silent}, which is silent, too: start there."
    else:
        to_do = f"Check that it runs and reaches {source}."
        if member.is_relay:
            to_do += " Until then, use its page /emergency/ to stop traffic there."
    return Explanation(
        "is silent",
        f"The last report came {format_readable(now - member.heard_at)} ago. If it still runs, its"
        " services may not get changes, kills included.",
        to_do,
    )


def _describe_lag(member: FleetMember, head: PublishedHead) -> str:
    age = timedelta(seconds=member.age_seconds or 0)
    if age > LATE:
        return f"Its snapshot is {format_readable(age)} old."
    if member.epoch != head.epoch:
        return "Its snapshot is of another epoch."
    return f"It serves version {member.version:,}; the console published {head.version:,}."
