"""Commands that retry, discard or purge dead letters, by id or in bulk."""

import argparse
from functools import partial

from switchgear.cli import exits, output
from switchgear.cli.api_client import Document, url_path
from switchgear.cli.command_context import CommandContext
from switchgear.cli.commands import letter_jobs
from switchgear.cli.formatters import StyledText
from switchgear.cli.parser import DRY_RUN, Commands, option, parse_rate, reason_option
from switchgear.cli.views import letters as views

MORE = (
    "Letters given by ID are processed immediately. With a filter or --all, a rate-limited"
    " background job does the work."
)
FILTERS = {
    "fingerprint": "fingerprint of a group, from `dlq groups`",
    "error": "text in the error",
    "error_type": "exact error type",
    "q": "text in any field name or value",
    "field": "field or JSON path that exists, or path=value",
    "value": "value of --field",
    "before": "failed before this time (RFC 3339)",
    "after": "failed at this time or later",
}
SERVER = option("--server", metavar="NAME", help="Redis server, if there are several")
STREAM = option("stream", metavar="STREAM", help="stream, such as axiom:dlq:events, or outbox")


def register(dlq: Commands) -> None:
    ids = option("ids", nargs="*", metavar="ID", help="letter IDs")
    why = reason_option("what was wrong and what has changed since")
    edit = option(
        "--edit",
        action="append",
        parse=_parse_edit,
        metavar="FIELD=VALUE",
        help=(
            "change a field before the retry; FIELD= removes it. Repeatable for letters given by"
            " ID; a bulk job takes one field or JSON path"
        ),
    )
    bulk = (
        add_filters,
        option("--all", action="store_true", help="all letters currently in the stream"),
        option("--rate", parse=parse_rate, metavar="N", help="letters per second (default: 50)"),
        SERVER,
        DRY_RUN,
    )
    follow = option(
        "--follow", action="store_true", help="wait for the job to finish and show its progress"
    )
    retry, discard, purge = (ids, why, edit, *bulk, follow), (ids, why, *bulk, follow), (why, *bulk)
    for action, summary, options, details in (
        ("retry", "send letters back to the stream they came from", retry, MORE),
        ("discard", "remove letters; the archive keeps them for 30 days", discard, MORE),
        ("purge", "archive the selected letters; requires a second person's approval", purge, ""),
    ):
        dlq.add(action, partial(_act, action), summary, STREAM, *options, details=details)


def add_filters(parser: argparse._ActionsContainer) -> None:
    which = parser.add_argument_group("which letters")
    for name, text in FILTERS.items():
        which.add_argument(f"--{name.replace('_', '-')}", metavar="TEXT", help=text)


def read_filters(args: argparse.Namespace) -> dict[str, str]:
    filters = {name: getattr(args, name) for name in FILTERS}
    return {name: value for name, value in filters.items() if value is not None}


def _act(action: str, call: CommandContext) -> int | None:
    """Apply an action to letters by id, up to the first failure, or in bulk; print the results."""
    ids, filters = getattr(call.args, "ids", []), read_filters(call.args)
    if bool(ids) + bool(filters) + call.args.all != 1:
        by_id = "" if action == "purge" else "by ID, "
        detail = f"Select letters {by_id}with a filter such as --fingerprint, or with --all."
        raise exits.make_usage_exit(detail)
    if not ids:
        return _act_in_bulk(call, action, filters)
    documents: list[Document] = []
    try:
        for one in ids:
            documents.append(_act_on_letter(call, action, one))
    finally:
        if documents:
            call.print_json(documents if len(ids) > 1 else documents[0])
    return None


def _act_on_letter(call: CommandContext, action: str, letter: str) -> Document:
    """Apply an action to one letter, and print the result at once, as the next one may fail."""
    body: Document = {"reason": call.args.reason}
    query = {"server": call.args.server}
    if call.args.stream == views.OUTBOX:
        path, query = f"/dlq/outbox{url_path(letter)}/{action}", {"server": None}
    else:
        path = f"/dlq/streams{url_path(call.args.stream)}/messages{url_path(letter)}/{action}"
        if edits := getattr(call.args, "edit", None):
            body["edited_fields"] = dict(edits)
    one = call.send("POST", path, body, query)
    if not call.screen.as_json:
        _print_result(call, action, one)
    return one


def _print_result(call: CommandContext, action: str, one: Document) -> None:
    if one.get("dry_run"):
        call.screen.line(StyledText(f"Dry run: would {action} {one['id']}.", "strong"))
        return
    done = "retried" if action == "retry" else "discarded"
    new = f" as {one['new_id']}" if one.get("new_id") else ""
    number = one.get("departure")
    back = f"; to restore it: switchgear dlq restore {number} --reason …" if number else ""
    again = " (already done before)" if one.get("repeated") else ""
    call.screen.line(StyledText("✔ ", "good"), f"{one['id']} {done}{new}{again}{back}")


def _act_in_bulk(call: CommandContext, action: str, filters: dict[str, str]) -> int | None:
    args = call.args
    if args.stream == views.OUTBOX:
        raise exits.make_usage_exit("Select messages of the outbox by ID.")
    body = {
        "action": action,
        "stream": args.stream,
        "server": args.server,
        "filter": filters or None,
        "rate_per_second": args.rate,
        "reason": args.reason,
    }
    if edits := getattr(args, "edit", None):
        body["edit"] = _bulk_edit(edits)
    document = call.send("POST", "/dlq/jobs/", body)
    approval = document.get("approval")
    if isinstance(approval, dict):
        if not call.print_json(document):
            output.print_approval(call, approval)
        return exits.NEEDS_APPROVAL
    if args.dry_run:
        if not call.print_json(document):
            call.screen.line(StyledText("Dry run: nothing changed.", "strong"))
            call.screen.facts(views.plan_facts(document))
    elif getattr(args, "follow", False):
        letter_jobs.follow_job(call, document["id"], lambda: _print_job(call, document))
    else:
        _print_job(call, document)
    return None


def _print_job(call: CommandContext, document: Document) -> None:
    letter_jobs.print_job(call, document)
    if not call.screen.as_json:
        hint = f"To follow it: switchgear dlq job follow {document['id']}"
        call.screen.line(StyledText(hint, "quiet"))


def _bulk_edit(edits: list[tuple[str, str | None]]) -> Document:
    """Return the change that a job makes to each letter; a usage error unless it is one."""
    if len(edits) > 1:
        raise exits.make_usage_exit("A bulk job makes one change. Use --edit only once.")
    path, value = edits[0]
    return (
        {"op": "remove", "path": path}
        if value is None
        else ({"op": "set", "path": path, "value": value})
    )


def _parse_edit(text: str) -> tuple[str, str | None]:
    """Parse an edit of a letter's field, `FIELD=VALUE`; return the field and its new value.

    The value is None for `FIELD=`, which removes the field, and empty for `FIELD=""`.
    """
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ValueError("use FIELD=VALUE")
    if value == '""':
        return name, ""
    return name, value or None
