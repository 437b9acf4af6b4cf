"""Whether a machine's wish stops a switch: from the policies, what happened before, and the time.

Pure. The first policy that knows the source and the scope decides; a person has the last word, and
the global switch is a person's in any case. `why` is for whoever reads it at 3 a.m.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from switches.scopes import GLOBAL

AUTOMATIC, PERSON = "automatic", "person"
TRIPPED, DUPLICATE, ENGAGED, ASKED, REFUSED = (
    "tripped",
    "duplicate",
    "engaged",
    "person",
    "refused",
)
_LEFT_OUT = str.maketrans("", "", "-_. \u2010\u2011\u2012\u2013")

# How long each restraint lasts; what stands here is told in `why`.
OVERRIDE_HOLDS = timedelta(hours=1)
"""At least this long after a person let traffic flow, the same alert does not stop it again."""
FLAP_TRIPS = 3
FLAP_WITHIN = timedelta(hours=1)
FLAP_LOCK = timedelta(hours=1)
BUDGET_WINDOW = timedelta(hours=1)
SILENCE = timedelta(hours=24)
"""An alert not heard of for so long counts as resolved: whoever forgot to say so."""


@dataclass(frozen=True)
class Policy:
    """A row of the table, as far as deciding goes."""

    trigger: str
    sources: Sequence[str]
    scopes: Sequence[str]
    gate: str
    budget_per_hour: int


@dataclass(frozen=True)
class Earlier:
    """What became of the same fingerprint's latest wish for this switch.

    `firing` until it was told that the alert is over; `episode_open` while what it led to lasts;
    `waits` while people are being asked.
    """

    outcome: str
    at: datetime
    firing: bool = True
    episode_open: bool = False
    waits: bool = False


@dataclass(frozen=True)
class Standing:
    """The open episode of the switch: who engaged it, when and why, and whether it ramps.

    `by_machine`: it ends by itself soon, and nobody has judged it. `ramped_by`: whoever lets it
    flow again by a ramp; nobody, if that began by itself at an expiry.
    """

    by: str
    at: datetime
    reason: str
    ramping: bool = False
    ramped_by: str = ""
    by_machine: bool = False


@dataclass(frozen=True)
class LetFlow:
    """A person ended an episode that this fingerprint had a part in. `resolved` once that alert
    was over, before or since."""

    by: str
    at: datetime
    resolved: bool


@dataclass(frozen=True)
class History:
    """All that matters of the past. `trips` are the switch's latest, newest first; `spent` counts
    those of the policy within the last hour, over all switches."""

    earlier: Earlier | None = None
    standing: Standing | None = None
    let_flow: LetFlow | None = None
    trips: Sequence[datetime] = ()
    spent: int = 0


@dataclass(frozen=True)
class Decision:
    """What becomes of the wish. `escalate` names what a person is told of, once for that name."""

    outcome: str
    why: str
    escalate: str = ""


def first_policy(policies: Sequence[Policy], source: str, scope: str) -> Policy | None:
    """The first that knows the source and the scope. Of `alertmanager:LeakSuspected` the part
    behind the colon is a name as well. Case, hyphens, underscores, dots and spaces don't matter."""
    names = [_plain(source), _plain(source.partition(":")[2])]
    for policy in policies:
        # Only * and ? mean something in a pattern.
        patterns = [_plain(pattern).replace("[", "[[]") for pattern in policy.sources]
        known = any(fnmatchcase(name, pattern) for name in names if name for pattern in patterns)
        if known and scope in policy.scopes:
            return policy
    return None


def _plain(name: str) -> str:
    """`Data-Leak scan`, `data_leak.scan` and `DataLeakScan` are one name."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_LEFT_OUT)


def decide(
    *, switch: str, source: str, policy: Policy | None, history: History, now: datetime
) -> Decision:
    """What becomes of a wish to stop `switch` (`scope:key`), by the policy that decides on it."""
    scope = switch.partition(":")[0]
    found = _stands_already(switch, history)
    if found is not None and not _stopped_for_now(found, history, policy):
        return found
    if policy is None:
        return Decision(REFUSED, f"No policy lets “{source}” stop a switch of scope {scope}.")
    return (
        _overridden(switch, history, now)
        or _told_before(history)
        or _for_a_person(switch, scope, policy)
        or _locked(switch, history, now)
        or _spent(policy, history)
        or Decision(TRIPPED, f"The policy “{policy.trigger}” lets “{source}” stop {switch}.")
    )


def _stands_already(switch: str, history: History) -> Decision | None:
    standing, earlier = history.standing, history.earlier
    if standing is not None and standing.ramping:
        return _known_to_ramp(switch, standing, earlier)
    if earlier is not None and earlier.episode_open:
        done = "has stopped" if earlier.outcome == TRIPPED else "was heard while somebody stopped"
        return Decision(
            DUPLICATE,
            f"The same alert {done} {switch} already, {_at(earlier.at)}; it is noted as a repeat.",
        )
    if standing is None:
        return None
    return Decision(
        ENGAGED,
        f"{switch} is engaged already, by {standing.by} since {_time(standing.at)}: "
        f"{standing.reason}",
    )


def _known_to_ramp(switch: str, standing: Standing, earlier: Earlier | None) -> Decision | None:
    """A ramp gives way to what is new, and to an alert that fires again. Whoever began it knew of
    one that has not resolved since; if nobody did, that ends it too."""
    known = earlier is not None and earlier.episode_open and earlier.firing
    if earlier is None or not known or not standing.ramped_by:
        return None
    return Decision(
        DUPLICATE,
        f"{standing.ramped_by} lets {switch} flow again by a ramp, with this alert known since "
        f"{_time(earlier.at)}: the ramp's gates decide, or a person.",
    )


def _stopped_for_now(found: Decision, history: History, policy: Policy | None) -> bool:
    """Whether it is only a machine that stopped it, for a while, while this is left to people."""
    by_machine = history.standing is not None and history.standing.by_machine
    for_people = policy is not None and policy.gate != AUTOMATIC
    return found.outcome == ENGAGED and by_machine and for_people


def _overridden(switch: str, history: History, now: datetime) -> Decision | None:
    """A person's decision holds until the alert has resolved, and for an hour in any case."""
    let_flow = history.let_flow
    if let_flow is None:
        return None
    said = f"{let_flow.by} let {switch} flow {_at(let_flow.at)}, with this alert known."
    if not let_flow.resolved:
        return Decision(
            REFUSED,
            f"{said} The alert has not resolved since, so it does not stop it again; a person can.",
        )
    until = let_flow.at + OVERRIDE_HOLDS
    if now < until:
        return Decision(
            REFUSED, f"{said} The same alert may stop it again {_at(until)} at the earliest."
        )
    return None


def _told_before(history: History) -> Decision | None:
    earlier = history.earlier
    if earlier is None or not earlier.firing:
        return None
    if earlier.outcome == TRIPPED and not earlier.episode_open:
        return Decision(
            DUPLICATE,
            f"The same alert stopped it {_at(earlier.at)}, that episode is over, and the alert has "
            "not resolved since: engaging again is a person's decision.",
        )
    if earlier.outcome == ASKED and earlier.waits:
        return Decision(DUPLICATE, f"People are being asked, since {_time(earlier.at)}.")
    if earlier.outcome == ASKED:
        return Decision(
            DUPLICATE,
            f"It was left to people {_at(earlier.at)}, and one of them has settled it: nobody is "
            "asked again until the alert has resolved.",
        )
    return None


def _for_a_person(switch: str, scope: str, policy: Policy) -> Decision | None:
    """The scope is asked for first: no table makes everything stop by itself."""
    if scope == GLOBAL.name:
        why = "Stopping everything is never automatic: a person decides."
    elif policy.gate != AUTOMATIC:
        why = f"The policy “{policy.trigger}” leaves this to a person."
    else:
        return None
    return Decision(ASKED, why, escalate=f"person:{policy.trigger}:{switch}")


def _locked(switch: str, history: History, now: datetime) -> Decision | None:
    latest = sorted(history.trips, reverse=True)[:FLAP_TRIPS]
    if len(latest) < FLAP_TRIPS or latest[0] - latest[-1] > FLAP_WITHIN:
        return None
    until = latest[0] + FLAP_LOCK
    if now >= until:
        return None
    return Decision(
        REFUSED,
        f"Machines stopped {switch} {FLAP_TRIPS} times within an hour: it is locked against them "
        f"until {_time(until)}, and a person decides.",
        escalate=f"locked:{switch}",
    )


def _spent(policy: Policy, history: History) -> Decision | None:
    if history.spent < policy.budget_per_hour:
        return None
    return Decision(
        REFUSED,
        f"The policy “{policy.trigger}” allows {policy.budget_per_hour} trips an hour, and they "
        "are spent: a person decides.",
        escalate=f"budget:{policy.trigger}",
    )


def _at(moment: datetime) -> str:
    return f"at {_time(moment)}"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
