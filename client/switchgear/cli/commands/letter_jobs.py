"""Bulk jobs over dead letters: how far each has come, pausing, resuming, cancelling."""

import argparse
from collections.abc import Callable

from switchgear.cli import exits
from switchgear.cli.call import Call
from switchgear.cli.commands import showing
from switchgear.cli.console import Document, place
from switchgear.cli.parser import Commands, reason
from switchgear.cli.views import letters as views
from switchgear.cli.words import Part

MAX_LISTED = 50
VERBS = {
    "pause": "let a job stand still until it is resumed",
    "resume": "let a paused job go on where it was",
    "cancel": "end a job for good; what it has done stays done",
}


def register(dlq: Commands) -> None:
    job = dlq.group(
        "job",
        "bulk jobs: list, show, follow, pause, resume, cancel",
        ("list", listed, "jobs that are not over, or all", _list),
    )
    job.add("show", show, "one job", _which)
    job.add("follow", follow, "one job until it is over", _which)
    for verb, said in VERBS.items():
        job.add(verb, _acting(verb), said, _act)


def listed(call: Call) -> int:
    query = {"state": None if call.args.all else "live", "stream": call.args.stream}
    page = call.console.pages("/dlq/jobs/", query, MAX_LISTED)
    found = page["results"]
    if page["more"]:
        showing.cut(call, MAX_LISTED, "jobs; the newest are shown")
    empty = "There was no job yet." if call.args.all else "No job is under way."
    return showing.table(call, found, views.JOB_COLUMNS, views.job_row, empty)


def show(call: Call) -> int:
    one = call.console.get(f"/dlq/jobs{place(call.args.job)}/")
    if not call.show(one):
        show_one(call, one)
    return exits.DONE


def follow(call: Call) -> int:
    return follow_one(call, call.args.job)


def show_one(call: Call, one: Document) -> None:
    call.screen.line(Part(f"job {one['id']}", "name"), "  ", views.job_state(one))
    call.screen.facts(views.job_facts(one, call.clock))


def follow_one(call: Call, job_id: int, begun: Callable[[], None] | None = None) -> int:
    """Until it is over; then it is shown. `begun` tells what began it, if it can't be followed to
    its end."""
    said = f"The job began, but it could not be followed (switchgear dlq job follow {job_id}):"
    with call.unless_lost(begun, said), call.screen.progress() as progress:
        for one in call.following(f"/dlq/jobs{place(job_id)}/"):
            done, total = one["progress"]["done"], one["progress"]["total"]
            why = f": {one['hold_reason']}" if one["hold_reason"] else ""
            what = f"job {job_id} {one['state']}{why}"
            progress.tell(what, done, total, f"{done:,} of {total:,}")
            if one["state"] in views.OVER:
                break
    if not call.show(one):
        show_one(call, one)
    if one["state"] == "completed":
        return exits.DONE
    said = one["error"] or one["outcome"] or "see above"
    raise exits.ended(exits.FAILED, "job-over", f"The job is {one['state']}: {said}")


def _acting(verb: str) -> Callable[[Call], int]:
    def act(call: Call) -> int:
        path = f"/dlq/jobs{place(call.args.job)}/{verb}"
        one = call.console.send("POST", path, {"reason": call.args.reason}).document
        if not call.show(one):
            show_one(call, one)
        return exits.DONE

    return act


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also those that are over")
    parser.add_argument("--stream", metavar="STREAM", help="only of this one")


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", type=int, metavar="JOB", help="its number")


def _act(parser: argparse.ArgumentParser) -> None:
    _which(parser)
    reason(parser, "why; it is kept in the audit trail", required=False)
