"""Rules that decide a machine's request to engage a switch.

The first policy that matches source and scope decides, within rate and flap limits. The global
switch is always left to a person.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from switches.scopes import GLOBAL

AUTOMATIC, PERSON = "automatic", "person"
TRIPPED, DUPLICATE, ENGAGED = "tripped", "duplicate", "engaged"
ASKED, REFUSED = PERSON, "refused"
_IGNORED_CHARACTERS = str.maketrans("", "", "-_. \u2010\u2011\u2012\u2013")

MIN_RELEASE_HOLD = timedelta(hours=1)
"""Time after a person's release during which the same alert can't engage the switch."""
FLAP_TRIPS = 3
FLAP_WITHIN = timedelta(hours=1)
FLAP_LOCK = timedelta(hours=1)
BUDGET_WINDOW = timedelta(hours=1)
RESOLVED_AFTER = timedelta(hours=24)
"""Time without a repeat after which an alert counts as resolved."""


@dataclass(frozen=True)
class PolicyRow:
    """The fields of a trip policy that a decision depends on."""

    trigger: str
    sources: Sequence[str]
    scopes: Sequence[str]
    gate: str
    budget_per_hour: int


@dataclass(frozen=True)
class EarlierTrip:
    """The latest trip with the same switch and fingerprint.

    `firing` is True until the alert resolves, `episode_open` until the trip's episode ends, and
    `waits` while an escalation to people is open.
    """

    outcome: str
    at: datetime
    firing: bool = True
    episode_open: bool = False
    waits: bool = False


@dataclass(frozen=True)
class OpenEpisode:
    """The switch's open episode: actor, time, reason, and whether it is ramping.

    `by_machine` is True if a machine engaged it. `ramped_by` is the person who started the
    ramp; empty if the ramp started at an expiry.
    """

    by: str
    at: datetime
    reason: str
    ramping: bool = False
    ramped_by: str = ""
    by_machine: bool = False


@dataclass(frozen=True)
class ReleaseByHand:
    """A person's release of a tripped episode; `resolved` tells if the alert has resolved since."""

    by: str
    at: datetime
    resolved: bool


@dataclass(frozen=True)
class TripHistory:
    """The earlier trips, episode and release on which a trip request is decided.

    `trips` are the times of the switch's latest trips, newest first. `spent` counts the policy's
    trips within the last hour over all switches.
    """

    earlier: EarlierTrip | None = None
    open_episode: OpenEpisode | None = None
    release: ReleaseByHand | None = None
    trips: Sequence[datetime] = ()
    spent: int = 0


@dataclass(frozen=True)
class TripDecision:
    """The outcome of a trip request; `escalate` is the key of an escalation to people, if any."""

    outcome: str
    why: str
    escalate: str = ""


def first_policy(policies: Sequence[PolicyRow], source: str, scope: str) -> PolicyRow | None:
    """Return the first policy that matches source and scope, or None.

    For a source such as `alertmanager:LeakSuspected`, patterns may match the part after the
    colon. Case, hyphens, underscores, dots and spaces are ignored.
    """
    names = [_normalize(source), _normalize(source.partition(":")[2])]
    for policy in policies:
        # Escape [: only * and ? are wildcards.
        patterns = [_normalize(pattern).replace("[", "[[]") for pattern in policy.sources]
        matches = any(fnmatchcase(name, pattern) for name in names if name for pattern in patterns)
        if matches and scope in policy.scopes:
            return policy
    return None


def _normalize(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().translate(_IGNORED_CHARACTERS)


def decide(
    *, switch: str, source: str, policy: PolicyRow | None, history: TripHistory, now: datetime
) -> TripDecision:
    """Return the decision on a machine's request to engage `switch` (`scope:key`) by `policy`."""
    scope = switch.partition(":")[0]
    found = _check_engaged(switch, history)
    by_machine = history.open_episode is not None and history.open_episode.by_machine
    # A policy for people applies although a machine has engaged the switch.
    leaves_to_people = by_machine and policy is not None and policy.gate != AUTOMATIC
    if found is not None and not (found.outcome == ENGAGED and leaves_to_people):
        return found
    if policy is None:
        return TripDecision(REFUSED, f"No policy allows “{source}” to trip {scope} switches.")
    return (
        _check_release(switch, history, now)
        or _check_repeat(history)
        or _check_person_gate(switch, scope, policy)
        or _check_flapping(switch, history, now)
        or _check_budget(policy, history)
        or TripDecision(
            TRIPPED, f"The policy “{policy.trigger}” allows “{source}” to trip {switch}."
        )
    )


def _check_engaged(switch: str, history: TripHistory) -> TripDecision | None:
    open_episode, earlier = history.open_episode, history.earlier
    if open_episode is not None and open_episode.ramping:
        return _check_ramp(switch, open_episode, earlier)
    if earlier is not None and earlier.episode_open:
        action = "stopped" if earlier.outcome == TRIPPED else "arrived while someone stopped"
        return TripDecision(
            DUPLICATE,
            f"The same alert {action} {switch} at {_format_time(earlier.at)}. This is a repeat.",
        )
    if open_episode is None:
        return None
    return TripDecision(
        ENGAGED,
        f"{switch} is already engaged, by {open_episode.by} since {_format_time(open_episode.at)}: "
        f"{open_episode.reason}",
    )


def _check_ramp(
    switch: str, open_episode: OpenEpisode, earlier: EarlierTrip | None
) -> TripDecision | None:
    """Return the decision `duplicate` if a person started the ramp while this alert was firing.

    Otherwise return None, which lets the request end the ramp: for a new or recurring alert, and if
    no person started it.
    """
    is_firing = earlier is not None and earlier.episode_open and earlier.firing
    if earlier is None or not is_firing or not open_episode.ramped_by:
        return None
    return TripDecision(
        DUPLICATE,
        f"{open_episode.ramped_by} started a ramp of {switch} despite this alert, received "
        f"{_format_time(earlier.at)}. The ramp's gates or a person decide.",
    )


def _check_release(switch: str, history: TripHistory, now: datetime) -> TripDecision | None:
    """Return a refusal if a person released the switch despite this alert, else None.

    The request is refused for an hour after the release, and until the alert has resolved.
    """
    if (release := history.release) is None:
        return None
    text = f"{release.by} released {switch} at {_format_time(release.at)} despite this alert."
    if not release.resolved:
        return TripDecision(
            REFUSED,
            f"{text} The alert has not resolved since, so only a person can engage it again.",
        )
    until = release.at + MIN_RELEASE_HOLD
    if now < until:
        return TripDecision(
            REFUSED,
            f"{text} The same alert may trip it again at {_format_time(until)} at the earliest.",
        )
    return None


def _check_repeat(history: TripHistory) -> TripDecision | None:
    earlier = history.earlier
    if earlier is None or not earlier.firing:
        return None
    if earlier.outcome == TRIPPED and not earlier.episode_open:
        return TripDecision(
            DUPLICATE,
            f"The same alert stopped it at {_format_time(earlier.at)}, that episode is over and the"
            " alert has not resolved since. Only a person can engage it again.",
        )
    if earlier.outcome == ASKED and earlier.waits:
        return TripDecision(DUPLICATE, f"Waiting for a decision since {_format_time(earlier.at)}.")
    if earlier.outcome == ASKED:
        return TripDecision(
            DUPLICATE,
            f"People decided about it after {_format_time(earlier.at)}. They are not asked again"
            " until the alert resolves.",
        )
    return None


def _check_person_gate(switch: str, scope: str, policy: PolicyRow) -> TripDecision | None:
    if scope == GLOBAL.name:
        why = "Only people engage the global switch."
    elif policy.gate != AUTOMATIC:
        why = f"By the policy “{policy.trigger}”, a person decides."
    else:
        return None
    return TripDecision(ASKED, why, escalate=f"person:{policy.trigger}:{switch}")


def _check_flapping(switch: str, history: TripHistory, now: datetime) -> TripDecision | None:
    latest = sorted(history.trips, reverse=True)[:FLAP_TRIPS]
    if len(latest) < FLAP_TRIPS or latest[0] - latest[-1] > FLAP_WITHIN:
        return None
    until = latest[0] + FLAP_LOCK
    if now >= until:
        return None
    return TripDecision(
        REFUSED,
        f"{switch} was tripped {FLAP_TRIPS} times within an hour, so automatic trips are locked"
        f" until {_format_time(until)}. A person decides.",
        escalate=f"locked:{switch}",
    )


def _check_budget(policy: PolicyRow, history: TripHistory) -> TripDecision | None:
    if history.spent < policy.budget_per_hour:
        return None
    return TripDecision(
        REFUSED,
        f"The policy “{policy.trigger}” allows {policy.budget_per_hour} trips per hour, and they"
        " are used up. A person decides.",
        escalate=f"budget:{policy.trigger}",
    )


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
