"""Commands for bulk jobs over dead letters: `dlq job list|show|follow|pause|resume|cancel`."""

from collections.abc import Callable
from functools import partial

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.formatters import StyledText
from switchgear.cli.parser import Commands, option, reason_option
from switchgear.cli.views import letters as views

MAX_LISTED = 50
VERBS = {
    "pause": "pause a job",
    "resume": "resume a paused job",
    "cancel": "cancel a job permanently; completed work is kept",
}


def register(dlq: Commands) -> None:
    jobs = dlq.add_group(
        "job",
        "bulk jobs: list, show, follow, pause, resume, cancel",
        list_jobs,
        "list unfinished jobs",
        option("--all", action="store_true", help="include finished jobs"),
        option("--stream", metavar="STREAM", help="only jobs of this stream"),
    )
    job = option("job", type=int, metavar="JOB", help="job number")
    why = reason_option("reason for the audit trail", required=False)
    jobs.add("show", show_job, "show a job", job)
    jobs.add("follow", follow_given_job, "show the progress of a job until it finishes", job)
    for verb, summary in VERBS.items():
        jobs.add(verb, partial(_change_job, verb), summary, job, why)


def list_jobs(call: CommandContext) -> None:
    query = {"state": None if call.args.all else "live", "stream": call.args.stream}
    what = "jobs; showing the newest"
    found = output.get_items(call, "/dlq/jobs/", query, MAX_LISTED, what)
    empty = "No jobs yet." if call.args.all else "No unfinished jobs."
    output.print_table(call, found, views.JOB_COLUMNS, views.job_row, empty)


def show_job(call: CommandContext) -> None:
    print_job(call, call.console.get(f"/dlq/jobs{url_path(call.args.job)}/"))


def follow_given_job(call: CommandContext) -> None:
    follow_job(call, call.args.job)


def print_job(call: CommandContext, one: Document) -> None:
    if not call.print_json(one):
        call.screen.line(StyledText(f"job {one['id']}", "name"), "  ", views.format_job_state(one))
        call.screen.facts(views.job_facts(one, call.clock))


def follow_job(call: CommandContext, job_id: int, begun: Callable[[], None] | None = None) -> None:
    """Show the progress of a job until it is over, and print it. Raise unless it completed.

    If the progress can't be followed, `begun` is called: it prints the console's response to the
    request that started the job.
    """
    detail = (
        "The job started, but its progress can't be shown. To retry: switchgear dlq job follow"
        f" {job_id}. Cause:"
    )
    with call.report_if_lost(begun, detail), call.screen.progress() as progress:
        for one in call.poll(f"/dlq/jobs{url_path(job_id)}/"):
            done, total = one["progress"]["done"], one["progress"]["total"]
            why = f": {one['hold_reason']}" if one["hold_reason"] else ""
            what = f"job {job_id} {one['state']}{why}"
            progress.update(what, done, total, f"{done:,} of {total:,}")
            if one["state"] in views.OVER:
                break
    print_job(call, one)
    if one["state"] != "completed":
        detail = one["error"] or one["outcome"] or "see above"
        raise exits.make_exit(exits.FAILED, "job-over", f"Job {one['state']}: {detail}")


def _change_job(verb: str, call: CommandContext) -> None:
    path = f"/dlq/jobs{url_path(call.args.job)}/{verb}"
    print_job(call, call.send("POST", path, {"reason": call.args.reason}))
