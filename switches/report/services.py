"""Making the weekly report, telling it, and signing it off: each once for a week."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import canonical
from controlplane.core.actors import Actor, system
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalation import services as escalations
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.json_values import require_readable
from controlplane.core.outbox import services as outbox
from controlplane.core.roles import Power
from switches.models import WeeklyReport
from switches.report import weeks
from switches.report.compose import compose, unread, worst_first, zone
from switches.report.weeks import Week

KIND = "report"
MADE_UP_FOR = 4
PATIENCE = timedelta(hours=1)
MAX_COMMENT_LENGTH = 2000
SAID_FIRST = 4
GOOD = "good"
HEADLINES = {"warn": "to look at", "unknown": "not all is known", GOOD: "all calm"}
BEAT = "weekly report"


class Unread(Exception):
    """Parts of a report could not be read, and there is time to try again."""


@transaction.atomic
def generate(*, week: Week, actor: Actor, now: datetime, patiently: bool = False) -> WeeklyReport:
    """The report of the week, made now unless a final one is there already.

    It is final if its week is over; until then each new one replaces the last, and a signature with
    it: what was signed is not what stands there now. A final one of which parts could not be read
    is made anew while nobody has signed it. Its audit row holds the hash of its content, and the
    report holds that row's number and hash: the head of the chain when it was made.

    Raises :class:`NotFound` for a week that has not begun; with `patiently` :class:`Unread` within
    an hour after the report was due, rather than make it final without some of its parts.
    """
    if week.starts_at(zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    report = _locked_or_new(week, now)
    missing = unread(report.content)
    if report.final and (report.signed_at is not None or not missing):
        return report
    content = compose(week, now)
    if report.final and len(unread(content)) >= len(missing):
        return report
    if patiently and unread(content) and now < week.due_at(zone()) + PATIENCE:
        raise Unread(f"{week}: {', '.join(unread(content))}")
    entry = audit.record(
        actor=actor,
        action="report.generated",
        target=subject(report.week),
        after={"final": content["final"], "sha256": canonical.digest(content)},
        now=now,
    )
    report.content, report.final, report.generated_at = content, content["final"], now
    report.anchor_id, report.anchor_hash = entry.pk, entry.hash
    if report.final:
        report.sent_at = None  # Of what was told while the week ran.
    report.signed_at, report.signed_by, report.comment = None, "", ""
    report.save()
    return report


@transaction.atomic
def send(*, week: Week, actor: Actor, now: datetime) -> bool:
    """Tell the report that is kept for the week; returns whether somebody is told of it now.

    It is not told twice, and it is not told while no route leads anywhere. A final one waits for a
    signature from then on: it is told again, further up, until it has one.
    """
    report = _locked(week)
    if report.sent_at is not None:
        return False
    facts = _facts(report)
    destinations = outbox.announce(
        event="report.ready",
        event_key=f"report:{report.week}:{report.anchor_id}",
        subject=subject(report.week),
        facts=facts,
        now=now,
    )
    if report.final and report.signed_at is None:
        escalations.open_escalation(
            subject=subject(report.week),
            event="report.unsigned",
            severity="warning",
            facts=facts,
            now=now,
            announced=destinations > 0,
        )
    if not destinations:
        return False
    report.sent_at = now
    report.save(update_fields=["sent_at"])
    audit.record(
        actor=actor,
        action="report.sent",
        target=subject(report.week),
        after={"final": report.final, "destinations": destinations},
        now=now,
    )
    return True


@transaction.atomic
def sign(
    *, week: Week, comment: str, anchor_id: int | None = None, actor: Actor, now: datetime
) -> WeeklyReport:
    """Sign off a kept report: a person who may approve has read it. Once; again by them is fine.

    One that was made while its week ran can be signed as well; the final one is then another.
    `anchor_id` names the report that was read: the audit row it was made with. Raises
    :class:`Forbidden`, :class:`NotFound`, or :class:`Conflict` if somebody else signed, or the
    report was made anew since it was read.
    """
    actor.require_power(Power.APPROVE)
    require_readable(comment=comment)
    report = _locked(week)
    if report.signed_at is not None:
        if report.signed_by.partition(":")[2] == actor.name:
            return report
        raise Conflict(
            f"{report.signed_by} has signed the report of {week}.", signed_by=report.signed_by
        )
    if anchor_id not in (None, report.anchor_id):
        raise Conflict(
            f"The report of {week} was made anew since you opened it. Read it again, then sign.",
            anchor=report.anchor_id,
        )
    report.signed_at, report.signed_by = now, actor.label
    report.comment = comment.strip()[:MAX_COMMENT_LENGTH]
    report.save(update_fields=["signed_at", "signed_by", "comment"])
    escalations.close(subject=subject(report.week), now=now)
    entry = _note_signature(report, actor, now)
    outbox.announce(
        event="report.signed",
        event_key=f"audit:{entry.pk}",
        subject=subject(report.week),
        facts={
            "week": report.week,
            "by": actor.label,
            "comment": report.comment,
            "path": _path(report),
        },
        now=now,
    )
    return report


def run_due(now: datetime) -> int:
    """Begin the job that makes and tells the last report that is due, and those of up to four
    earlier ones that are missing; returns how many were begun.

    Nothing is made of weeks before this installation's first audit row. Safe to run twice at once:
    the jobs of a week are numbered. One that failed is followed by another after an hour; one that
    somebody cancelled is not.
    """
    wanted = _wanted(now)
    if not wanted:
        return 0
    subjects = [subject(week) for week in wanted]
    jobs: dict[str, list[Job]] = {name: [] for name in subjects}
    for job in Job.objects.filter(kind=KIND, subject__in=subjects).order_by("id"):
        jobs[job.subject].append(job)
    return sum(_begun(week, jobs[subject(week)], now) for week in wanted)


def _wanted(now: datetime) -> list[Week]:
    """The weeks that something is to be done about, the last first."""
    last = weeks.last_due(now, zone())
    candidates = [last.later(-n) for n in range(MADE_UP_FOR + 1)]
    kept = dict(
        WeeklyReport.objects.filter(week__in=map(str, candidates), final=True).values_list(
            "week", "sent_at"
        )
    )
    began_at = AuditEntry.objects.order_by("id").values_list("at", flat=True).first()
    if began_at is None:
        return []
    untold = [last] if str(last) in kept and kept[str(last)] is None else []
    missing = [week for week in candidates if str(week) not in kept]
    return untold + [week for week in missing if began_at < week.ends_at(zone())]


@transaction.atomic
def _begun(week: Week, earlier: Sequence[Job], now: datetime) -> bool:
    if earlier and not _may_follow(earlier[-1], now):
        return False
    number = len(earlier) + 1
    job = control.begin(
        kind=KIND,
        key=subject(week) if number == 1 else f"{subject(week)}:{number}",
        subject=subject(week),
        steps=[control.PlannedStep("make"), control.PlannedStep("tell")],
        reason=f"Due {timestamp(week.due_at(zone()))}.",
        actor=system(BEAT),
        now=now,
    )
    return job is not None


def _may_follow(job: Job, now: datetime) -> bool:
    """Whether another job may follow this one about the same week."""
    if job.state == Job.State.FAILED:
        return job.finished_at is not None and job.finished_at <= now - PATIENCE
    return job.state == Job.State.COMPLETED


def _locked_or_new(week: Week, now: datetime) -> WeeklyReport:
    """Whoever comes second waits here for the first, and finds what that made."""
    WeeklyReport.objects.bulk_create(
        [
            WeeklyReport(
                week=str(week),
                starts_at=week.starts_at(zone()),
                ends_at=week.ends_at(zone()),
                generated_at=now,
                content={},
            )
        ],
        ignore_conflicts=True,
    )
    return _locked(week)


def _locked(week: Week) -> WeeklyReport:
    report = WeeklyReport.objects.select_for_update().filter(week=str(week)).first()
    if report is None:
        raise NotFound(f"There is no report of {week}.")
    return report


def _note_signature(report: WeeklyReport, actor: Actor, now: datetime) -> AuditEntry:
    return audit.record(
        actor=actor,
        action="report.signed",
        target=subject(report.week),
        reason=report.comment,
        after={"sha256": canonical.digest(report.content)},
        now=now,
    )


def _facts(report: WeeklyReport) -> dict[str, Any]:
    """The digest: how bad it is in a few words, the worst in a few lines, the rest as counts."""
    ordered = worst_first(report.content)
    acting = [section for section in ordered if section["tone"] != GOOD]
    bad = sum(section["tone"] == "bad" for section in ordered)
    counts = [f"{s['title']}: {s['total']:,}" for s in ordered if s["total"]]
    return {
        "week": report.week,
        "kind": "" if report.final else ", so far",
        "headline": f"{bad} to settle" if bad else HEADLINES[acting[0]["tone"] if acting else GOOD],
        **{
            f"line_{number}": f"{section['title']}: {section['summary']}"
            for number, section in enumerate(acting[:SAID_FIRST], 1)
        },
        "counts": " · ".join(counts),
        "environment": report.content["environment"],
        "anchor": f"{report.anchor_id}:{report.anchor_hash}",
        "path": _path(report),
    }


def subject(week: Week | str) -> str:
    """What everything about the report of a week is known by: `report:2026-W47`."""
    return f"report:{week}"


def _path(report: WeeklyReport) -> str:
    return f"/reports/weekly/{report.week}/"
