"""Report sections about trips, approvals and break-glass reviews."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from controlplane.core.approvals import kinds
from controlplane.core.approvals.models import Approval
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from controlplane.core.team_filter import keep_owned
from switches.models import Trip
from switches.models.trip import OUTCOME_WORDS
from switches.report.section_rows import (
    MAX_ROWS,
    build_section,
    pluralize,
    read_first_rows,
    reason_of,
    shorten_reason,
)

REVIEW = Approval.Kind.BREAK_GLASS_REVIEW
PENDING = Q(state="pending")
DECIDED = Case(When(PENDING, then=Value(0)), default=Value(1))
"""Sort key: pending requests before decided ones."""


@REPORT_SECTIONS.add(90)
def trips_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    trips = keep_owned(Trip.objects.filter(at__gte=start, at__lt=end), "switch", is_owned)
    rows = (
        trips.values("policy__trigger", "outcome")
        .annotate(trips=Count("pk"), repeated=Coalesce(Sum("repeats"), 0))
        .order_by("-trips", "policy__trigger", "outcome")
    )
    total = sum(row["trips"] for row in rows)
    tripped = sum(row["trips"] for row in rows if row["outcome"] == Trip.Outcome.TRIPPED)
    waiting = sum(row["trips"] for row in rows if row["outcome"] == Trip.Outcome.PERSON)
    return build_section(
        "trips",
        "Trips",
        rows[:MAX_ROWS],
        "/trips/",
        total=len(rows),
        tone="warn" if waiting else "good",
        headline=f"{pluralize(waiting, 'trip')} escalated to a person",
        summary=f"{pluralize(total, 'automatic trip')}; {tripped:,} engaged a switch, "
        f"{waiting:,} escalated to a person.",
        empty="No automatic trips.",
        policy=lambda row: row["policy__trigger"] or "none matched",
        outcome=lambda row: OUTCOME_WORDS[row["outcome"]],
        trips="trips",
        repeated="repeated",
    )


@REPORT_SECTIONS.add(40)
def reviews_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    about = Approval.objects.filter(kind=REVIEW, requested_at__lt=min(end, now))
    found = _keep_owned(about.filter(PENDING | Q(requested_at__gte=start)), is_owned)
    rows, counts = read_first_rows(found.order_by(DECIDED, "requested_at", "pk"), unsigned=PENDING)
    unsigned, total = counts["unsigned"], counts["total"]
    return build_section(
        "break_glass",
        "Break-glass and reviews",
        rows,
        "/approvals/",
        total=total,
        tone="bad" if unsigned else "warn" if total else "good",
        headline=f"{pluralize(unsigned, 'break-glass review')} not signed"
        if unsigned
        else pluralize(total, "break-glass review"),
        summary=f"{pluralize(unsigned, 'review')} not signed by a second person."
        if unsigned
        else f"{pluralize(total, 'review')} of this week, all signed.",
        empty="No break-glass this week and no open reviews.",
        switch="target",
        what="summary",
        why=reason_of,
        by="requested_by",
        used_at="requested_at",
        review=_describe_review,
    )


@REPORT_SECTIONS.add(80)
def approvals_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    requests = Approval.objects.exclude(kind=REVIEW).filter(requested_at__lt=min(end, now))
    found = requests.filter(PENDING | Q(decided_at__gte=start, decided_at__lt=end))
    found = _keep_owned(found, is_owned)
    rows, counts = read_first_rows(
        found.order_by(DECIDED, F("decided_at").desc(nulls_first=True), "pk"),
        **{state.value: Q(state=state) for state in Approval.State},
    )
    total, pending = counts.pop("total"), counts.pop("pending")
    parts = [f"{count:,} {state}" for state, count in sorted(counts.items()) if count]
    parts += [f"{pending:,} waiting"] if pending else []
    return build_section(
        "approvals",
        "Approvals",
        rows,
        "/approvals/",
        total=total,
        tone="warn" if pending or counts["expired"] else "good",
        headline=f"{pluralize(pending, 'approval')} waiting"
        if pending
        else f"{pluralize(counts['expired'], 'approval')} expired",
        summary=f"{', '.join(parts)}.",
        empty="No approval requests.",
        about="target",
        what="summary",
        state="state",
        asked_by="requested_by",
        asked_at="requested_at",
        decided_by="decided_by",
        comment=lambda approval: shorten_reason(approval.comment),
    )


@REPORT_SECTIONS.add(70)
def overridden_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    reviews = Approval.objects.filter(kind=REVIEW, requested_at__gte=start, requested_at__lt=end)
    reviews = _keep_owned(reviews, is_owned)
    broken = reviews.exclude(diff__rules=[])  # An emergency order that no rule refused.
    found = list(broken.order_by("-requested_at", "-pk").values_list("diff", "target"))
    times = Counter(rule for diff, _ in found for rule in _get_rule_names(diff))
    counts = Counter(str(diff.get("did") or "proceed") for diff, _ in found)
    last: dict[str, str] = {}
    for diff, target in found:
        for rule in _get_rule_names(diff):
            last.setdefault(rule, target.partition("#")[0])
    actions = " and ".join(f"{count:,} to {what}" for what, count in sorted(counts.items()))
    return build_section(
        "rules_overridden",
        "Safety rules overridden",
        times.most_common(MAX_ROWS),
        "/rules/",
        total=len(times),
        tone="warn" if found else "good",
        headline=f"{pluralize(len(times), 'safety rule')} overridden",
        summary=f"Safety rules were overridden {pluralize(len(found), 'time')}: {actions}.",
        empty="No safety rule was overridden.",
        rule=lambda pair: pair[0],
        times=lambda pair: pair[1],
        last_by_switch=lambda pair: last[pair[0]],
    )


def _keep_owned(approvals: QuerySet[Approval], is_owned: IsOwned) -> QuerySet[Approval]:
    if is_owned is None:
        return approvals
    return approvals.filter(
        pk__in=[one.pk for one in approvals if is_owned(kinds.get_resource(one))]
    )


def _describe_review(review: Approval) -> str:
    return "not signed" if review.state == "pending" else f"{review.state} by {review.decided_by}"


def _get_rule_names(diff: dict[str, Any]) -> list[str]:
    return [str(rule) for rule in diff.get("rules") or [diff.get("rule") or "not named"]]
