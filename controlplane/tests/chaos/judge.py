"""Compares the observations of readers and writers with the truth. Pure: returns problems."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from controlplane.tests.chaos.truth import Row, State, Truth

GRACE_SECONDS = 5.0
"""Time after its expiry, when readers end an engagement if its policy is to release."""
CLOCK_TOLERANCE_SECONDS = 1.0
RAMP_PERCENTS = (5.0, 25.0, 100.0)


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that a reader got. `at` is UNIX seconds when it had arrived."""

    reader: str
    at: float
    epoch: str
    version: int
    state: State


@dataclass(frozen=True)
class Decision:
    """The decision about one switch that a reader got. `at` is UNIX seconds when it had arrived."""

    reader: str
    at: float
    version: int
    switch: str
    targeting_key: str
    allowed: bool


@dataclass(frozen=True)
class Resource:
    """A switch as reported by the API or a live socket, at the version of its last change.

    `reader` includes the switch: versions of different switches aren't comparable.
    """

    reader: str
    at: float
    version: int
    switch: str
    state: str
    allow_percent: float
    expires_at: str | None


@dataclass(frozen=True)
class Operation:
    """A requested change with its final response, after any number of retries.

    `id` is its Idempotency-Key and its request id; `action` is the audit row that it writes.
    `status` is None without a response; `version` is that of the response, if it has one.
    """

    id: str
    action: str
    switch: str
    status: int | None
    version: int | None
    began: float
    ended: float
    attempts: int


def compare_snapshots(truth: Truth, snapshots: Iterable[Snapshot]) -> list[str]:
    """Return a problem for each snapshot that is not the published state at its version."""
    problems = []
    for one in snapshots:
        name = f"{one.reader} at {one.at:.3f}, version {one.version}"
        expected = truth.get_state(one.version)
        if one.epoch != truth.epoch:
            problems.append(f"{name}: epoch {one.epoch} instead of {truth.epoch}")
        elif expected is None:
            problems.append(f"{name}: only {truth.newest} versions were committed")
        elif one.state != expected:
            problems.append(f"{name}: {_difference(one.state, expected)}")
    return problems


def compare_decisions(truth: Truth, decisions: Iterable[Decision]) -> list[str]:
    """Return a problem for each decision that does not follow from the state at its version."""
    problems = []
    for one in decisions:
        state = truth.get_state(one.version)
        if state is None:
            problems.append(f"{one}: only {truth.newest} versions were committed")
        elif one.allowed not in possible_decisions(state, one):
            problems.append(f"{one}: the switch was {state.get(one.switch, 'released')}")
    return problems


def compare_resources(truth: Truth, resources: Iterable[Resource]) -> list[str]:
    """Return a problem for each resource that is not the switch at its version."""
    problems = []
    for one in resources:
        state = truth.get_state(one.version)
        if state is None:
            problems.append(f"{one}: only {truth.newest} versions were committed")
            continue
        entry = state.get(one.switch)
        observed = (one.state, one.allow_percent, one.expires_at)
        if entry is None:
            expected: tuple[str, float, str | None] = ("released", 100.0, None)
        else:
            share = entry.allow_percent
            expected = ("ramping" if share else "engaged", share, entry.expires_at)
        if observed != expected:
            problems.append(f"{one}: it was {expected}")
    return problems


def possible_decisions(state: State, decision: Decision) -> set[bool]:
    """Return the decisions that a state allows: both only around an expiry that releases."""
    entry = state.get(decision.switch)
    if entry is None:
        return {True}
    if entry.allow_percent:
        digest = hashlib.sha256(f"{entry.salt}:{decision.targeting_key}".encode()).digest()
        bucket = int.from_bytes(digest[:8], "big") % 10_000
        return {bucket < entry.allow_percent * 100}
    if entry.on_expiry == "release" and entry.expires_at is not None:
        ends = datetime.fromisoformat(entry.expires_at).timestamp() + GRACE_SECONDS
        if decision.at >= ends - CLOCK_TOLERANCE_SECONDS:
            return {True, False}
    return {False}


def steps_back(answers: Iterable[Snapshot | Decision | Resource]) -> list[str]:
    """Return a problem for each answer of a lower version than its reader had before."""
    newest: dict[str, int] = {}
    problems = []
    for one in answers:
        before = newest.get(one.reader, 0)
        if one.version < before:
            problems.append(f"{one.reader} at {one.at:.3f}: {before} → {one.version}")
        newest[one.reader] = one.version
    return problems


def compare_operations(operations: Sequence[Operation], rows: Sequence[Row]) -> list[str]:
    """Return a problem for each change that was lost, was made twice, or was refused and made.

    Without an answer a change may have been made, once.
    """
    written: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        written[row.request_id, row.action].append(row)
    problems = []
    for one in operations:
        found = written[one.id, one.action]
        versions = [row.version for row in found]
        if one.status is None:
            if len(found) > 1:
                problems.append(f"made {len(found)} times: {one}")
        elif one.status >= 300:
            if found:
                problems.append(f"refused, but made: {one}")
        elif len(found) != 1:
            problems.append(f"acknowledged, but made {len(found)} times: {one}")
        elif found[0].target != one.switch or one.version not in (None, versions[0]):
            problems.append(f"made otherwise than acknowledged: {one}, {found[0]}")
    return problems


def wrong_ramp_steps(truth: Truth) -> list[str]:
    """Return a problem for each share that does not follow the one before in the ramps' plan.

    A share may always end at 0, which is engaging again.
    """
    following: dict[float | None, float] = dict(pairwise((0.0, *RAMP_PERCENTS)))
    problems = []
    for version in range(1, truth.newest + 1):
        before, after = truth.get_state(version - 1) or {}, truth.get_state(version) or {}
        for switch, entry in after.items():
            was = before.get(switch)
            share = None if was is None else was.allow_percent
            if entry.allow_percent not in (0.0, share, following.get(share)):
                problems.append(
                    f"version {version}: {switch} went from {share} to {entry.allow_percent} %"
                )
    return problems


def compare_messages(
    sent: Sequence[tuple[int, str]], arrived: Sequence[int]
) -> tuple[list[str], int]:
    """Return the problems of messages, and how many arrived more than once.

    `sent` are (id, subject) of those that the outbox counts as sent; `arrived` are the ids as the
    receiver got them. Each has to arrive, and those of one subject in order.
    """
    counts = Counter(arrived)
    problems = [f"message {number} never arrived" for number, _ in sent if not counts[number]]
    first = {number: place for place, number in reversed(list(enumerate(arrived)))}
    by_subject: defaultdict[str, list[int]] = defaultdict(list)
    for number, subject in sorted(sent):
        if subject and number in first:
            by_subject[subject].append(number)
    for subject, numbers in by_subject.items():
        for earlier, later in pairwise(numbers):
            if first[later] < first[earlier]:
                problems.append(f"{subject}: message {later} arrived before {earlier}")
    return problems, sum(count - 1 for count in counts.values())


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` (0 to 1) of the values do not exceed; 0.0 of none."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


def undisturbed(
    operations: Iterable[Operation], windows: Iterable[tuple[float, float]]
) -> list[Operation]:
    """Return the operations that overlap none of the windows (in the same seconds)."""
    spans = list(windows)
    return [
        one
        for one in operations
        if not any(one.began < ended and began < one.ended for began, ended in spans)
    ]


def _difference(observed: Mapping[str, object], expected: Mapping[str, object]) -> str:
    wrong = [
        switch
        for switch in observed.keys() | expected.keys()
        if observed.get(switch) != expected.get(switch)
    ]
    switch = min(wrong)
    return (
        f"{len(wrong)} switches differ; {switch} is told as {observed.get(switch, 'released')}, "
        f"but was {expected.get(switch, 'released')}"
    )
