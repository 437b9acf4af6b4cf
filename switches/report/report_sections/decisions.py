"""Report sections about trips, approvals and break-glass reviews."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, Sum, Value, When
from django.db.models.functions import Coalesce

from controlplane.core.approvals.models import Approval
from controlplane.core.canonical import timestamp
from controlplane.core.page_registry import REPORT_SECTIONS, ReportRow, ReportSection
from switches.models import Trip
from switches.report.section_rows import MAX_ROWS, pluralize, read_first_rows, shorten_reason

REVIEW = Approval.Kind.BREAK_GLASS_REVIEW
PENDING = Q(state="pending")
DECIDED = Case(When(PENDING, then=Value(0)), default=Value(1), output_field=IntegerField())
"""Sort key: pending requests before decided ones."""


@REPORT_SECTIONS.add(90)
def trips_section(start: datetime, end: datetime, _now: datetime) -> ReportSection:
    rows = (
        Trip.objects.filter(at__gte=start, at__lt=end)
        .values("policy__trigger", "outcome")
        .annotate(trips=Count("pk"), repeated=Coalesce(Sum("repeats"), 0))
        .order_by("-trips", "policy__trigger", "outcome")
    )
    total = sum(row["trips"] for row in rows)
    tripped = sum(row["trips"] for row in rows if row["outcome"] == Trip.Outcome.TRIPPED)
    waiting = sum(row["trips"] for row in rows if row["outcome"] == Trip.Outcome.PERSON)
    return ReportSection(
        slug="trips",
        title="Trips",
        summary=(
            f"Machines asked {pluralize(total, 'time')}; {tripped:,} engaged a switch, "
            f"{waiting:,} were left to a person."
            if total
            else "No machine asked for anything to be stopped."
        ),
        tone="warn" if waiting else "good",
        columns=("policy", "outcome", "trips", "repeated"),
        rows=tuple(
            ReportRow(
                {
                    "policy": row["policy__trigger"] or "none matched",
                    "outcome": Trip.Outcome(row["outcome"]).value,
                    "trips": row["trips"],
                    "repeated": row["repeated"],
                },
                "/trips/",
            )
            for row in rows[:MAX_ROWS]
        ),
        total=len(rows),
    )


@REPORT_SECTIONS.add(40)
def reviews_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
    about = Approval.objects.filter(kind=REVIEW, requested_at__lt=min(end, now))
    found = about.filter(PENDING | Q(requested_at__gte=start))
    rows, counts = read_first_rows(found.order_by(DECIDED, "requested_at", "pk"), unsigned=PENDING)
    unsigned, total = counts["unsigned"], counts["total"]
    return ReportSection(
        slug="break_glass",
        title="Break-glass and reviews",
        summary=_summarize_reviews(unsigned, total),
        tone="bad" if unsigned else "warn" if total else "good",
        columns=("switch", "what", "why", "by", "used_at", "review"),
        rows=tuple(
            ReportRow(
                {
                    "switch": review.target,
                    "what": review.summary,
                    "why": shorten_reason(review.reason),
                    "by": review.requested_by,
                    "used_at": timestamp(review.requested_at),
                    "review": "not signed"
                    if review.state == "pending"
                    else f"{review.state} by {review.decided_by}",
                },
                "/approvals/",
            )
            for review in rows
        ),
        total=total,
    )


@REPORT_SECTIONS.add(80)
def approvals_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
    requests = Approval.objects.exclude(kind=REVIEW).filter(requested_at__lt=min(end, now))
    found = requests.filter(PENDING | Q(decided_at__gte=start, decided_at__lt=end))
    rows, counts = read_first_rows(
        found.order_by(DECIDED, F("decided_at").desc(nulls_first=True), "pk"),
        **{state.value: Q(state=state) for state in Approval.State},
    )
    total, pending = counts.pop("total"), counts.pop("pending")
    parts = [f"{count:,} {state}" for state, count in sorted(counts.items()) if count]
    parts += [f"{pending:,} waiting"] if pending else []
    return ReportSection(
        slug="approvals",
        title="Approvals",
        summary=f"{', '.join(parts)}." if total else "Nobody had to be asked.",
        tone="warn" if pending or counts["expired"] else "good",
        columns=("about", "what", "state", "asked_by", "asked_at", "decided_by", "comment"),
        rows=tuple(
            ReportRow(
                {
                    "about": approval.target,
                    "what": approval.summary,
                    "state": approval.state,
                    "asked_by": approval.requested_by,
                    "asked_at": timestamp(approval.requested_at),
                    "decided_by": approval.decided_by,
                    "comment": shorten_reason(approval.comment),
                },
                "/approvals/",
            )
            for approval in rows
        ),
        total=total,
    )


@REPORT_SECTIONS.add(70)
def overridden_section(start: datetime, end: datetime, _now: datetime) -> ReportSection:
    broken = Approval.objects.filter(kind=REVIEW, requested_at__gte=start, requested_at__lt=end)
    found = list(broken.order_by("-requested_at", "-pk").values_list("diff", "target"))
    times = Counter(rule for diff, _ in found for rule in _get_rule_names(diff))
    did = Counter(str(diff.get("did") or "go on") for diff, _ in found)
    last: dict[str, str] = {}
    for diff, target in found:
        for rule in _get_rule_names(diff):
            last.setdefault(rule, target.partition("#")[0])
    actions = " and ".join(f"{count:,} to {what}" for what, count in sorted(did.items()))
    return ReportSection(
        slug="rules_overridden",
        title="Safety rules overridden",
        summary=(
            f"{pluralize(len(found), 'time')} somebody set a safety rule aside: {actions}."
            if found
            else "No safety rule was set aside."
        ),
        tone="warn" if found else "good",
        columns=("rule", "times", "last_by_switch"),
        rows=tuple(
            ReportRow({"rule": rule, "times": count, "last_by_switch": last[rule]}, "/rules/")
            for rule, count in times.most_common(MAX_ROWS)
        ),
        total=len(times),
    )


def _summarize_reviews(unsigned: int, total: int) -> str:
    if not total:
        return "Nobody broke the glass, and no review is open."
    if unsigned:
        return f"{pluralize(unsigned, 'review')} not signed by a second person."
    return f"{pluralize(total, 'review')} of this week, all signed."


def _get_rule_names(diff: dict[str, Any]) -> list[str]:
    return [str(rule) for rule in diff.get("rules") or [diff.get("rule") or "not named"]]
