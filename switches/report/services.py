"""Functions that generate, send and sign weekly reports, each once per week and team.

`team` is the slug of the team that a report is for, "" for the report about everything.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import canonical
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.authority import read_teams
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalations import services as escalations
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.json_values import require_readable
from controlplane.core.message_templates import severity_of
from controlplane.core.outbox import router
from controlplane.core.outbox import services as outbox
from switches.models import WeeklyReport, WeekReport
from switches.report import compose, signatures, weeks
from switches.report.section_rows import pluralize
from switches.report.weeks import Week

KIND = "report"
MAX_MISSED_WEEKS = 4
RETRY_PERIOD = timedelta(hours=1)
MAX_COMMENT_LENGTH = 2000
MAX_LINES = 4
GOOD = "good"
HEADLINES = {"warn": "needs attention", "unknown": "incomplete", GOOD: "nothing needs action"}
BEAT = "weekly report"
READY = "report.ready"
STEP_NAMES = ("make", "make_teams", "tell_teams", "tell")


class UnreadSections(Exception):
    """Raised if sections of a report could not be read and may be retried."""


@transaction.atomic
def generate_report(
    *, week: Week, team: str = "", actor: Actor, now: datetime, patiently: bool = False
) -> WeekReport:
    """Return the saved final report of a week, or generate the week's report now and save it.

    A report is final if its week is over. Generating replaces an earlier report and its signature.
    A final unsigned report with unreadable sections is generated again. The report's anchor is the
    id and hash of an audit row that stores the content's hash.

    Raise :class:`NotFound` for a week that has not begun, or an unknown team. With `patiently`,
    raise :class:`UnreadSections` until an hour after the due time instead of saving an incomplete
    report.
    """
    if week.starts_at(compose.get_zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    name = read_teams().owner_of(f"team:{team}") if team else None
    if team and name is None:
        raise NotFound(f"There is no team {team!r}.")
    report = _lock_or_create(week, team, now)
    missing = compose.list_unread_sections(report.content)
    if report.final and (report.signed_at is not None or not missing):
        return report
    content = compose.compose(week, now, name)
    unread = compose.list_unread_sections(content)
    if report.final and len(unread) >= len(missing):
        return report
    if patiently and unread and now < week.due_at(compose.get_zone()) + RETRY_PERIOD:
        raise UnreadSections(f"{week}: {', '.join(unread)}")
    entry = audit.record(
        actor=actor,
        action="report.generated",
        target=get_subject(report.week, report.team),
        after={"final": content["final"], "sha256": canonical.digest(content)},
        now=now,
    )
    report.content, report.final, report.generated_at = content, content["final"], now
    report.anchor_id, report.anchor_hash = entry.pk, entry.hash
    if report.final:
        report.sent_at = None  # It was sent before the week ended.
    report.signed_at, report.signed_by, report.comment = None, "", ""
    report.save()
    return report


@transaction.atomic
def send_report(*, week: Week, team: str = "", actor: Actor, now: datetime) -> bool:
    """Announce the saved report of a week once and return True if sent now.

    Nothing is sent while no notification route leads to a destination. A team's report goes to the
    channels of the team alone, or of the nearest team above that has some. A final report opens an
    escalation until it is signed; that of a team only if it has channels or somebody on call, so
    that the people on call for everything aren't called for each team that reaches nobody.
    """
    report = _lock_report(week, team)
    if report.sent_at is not None:
        return False
    facts = _build_facts(report)
    resource = get_resource(team)
    to = _find_channels(resource, now) if team else None
    destinations = outbox.announce(
        event=READY,
        event_key=f"{get_subject(report.week, report.team)}:{report.anchor_id}",
        subject=get_subject(report.week, report.team),
        resource=resource,
        facts=facts,
        now=now,
        to=to,
    )
    is_reached = not team or destinations > 0 or router.find_on_call(team, now) is not None
    if report.final and report.signed_at is None and is_reached:
        escalations.open_escalation(
            subject=get_subject(report.week, report.team),
            event="report.unsigned",
            severity="warning",
            facts=facts,
            now=now,
            resource=resource,
            announced=destinations > 0,
        )
    if not destinations:
        return False
    report.sent_at = now
    report.save(update_fields=["sent_at"])
    audit.record(
        actor=actor,
        action="report.sent",
        target=get_subject(report.week, report.team),
        after={"final": report.final, "destinations": destinations},
        now=now,
    )
    return True


@transaction.atomic
def sign_report(
    *,
    week: Week,
    team: str = "",
    comment: str,
    anchor_id: int | None = None,
    actor: Actor,
    now: datetime,
) -> WeekReport:
    """Sign a saved report; signing again changes nothing.

    :func:`.signatures.may_sign` says who may.
    A report of the running week can be signed, but its final version needs another signature.
    `anchor_id` identifies the version that the person read. Raise :class:`Forbidden`,
    :class:`NotFound`, or :class:`Conflict` if another person has signed or the report was generated
    again.
    """
    signatures.require_signer(actor, team, now)
    require_readable(comment=comment)
    report = _lock_report(week, team)
    if report.signed_at is not None:
        if report.signed_by.partition(":")[2] == actor.name:
            return report
        raise Conflict(
            f"{report.signed_by} has already signed the report{_format_of(report)} for {week}.",
            signed_by=report.signed_by,
        )
    if anchor_id not in (None, report.anchor_id):
        raise Conflict(
            f"The report{_format_of(report)} for {week} was generated again since you opened it."
            " Read it again, then sign.",
            anchor=report.anchor_id,
        )
    report.signed_at, report.signed_by = now, actor.label
    report.comment = comment.strip()[:MAX_COMMENT_LENGTH]
    report.save(update_fields=["signed_at", "signed_by", "comment"])
    escalations.close(subject=get_subject(report.week, report.team), now=now)
    entry = audit.record(
        actor=actor,
        action="report.signed",
        target=get_subject(report.week, report.team),
        reason=report.comment,
        after={"sha256": canonical.digest(report.content)},
        now=now,
    )
    outbox.announce(
        event="report.signed",
        event_key=f"audit:{entry.pk}",
        subject=get_subject(report.week, report.team),
        resource=get_resource(team),
        facts={
            "week": report.week,
            "of": _format_of(report),
            "by": actor.label,
            "comment": report.comment,
            "path": get_path(report),
        },
        now=now,
        to=_find_channels(get_resource(team), now) if team else None,
    )
    return report


def run_due(now: datetime) -> int:
    """Start jobs for the last due report and up to four missing earlier ones; return how many.

    Weeks before the first audit row are skipped. Concurrent calls start each job once. A failed job
    is retried after an hour, a cancelled job is not.
    """
    due = _weeks_to_make(now)
    if not due:
        return 0
    subjects = [get_subject(week) for week in due]
    jobs: dict[str, list[Job]] = {name: [] for name in subjects}
    for job in Job.objects.filter(kind=KIND, subject__in=subjects).order_by("id"):
        jobs[job.subject].append(job)
    return sum(_begin_job(week, jobs[get_subject(week)], now) for week in due)


def _weeks_to_make(now: datetime) -> list[Week]:
    last = weeks.last_due(now, compose.get_zone())
    candidates = [last.later(-n) for n in range(MAX_MISSED_WEEKS + 1)]
    saved = dict(
        WeeklyReport.objects.filter(week__in=map(str, candidates), final=True).values_list(
            "week", "sent_at"
        )
    )
    began_at = audit.find_beginning()
    if began_at is None:
        return []
    failed = Job.objects.filter(kind=KIND, subject=get_subject(last)).order_by("-id").first()
    is_unsent = str(last) in saved and saved[str(last)] is None
    is_incomplete = failed is not None and failed.state == Job.State.FAILED
    unsent = [last] if is_unsent or (is_incomplete and str(last) in saved) else []
    missing = [week for week in candidates if str(week) not in saved]
    return unsent + [week for week in missing if began_at < week.ends_at(compose.get_zone())]


@transaction.atomic
def _begin_job(week: Week, earlier: Sequence[Job], now: datetime) -> bool:
    if earlier and not _may_follow(earlier[-1], now):
        return False
    number = len(earlier) + 1
    job = control.create_job(
        kind=KIND,
        key=get_subject(week) if number == 1 else f"{get_subject(week)}:{number}",
        subject=get_subject(week),
        steps=[control.PlannedStep(name) for name in STEP_NAMES],
        reason=f"Due {timestamp(week.due_at(compose.get_zone()))}.",
        actor=system_actor(BEAT),
        now=now,
    )
    return job is not None


def _may_follow(job: Job, now: datetime) -> bool:
    if job.state == Job.State.FAILED:
        return job.finished_at is not None and job.finished_at <= now - RETRY_PERIOD
    return job.state == Job.State.COMPLETED


def _lock_or_create(week: Week, team: str, now: datetime) -> WeekReport:
    """Lock and return the week's report, created if missing; concurrent calls wait here."""
    reports = compose.select_reports(team)
    reports.bulk_create([compose.build_report(week, now, {}, team)], ignore_conflicts=True)
    return _lock_report(week, team)


def _lock_report(week: Week, team: str) -> WeekReport:
    reports = compose.select_reports(team).select_for_update()
    report: WeekReport | None = reports.filter(week=str(week)).first()
    if report is None:
        raise NotFound(f"There is no report{f' of {team}' if team else ''} for {week}.")
    return report


def _find_channels(resource: str, now: datetime) -> Sequence[str]:
    found = router.get().owner_channels(READY, severity_of(READY), [resource], now)
    return found.get(resource, ())


def _build_facts(report: WeekReport) -> dict[str, Any]:
    ordered = compose.worst_first(report.content)
    acting = [section for section in ordered if section["tone"] != GOOD]
    bad = sum(section["tone"] == "bad" for section in ordered)
    counts = [f"{s['title']}: {s['total']:,}" for s in ordered if s["total"]]
    return {
        "week": report.week,
        "of": _format_of(report),
        "team": report.team_name or None,
        "kind": "" if report.final else ", so far",
        "headline": f"action needed in {pluralize(bad, 'section')}"
        if bad
        else HEADLINES[acting[0]["tone"] if acting else GOOD],
        **{
            f"line_{number}": f"{section['title']}: {section['summary']}"
            for number, section in enumerate(acting[:MAX_LINES], 1)
        },
        "counts": " · ".join(counts),
        "environment": report.content["environment"],
        "anchor": f"{report.anchor_id}:{report.anchor_hash}",
        "path": get_path(report),
    }


def _format_of(report: WeekReport) -> str:
    return f" of {report.team_name}" if report.team else ""


def get_subject(week: Week | str, team: str = "") -> str:
    return f"report:{week}:{team}" if team else f"report:{week}"


def get_resource(team: str) -> str:
    return f"team:{team}" if team else ""


def get_path(report: WeekReport) -> str:
    path = f"/reports/weekly/{report.week}/"
    return f"{path}{report.team}/" if report.team else path
